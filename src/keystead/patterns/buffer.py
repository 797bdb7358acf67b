"""Buffer: rows gather in a list and go to SQL in batches, each row exactly once.

``docs/patterns/buffer.md`` says when to choose it and what it cannot promise.
"""

from collections.abc import Awaitable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar, Unpack

import msgspec

from keystead.engine import Pipeline, Script, Valkey
from keystead.engine.scripts import ScriptRunner
from keystead.errors import DeclarationError
from keystead.ids import new_uid
from keystead.keys import Keyspace, ListKey, ListRef, RecordKey, Reply, SetKey, Value
from keystead.keys.codecs import Of
from keystead.keys.references import KeyReference
from keystead.patterns.facts import PatternFacts, told
from keystead.patterns.worklist import PUSH_WITHIN, REPLAY, purgatory_name
from keystead.patterns.worklist_items import DeadLetter, DeadLetterCodec, Item, Spoiled, count_spoiled, facts_of, opened

T = TypeVar("T")


def _script(verb: str) -> Script:
    return Script("keystead.patterns", f"scripts/buffer/{verb}.lua")


TAKE, TAKE_DISTINCT, FINISH, BURY = (_script(verb) for verb in ("take", "take_distinct", "finish", "bury"))


class BatchRecord(msgspec.Struct, frozen=True):
    """What is known of the batch in purgatory."""

    id: str
    taken_at: float
    handed_out: int = 0


@dataclass(frozen=True, slots=True)
class BufferBatch(Generic[T]):
    """Rows to store under one identifier.

    The store writes ``id`` in the same transaction as the rows, and nothing if it is there already. ``handed_out`` says
    how often this batch was given; above 1 an earlier attempt failed, or another process has it too. ``dropped`` counts
    equal rows left out, where the buffer keeps distinct ones. ``spoiled`` rows are dead letters already.
    """

    id: str
    rows: list[Item[T]]
    handed_out: int = 1
    dropped: int = 0
    spoiled: tuple[Spoiled, ...] = ()

    def __iter__(self) -> Iterator[Item[T]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def values(self) -> list[T]:
        return [row.value for row in self.rows]


class Buffer(Generic[T]):
    """Rows in a list, oldest left; one batch at a time lies in purgatory under an identifier that stays with it.

    Declares the list, its purgatory (``{list}_purgatory`` unless given; a set with ``distinct``, which drops equal rows
    of one batch), ``{purgatory}:batch`` with the identifier, and ``{list}:dead``. A batch keeps rows and identifier
    until it is finished, whoever takes it and however often; so a store that refuses an identifier it has seen holds
    each row once. Any number of processes may take; they share the batch.
    """

    def __init__(
        self, keyspace: Keyspace, pattern: str, of: Of[T], *, purgatory: str = "", distinct: bool = False,
        most_dead: int = 0, **facts: Unpack[PatternFacts],
    ) -> None:
        shelter = purgatory or purgatory_name(pattern)
        scripts = tuple(f"buffer/{verb}.lua" for verb in ("take_distinct" if distinct else "take", "finish", "bury"))
        self.distinct = distinct
        self._most_dead = most_dead
        self.dead_key: ListKey[DeadLetter] = ListKey(
            keyspace, f"{pattern}:dead", DeadLetterCodec(),
            **told(facts, "given up with the error, newest right", scripts=scripts[2:]),
        )
        self.buffer_key: ListKey[T] = ListKey(
            keyspace, pattern, of, **told(facts, scripts=scripts[:1], dead=self.dead_key)
        )
        held = told(facts, "the batch that is being stored", scripts=scripts, dead=self.dead_key)
        self.purgatory_key: SetKey[T] | ListKey[T] = (
            SetKey(keyspace, shelter, of, member="a row", **held) if distinct
            else ListKey(keyspace, shelter, of, **held)
        )
        self.batch_key: RecordKey[BatchRecord] = RecordKey(keyspace, f"{shelter}:batch", BatchRecord, **told(
            facts, "identifier of the batch that is being stored", scripts=scripts, personal=False
        ))
        self._arguments: Mapping[str, str] | None = None if self.buffer_key.template.names else {}

    def at(self, *variables: Value, **named: Value) -> "Buffer[T]":
        """The same buffer for these variables of its pattern."""
        bound: Buffer[T] = object.__new__(type(self))
        bound.__dict__.update(self.__dict__)
        bound._arguments = self.buffer_key.template.bind(variables, named)
        return bound

    @property
    def arguments(self) -> Mapping[str, str]:
        if self._arguments is None:
            raise DeclarationError(f"{self.buffer_key.pattern} has variables: say which with at(...)")
        return self._arguments

    @property
    def buffer(self) -> ListRef[T]:
        """The waiting rows, as a key: for a script or transaction that pushes them itself."""
        return self.buffer_key.at(**self.arguments)

    @property
    def purgatory(self) -> KeyReference:
        return self.purgatory_key.at(**self.arguments)

    @property
    def dead(self) -> ListRef[DeadLetter]:
        """The dead letters, newest right."""
        return self.dead_key.at(**self.arguments)

    def push(self, on: Valkey | Pipeline, *rows: T) -> Awaitable[int]:
        """Append, in one step; returns the new length. For use inside a caller's transaction as well."""
        return self.buffer.push_right(on, *rows)

    def try_push(self, on: ScriptRunner, *rows: T, limit: int) -> Awaitable[bool]:
        """Append all, or none if more than ``limit`` would then wait; says whether they were appended."""
        encoded = map(self.buffer_key.codec.encode, rows)
        return PUSH_WITHIN(on, keys=[self.buffer], args=(limit, *encoded), decode=bool)

    def length(self, on: Valkey | Pipeline) -> Awaitable[int]:
        """How many rows wait; those in purgatory do not count."""
        return self.buffer.length(on)

    async def take(self, on: ScriptRunner, most: int, *, now: float) -> BufferBatch[T] | None:
        """The batch that is to be stored: the one in purgatory, or a new one of up to ``most`` rows; None if none.

        Rows that do not decode become dead letters. When nothing else was in the batch, the next one is taken.
        """
        while True:
            batch = await self._take(on, most, now)
            if batch is None or not batch.spoiled:
                return batch
            count_spoiled(self.buffer_key, batch.spoiled)
            await self.bury(on, batch, batch.spoiled, error="", now=now)
            if batch.rows:
                return batch

    def finish(self, on: ScriptRunner, batch: BufferBatch[T]) -> Awaitable[bool]:
        """The rows are stored: remove the batch. False when someone did so before."""
        return FINISH(on, keys=[self.purgatory, self._batch], args=(batch.id,), decode=bool)

    def bury(
        self, on: ScriptRunner, batch: BufferBatch[T], rows: Iterable[Item[T] | Spoiled], *, error: str, now: float
    ) -> Awaitable[int]:
        """Move rows that the store refuses from the batch to the dead letters; says how many.

        Only before the batch is stored. The others keep their identifier.
        """
        pairs: list[bytes | str] = []
        for row in rows:
            pairs += (row.raw, facts_of(row.reason if isinstance(row, Spoiled) else error, now))
        return BURY(on, keys=[self.purgatory, self._batch, self.dead], args=(batch.id, self._most_dead, *pairs))

    def replay(self, on: ScriptRunner, most: int) -> Awaitable[int]:
        """Return up to ``most`` of the oldest dead letters to the end of the buffer; says how many."""
        return REPLAY(on, keys=[self.dead, self.buffer], args=(most,))

    @property
    def _batch(self) -> KeyReference:
        return self.batch_key.at(**self.arguments)

    def _take(self, on: ScriptRunner, most: int, now: float) -> Awaitable[BufferBatch[T] | None]:
        script = TAKE_DISTINCT if self.distinct else TAKE
        return script(on, keys=[self.buffer, self.purgatory, self._batch], args=(most, new_uid("batch"), float(now)),
                      decode=self._read)

    def _read(self, reply: Reply) -> BufferBatch[T] | None:
        if not reply:
            return None
        raw_id, times, popped, raws = reply
        rows, spoiled = opened(self.buffer_key.codec, raws)
        return BufferBatch(raw_id.decode(), rows, times, max(0, popped - len(raws)), spoiled)
