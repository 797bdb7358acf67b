"""The worker: takes jobs while there is room, runs many at once, and ends without losing any."""

import asyncio
import contextlib
import os
import random
import secrets
import signal
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from keystead.clock import Clock, SystemClock
from keystead.engine import Valkey
from keystead.engine.failures import ErrorReply
from keystead.errors import DeclarationError, Unavailable
from keystead.jobs.book import Category, JobBook
from keystead.jobs.ended import EndedNotes
from keystead.jobs.execution import Execution, Middleware
from keystead.jobs.heartbeat import Heartbeat
from keystead.jobs.keys import Queue
from keystead.jobs.models import JobRecord
from keystead.jobs.runner import Runner
from keystead.jobs.station import PAUSE_SECONDS, Station
from keystead.jobs.upkeep import Tally, Upkeep
from keystead.patterns.worklist_items import Item
from keystead.telemetry import logger

BATCH_ITEMS = 100
GATHER_SECONDS = 0.02  # so long room is gathered while the worker is busy
POLL_SECONDS = 0.25
LOOK_SECONDS = 5.0  # a wait whose connection died silently must not keep us from looking
SUSPECT_SECONDS = 5.0  # so long an item on its last try waits for a worker that happens to hold nothing
DRAIN_SECONDS = 10.0
SURE_SECONDS = 60.0  # after that a worker takes nothing else until it holds nothing

_log = logger("jobs")


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """How a worker works.

    ``queues``: names, ``hot`` for the hot queue; they share the ``concurrency``. ``categories``: which may run here,
    first served first; None for all of the book, empty to run whatever lies in the main list and sort
    nothing. ``at_most_once``: a job is forgotten when it is taken, so a crash loses it and never runs it twice.
    ``in_totals``: whether what ends here counts among the jobs that were ever done, and what ends well is listed among
    those that ended lately.
    """

    queues: Sequence[str] = ("hot",)
    categories: Sequence[Category] | None = None
    concurrency: int = 100
    threads: int = 16
    grace_seconds: float = 30.0
    at_most_once: bool = False
    in_totals: bool = True

    def __post_init__(self) -> None:
        if self.concurrency < 1 or self.threads < 1 or not self.queues:
            raise DeclarationError(f"a worker needs a queue, and room for one job and one thread at least; got {self}")


class Worker:
    """One worker process, or one part of a program that runs jobs beside other things."""

    def __init__(
        self, valkey: Valkey, book: JobBook, settings: WorkerSettings | None = None, *, clock: Clock | None = None,
        middleware: Sequence[Middleware] = (), name: str = "",
    ) -> None:
        self.settings = settings or WorkerSettings()
        self.name = name or f"{socket.gethostname().replace(':', '-')}-{os.getpid()}-{secrets.token_hex(3)}"
        self.book = book
        self._valkey = valkey
        self._clock: Clock = clock or SystemClock()
        categories = book.categories() if self.settings.categories is None else self.settings.categories
        allowed = [category.id for category in categories]
        self._stations = [
            Station(valkey, self._clock, Queue("" if name == "hot" else name), self.name, allowed)
            for name in self.settings.queues
        ]
        self._execution = Execution(self.settings.threads, middleware)
        self._runner = Runner(
            valkey, self._clock, book, self._execution, worker=self.name, at_most_once=self.settings.at_most_once,
            allowed=frozenset(allowed) if allowed else None, is_stopping=lambda: self.stopping,
            in_totals=self.settings.in_totals,
        )
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._free = self.settings.concurrency
        self._enough = max(1, min(BATCH_ITEMS, self.settings.concurrency) // 2)
        self._freed = asyncio.Event()
        self._way_for: Station | None = None  # one whose next item may have to be alone
        self._stopping = asyncio.Event()

    # -- life -------------------------------------------------------------------------------------------------------

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    @property
    def running(self) -> int:
        """How many jobs run now."""
        return len(self._tasks)

    @property
    def concurrency(self) -> int:
        return self.settings.concurrency

    @property
    def in_totals(self) -> bool:
        return self.settings.in_totals

    @property
    def tally(self) -> Tally:
        """How many jobs ended how here."""
        return self._runner.tally

    @property
    def ended(self) -> EndedNotes:
        """The newest jobs that ended here."""
        return self._runner.ended

    def cancel(self, uid: str) -> None:
        """Do not run this job; stop it if it runs here."""
        if uid and uid not in self._runner.cancelled:
            self._runner.cancelled.add(uid)
            if uid in self._tasks:
                _cancel(self._tasks[uid])

    def called_off(self, uids: set[str]) -> None:
        """These jobs, and no others, are not to run."""
        self._runner.cancelled.intersection_update(uids)
        for uid in uids - self._runner.cancelled:
            self.cancel(uid)

    def stop(self) -> None:
        """Take nothing more; ``run`` ends when what runs has ended, or is given back after ``grace_seconds``.

        Asked twice, it gives back at once.
        """
        if self._stopping.is_set():
            self._abort()
        self._stopping.set()
        self._freed.set()
        for station in self._stations:
            station.stir.set()

    def _abort(self) -> None:
        for task in self._tasks.values():
            _cancel(task)

    async def run(self, *, signals: bool = False) -> None:
        """Work until ``stop``; with ``signals`` also until SIGTERM or SIGINT."""
        loop = asyncio.get_running_loop()
        if signals:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self.stop)
        upkeep = Upkeep(self._valkey, self._clock, self, self._stations)
        await upkeep.prepare()
        try:
            with Heartbeat(self._valkey, [station.hands for station in self._stations]):
                async with asyncio.TaskGroup() as steady:
                    helpers = [steady.create_task(station.acknowledge()) for station in self._stations]
                    helpers += [steady.create_task(part) for part in upkeep.parts()]
                    try:
                        async with asyncio.TaskGroup() as jobs:
                            for station in self._stations:
                                jobs.create_task(self._serve(station, jobs))
                            jobs.create_task(self._give_back_in_time())
                        await self._settle_rest()
                    finally:
                        for helper in helpers:
                            helper.cancel()
                await upkeep.leave()
        finally:
            self._execution.close()
            if signals:
                for number in (signal.SIGTERM, signal.SIGINT):
                    loop.remove_signal_handler(number)

    async def _give_back_in_time(self) -> None:
        await self._stopping.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.settings.grace_seconds):
                await self._drained()
        self._abort()

    async def _settle_rest(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.settings.grace_seconds):
                for station in self._stations:
                    await station.all_acknowledged()

    # -- taking -----------------------------------------------------------------------------------------------------

    async def _serve(self, station: Station, jobs: asyncio.TaskGroup) -> None:
        def arrived(item: Item[JobRecord]) -> bool:
            if self._free < 1 or self.stopping or self._makes_way_for(station):
                return False
            self._free -= 1
            self._start(station, item, jobs)
            return True

        suspects_since = 0.0
        while not self.stopping:
            most = await self._room(station)
            if not most or self.stopping:
                self._give_room(most)
                break
            # With several queues what another one holds counts too, and it must hold back meanwhile.
            alone = len(self._stations) == 1 or (self._way_for is station and self._free + most == self.concurrency)
            try:
                taken = await station.take(most, holds_nothing=alone)
            except (Unavailable, ErrorReply) as error:
                self._give_room(most)
                _log.warning("no jobs can be taken", queue=repr(station.queue), error=str(error))
                await self._pause(PAUSE_SECONDS * (1 + random.random()))
                continue
            self._give_room(most - len(taken.items))
            if self.stopping:
                # They would run after what ran has been given its time.
                self._give_room(len(taken.items))
                await station.put_back(taken.items)
                break
            for item in taken.items:
                self._start(station, item, jobs)
            if taken.alone:
                await self._drained()
            self._way_is_free(station)
            if taken.suspects_wait:
                suspects_since = suspects_since or time.monotonic() + random.uniform(0, SUSPECT_SECONDS)
                await self._make_way(station, time.monotonic() - suspects_since)
            else:
                suspects_since = 0.0
            if not taken.items and not self.stopping:
                await self._idle(station, jobs, arrived, poll=taken.closed or taken.suspects_wait)
        self._way_is_free(station)
        await station.end_waiting()

    async def _idle(self, station: Station, jobs: asyncio.TaskGroup, arrived: Any, *, poll: bool) -> None:
        station.stir.clear()
        if not poll:
            station.wait(jobs, arrived)
        station.is_idle = not poll
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(POLL_SECONDS if poll else LOOK_SECONDS):
                await station.stir.wait()
        station.is_idle = False

    async def _room(self, station: Station) -> int:
        """Reserve room for jobs: as much as there is, once enough is free to be worth a round trip. That is waited for
        only a moment: jobs that run for hours must not keep the room beside them empty."""
        loop = asyncio.get_running_loop()
        patient_until = loop.time() + GATHER_SECONDS
        while not self.stopping:
            is_worth = self._free >= self._enough or not self._tasks or loop.time() >= patient_until
            if self._free and is_worth and not self._makes_way_for(station):
                break
            self._freed.clear()
            look_again = loop.call_later(GATHER_SECONDS, self._freed.set)
            await self._freed.wait()
            look_again.cancel()
        most = min(self._free, BATCH_ITEMS)
        self._free -= most
        return most

    def _give_room(self, count: int) -> None:
        self._free += count
        if self._free >= self._enough or not self._tasks:
            self._freed.set()

    async def _make_way(self, station: Station, waited_seconds: float) -> None:
        """An item on its last try after crashes wants a worker that holds nothing: become one, for a while."""
        if waited_seconds > SUSPECT_SECONDS and not self._makes_way_for(station):
            self._way_for = station
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DRAIN_SECONDS if waited_seconds < SURE_SECONDS else None):
                    await self._drained()

    def _makes_way_for(self, station: Station) -> bool:
        """Whether this queue has to hold back, because an item of another one is to be alone."""
        return self._way_for is not None and self._way_for is not station

    def _way_is_free(self, station: Station) -> None:
        if self._way_for is station:
            self._way_for = None
            self._freed.set()

    async def _drained(self) -> None:
        while self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    # -- running ----------------------------------------------------------------------------------------------------

    def _start(self, station: Station, item: Item[JobRecord], jobs: asyncio.TaskGroup) -> None:
        # Records of other programs may have no uid, or one that runs here already.
        uid = item.value.uid
        mark = uid if uid and uid not in self._tasks else f"{uid}#{id(item)}"
        station.running[mark] = item
        self._tasks[mark] = jobs.create_task(self._work(station, item, mark))

    async def _work(self, station: Station, item: Item[JobRecord], mark: str) -> None:
        try:
            await self._runner.run(station, item)
        finally:
            del station.running[mark]
            del self._tasks[mark]
            self._free += 1
            if self._free >= self._enough or not self._tasks:
                self._freed.set()


def _cancel(task: asyncio.Task[None]) -> None:
    """Not at once: a task that is cancelled before its first step would not even clean up after itself."""
    asyncio.get_running_loop().call_soon(task.cancel)
