"""An instance of the distributed scheduler: takes due tasks, runs them, and stands for election.

``task.type`` is the name of a job and is looked up in the book, never imported; ``task.args`` are its arguments.
"""

import asyncio
import contextlib
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from keystead.clock import Clock, SystemClock
from keystead.engine import Valkey, sync_clock
from keystead.errors import DeclarationError, Invalid, Unavailable
from keystead.jobs import scheduler_steps as steps
from keystead.jobs.book import Job, JobBook
from keystead.jobs.context import RunningJob
from keystead.jobs.execution import Execution, Middleware, told
from keystead.jobs.keys import TASKS_PAUSED, TASKS_PAYLOAD
from keystead.jobs.models import JobRecord, Task
from keystead.jobs.retry import GiveUp, RetryLater
from keystead.jobs.scheduler import SchedulerSettings, retry_of
from keystead.jobs.scheduler_leader import Promoter
from keystead.jobs.scheduler_steps import Claim, Failed, Refusal
from keystead.keys import Undecodable
from keystead.patterns.leader import LeaderAt, new_instance
from keystead.telemetry import counts, logger

T = TypeVar("T")

MOST_TAKEN: Final = 32
RETRY_SECONDS: Final = 1.0
SYNC_SECONDS: Final = 60.0

counts.describe("scheduler_tasks_done", "tasks that this process ran to their end")
counts.describe("scheduler_tasks_failed", "tries of tasks that failed here, by what became of the task")
counts.describe("scheduler_leases_lost", "tasks that this process did not hold any more when it wanted to settle them")

_log = logger("jobs")


class _Interrupted(Exception):
    """The try was ended from outside: too long, not ours any more, or the instance stops."""


@dataclass(slots=True, eq=False)
class _Running:
    """A task that this process works on."""

    held: Claim
    lease_ends: float  # on the monotonic clock, counted from before the lease was asked for
    handler: "asyncio.Task[Exception | None] | None" = None
    stopped_because: str = ""


class SchedulerWorker:
    """Runs due tasks until it is told to ``stop``. Start as many as you like, on as many machines.

    ``clock`` is the server's by default, measured anew each minute. ``leader`` is the scheduler's own leadership, or
    another declaration of it with other times.
    """

    def __init__(
        self, valkey: Valkey, book: JobBook, settings: SchedulerSettings | None = None, clock: Clock | None = None, *,
        name: str = "", leader: LeaderAt | None = None, middleware: Sequence[Middleware] = (),
    ) -> None:
        self.name = name or new_instance()
        if ":" in self.name:
            raise Invalid(f"an instance's name cannot hold a colon; got {self.name!r}")
        self._valkey = valkey
        self._book = book
        self._settings = settings or SchedulerSettings()
        self._own_clock = None if clock else SystemClock()
        self._clock: Clock = clock or self._own_clock or SystemClock()
        self._execution = Execution(self._settings.concurrency, middleware)
        self._promoter = Promoter(valkey, self._settings, self._clock, instance=self.name, leader=leader)
        self._serving: set[asyncio.Task[None]] = set()  # from taking an id until it is settled
        self._running: set[_Running] = set()
        self._stopping = asyncio.Event()
        self._changed = asyncio.Event()  # a task ended, or the instance is to stop
        self._paused = False

    @property
    def running(self) -> int:
        """How many tasks this instance works on now."""
        return len(self._running)

    def stop(self) -> None:
        """Take nothing more, let running tasks end, fail those that do not in time, and resign. ``run`` then returns.

        One that is failed so is due again at once. A job that is no coroutine cannot be interrupted: its thread goes
        on until it or the process ends.
        """
        self._stopping.set()
        self._changed.set()

    async def run(self) -> None:
        """Work until ``stop``; a server that is away is waited for."""
        done = asyncio.Event()
        if self._own_clock is not None:
            await self._set_clock(self._own_clock)
        async with asyncio.TaskGroup() as upkeep:
            others = [upkeep.create_task(self._beat())]
            if self._own_clock is not None:
                others.append(upkeep.create_task(self._keep_time(self._own_clock)))
            if self._settings.leads:
                upkeep.create_task(self._promoter.run(done))
            try:
                async with asyncio.TaskGroup() as tasks:
                    await self._take_all(tasks)
                    await self._wind_up()
            finally:
                self._execution.close()
            done.set()
            for other in others:
                other.cancel()

    # -- taking -----------------------------------------------------------------------------------------------------

    async def _take_all(self, tasks: asyncio.TaskGroup) -> None:
        most = 1
        while not self._stopping.is_set():
            free = self._settings.concurrency - len(self._serving)
            if free <= 0:
                self._changed.clear()
                await self._changed.wait()
                continue
            try:
                ids = await self._take(min(free, most))
            except Unavailable:
                await self._pause(RETRY_SECONDS)
                continue
            except Exception:
                _log.exception("taking tasks failed", worker=self.name)
                await self._pause(10 * RETRY_SECONDS)
                continue
            most = min(2 * len(ids) + 1, MOST_TAKEN)  # who finds many due asks for more
            for raw_id in ids:
                one = tasks.create_task(self._serve(raw_id))
                self._serving.add(one)
                one.add_done_callback(self._served)

    async def _take(self, most: int) -> list[bytes]:
        if self._paused:
            self._paused = await TASKS_PAUSED.at().is_raised(self._valkey)
        if self._paused:
            await self._pause(self._settings.take_seconds)
            return []
        return await steps.take_many(self._valkey, most, self._settings.take_seconds)

    def _served(self, one: asyncio.Task[None]) -> None:
        self._serving.discard(one)
        self._changed.set()

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    async def _serve(self, raw_id: bytes) -> None:
        """Claim, run and settle one task. What goes wrong with the server leaves it to be reclaimed."""
        try:
            one = await self._claim(raw_id)
            if one is None:
                return
            self._running.add(one)
            try:
                await self._run_and_settle(one)
            finally:
                self._running.discard(one)
        except Unavailable as error:
            _log.warning("a task was left to be reclaimed", worker=self.name, error=str(error))
        except Exception:
            _log.exception("a task was left to be reclaimed", worker=self.name)

    async def _claim(self, raw_id: bytes) -> _Running | None:
        lease_ends = time.monotonic() + self._settings.lease_seconds
        try:
            claiming = steps.claim(
                self._valkey, raw_id.decode(), f"{self.name}:{secrets.token_urlsafe(9)}", self._settings.lease_seconds
            )
        except (DeclarationError, UnicodeDecodeError):
            _log.error("something in the queue is no task's id and was removed", worker=self.name)
            await steps.forget(self._valkey, raw_id)
            return None
        held = await claiming
        if isinstance(held, Claim):
            return _Running(held, lease_ends)
        self._paused = self._paused or held is Refusal.PAUSED
        return None

    # -- running ----------------------------------------------------------------------------------------------------

    async def _run_and_settle(self, one: _Running) -> None:
        try:
            task = TASKS_PAYLOAD.codec.decode(one.held.raw)
        except Undecodable as error:
            await self._fail(one, f"the task does not decode: {error.reason}", self._clock.now(), True, True)
            return
        job = self._book.get(task.type)
        if job is None:  # not here; an instance with newer code may know it
            pause = self._settings.retry.pause_seconds(task.attempts + 1)
            await self._fail(one, f"there is no job named {task.type!r}", self._clock.now() + pause, True, False)
            return
        if self._stopping.is_set():  # taken just before: another may have it, and no try was made
            await self._fail(one, "not begun: its worker was told to stop", self._clock.now(), False, False)
            return
        await self._settle(one, task, job, await self._outcome(one, task, job))

    async def _outcome(self, one: _Running, task: Task, job: Job[..., Any]) -> Exception | None:
        """How one try ended. An exception of the job's own is a value here."""
        async with asyncio.TaskGroup() as tasks:
            one.handler = tasks.create_task(self._call(task, job))
            await asyncio.wait((one.handler,))
        if one.handler.cancelled():
            return _Interrupted(one.stopped_because or "the job cancelled itself")
        return one.handler.result()

    async def _call(self, task: Task, job: Job[..., Any]) -> Exception | None:
        record = JobRecord(task.type, task.args, task.created_at, uid=task.id, attempt=task.attempts)
        try:
            context = RunningJob(record, task.id, "", self._stopping.is_set, self._valkey, self._clock)
            await self._execution.run(job, context, job.timeout_seconds)
        except Exception as error:
            return error
        return None

    def _interrupt(self, one: _Running, reason: str) -> None:
        if one.handler is not None and not one.handler.done():
            one.stopped_because = reason
            one.handler.cancel()

    # -- settling ---------------------------------------------------------------------------------------------------

    async def _settle(self, one: _Running, task: Task, job: Job[..., Any], error: Exception | None) -> None:
        if error is None:
            async def complete() -> bool:
                return await steps.complete(self._valkey, one.held)

            if await self._patiently(one, complete):
                counts.add("scheduler_tasks_done")
            else:
                self._lost(one)
            return
        retry = retry_of(job, self._settings.retry)
        pause, tries_count = retry.pause_seconds(task.attempts + 1), True
        if isinstance(error, RetryLater):
            pause, tries_count = error.delay_seconds, error.counts
        elif self._stopping.is_set() and one.stopped_because:
            pause = 0.0
        useless = isinstance(error, GiveUp) or not isinstance(error, (RetryLater, _Interrupted, *retry.only))
        text = f"interrupted: {error}" if isinstance(error, _Interrupted) else told(error)
        await self._fail(one, text, self._clock.now() + pause, tries_count, useless)

    async def _fail(self, one: _Running, error: str, due_at: float, tries_count: bool, give_up: bool) -> None:
        async def fail() -> Failed:
            return await steps.fail(self._valkey, one.held, error, due_at, counts=tries_count, give_up=give_up)

        became = await self._patiently(one, fail)
        if became is Failed.LOST:
            self._lost(one)
            return
        counts.add("scheduler_tasks_failed", became=became.value)
        tell = _log.error if became is Failed.DEAD else _log.warning
        tell("a task failed", id=one.held.id, became=became.value, error=error.partition(":")[0])

    async def _patiently(self, one: _Running, step: Callable[[], Awaitable[T]]) -> T:
        """Try to settle for as long as the lease lasts. Settling twice does no harm: the holder is compared."""
        while True:
            try:
                return await step()
            except Unavailable:
                if time.monotonic() + RETRY_SECONDS >= one.lease_ends:
                    raise
                await asyncio.sleep(RETRY_SECONDS)

    def _lost(self, one: _Running) -> None:
        counts.add("scheduler_leases_lost")
        _log.warning("a task was someone else's when it ended, or had been settled before", id=one.held.id)

    # -- upkeep -----------------------------------------------------------------------------------------------------

    async def _beat(self) -> None:
        """Keep the leases of all running tasks, in one round trip; leave alone what is not ours any more."""
        pause = self._settings.heartbeat_seconds
        while True:
            await asyncio.sleep(pause)
            ones = list(self._running)
            asked_at = time.monotonic()
            pause = self._settings.heartbeat_seconds
            try:
                kept = await self._keep(ones)
            except Exception as error:
                if not isinstance(error, Unavailable):
                    _log.exception("the heartbeat failed", worker=self.name)
                kept = []
                pause = min(pause, RETRY_SECONDS)
            for one, still_ours in zip(ones, kept, strict=bool(kept)):
                if still_ours:
                    one.lease_ends = asked_at + self._settings.lease_seconds
                else:
                    one.lease_ends = asked_at
            for one in ones:
                if one.lease_ends <= time.monotonic():
                    self._interrupt(one, "the lease was lost")

    async def _keep(self, ones: list[_Running]) -> list[bool]:
        if not ones:
            return []
        async with self._valkey.pipeline(transaction=False) as pipeline:
            answers = [steps.heartbeat(pipeline, one.held, self._settings.lease_seconds) for one in ones]
            await pipeline.execute()
        return [await answer for answer in answers]

    async def _keep_time(self, clock: SystemClock) -> None:
        while True:
            await asyncio.sleep(SYNC_SECONDS)
            await self._set_clock(clock)

    async def _set_clock(self, clock: SystemClock) -> None:
        with contextlib.suppress(Unavailable):
            await sync_clock(self._valkey, clock)

    async def _wind_up(self) -> None:
        """Wait for what runs; interrupt what does not end in time."""
        end = time.monotonic() + self._settings.stop_seconds
        while self._serving and time.monotonic() < end:
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, end - time.monotonic())):
                    await self._changed.wait()
        for one in list(self._running):
            self._interrupt(one, "its worker was told to stop")
