"""A worker on a fair queue: takes in batches, keeps its leases alive, sleeps on the bell, stops cleanly."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from keystead.clock import Clock, real_seconds
from keystead.engine.client import Valkey
from keystead.errors import Corrupt, Unavailable
from keystead.patterns.fairqueue import MOST_ITEMS, FairQueue
from keystead.patterns.fairqueue_values import Leased, Requeued
from keystead.telemetry import counts, logger

T = TypeVar("T")
Handle = Callable[[Leased[T]], Awaitable[float | None]]

counts.describe("fairqueue_failed", "items whose handler failed, by queue")
counts.describe("fairqueue_gone", "items that were gone while their handler ran, by queue")
counts.describe("fairqueue_stale", "items that could not be settled here any more, by queue")

log = logger("patterns")


class FairConsumer(Generic[T]):
    """Runs ``handle(item)`` for up to ``most_items`` items at once, until ``stop``.

    What ``handle`` returns is the actual cost (None: as declared). If it raises, the item is handed back with a delay
    that doubles with each attempt, and dies after too many. An item whose body does not decode is buried. An item that
    is gone (removed, or lapsed in a long pause) has its handler cancelled at the next beat, within a quarter of the
    lease. ``dead`` is told of items given up, as (shard, id). ``name`` must differ between processes. A server that is
    away is waited for; an item that could not be finished meanwhile comes again.
    """

    def __init__(
        self, queue: FairQueue[T], valkey: Valkey, clock: Clock, handle: Handle[T], *,
        name: str, most_items: int = 10, lease_seconds: float = 60.0, idle_seconds: float = 5.0,
        retry_seconds: float = 1.0, dead: Callable[[Sequence[tuple[str, str]]], Awaitable[None]] | None = None,
    ) -> None:
        self._queue, self._valkey, self._clock, self._handle = queue, valkey, clock, handle
        self._name, self._most, self._lease = name, most_items, lease_seconds
        self._idle_seconds, self._retry_seconds, self._dead = idle_seconds, retry_seconds, dead
        self._running: dict[tuple[str, str], tuple[Leased[T], asyncio.Task[None]]] = {}
        self._gone: set[tuple[str, str]] = set()
        self._freed = asyncio.Event()
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Take nothing more; ``run`` returns when the items in hand are done."""
        self._stopping.set()
        self._freed.set()

    async def run(self) -> None:
        """Serve until ``stop``. Cancelled, it hands back what it holds, not counted as an attempt."""
        async with asyncio.TaskGroup() as group:
            beats = group.create_task(self._beat())
            try:
                while not self._stopping.is_set():
                    await self._serve(group)
                while self._running:
                    await asyncio.wait([task for _, task in self._running.values()])
            finally:
                beats.cancel()

    async def _serve(self, group: asyncio.TaskGroup) -> None:
        room = min(self._most - len(self._running), MOST_ITEMS)
        if room <= 0:
            self._freed.clear()
            await self._freed.wait()
            return
        try:
            batch = await self._queue.take_batch(
                self._valkey, room, self._name, now=self._clock.now(), lease_seconds=self._lease)
        except Unavailable:
            await self._pause(self._idle_seconds)
            return
        for item in batch.items:
            self._running[item.id, item.token] = item, group.create_task(self._work(item))
        if batch.dead and self._dead is not None:
            await self._dead(batch.dead)
        if not batch.items and not batch.again:
            wait = real_seconds(self._clock, batch.look_at - self._clock.now())
            await self._sleep(min(self._idle_seconds, max(0.05, wait)))

    async def _sleep(self, seconds: float) -> None:
        """Until the bell rings, something is due, or it is time to stop. A missed bell costs ``seconds`` at most."""
        bell = asyncio.ensure_future(self._ring(seconds))
        stop = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait((bell, stop), return_when=asyncio.FIRST_COMPLETED)
        finally:
            bell.cancel()
            stop.cancel()
            await asyncio.gather(bell, stop, return_exceptions=True)

    async def _ring(self, seconds: float) -> None:
        try:
            await self._valkey.blpop([self._queue.keys.bell.at().name(self._valkey.layout)], timeout=seconds)
        except Unavailable:
            await asyncio.sleep(seconds)

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            pass

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._lease / 4)
            held = list(self._running.values())
            answers = await asyncio.gather(
                *(self._queue.beat(self._valkey, item, lease_seconds=self._lease) for item, _ in held),
                return_exceptions=True,
            )
            for (item, task), answer in zip(held, answers, strict=True):
                lease = item.id, item.token
                if isinstance(answer, BaseException) and not isinstance(answer, Unavailable):
                    raise answer
                if answer is False and lease in self._running:
                    self._gone.add(lease)
                    counts.add("fairqueue_gone", queue=self._queue.name)
                    task.cancel()

    async def _work(self, item: Leased[T]) -> None:
        lease = item.id, item.token
        try:
            await self._handled(item)
        except asyncio.CancelledError:
            if lease not in self._gone:
                await self._give_back(item, 0.0, count_attempt=False)
                raise
        finally:
            del self._running[lease]
            self._gone.discard(lease)
            self._freed.set()

    async def _handled(self, item: Leased[T]) -> None:
        try:
            item.value  # noqa: B018 - a body that does not decode must not reach the handler
            cost = await self._handle(item)
        except Corrupt as error:
            log.error("fairqueue_corrupt", queue=self._queue.name, item=item.id, error=str(error))
            await self._hand_back(item, self._queue.bury(self._valkey, [item], now=self._clock.now()))
        except Exception as error:
            counts.add("fairqueue_failed", queue=self._queue.name)
            log.warning("fairqueue_failed", queue=self._queue.name, item=item.id, error=type(error).__name__)
            await self._give_back(item, self._retry_seconds * 2**item.attempt, count_attempt=True)
        else:
            await self._finish(item, cost)

    async def _finish(self, item: Leased[T], cost: float | None) -> None:
        try:
            finished = await self._queue.finish(self._valkey, item, now=self._clock.now(), actual_cost=cost)
        except Unavailable:
            log.warning("fairqueue_not_finished", queue=self._queue.name, item=item.id)  # it may come once more
        else:
            if not finished:
                counts.add("fairqueue_stale", queue=self._queue.name)

    async def _give_back(self, item: Leased[T], delay_seconds: float, *, count_attempt: bool) -> None:
        await self._hand_back(item, self._queue.requeue(
            self._valkey, [item], now=self._clock.now(), delay_seconds=delay_seconds, count_attempt=count_attempt))

    async def _hand_back(self, item: Leased[T], handing: Awaitable[list[Requeued]]) -> None:
        try:
            answers = await handing
        except Unavailable:
            log.warning("fairqueue_not_given_back", queue=self._queue.name, item=item.id)  # its lease will lapse
            return
        if self._dead is not None and answers == [Requeued.DEAD]:
            await self._dead([(item.shard, item.id)])
