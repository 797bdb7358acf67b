"""Where a batch job takes its items from: a work list, or what is due in a delayed set; each with its one purgatory."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from keystead.engine import Pipeline, Valkey
from keystead.jobs.retry import RetryLater
from keystead.patterns import DelayedSet, DueItem, Item, WorkList

T = TypeVar("T")
Held = TypeVar("Held")


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


class Source(Protocol[Held]):
    """What a run asks of its source. Every operation is one atomic step."""

    async def recover(self, valkey: Valkey, now: float) -> tuple[int, int]:
        """What an earlier run left in purgatory comes first again: how many, and how many were given up."""
        ...

    async def take(self, valkey: Valkey, most: int, now: float, due_by: float) -> Taken[Held]:
        """Move items into purgatory; those that do not decode become dead letters."""
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


class ListSource(Generic[T]):
    """The oldest items of a work list. What is to be tried again goes behind the others."""

    def __init__(self, work: WorkList[T]) -> None:
        self._worker = work.worker()

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


class DueSource(Generic[T]):
    """The members of a delayed set that were due when the run began. Only deaths are counted there, not failures."""

    def __init__(self, due: DelayedSet[T]) -> None:
        self._worker = due.worker()

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
