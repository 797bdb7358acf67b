"""What every worker does beside working: adopts the dead, moves jobs that are due, hears of cancellations, reports."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from keystead.clock import Clock, real_seconds
from keystead.engine import CutOff, Valkey
from keystead.engine.failures import ErrorReply
from keystead.errors import Corrupt, Unavailable
from keystead.jobs.ended import EndedNotes
from keystead.jobs.keys import CONTROL, OPEN_SECONDS, QUEUES, TOTALS, WORKER, WORKERS
from keystead.jobs.models import WorkerState
from keystead.jobs.station import Station
from keystead.keys.references_collections import scored_pairs
from keystead.patterns.delayed import MOVE_DUE
from keystead.telemetry import logger

UPKEEP_SECONDS = 1.0
LEAST_SECONDS = 0.01  # between two looks at what is due, however many jobs fail
MOVE_ITEMS = 1000
GONE_SECONDS = 3600.0  # so long a worker that left is still listed

_log = logger("jobs")


@dataclass(slots=True)
class Tally:
    """How many jobs ended how in this process."""

    done: int = 0
    failed: int = 0
    retried: int = 0


class Whose(Protocol):
    """The worker, as far as it is reported on."""

    name: str

    @property
    def tally(self) -> Tally: ...
    @property
    def ended(self) -> EndedNotes: ...
    @property
    def running(self) -> int: ...
    @property
    def stopping(self) -> bool: ...
    def cancel(self, uid: str) -> None: ...
    def called_off(self, uids: set[str]) -> None: ...
    @property
    def concurrency(self) -> int: ...
    @property
    def in_totals(self) -> bool: ...


class Upkeep:
    """Runs beside a worker until it is cancelled. A server that is away is tried again each second."""

    def __init__(self, valkey: Valkey, clock: Clock, worker: Whose, stations: Sequence[Station]) -> None:
        self._valkey, self._clock = valkey, clock
        self._worker = worker
        self._stations = stations
        self._started_at = clock.now()
        self._reported = Tally()
        self._telling: asyncio.Task[None] | None = None
        self._heard: set[str] = set()  # called off by message since what is written down was read last

    def parts(self) -> list[Coroutine[Any, Any, None]]:
        """What runs at the same time."""
        return [self._listen(), self._learn(), self._report(), *(self._tend(station) for station in self._stations),
                *(self._promote(station) for station in self._stations)]

    async def prepare(self) -> None:
        """Learn what was called off before anything is taken."""
        with contextlib.suppress(Unavailable, ErrorReply):
            self._worker.called_off(await self._written_down())

    # -- the queues -------------------------------------------------------------------------------------------------

    async def _tend(self, station: Station) -> None:
        while True:
            with self._patience():
                adopted = await station.queue.work.adopt(
                    self._valkey, now=self._clock.now(), given_up=station.queue.given_up
                )
                if adopted.items or adopted.dead:  # one that left in peace held nothing
                    _log.warning("took over from dead workers", workers=adopted.workers, jobs=adopted.items,
                                 given_up=adopted.dead)
                for record, ending in await station.settle_given_up():
                    self._worker.ended.note(record, station.queue.name, ending, elsewhere=True)
            await asyncio.sleep(UPKEEP_SECONDS)

    async def _promote(self, station: Station) -> None:
        """Queue what is due, when it is due; what others put off for less than a second may be so much late."""
        while True:
            pause = UPKEEP_SECONDS
            station.something_put_off.clear()  # before looking: what is put off meanwhile may be due sooner
            with self._patience():
                pause = await self._move_due(station)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await station.something_put_off.wait()
            await asyncio.sleep(LEAST_SECONDS)

    async def _move_due(self, station: Station) -> float:
        """Queue what is due; says after how long to look again."""
        keys, now = (station.queue.delayed, station.queue.work.queue), self._clock.now()
        next_at = await self._next_at(station)
        if next_at is not None and next_at <= now:
            while (await MOVE_DUE(self._valkey, keys=keys, args=(now, MOVE_ITEMS, -1)))[1] >= MOVE_ITEMS:
                pass
            next_at, now = await self._next_at(station), self._clock.now()
        if next_at is None:
            return UPKEEP_SECONDS
        return min(UPKEEP_SECONDS, max(0.0, real_seconds(self._clock, next_at - now)))

    async def _next_at(self, station: Station) -> float | None:
        """Only the time is wanted: a record that does not decode is no reason to stop."""
        name = station.queue.delayed.name(self._valkey.layout)
        found = await self._valkey.run(("ZRANGE", name, 0, 0, "WITHSCORES"), scored_pairs, repeat=True)
        return found[0][1] if found else None

    @contextlib.contextmanager
    def _patience(self) -> Iterator[None]:
        """A server that is away, or takes no writes, is asked again later."""
        try:
            yield
        except Unavailable:
            pass
        except ErrorReply as error:
            _log.warning("the server refused", error=str(error))

    # -- what is called off -----------------------------------------------------------------------------------------

    async def _listen(self) -> None:
        while True:
            with contextlib.suppress(Unavailable, CutOff):
                async with self._valkey.hub().subscribe(CONTROL.at()) as listener:
                    async for message in listener:
                        with contextlib.suppress(Corrupt):
                            uid = message.decode(CONTROL.at()).cancel
                            self._heard.add(uid)
                            self._worker.cancel(uid)
            await asyncio.sleep(UPKEEP_SECONDS)

    async def _learn(self) -> None:
        """Messages may be missed; what was called off is also written down, until it has ended or 30 days are over."""
        heard: set[str] = set()
        while True:
            with self._patience():
                written = await self._written_down()
                # What was heard while we read may not be among it yet.
                self._worker.called_off(written | heard | self._heard)
                heard, self._heard = self._heard, set()
            await asyncio.sleep(UPKEEP_SECONDS)

    async def _written_down(self) -> set[str]:
        found: set[str] = set()
        forgotten_before = self._clock.now() - OPEN_SECONDS
        for station in self._stations:
            name = station.queue.cancelled.name(self._valkey.layout)
            async with self._valkey.pipeline(transaction=False) as pipeline:
                pipeline.run(("ZREMRANGEBYSCORE", name, "-inf", forgotten_before), int, repeat=True)
                uids = pipeline.run(("ZRANGE", name, 0, -1), list, repeat=True)
                await pipeline.execute()
            found.update(uid.decode(errors="replace") for uid in await uids)
        return found

    # -- reports ----------------------------------------------------------------------------------------------------

    async def _report(self) -> None:
        while True:
            with self._patience():
                await self.report()
            with self._patience():  # apart from the report: what is refused here must not count totals twice
                await self._worker.ended.hand_over(self._valkey)
            await asyncio.sleep(UPKEEP_SECONDS)

    async def report(self) -> None:
        """Tell of this worker, and add what ended since the last time to the totals.

        What was begun is heard to its end, whoever stops waiting: else the same jobs would be added once more.
        """
        if self._telling is not None:
            await asyncio.wait([self._telling])
        self._telling = asyncio.create_task(self._tell())
        await asyncio.shield(self._telling)

    async def _tell(self) -> None:
        worker, now, tally = self._worker, self._clock.now(), self._worker.tally
        new = Tally(tally.done, tally.failed, tally.retried)
        named = [station.queue.name for station in self._stations if station.queue.name]
        state = WorkerState(
            host=socket.gethostname(), pid=os.getpid(), started_at=self._started_at, beat_at=now,
            queues=" ".join(station.queue.name or "hot" for station in self._stations),
            concurrency=worker.concurrency, running=worker.running, done=new.done, failed=new.failed,
            retried=new.retried, stopping=worker.stopping,
        )
        async with self._valkey.pipeline(transaction=True) as block:
            WORKER.at(worker.name).set(block, state)
            WORKERS.at().add(block, worker.name, now)
            if named:
                QUEUES.at().add(block, *named)
            block.run(("ZREMRANGEBYSCORE", WORKERS.at().name(block.layout), "-inf", now - GONE_SECONDS), int)
            for name in ("done", "failed", "retried") if worker.in_totals else ():
                if grown := getattr(new, name) - getattr(self._reported, name):
                    TOTALS.at().increment(block, name, grown)
            await block.execute()
        self._reported = new

    async def leave(self) -> None:
        """Say good-bye, so that nobody waits for signs of life."""
        with self._patience():  # a server that is away is waited for once, not for each of these
            with contextlib.suppress(ErrorReply):
                await self._worker.ended.hand_over(self._valkey)
            await self.report()
            await WORKER.at(self._worker.name).delete(self._valkey)
            await WORKERS.at().remove(self._valkey, self._worker.name)
            for station in self._stations:
                await station.hands.leave(self._valkey)
