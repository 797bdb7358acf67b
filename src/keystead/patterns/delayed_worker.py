"""One worker of a delayed set: takes what is due into a purgatory of its own and settles it."""

from collections.abc import Awaitable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from keystead.engine import Pipeline, Script, Valkey
from keystead.engine.scripts import ScriptRunner
from keystead.errors import DeclarationError
from keystead.keys import Codec, ListRef, MapRef, Reply, SortedSetRef, Undecodable
from keystead.patterns.guarded import Writes, judged
from keystead.patterns.worklist_items import DeadLetter, Spoiled, count_spoiled, facts_of
from keystead.patterns.worklist_liveness import Liveness
from keystead.patterns.worklist_worker import Failed, Recovered, Rules

T = TypeVar("T")


def _script(verb: str) -> Script:
    return Script("keystead.patterns", f"scripts/delayed/{verb}.lua")


TAKE, TAKE_MORE, FINISH, RESCHEDULE = _script("take"), _script("take_more"), _script("finish"), _script("reschedule")
FAIL, BURY, RECOVER, SETTLE = _script("fail"), _script("bury"), _script("recover"), _script("settle")


class DueItem(msgspec.Struct, Generic[T], frozen=True):
    """One member: its value, the time it was due, and the bytes it is stored as."""

    value: T
    due_at: float
    raw: bytes


@dataclass(frozen=True, slots=True)
class DueItems(Generic[T]):
    """What one take gave, earliest first. ``recovered``: these lay in purgatory already, from before.

    ``spoiled`` did not decode. Taken over a connection they already are dead letters; taken in a pipeline they still
    lie in purgatory.
    """

    items: list[DueItem[T]]
    recovered: bool = False
    spoiled: tuple[Spoiled, ...] = ()

    def __iter__(self) -> Iterator[DueItem[T]]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def values(self) -> list[T]:
        return [item.value for item in self.items]


@dataclass(frozen=True, slots=True)
class Settled(Generic[T]):
    """What became of members: how many were settled, and those that were no longer this worker's."""

    count: int
    lost: tuple[DueItem[T], ...] = ()


class DelayedWorker(Generic[T]):
    """Takes and settles. Give each task that works by itself a worker of its own name.

    ``take`` returns what already lies in purgatory before it moves anything, so a worker that settles what it took
    before it takes again loses nothing by a crash or a lost reply.
    """

    def __init__(
        self, name: str, due: SortedSetRef[T], purgatory: SortedSetRef[T], poison: MapRef[int],
        dead: ListRef[DeadLetter], liveness: Liveness | None, rules: Rules,
    ) -> None:
        self.name = name
        self.due, self.purgatory, self.poison, self.dead = due, purgatory, poison, dead
        self._liveness = liveness
        self._rules = rules
        self._places = (due, purgatory, poison, *((liveness.mark, liveness.workers) if liveness else ()))

    def take(
        self, on: ScriptRunner, most: int, *, now: float, leftovers_first: bool = True
    ) -> Awaitable[DueItems[T]]:
        """Move up to ``most`` members due by ``now`` into purgatory, scores kept, and return them; or its leftovers.

        One atomic step, which also counts as a sign of life: each member goes to exactly one worker. A member whose
        last try this is after crashes comes alone. A lost reply is asked for again, except with
        ``leftovers_first=False``, which is for taking more while holding some.
        """
        script = TAKE if leftovers_first else TAKE_MORE
        taking: Awaitable[DueItems[T]] = script(
            on, keys=self._places, args=(now, most, self.name, self._rules.alive_ms), decode=self._taken
        )
        return taking if isinstance(on, Pipeline) else self._without_spoiled(on, taking, now)

    def finish(self, on: ScriptRunner, items: Iterable[DueItem[T]]) -> Awaitable[Settled[T]]:
        """Remove exactly these from purgatory, in one step; also inside a caller's transaction with the result."""
        given = tuple(items)
        return FINISH(on, keys=(self.purgatory, self.poison), args=[item.raw for item in given],
                      decode=lambda missing: _settled(given, missing))

    def settle(self, on: ScriptRunner, item: DueItem[T], writes: Writes) -> Awaitable[bool]:
        """Remove this member from purgatory and do the writes, in one atomic step; or neither, and say False.

        False: another worker has adopted it, and what follows from it is that worker's.
        """
        names, packed = writes.packed(on.layout)
        return SETTLE(on, keys=(self.purgatory, self.poison, *names), args=(item.raw, packed),
                      decode=lambda reply: bool(judged(writes, reply)))

    def reschedule(self, on: ScriptRunner, items: Sequence[tuple[DueItem[T], float]]) -> Awaitable[Settled[T]]:
        """Return members from purgatory to the waiting ones, each due at its new time; in one step.

        They did not kill their worker, so crashes of before are forgotten.
        """
        given = tuple(item for item, _ in items)
        pairs = [part for item, at in items for part in (repr(float(at)), item.raw)]
        return RESCHEDULE(on, keys=(self.purgatory, self.due, self.poison), args=pairs,
                          decode=lambda missing: _settled(given, missing))

    def fail(self, on: ScriptRunner, item: DueItem[T], *, error: str, now: float, again_at: float) -> Awaitable[Failed]:
        """Count a failed try: due again at ``again_at``, or a dead letter with the error after the declared tries."""
        rules = self._rules
        return FAIL(
            on, keys=(self.purgatory, self.due, self.poison, self.dead),
            args=(item.raw, float(again_at), rules.tries, rules.poison_ms, facts_of(error, now), rules.most_dead),
            decode=lambda tries: Failed(abs(tries), tries < 0),
        )

    def bury(
        self, on: ScriptRunner, items: Iterable[DueItem[T] | Spoiled], *, error: str, now: float
    ) -> Awaitable[int]:
        """Move members to the dead letters; says how many were ours. Spoiled ones add their own reason."""
        return BURY(on, keys=(self.purgatory, self.dead, self.poison),
                    args=(self._rules.most_dead, *obituaries(items, error, now)))

    def held(self, on: Valkey | Pipeline, first: int = 0, last: int = -1) -> Awaitable[list[tuple[T, float]]]:
        """What lies in purgatory, by rank."""
        return self.purgatory.range(on, first, last)

    def recover(self, on: ScriptRunner, *, now: float, not_before: float = 0.0) -> Awaitable[Recovered]:
        """Return what an earlier worker of this name left to the waiting members.

        It counts as a crash of each; one that crashed too often becomes a dead letter. ``not_before`` puts the others
        off, so that a member that kills its worker does not do so without pause.
        """
        return RECOVER(
            on, keys=(self.purgatory, self.due, self.poison, self.dead),
            args=(float(not_before), *self._rules.of_crashes(now)), decode=lambda reply: Recovered(*reply),
        )

    def beat(self, on: Valkey | Pipeline) -> Awaitable[None]:
        """A sign of life: until it expires, nobody adopts what this worker holds."""
        return self._living().beat(on)

    def leave(self, on: ScriptRunner) -> Awaitable[bool]:
        """Let the sign of life end within a second, so that what is left can be adopted; says whether anything is."""
        return self._living().leave(on)

    def alive(self, valkey: Valkey) -> AbstractAsyncContextManager[None]:
        """Give signs of life while the block runs, and leave at its end."""
        return self._living().alive(valkey)

    def _living(self) -> Liveness:
        if self._liveness is None:
            raise DeclarationError("the default worker gives no signs of life; give the worker a name")
        return self._liveness

    def _taken(self, reply: Reply) -> DueItems[T]:
        items, spoiled = due_items(self.due.codec, reply[1])
        return DueItems(items, bool(reply[0]), spoiled)

    async def _without_spoiled(
        self, on: ScriptRunner, taking: Awaitable[DueItems[T]], now: float
    ) -> DueItems[T]:
        taken = await taking
        if taken.spoiled:
            count_spoiled(self.due.declaration, taken.spoiled)
            await self.bury(on, taken.spoiled, error="", now=now)
        return taken


def obituaries(items: Iterable[DueItem[T] | Spoiled], error: str, now: float) -> list[bytes | str]:
    """What scripts are told of members that die: each, then its facts. Spoiled ones say themselves why."""
    return [
        part for item in items
        for part in (item.raw, facts_of(item.reason if isinstance(item, Spoiled) else error, now))
    ]


def due_items(codec: Codec[T], pairs: Sequence[bytes]) -> tuple[list[DueItem[T]], tuple[Spoiled, ...]]:
    """Members and scores as a script gives them; members that do not decode are told apart."""
    items: list[DueItem[T]] = []
    spoiled: list[Spoiled] = []
    for raw, score in zip(pairs[::2], pairs[1::2], strict=True):
        try:
            items.append(DueItem(codec.decode(raw), float(score), raw))
        except Undecodable as error:
            spoiled.append(Spoiled(raw, f"does not decode: {error.reason}"))
    return items, tuple(spoiled)


def _settled(given: tuple[DueItem[T], ...], missing: list[int]) -> Settled[T]:
    return Settled(len(given) - len(missing), tuple(given[place - 1] for place in missing))
