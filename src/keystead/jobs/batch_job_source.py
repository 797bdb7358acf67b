"""Where a batch job takes its items from: a work list, or what is due in a delayed set; each with a purgatory."""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Final, Generic, Protocol, TypeVar

from keystead.engine import Pipeline, Valkey
from keystead.engine.failures import ErrorReply
from keystead.errors import Unavailable
from keystead.jobs.retry import RetryLater
from keystead.keys.references_collections import scored_pairs
from keystead.patterns import DelayedSet, DueItem, Item, WorkList, Writes
from keystead.patterns.worklist_worker import answer

LONGEST_SLEEP_SECONDS = 1.0

T = TypeVar("T")
Held = TypeVar("Held")

REFUSES_EVERYTHING: Final = ("MISCONF", "NOREPLICAS", "OOM", "READONLY")


@dataclass(frozen=True, slots=True)
class Taken(Generic[Held]):
    """Items that lie in purgatory now; how many could not be read and are dead letters; how many that were to be
    finished in the same step had gone."""

    items: list[Held]
    dead: int = 0
    lost: int = 0


@dataclass(frozen=True, slots=True)
class PutOff:
    """What became of an item that is to be tried again: given up instead, or how long the run has to pause for it."""

    dead: bool = False
    pause_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class SettledSlice(Generic[Held]):
    """How many items of a slice had gone, and those whose writes the server refused, with what it said."""

    lost: int
    refused: list[tuple[Held, ErrorReply]]


def _judged(items: Sequence[Held], settled: Sequence[bool | ErrorReply]) -> SettledSlice[Held]:
    """``Unavailable`` where the server refuses everything for now: then no item is to blame."""
    lost, refused = 0, []
    for item, each in zip(items, settled, strict=True):
        if isinstance(each, bool):
            lost += not each
            continue
        if str(each).startswith(REFUSES_EVERYTHING) or "used memory > 'maxmemory'" in str(each):
            raise Unavailable(f"the server takes no writes for now: {each}") from each
        refused.append((item, each))
    return SettledSlice(lost, refused)


class Source(Protocol[Held]):
    """What a run asks of its source. Every operation is one atomic step."""

    async def recover(self, valkey: Valkey, now: float) -> tuple[int, int]:
        """What an earlier run left in purgatory comes first again: how many, and how many were given up."""
        ...

    async def take(self, valkey: Valkey, most: int, now: float, due_by: float) -> Taken[Held]:
        """Move items into purgatory; those that do not decode become dead letters."""
        ...

    async def wait(self, valkey: Valkey, most: int, now: float, timeout_seconds: float) -> Taken[Held]:
        """As ``take``; waits until there is something, or the time is over. May be cancelled."""
        ...

    async def settle(self, valkey: Valkey, settlements: Sequence[tuple[Held, Writes]]) -> "SettledSlice[Held]":
        """Remove each from purgatory together with its writes, or neither; one that is refused stops no other."""
        ...

    async def finish(self, valkey: Valkey, effects: Pipeline | None, items: Sequence[Held]) -> int:
        """Remove these from purgatory, in one transaction with the effects; says how many had gone."""
        ...

    async def finish_and_take(
        self, valkey: Valkey, effects: Pipeline | None, items: Sequence[Held], now: float, due_by: float
    ) -> Taken[Held]:
        """As ``finish``, and the next item is taken in the same step."""
        ...

    async def put_back(self, valkey: Valkey, items: Sequence[Held]) -> None:
        """As if they had not been taken."""
        ...

    async def bury(self, valkey: Valkey, item: Held, error: str, now: float) -> None: ...

    async def put_off(self, valkey: Valkey, item: Held, wish: RetryLater, error: str, now: float) -> PutOff:
        """Let an item be tried again, as wished."""
        ...

    # -- for a worker with a name -----------------------------------------------------------------------------------

    def alive(self, valkey: Valkey) -> AbstractAsyncContextManager[None]:
        """Give signs of life while the block runs."""
        ...

    async def adopt(self, valkey: Valkey, now: float) -> tuple[int, int]:
        """Return what dead workers hold: how many items, and how many were given up."""
        ...

    async def give_back(self, valkey: Valkey) -> None:
        """Return everything that this worker holds, as if it had not been taken."""
        ...


class ListSource(Generic[T]):
    """The oldest items of a work list. What is to be tried again goes behind the others."""

    def __init__(self, work: WorkList[T], name: str = "") -> None:
        self._work = work
        self._worker = work.worker(name)

    async def recover(self, valkey: Valkey, now: float) -> tuple[int, int]:
        found = await self._worker.recover(valkey, now=now)
        return found.items, found.dead

    async def take(self, valkey: Valkey, most: int, now: float, due_by: float) -> Taken[Item[T]]:
        dead = 0
        while True:
            taken = await self._worker.take(valkey, most, now=now)
            dead += len(taken.spoiled)
            if taken.items or not taken.spoiled:
                return Taken(taken.items, dead)

    async def wait(self, valkey: Valkey, most: int, now: float, timeout_seconds: float) -> Taken[Item[T]]:
        taken = await self._worker.wait_and_take(valkey, most, timeout_seconds, now=now)
        return Taken(taken.items, len(taken.spoiled))

    async def settle(
        self, valkey: Valkey, settlements: Sequence[tuple[Item[T], Writes]]
    ) -> "SettledSlice[Item[T]]":
        settled = await self._worker.settle_each(valkey, settlements)
        return _judged([item for item, _ in settlements], settled)

    async def finish(self, valkey: Valkey, effects: Pipeline | None, items: Sequence[Item[T]]) -> int:
        finishing = self._worker.finish(valkey if effects is None else effects, items)
        if effects is not None:
            await effects.execute()
        return len((await finishing).lost)

    async def finish_and_take(
        self, valkey: Valkey, effects: Pipeline | None, items: Sequence[Item[T]], now: float, due_by: float
    ) -> Taken[Item[T]]:
        taking = self._worker.finish_and_take(valkey if effects is None else effects, items, 1, now=now)
        if effects is not None:
            await effects.execute()
        taken = await taking
        lost = len(taken.lost)
        if not taken.spoiled:
            return Taken(taken.items, 0, lost)
        # What a transaction took and could not be read still lies in purgatory: the next take meets it there.
        more = await self.take(valkey, 1, now, due_by)
        return replace(more, dead=more.dead + (len(taken.spoiled) if effects is None else 0), lost=lost)

    async def put_back(self, valkey: Valkey, items: Sequence[Item[T]]) -> None:
        await self._worker.put_back(valkey, items, front=True)

    async def bury(self, valkey: Valkey, item: Item[T], error: str, now: float) -> None:
        await self._worker.bury(valkey, [item], error=error, now=now)

    async def put_off(self, valkey: Valkey, item: Item[T], wish: RetryLater, error: str, now: float) -> PutOff:
        """A list knows no later, so the run waits instead, with this item behind the others."""
        if wish.counts:
            return PutOff((await self._worker.fail(valkey, item, error=error, now=now)).dead, wish.delay_seconds)
        await self._worker.put_back(valkey, [item])
        return PutOff(False, wish.delay_seconds)

    def alive(self, valkey: Valkey) -> AbstractAsyncContextManager[None]:
        return self._worker.alive(valkey)

    async def adopt(self, valkey: Valkey, now: float) -> tuple[int, int]:
        found = await self._work.adopt(valkey, now=now)
        return found.items, found.dead

    async def give_back(self, valkey: Valkey) -> None:
        name = self._worker.purgatory.name(valkey.layout)
        raws: list[bytes] = await valkey.run(("LRANGE", name, 0, -1), list, repeat=True)
        if raws:
            await self._worker.put_back(valkey, [Item(None, raw) for raw in raws], front=True)  # type: ignore[arg-type]


class DueSource(Generic[T]):
    """The members of a delayed set that were due when the run began. Only deaths are counted there, not failures."""

    def __init__(self, due: DelayedSet[T], name: str = "") -> None:
        self._due = due
        self._worker = due.worker(name)
        self._found_nothing = False  # when it last waited

    async def recover(self, valkey: Valkey, now: float) -> tuple[int, int]:
        found = await self._worker.recover(valkey, now=now)
        return found.items, found.dead

    async def take(self, valkey: Valkey, most: int, now: float, due_by: float) -> Taken[DueItem[T]]:
        dead = 0
        while True:
            taken = await self._worker.take(valkey, most, now=due_by)
            dead += len(taken.spoiled)
            if taken.items or not taken.spoiled:
                return Taken(taken.items, dead)

    async def wait(self, valkey: Valkey, most: int, now: float, timeout_seconds: float) -> Taken[DueItem[T]]:
        taken: Taken[DueItem[T]] = Taken([], 0)
        # While nothing happens it is enough to look when the next one is due: taking is ten times the work.
        next_at = await self._due.next_at(valkey) if self._found_nothing else now
        if next_at is not None and next_at <= now:
            taken = await self.take(valkey, most, now, now)
            if taken.items or taken.dead:
                self._found_nothing = False
                return taken
            next_at = await self._due.next_at(valkey)
        self._found_nothing = True
        if next_at is None:
            await self._wait_for_any(valkey, timeout_seconds)
        else:  # someone may let another be due sooner, so it is looked for again now and then
            await asyncio.sleep(min(max(0.0, next_at - now), timeout_seconds, LONGEST_SLEEP_SECONDS))
        return taken

    async def _wait_for_any(self, valkey: Valkey, timeout_seconds: float) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout_seconds
        while (left := end - loop.time()) > 0:
            await asyncio.sleep(min(left, LONGEST_SLEEP_SECONDS))
            if await self._due.next_at(valkey) is not None:
                return

    async def settle(
        self, valkey: Valkey, settlements: Sequence[tuple[DueItem[T], Writes]]
    ) -> "SettledSlice[DueItem[T]]":
        async with valkey.pipeline(transaction=False) as pipeline:
            asked = [self._worker.settle(pipeline, item, writes) for item, writes in settlements]
            await pipeline.execute(raise_on_error=False)
        settled = [await answer(each) for each in asked]
        return _judged([item for item, _ in settlements], settled)

    async def finish(self, valkey: Valkey, effects: Pipeline | None, items: Sequence[DueItem[T]]) -> int:
        finishing = self._worker.finish(valkey if effects is None else effects, items)
        if effects is not None:
            await effects.execute()
        return len((await finishing).lost)

    async def finish_and_take(
        self, valkey: Valkey, effects: Pipeline | None, items: Sequence[DueItem[T]], now: float, due_by: float
    ) -> Taken[DueItem[T]]:
        lost = await self.finish(valkey, effects, items)
        return replace(await self.take(valkey, 1, now, due_by), lost=lost)

    async def put_back(self, valkey: Valkey, items: Sequence[DueItem[T]]) -> None:
        await self._worker.reschedule(valkey, [(item, item.due_at) for item in items])

    async def bury(self, valkey: Valkey, item: DueItem[T], error: str, now: float) -> None:
        await self._worker.bury(valkey, [item], error=error, now=now)

    async def put_off(self, valkey: Valkey, item: DueItem[T], wish: RetryLater, error: str, now: float) -> PutOff:
        await self._worker.reschedule(valkey, [(item, now + wish.delay_seconds)])
        return PutOff()

    def alive(self, valkey: Valkey) -> AbstractAsyncContextManager[None]:
        return self._worker.alive(valkey)

    async def adopt(self, valkey: Valkey, now: float) -> tuple[int, int]:
        found = await self._due.adopt(valkey, now=now)
        return found.items, found.dead

    async def give_back(self, valkey: Valkey) -> None:
        held = await valkey.run(
            ("ZRANGE", self._worker.purgatory.name(valkey.layout), 0, -1, "WITHSCORES"), scored_pairs, repeat=True
        )
        if held:
            items: list[DueItem[T]] = [DueItem(None, score, raw) for raw, score in held]  # type: ignore[arg-type]
            await self.put_back(valkey, items)
