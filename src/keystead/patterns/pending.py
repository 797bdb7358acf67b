"""Pending index: a sorted set of members and one record for each, never out of step.

``docs/patterns/pending.md`` says when to choose it and what it cannot promise.
"""

from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar, Unpack

import msgspec

from keystead.engine import Pipeline, Script, Valkey
from keystead.engine.scripts import ScriptRunner
from keystead.errors import Corrupt, DeclarationError
from keystead.keys import (
    KeyReference,
    Keyspace,
    ListRef,
    Pair,
    RecordKey,
    RecordRef,
    Reply,
    SortedSetKey,
    SortedSetRef,
    Undecodable,
    Value,
)
from keystead.keys.executor import Command, Executor
from keystead.keys.references_hashes import as_dict
from keystead.patterns.derived import around
from keystead.patterns.facts import PatternFacts, told
from keystead.patterns.guarded import Writes, judged

R = TypeVar("R", bound=msgspec.Struct)


def _script(verb: str) -> Script:
    return Script("keystead.patterns", f"scripts/pending/{verb}.lua")


OPEN, READ, UPDATE, REMOVE, RETRY = (_script(verb) for verb in ("open", "read", "update", "remove", "retry"))
TAKE_STALE, POP, DUE = (_script(verb) for verb in ("take_stale", "pop", "due"))

Ready = Sequence[tuple[ListRef[Any], bytes]]


class PendingOutcome(Enum):
    """What a guarded change led to."""

    DONE = 1
    ABSENT = 0
    CHANGED = -1


@dataclass(frozen=True, slots=True)
class PendingEntry(Generic[R]):
    """A member with its score and record. From ``take_stale``: the score before, the record after."""

    member: str
    score: float
    record: R


@dataclass(frozen=True, slots=True)
class BrokenRecord:
    """A member that cannot be one, or whose record does not decode: its fields as they are, and why."""

    member: str
    score: float
    fields: Mapping[bytes, bytes]
    error: Corrupt


@dataclass(frozen=True, slots=True)
class PendingEntries(Generic[R]):
    """What was found, lowest score first.

    ``repaired``: pairs of which a half was missing, removed; after 1,000 of them a call ends, so where some were
    repaired and nothing was found there may be more. ``broken`` records do not decode.
    """

    found: list[PendingEntry[R]]
    broken: tuple[BrokenRecord, ...] = ()
    repaired: int = 0

    def __iter__(self) -> Iterator[PendingEntry[R]]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)


class PendingIndex(Generic[R]):
    """Members by score, each with a record. Every change touches both in one step.

    ``record`` is the pattern of the records; its last variable is the member. Records may have a field that counts
    changes (``changes``, normally ``num_changes``): a change that names the number it saw is refused when it moved.
    ``failures`` and ``called_at`` are the fields that ``take_stale`` keeps; None for records without them.
    A member with only half a pair counts as absent, and the half is removed.
    """

    def __init__(
        self, keyspace: Keyspace, pattern: str, *, record: str, of: type[R], member: str, score: str,
        changes: str | None = "num_changes", failures: str | None = None, called_at: str | None = None,
        **facts: Unpack[PatternFacts],
    ) -> None:
        scripts = tuple(f"pending/{verb}.lua" for verb in ("open", "update", "remove", "take_stale", "pop"))
        self.record_key: RecordKey[R] = RecordKey(
            keyspace, record, of, **told(facts, "details of one member", scripts=scripts)
        )
        self._variable = self.record_key.template.names[-1] if self.record_key.template.names else ""
        if not self._variable:
            raise DeclarationError(f"{record}: the pattern of the records needs a variable for the member")
        index_facts = told(facts, scripts=scripts)
        kinds = facts.get("kinds") or {}
        index_facts["kinds"] = {name: kind for name, kind in kinds.items() if name != self._variable}
        index_facts["personal"] = bool(facts.get("personal", False))
        index_facts["pairs_with"] = Pair(self.record_key, self._variable)
        self.index_key: SortedSetKey[str] = SortedSetKey(
            keyspace, pattern, str, member=member, score=score, **index_facts
        )
        unknown = [name for name in (changes, failures, called_at) if name and name not in self.fields]
        if unknown:
            raise DeclarationError(f"{record}: {of.__name__} has no field {', '.join(unknown)}")
        self._changes, self._failures, self._called_at = changes or "", failures or "", called_at or ""
        self._arguments: Mapping[str, str] | None = None if self.index_key.template.names else {}
        # Every change asks for it, so it is made once.
        self._index = self.index_key.at() if self._arguments is not None else None

    @property
    def fields(self) -> tuple[str, ...]:
        return self.record_key.record.field_names

    def at(self, *variables: Value, **named: Value) -> "PendingIndex[R]":
        """The same index for these variables of its pattern."""
        bound: PendingIndex[R] = object.__new__(type(self))
        bound.__dict__.update(self.__dict__)
        bound._arguments = self.index_key.template.bind(variables, named)
        bound._index = None
        return bound

    @property
    def arguments(self) -> Mapping[str, str]:
        if self._arguments is None:
            raise DeclarationError(f"{self.index_key.pattern} has variables: say which with at(...)")
        return self._arguments

    @property
    def index(self) -> SortedSetRef[str]:
        """The members by score, as a key."""
        return self._index or self.index_key.at(**self.arguments)

    def record(self, member: str) -> RecordRef[R]:
        """One member's record, as a key."""
        if not self.arguments:
            return self.record_key.at(member)
        return self.record_key.at(**self.arguments, **{self._variable: member})

    # -- one member -------------------------------------------------------------------------------------------------

    def open(
        self, on: ScriptRunner, member: str, record: R, score: float, *, only_new: bool = False
    ) -> Awaitable[bool]:
        """Write record and index entry together. With ``only_new`` an existing member stays and the answer is False."""
        fields = self._fields(record)
        return OPEN(on, keys=[self.index, self.record(member)], args=(member, float(score), int(only_new), *fields),
                    decode=bool)

    def write(self, on: Executor, member: str, record: R, score: float) -> Awaitable[None]:
        """Write record and index entry together, over what was there; for a caller's transaction or guarded writes."""
        index, name = self.index.name(on.layout), self.record(member).name(on.layout)
        commands: list[Command] = [
            ("ZADD", index, float(score), member), ("DEL", name), ("HSET", name, *self._fields(record))
        ]
        return on.run_block(commands, lambda replies: None)

    def _fields(self, record: R) -> list[str | bytes]:
        fields = [part for pair in self.record_key.record.encode(record).items() for part in pair]
        if not fields:
            raise DeclarationError(f"{self.record_key.pattern}: a record of which every field is None cannot be kept")
        return fields

    def get(self, on: ScriptRunner, member: str) -> Awaitable[PendingEntry[R] | None]:
        """The member with its score and record, or None. Raises ``Corrupt`` if the record does not decode."""
        reference = self.record(member)

        def decode(reply: Reply) -> PendingEntry[R] | None:
            if not reply:
                return None
            try:
                return PendingEntry(member, float(reply[0]), self.record_key.record.decode(as_dict(reply[1])))
            except Undecodable as error:
                raise reference.corrupt(error) from None

        return READ(on, keys=[self.index, reference], args=(member,), decode=decode)

    def update(
        self, on: ScriptRunner, member: str, expected: int | None, *, score: float | None = None,
        writes: Writes | None = None, **fields: Any,
    ) -> Awaitable[PendingOutcome]:
        """Change fields (None removes one) and the score, if the number of changes still is ``expected``.

        Adds one to that number. ``expected`` None asks only that the member is there. ``writes`` happen in the same
        step, or not at all.
        """
        if self._changes and self._changes in fields:
            raise DeclarationError(f"{self.record_key.pattern}: {self._changes} counts by itself; do not write it")
        written = self.record_key.record.encode_fields(fields)
        gone = [name for name in fields if name not in written]
        flat = [part for pair in written.items() for part in pair]
        done = Writes(on.layout) if writes is None else writes
        names, packed = done.packed(on.layout)
        new_score = "" if score is None else repr(float(score))
        return UPDATE(
            on, keys=[self.index, self.record(member), *names],
            args=(member, *self._guard(expected), new_score, packed, len(gone), *gone, *flat),
            decode=lambda reply: PendingOutcome(judged(done, reply)),
        )

    def remove(
        self, on: ScriptRunner, member: str, expected: int | None, *, push: Ready = (), writes: Writes | None = None
    ) -> Awaitable[PendingOutcome]:
        """Delete record and index entry, guarded as ``update``.

        In the same step, or not at all, ``push`` puts ready bytes on lists and the ``writes`` happen.
        """
        return self._guarded(REMOVE, on, member, expected, push, writes)

    def retry(self, on: ScriptRunner, member: str, expected: int | None, *, push: Ready) -> Awaitable[PendingOutcome]:
        """Push ready bytes onto lists, guarded as ``update``; the pair stays as it is."""
        return self._guarded(RETRY, on, member, expected, push, None)

    def _guarded(
        self, script: Script, on: ScriptRunner, member: str, expected: int | None, push: Ready, writes: Writes | None
    ) -> Awaitable[PendingOutcome]:
        done = Writes(on.layout)
        for target, raw in push:
            done.run(("RPUSH", target.name(on.layout), raw), int)
        if writes is not None:
            done.add(writes)
        names, packed = done.packed(on.layout)
        return script(
            on, keys=[self.index, self.record(member), *names], args=(member, *self._guard(expected), packed),
            decode=lambda reply: PendingOutcome(judged(done, reply)),
        )

    def _guard(self, expected: int | None) -> tuple[str, str]:
        if expected is not None and not self._changes:
            raise DeclarationError(f"{self.record_key.pattern} has no field that counts changes, so expect None")
        return self._changes, "" if expected is None else str(expected)

    # -- many members -----------------------------------------------------------------------------------------------

    def take_stale(self, on: ScriptRunner, most: int, *, now: float, again_at: float) -> Awaitable[PendingEntries[R]]:
        """Members whose score has come, with their records; each is put off to ``again_at`` and the call is counted.

        One atomic step. Nothing else is needed after a crash: they are stale again at ``again_at``.
        """
        args = (float(now), float(again_at), most, *self._record_name(on), self._changes, self._failures,
                self._called_at)
        return TAKE_STALE(on, keys=[self.index], args=args, decode=self._entries)

    def due(self, on: ScriptRunner, most: int, *, until: float) -> Awaitable[PendingEntries[R]]:
        """Members up to a score with their records; nothing changes. ``remove`` with ``push`` then settles each."""
        return DUE(on, keys=[self.index], args=(float(until), most, *self._record_name(on)), decode=self._entries)

    def pop(self, on: ScriptRunner, most: int, *, until: float) -> Awaitable[PendingEntries[R]]:
        """Remove members up to a score with their records and return them.

        A crash after it loses them. Where something must follow, read with ``due`` and ``remove`` with ``push``.
        """
        return POP(on, keys=[self.index], args=(float(until), most, *self._record_name(on)), decode=self._entries)

    def size(self, on: Valkey | Pipeline) -> Awaitable[int]:
        """How many members there are."""
        return self.index.size(on)

    def _member(self, raw: bytes) -> str:
        """A member off the index; someone else may have put there what can be none."""
        try:
            member = raw.decode()
            self.record(member)
        except (UnicodeDecodeError, DeclarationError):
            raise Undecodable(f"{raw!r} cannot be a {self._variable}") from None
        return member

    def _record_name(self, on: ScriptRunner) -> tuple[str, str]:
        return around(self.record_key, self._variable, self.arguments, on.layout)

    def _entries(self, reply: Reply) -> PendingEntries[R]:
        found: list[PendingEntry[R]] = []
        broken: list[BrokenRecord] = []
        for raw_member, score, fields in reply[1]:
            reference: KeyReference = self.index
            try:
                member = self._member(raw_member)
                reference = self.record(member)
                found.append(PendingEntry(member, float(score), self.record_key.record.decode(as_dict(fields))))
            except Undecodable as error:
                shown = raw_member.decode(errors="backslashreplace")
                broken.append(BrokenRecord(shown, float(score), as_dict(fields), reference.corrupt(error)))
        return PendingEntries(found, tuple(broken), reply[0])
