"""The worker: takes jobs, runs many at once, and decides what becomes of those that fail."""

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

import msgspec

from keystead.clock import Clock, SystemClock
from keystead.engine import Valkey
from keystead.errors import DeclarationError, Unavailable
from keystead.jobs.book import Category, Job, JobBook
from keystead.jobs.context import RunningJob, running
from keystead.jobs.execution import Execution, Middleware, told
from keystead.jobs.heartbeat import Heartbeat
from keystead.jobs.keys import DONE, Queue
from keystead.jobs.models import JobRecord
from keystead.jobs.rates import reserve_start
from keystead.jobs.records import MOST_BYTES
from keystead.jobs.retry import GiveUp, RetryLater
from keystead.jobs.station import NO_OPTIONS, PAUSE_SECONDS, Ending, Station
from keystead.jobs.upkeep import Tally, Upkeep
from keystead.patterns.worklist_items import Item
from keystead.telemetry import logger

BATCH_ITEMS = 100
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
    """

    queues: Sequence[str] = ("hot",)
    categories: Sequence[Category] | None = None
    concurrency: int = 100
    threads: int = 16
    grace_seconds: float = 30.0
    at_most_once: bool = False

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
        self.tally = Tally()
        self._valkey = valkey
        self._clock: Clock = clock or SystemClock()
        categories = book.categories() if self.settings.categories is None else self.settings.categories
        allowed = [category.id for category in categories]
        self._allowed = frozenset(allowed) if allowed else None
        self._stations = [
            Station(valkey, self._clock, Queue("" if name == "hot" else name), self.name, allowed)
            for name in self.settings.queues
        ]
        self._execution = Execution(self.settings.threads, middleware)
        self._plain = frozenset(job.name for job in book if self._is_plain(job))
        self._cancelled: set[str] = set()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._free = self.settings.concurrency
        self._enough = max(1, min(BATCH_ITEMS, self.settings.concurrency) // 2)
        self._freed = asyncio.Event()
        self._stopping = asyncio.Event()

    def _is_plain(self, job: Job[..., Any]) -> bool:
        return (
            job.is_async and not (job.timeout_seconds or job.rate or job.says_done or job.progress)
            and (self._allowed is None or job.category.id in self._allowed)
            and not self._execution.has_middleware and not self.settings.at_most_once
        )

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

    def cancel(self, uid: str) -> None:
        """Do not run this job; stop it if it runs here."""
        if uid and uid not in self._cancelled:
            self._cancelled.add(uid)
            if uid in self._tasks:
                self._tasks[uid].cancel()

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
        for task in list(self._tasks.values()):
            task.cancel()

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
            if self._free < 1 or self.stopping:
                return False
            self._free -= 1
            self._start(station, item, jobs)
            return True

        suspects_since = 0.0
        while not self.stopping:
            most = await self._room()
            if not most or self.stopping:
                self._give_room(most)
                break
            try:
                taken = await station.take(most)
            except Unavailable as error:
                self._give_room(most)
                _log.warning("no jobs can be taken, the server is away", queue=repr(station.queue), error=str(error))
                await self._pause(PAUSE_SECONDS * (1 + random.random()))
                continue
            self._give_room(most - len(taken.items))
            for item in taken.items:
                self._start(station, item, jobs)
            if taken.alone:
                await self._drained()
            elif taken.suspects_wait:
                suspects_since = suspects_since or time.monotonic() + random.uniform(0, SUSPECT_SECONDS)
                await self._make_way(time.monotonic() - suspects_since)
            else:
                suspects_since = 0.0
            if not taken.items and not self.stopping:
                await self._idle(station, jobs, arrived, poll=taken.closed or taken.suspects_wait)
        await station.end_waiting()

    async def _idle(self, station: Station, jobs: asyncio.TaskGroup, arrived: Any, *, poll: bool) -> None:
        station.stir.clear()
        if not poll:
            station.wait(jobs, arrived)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(POLL_SECONDS if poll else LOOK_SECONDS):
                await station.stir.wait()

    async def _room(self) -> int:
        """Reserve room for jobs: as much as there is, once enough is free to be worth a round trip."""
        while self._free < self._enough and (self._free < 1 or self._tasks) and not self.stopping:
            self._freed.clear()
            await self._freed.wait()
        most = min(self._free, BATCH_ITEMS)
        self._free -= most
        return most

    def _give_room(self, count: int) -> None:
        self._free += count
        if self._free >= self._enough or not self._tasks:
            self._freed.set()

    async def _make_way(self, waited_seconds: float) -> None:
        """An item on its last try after crashes wants a worker that holds nothing: become one, for a while."""
        if waited_seconds > SUSPECT_SECONDS:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DRAIN_SECONDS if waited_seconds < SURE_SECONDS else None):
                    await self._drained()

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
        record = item.value
        try:
            if record.options is None and record.name in self._plain and record.uid not in self._cancelled \
                    and len(item.raw) <= MOST_BYTES:
                await self._run_plain(station, item)
            else:
                await self._run_with_care(station, item)
        finally:
            del station.running[mark]
            del self._tasks[mark]
            self._free += 1
            if self._free >= self._enough or not self._tasks:
                self._freed.set()

    async def _run_plain(self, station: Station, item: Item[JobRecord]) -> None:
        """Nothing to do but call a function: the path that nearly all jobs take."""
        record = item.value
        job = self.book.jobs[record.name]
        running.set(RunningJob(record, record.uid, station.queue.name, self._stopping.is_set))
        try:
            await job.function(**record.kwargs)
        except TypeError as error:
            # Wrong arguments look like any other TypeError; finding out costs, so only now.
            await self._failed(station, item, job, _or_give_up(job, record, error))
        except BaseException as error:
            await self._failed(station, item, job, error)
        else:
            self.tally.done += 1
            station.finish(item)

    async def _run_with_care(self, station: Station, item: Item[JobRecord]) -> None:
        record = item.value
        options, job = record.options or NO_OPTIONS, self.book.get(record.name)
        if len(item.raw) > MOST_BYTES:
            await self._refuse(station, item, f"takes {len(item.raw):,} bytes, at most {MOST_BYTES:,} are run")
        elif job is None:
            await self._refuse(station, item, f"no job is named {record.name[:200]}")
        elif self._allowed is not None and job.category.id not in self._allowed:
            await station.sort(item, job.category.id)
        elif record.uid in self._cancelled:
            await self._end(station, item, job, Ending("cancelled"))
        elif options.after and (culprit := await station.queue.waiting.get(self._valkey, f"failed:{record.uid}")):
            error = f"a job it waited for did not succeed: {culprit.decode(errors='replace')}"
            await self._end(station, item, job, Ending("failed", error=error))
        elif job.rate and not record.slot and (start := await self._reserved(job)) > self._clock.now():
            await station.put_off(item, start, slot=start)
        else:
            await self._run_kept(station, item, job)

    async def _reserved(self, job: Job[..., Any]) -> float:
        assert job.rate is not None
        try:
            return await reserve_start(self._valkey, job.name, job.rate, self._clock.now())
        except Unavailable:
            return self._clock.now() + PAUSE_SECONDS

    async def _run_kept(self, station: Station, item: Item[JobRecord], job: Job[..., Any]) -> None:
        record = item.value
        options = record.options or NO_OPTIONS
        if options.keep_seconds:
            with contextlib.suppress(Unavailable):
                await station.queue.job(record.uid).update(
                    self._valkey, status="running", started_at=self._clock.now(), worker=self.name,
                    attempts=record.attempt + 1,
                )
        context = RunningJob(record, record.uid, station.queue.name, self._stopping.is_set)
        if self.settings.at_most_once:
            return await self._run_once(station, item, job, context)
        try:
            result = await self._execution.run(job, context, options.timeout_seconds or job.timeout_seconds)
            text = msgspec.json.encode(result).decode() if options.keep_seconds and result is not None else ""
        except BaseException as error:
            await self._failed(station, item, job, error)
        else:
            ending = Ending("succeeded", result=text, attempts=record.attempt + 1, follow=options.on_success)
            await self._end(station, item, job, ending)

    async def _run_once(
        self, station: Station, item: Item[JobRecord], job: Job[..., Any], context: RunningJob
    ) -> None:
        """At most once: forgotten before it runs, so that nothing can run it again, and nothing follows from it."""
        if not await station.forget(item):
            return
        try:
            await self._execution.run(job, context, job.timeout_seconds)
            self.tally.done += 1
        except Exception as error:
            self.tally.failed += 1
            _log.error("job failed", job=job.name, uid=item.value.uid, error=told(error), exc_info=error)

    # -- what becomes of it -----------------------------------------------------------------------------------------

    async def _failed(self, station: Station, item: Item[JobRecord], job: Job[..., Any], error: BaseException) -> None:
        record = item.value
        options, attempt, now = record.options or NO_OPTIONS, record.attempt + 1, self._clock.now()
        if isinstance(error, asyncio.CancelledError):
            if record.uid in self._cancelled:
                return await self._end(station, item, job, Ending("cancelled", attempts=attempt))
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                # We are to end, not the job's own doing: another worker runs it from its beginning.
                await asyncio.shield(station.put_back([item]))
                raise error
        if isinstance(error, RetryLater):
            await station.put_off(item, now + error.delay_seconds, told(error) if error.counts else "")
            self.tally.retried += 1
            return None
        tries = options.tries or job.retry.tries
        worth = isinstance(error, job.retry.only) and not isinstance(error, GiveUp)
        text = told(error)
        if worth and attempt < tries:
            _log.warning("job failed, will be tried again", job=job.name, uid=record.uid, attempt=attempt, error=text)
            await station.put_off(item, now + job.retry.pause_seconds(attempt), text)
            self.tally.retried += 1
            return None
        _log.error("job failed", job=job.name, uid=record.uid, attempt=attempt, error=text, exc_info=error)
        ending = Ending("failed", error=text, attempts=attempt, follow=options.on_failure)
        return await self._end(station, item, job, ending)

    async def _refuse(self, station: Station, item: Item[JobRecord], error: str) -> None:
        """Give up what cannot be run at all. Jobs that wait for it hear of it like of any failure."""
        _log.error("job refused", job=item.value.name[:200], uid=item.value.uid, error=error)
        self.tally.failed += 1
        await station.settle(item, Ending("failed", error=error, attempts=item.value.attempt))

    async def _end(self, station: Station, item: Item[JobRecord], job: Job[..., Any], ending: Ending) -> None:
        record = item.value
        ours = await station.settle(item, ending)
        if ending.status == "succeeded":
            self.tally.done += 1
        elif ending.status == "failed":
            self.tally.failed += 1
        else:
            self._cancelled.discard(record.uid)
            with contextlib.suppress(Unavailable):
                await station.queue.cancelled.remove(self._valkey, record.uid)
        told_as = (record.options or NO_OPTIONS).done or (job.says_done and record.kwargs.get("job_uid"))
        if ours and isinstance(told_as, str) and told_as:
            # Whoever waits also looks at the state, so a message that is lost costs a second at most.
            with contextlib.suppress(Unavailable):
                await DONE.at(told_as).publish(self._valkey, b"done")


def _or_give_up(job: Job[..., Any], record: JobRecord, error: TypeError) -> Exception:
    try:
        job.signature.bind(**record.kwargs)
    except TypeError as wrong:
        return GiveUp(f"wrong arguments: {wrong}; it takes {job.signature}")
    return error
