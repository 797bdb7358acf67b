"""Outbox: entries written beside the state they follow, relayed to another tag, one effect for each uid.

``docs/patterns/outbox.md`` says when to choose it and what it cannot promise.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar, Unpack

from keystead.engine import Pipeline, Script, Valkey, until_replicated
from keystead.engine.scripts import ScriptRunner
from keystead.errors import DeclarationError, Invalid
from keystead.keys import AtMost, FlagKey, FlagRef, Keyspace, ListKey, ListRef, Value
from keystead.keys.codecs import Of
from keystead.keys.executor import Executor
from keystead.patterns.facts import PatternFacts, told
from keystead.patterns.worklist_items import DeadLetter, DeadLetterCodec, Spoiled, count_spoiled, facts_of, opened

T = TypeVar("T")

REMOVE = Script("keystead.patterns", "scripts/outbox/remove.lua")
DELIVER = Script("keystead.patterns", "scripts/outbox/deliver.lua")

SEEN_SECONDS = 86400.0
MOST_ENTRIES = 5000


class Delivery(Enum):
    """What became of a delivery as a whole."""

    ACCEPTED = "accepted"
    NO_ROOM = "no room"


@dataclass(frozen=True, slots=True)
class OutboxEntry(Generic[T]):
    """One entry: its uid, its value, and the bytes that travel."""

    uid: str
    value: T
    raw: bytes


@dataclass(frozen=True, slots=True)
class Relayed:
    """One turn of a relay: entries delivered, entries that could not be, and whether the target was full."""

    delivered: int
    dead: int = 0
    full: bool = False


# Brings entries to their place, in order; must bear being called again with the same ones.
Deliver = Callable[[Sequence[OutboxEntry[T]]], Awaitable[Delivery]]


class Outbox(Generic[T]):
    """A list under the tag of the state whose changes it announces.

    ``add`` goes into the transaction (or the bytes into the script) that makes the change, so an entry exists exactly
    when the change does. A relay brings entries, oldest first, to another tag and then removes them. Any number of
    relays may run: what two of them deliver twice has one effect, since the receiving side marks each uid.

    ``uid`` reads an entry's unique identifier, normally its field ``uid``. Declares the list and ``{list}:dead`` for
    entries that do not decode.
    """

    def __init__(
        self, keyspace: Keyspace, pattern: str, of: Of[T], *, uid: Callable[[T], str] | None = None,
        **facts: Unpack[PatternFacts],
    ) -> None:
        scripts = ("outbox/remove.lua",)
        self._uid = uid or _own_uid
        self.dead_key: ListKey[DeadLetter] = ListKey(
            keyspace, f"{pattern}:dead", DeadLetterCodec(), **told(facts, "entries that do not decode", scripts=scripts)
        )
        self.outbox_key: ListKey[T] = ListKey(
            keyspace, pattern, of, **told(facts, scripts=scripts, dead=self.dead_key)
        )
        self._arguments: Mapping[str, str] | None = None if self.outbox_key.template.names else {}

    def at(self, *variables: Value, **named: Value) -> "Outbox[T]":
        """The same outbox for these variables of its pattern, such as a lane."""
        bound: Outbox[T] = object.__new__(type(self))
        bound.__dict__.update(self.__dict__)
        bound._arguments = self.outbox_key.template.bind(variables, named)
        return bound

    @property
    def outbox(self) -> ListRef[T]:
        """The list, as a key: what a script is given as the place where its announcements go."""
        return self.outbox_key.at(**self._bound())

    @property
    def dead(self) -> ListRef[DeadLetter]:
        """Entries that do not decode, newest right."""
        return self.dead_key.at(**self._bound())

    def add(self, on: Executor, *entries: T) -> Awaitable[int]:
        """Append entries; belongs into the transaction of the change they announce. Returns the new length."""
        for entry in entries:
            if not self._uid(entry):
                raise DeclarationError(f"{self.outbox_key.pattern}: an entry needs a uid, or it may have two effects")
        return self.outbox.push_right(on, *entries)

    def length(self, on: Valkey | Pipeline) -> Awaitable[int]:
        """How many entries wait."""
        return self.outbox.length(on)

    async def relay(self, valkey: Valkey, deliver: Deliver[T], *, now: float, most: int = 100) -> Relayed:
        """Deliver up to ``most`` of the oldest entries, then remove them.

        A crash in between delivers them again, with no second effect. What ``deliver`` raises is raised here, and the
        entries stay, foremost. Those that do not decode or have no uid go to the dead letters and stop no others.
        """
        if not 1 <= most <= MOST_ENTRIES:
            raise Invalid(f"a relay delivers 1 to {MOST_ENTRIES} entries at a time, got {most}")
        outbox = self.outbox
        name = outbox.name(valkey.layout)
        raws: list[bytes] = await valkey.run(("LRANGE", name, 0, most - 1), list, repeat=True)
        if not raws:
            return Relayed(0)
        # An entry that a failover takes back announces a change that was never made.
        await until_replicated(valkey, name)
        entries, spoiled = self._entries(raws)
        delivery = await deliver(entries) if entries else Delivery.ACCEPTED
        full = delivery is Delivery.NO_ROOM
        count_spoiled(self.outbox_key, spoiled)
        pairs = [part for each in spoiled for part in (each.raw, facts_of(each.reason, now))]
        done = [] if full else [entry.raw for entry in entries]
        if done or pairs:
            await REMOVE(valkey, keys=[outbox, self.dead], args=(len(raws), len(done), *done, *pairs))
        return Relayed(len(done), len(spoiled), full)

    def _entries(self, raws: Sequence[bytes]) -> tuple[list[OutboxEntry[T]], tuple[Spoiled, ...]]:
        """Entries that can be delivered; those that do not decode or have no uid are told apart."""
        items, spoiled = opened(self.outbox_key.codec, raws)
        entries: list[OutboxEntry[T]] = []
        for item in items:
            try:
                uid = self._uid(item.value)
            except DeclarationError:
                uid = ""
            if uid:
                entries.append(OutboxEntry(uid, item.value, item.raw))
            else:
                spoiled = (*spoiled, Spoiled(item.raw, "has no uid, so it might have two effects"))
        return entries, spoiled

    async def wait(self, valkey: Valkey, timeout_seconds: float) -> bool:
        """Wait, without polling, until an entry is there; False when the time is over first. Nothing is taken."""
        key = self.outbox.name(valkey.layout)
        # Moving the first element before itself changes nothing, but waits for there to be one.
        reply = await valkey.execute_command("BLMOVE", key, key, "LEFT", "LEFT", max(timeout_seconds, 0.01))
        return reply is not None

    async def drain(self, valkey: Valkey, deliver: Deliver[T], *, now: float, most: int = 100) -> int:
        """Relay until the outbox is empty or the target is full; says how many entries were delivered."""
        total = 0
        while True:
            turn = await self.relay(valkey, deliver, now=now, most=most)
            total += turn.delivered
            if turn.full or not (turn.delivered or turn.dead):
                return total
            await asyncio.sleep(0)

    def _bound(self) -> Mapping[str, str]:
        if self._arguments is None:
            raise DeclarationError(f"{self.outbox_key.pattern} has variables: say which with at(...)")
        return self._arguments


class Inbox:
    """The receiving side: marks that say which uids have had their effect, under the tag of that effect.

    ``pattern`` has one variable for the uid; further ones are given to ``into``. A uid that comes again within
    ``held_seconds`` has no second effect.
    """

    def __init__(
        self, keyspace: Keyspace, pattern: str, *, held_seconds: float = SEEN_SECONDS, **facts: Unpack[PatternFacts]
    ) -> None:
        self.mark_key = FlagKey(keyspace, pattern, **told(
            facts, "an entry that was delivered", scripts=("outbox/deliver.lua",), ttl=AtMost(held_seconds)
        ))
        if not self.mark_key.template.names:
            raise DeclarationError(f"{pattern}: the pattern of the marks needs a variable for the uid")
        self._held_ms = round(held_seconds * 1000)

    def into(self, valkey: Valkey, target: ListRef[Any], *, limit: int | None = None, **named: Value) -> Deliver[Any]:
        """A delivery that pushes entries onto a list of the marks' tag, in order, each uid once.

        ``limit``: while the list would grow longer, nothing is pushed and the entries wait in their outbox. More
        entries than that are delivered in several steps.
        """
        if limit is not None and limit < 1:
            raise DeclarationError(f"{target.logical}: a list of at most {limit} elements takes no entries")

        async def deliver(entries: Sequence[OutboxEntry[Any]]) -> Delivery:
            pairs = [(entry.uid, entry.raw) for entry in entries]
            step = len(pairs) if limit is None else limit
            for first in range(0, len(pairs), step):
                pushed = await self.deliver(valkey, target, pairs[first : first + step], limit=limit, **named)
                if pushed is None:  # what was pushed is delivered again later, and has no second effect
                    return Delivery.NO_ROOM
            return Delivery.ACCEPTED

        return deliver

    def deliver(
        self, on: ScriptRunner, target: ListRef[Any], entries: Sequence[tuple[str, bytes]], *,
        limit: int | None = None, **named: Value,
    ) -> Awaitable[int | None]:
        """Push those bytes whose uid has no mark yet, and mark them, in one atomic step.

        Says how many were new; None when the list has no room for them. A uid that cannot stand in the name of a mark,
        one with colons say, is marked by its SHA-256.
        """
        marks = [self._mark(uid, named) for uid, _ in entries]
        most = -1 if limit is None else limit
        return DELIVER(
            on, keys=[target, *marks], args=(self._held_ms, most, *(raw for _, raw in entries)),
            decode=lambda new: None if new < 0 else new,
        )


    def _mark(self, uid: str, named: Mapping[str, Value]) -> FlagRef:
        variable = self.mark_key.template.names[-1]
        try:
            return self.mark_key.at(**{**named, variable: uid})
        except DeclarationError:
            return self.mark_key.at(**{**named, variable: hashlib.sha256(uid.encode()).hexdigest()})


def _own_uid(value: Any) -> str:
    uid = getattr(value, "uid", None)
    if not isinstance(uid, str):
        raise DeclarationError(f"{type(value).__name__} has no field uid; say uid=... how to read it")
    return uid
