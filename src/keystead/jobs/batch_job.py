"""Batch job: one runner at a time works off a list or what is due, and nothing is lost however it ends.

A subclass names its keys and says how one item is processed; lock, purgatory, time budget, stop reasons, what is kept
of each run, dead letters and counts come with the frame. ``docs/jobs/batch-jobs.md`` says how to write one.
"""

import asyncio
import secrets
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any, ClassVar, Final, Generic, TypeVar

from keystead.clock import Clock, real_seconds
from keystead.engine import Valkey
from keystead.errors import DeclarationError, Unavailable
from keystead.jobs.batch_job_run import BatchRun, Run, RunRecord, Step, StopReason
from keystead.jobs.batch_job_source import DueSource, ListSource, Source
from keystead.jobs.crew import pause, unless_stopped
from keystead.jobs.retry import GiveUp, RetryLater
from keystead.jobs.shutdown import graceful_sleep
from keystead.keys import RecordKey
from keystead.patterns import DelayedSet, LockHeld, SmartLock, WorkList
from keystead.telemetry import counts, logger

T = TypeVar("T")

BUDGET_SECONDS: Final = 50.0
AGAIN_SECONDS: Final = 900.0
# Of work that goes on: how often its hash is written at most, how often what dead workers hold is looked for, and how
# long it pauses when the server is away or those who get the results have too much.
RECORD_SECONDS: Final = 15.0
ADOPT_SECONDS: Final = 5.0
AWAY_SECONDS: Final = 1.0

counts.describe("batch_job_runs", "runs of a batch job, by the reason why they stopped")
counts.describe("batch_job_items", "items of a batch job, by what became of them")

_log = logger("jobs")


class BatchJob(Generic[T]):
    """A job that runs now and then, alone, and works off what has gathered.

    A subclass sets ``source``, ``lock`` and ``runs`` and writes ``process``. ``holds_next``: the next item is taken
    in the step that finishes the last, and an empty list is the first reason to stop that is looked for; otherwise
    up to ``batch_items`` are taken at a time, and it is the last. ``slice_items`` are processed and finished together.
    """

    source: ClassVar[WorkList[Any] | DelayedSet[Any]]
    lock: ClassVar[SmartLock]
    runs: ClassVar[RecordKey[Any]]
    holds_next: ClassVar[bool] = False
    batch_items: ClassVar[int] = 100
    slice_items: ClassVar[int] = 1
    budget_seconds: ClassVar[float] = BUDGET_SECONDS
    again_seconds: ClassVar[float] = AGAIN_SECONDS  # when a member of a delayed set that failed is due again
    congested_seconds: ClassVar[float] = AWAY_SECONDS  # how long who works all the time waits before asking again

    def __init__(
        self, valkey: Valkey, clock: Clock, *, stopping: Callable[[], bool] = lambda: False, hostname: str = ""
    ) -> None:
        """``stopping`` says that the process was asked to end. ``hostname`` is the place that the lock is held by."""
        self.valkey, self.clock, self.stopping = valkey, clock, stopping
        self._hostname = hostname or f"jobs-{socket.gethostname()}"
        self._record = RunRecord(self.runs)
        if self.holds_next and self.slice_items != 1:
            raise DeclarationError(f"{self._record.name}: a job that holds its next item processes one at a time")

    # -- what a subclass says ---------------------------------------------------------------------------------------

    async def process(self, value: T, step: Step) -> None:
        """Do what one item asks for. It may be seen again after a crash, so effects are keyed by the item's uid.

        On return the item is finished, together with what was queued on ``step.pipeline``. ``GiveUp`` makes it a dead
        letter. ``RetryLater`` and any other exception let it be tried again: in a list behind the others and up to its
        declared tries, in a delayed set at a later time. ``Unavailable`` counts against no item: it is tried again
        after a pause, now or in the next run.
        """
        raise NotImplementedError

    async def process_slice(self, values: list[T], step: Step) -> None:
        """As ``process``, for ``slice_items`` at once. After an exception they are processed one by one instead."""
        for value in values:
            await self.process(value, step)

    async def is_congested(self) -> bool:
        """Whether those who get the results have too much already: then the run stops with ``backpressure``."""
        return False

    async def has_credentials(self) -> bool:
        """Whether what is needed to work can be had: if not, the run stops with ``credentials``."""
        return True

    # -- a run ------------------------------------------------------------------------------------------------------

    async def run(self) -> BatchRun | None:
        """Work until there is a reason to stop; None, at once, while another run holds the lock.

        What was taken and not finished is put back. If the process dies, or the server goes away, it stays in
        purgatory and comes first in the next run; an item that is there at too many deaths becomes a dead letter.
        """
        holding = self.lock.at().hold(self.valkey, self.clock, hostname=self._hostname, stopping=self.stopping)
        async with AsyncExitStack() as held:
            try:
                await held.enter_async_context(holding)
            except LockHeld:
                counts.add("batch_job_runs", job=self._record.name, stop_reason="held")
                return None
            return await self._run()

    # -- all the time -----------------------------------------------------------------------------------------------

    async def work(self, stop: asyncio.Event) -> None:
        """Work until ``stop`` is set or ``stopping`` says so, woken by what comes.

        Any number may do so at once, also beside ``run``. Each is a worker with a name and signs of life, without the
        lock. What a worker that died held is adopted by the others, so an item's effects belong into ``step.settle``:
        whoever was taken for dead then writes nothing. A server that is away is waited for. The hash of the run says
        what was done since it was last written: when nothing is left to do, at most every 15 seconds.
        """
        source = self._source_of(secrets.token_hex(8))
        while not stop.is_set() and not self.stopping():
            try:
                async with source.alive(self.valkey):
                    await self._work_on(source, stop)
            except Unavailable:
                await pause(AWAY_SECONDS, stop)

    async def _work_on(self, source: Source[Any], stop: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        run, begun_at, written_at, adopt_at = self._begun(source), loop.time(), float("-inf"), float("-inf")
        while not stop.is_set() and not self.stopping():
            try:
                if loop.time() >= adopt_at:
                    await self._adopt(run)
                    adopt_at = loop.time() + ADOPT_SECONDS
                exhausted = await self._work_some(run, stop, max(adopt_at - loop.time(), 0.01))
                last_at = written_at if exhausted else max(written_at, begun_at)
                if run.did_something and loop.time() - last_at >= RECORD_SECONDS:
                    await self._written(run, StopReason.LIST_EXHAUSTED if exhausted else StopReason.TIME_EXHAUSTED)
                    run, begun_at, written_at = self._next(run), loop.time(), loop.time()
            except Unavailable as error:
                _log.warning("batch job lost the server for now", job=self._record.name, reason=str(error))
                run.held, run.alone = [], 0  # what is still ours comes again with the next take
                await pause(AWAY_SECONDS, stop)
        await source.give_back(self.valkey)
        if run.did_something:
            await self._written(run, StopReason.SIGNAL)

    async def _work_some(self, run: Run, stop: asyncio.Event, most_seconds: float) -> bool:
        """Work on a slice, or pause, or wait; says whether nothing was left to do."""
        if not run.held:
            if await self.is_congested() or not await self.has_credentials():
                await pause(self.congested_seconds, stop)
                return False
            most = 1 if self.holds_next else self.batch_items
            now = self.clock.now()
            # That there is nothing is told before it is waited for, so that the hash is written in time.
            taking = run.source.wait(self.valkey, most, now, most_seconds) if run.idle else run.source.take(
                self.valkey, most, now, now
            )
            taken = await unless_stopped(stop, taking)
            if taken is None:
                return False
            run.held, run.idle = taken.items, not taken.items
            run.dead += taken.dead
            return run.idle
        if run.pause_seconds > 0:
            seconds, run.pause_seconds = run.pause_seconds, 0.0
            await pause(seconds, stop)
            return False
        before = run.done
        await self._work(run, run.held[: 1 if run.alone else self.slice_items])
        if run.done > before:
            run.failures = 0  # it never ends, so a bad hour must not slow it down for good
        return False

    async def _adopt(self, run: Run) -> None:
        items, dead = await run.source.adopt(self.valkey, self.clock.now())
        run.recovered += items
        run.dead += dead
        if items or dead:
            _log.warning("batch job adopts what dead workers left", job=self._record.name, items=items, dead=dead)

    async def _written(self, run: Run, reason: StopReason) -> None:
        now = self.clock.now()
        ended = run.ended(reason, now - run.started_at)
        await self._record.ended(self.valkey, ended, now, started_at=run.started_at)
        self._tell(ended)

    def _begun(self, source: Source[Any]) -> Run:
        return Run(self.clock.now(), self._record.zeros(), source)

    def _next(self, run: Run) -> Run:
        """What is counted anew; what is under way goes on."""
        later = self._begun(run.source)
        later.held, later.alone, later.idle = run.held, run.alone, run.idle
        later.failures, later.pause_seconds = run.failures, run.pause_seconds
        return later

    async def _run(self) -> BatchRun:
        started_at = self.clock.now()
        await self._record.begun(self.valkey, started_at)
        run = Run(started_at, self._record.zeros(), self._source_of(""))
        await self._recover(run)
        reason = await self._work_off(run)
        if run.held:
            await run.source.put_back(self.valkey, run.held)
        finished_at = self.clock.now()
        ended = run.ended(reason, finished_at - started_at)
        await self._record.ended(self.valkey, ended, finished_at)
        self._tell(ended)
        return ended

    def _source_of(self, name: str) -> Source[Any]:
        kind: Callable[..., Source[Any]] = ListSource if isinstance(self.source, WorkList) else DueSource
        return kind(self.source, name)

    async def _recover(self, run: Run) -> None:
        run.recovered, dead = await run.source.recover(self.valkey, run.started_at)
        run.dead += dead
        if run.recovered or dead:
            _log.warning("batch job recovers what a dead run left", job=self._record.name, items=run.recovered,
                         dead=dead)

    async def _work_off(self, run: Run) -> StopReason:
        if self.holds_next:
            await self._take(run, 1)
        while True:
            reason = await self._reason_to_stop(run)
            if reason is not None:
                return reason
            if not run.held:
                await self._take(run, self.batch_items)
                if not run.held:
                    return StopReason.LIST_EXHAUSTED
            if run.pause_seconds > 0:
                pause, run.pause_seconds = run.pause_seconds, 0.0
                await graceful_sleep(pause, stopping=self.stopping, clock=self.clock)
            else:
                await self._work(run, run.held[: 1 if run.alone else self.slice_items])

    async def _reason_to_stop(self, run: Run) -> StopReason | None:
        if self.holds_next and not run.held:
            return StopReason.LIST_EXHAUSTED
        if self.stopping():
            return StopReason.SIGNAL
        if real_seconds(self.clock, self.clock.now() - run.started_at) + run.pause_seconds >= self.budget_seconds:
            return StopReason.TIME_EXHAUSTED
        if self.holds_next or not run.held:
            if await self.is_congested():
                return StopReason.BACKPRESSURE
            if not await self.has_credentials():
                return StopReason.CREDENTIALS
        return None

    async def _take(self, run: Run, most: int) -> None:
        taken = await run.source.take(self.valkey, most, self.clock.now(), run.started_at)
        run.held = taken.items
        run.dead += taken.dead

    async def _work(self, run: Run, items: list[Any]) -> None:
        step = Step(self.valkey, run, items)
        try:
            await self.process_slice([item.value for item in items], step)
        except Unavailable as error:
            _log.warning("batch job could not reach what it needs", job=self._record.name, reason=str(error))
            run.slow_down()
            await step.drop()
        except Exception as error:  # this is the loop of a worker: no item may stop it, whatever it raises
            await step.drop()
            if len(items) > 1:
                run.alone = len(items)
            else:
                await self._failed(run, items[0], error)
        else:
            await self._finish(run, step, items)

    async def _finish(self, run: Run, step: Step, items: list[Any]) -> None:
        settlements, rest = step.settlements()
        effects = step.pipeline if step.has_effects else None
        lost, refused = 0, []
        if settlements:
            settled = await run.source.settle(self.valkey, settlements)
            lost, refused = settled.lost, settled.refused
        if self.holds_next and rest:
            taken = await run.source.finish_and_take(self.valkey, effects, rest, self.clock.now(), run.started_at)
            run.held = taken.items
            run.dead += taken.dead
            lost += taken.lost
        else:
            if rest or effects is not None:
                lost += await run.source.finish(self.valkey, effects, rest)
            self._settled(run, len(items))
            if self.holds_next:
                await self._take(run, 1)
        for item, error in refused:
            put_off = await run.source.put_off(
                self.valkey, item, RetryLater(self.again_seconds), f"{type(error).__name__}: {error}"[:1000],
                self.clock.now(),
            )
            run.failed += 1
            run.dead += put_off.dead
            _log.error("the server refused what follows from an item", job=self._record.name, error=str(error)[:300])
        run.done += len(items) - lost - len(refused)
        if lost:
            _log.warning("batch job had items that were not its own any more", job=self._record.name, items=lost)

    async def _failed(self, run: Run, item: Any, error: Exception) -> None:
        now, said = self.clock.now(), f"{type(error).__name__}: {error}"[:1000]
        if isinstance(error, GiveUp):
            await run.source.bury(self.valkey, item, str(error) or "given up", now)
            run.dead += 1
        else:
            wish = error if isinstance(error, RetryLater) else RetryLater(self.again_seconds)
            put_off = await run.source.put_off(self.valkey, item, wish, said, now)
            run.failed += 1
            run.dead += put_off.dead
            if isinstance(error, RetryLater):
                run.pause_seconds = max(run.pause_seconds, put_off.pause_seconds)
            else:
                run.slow_down()
                _log.warning("batch job item failed", job=self._record.name, error=type(error).__name__)
        self._settled(run, 1)
        if self.holds_next:
            await self._take(run, 1)

    @staticmethod
    def _settled(run: Run, items: int) -> None:
        run.held = run.held[items:]
        run.alone = max(0, run.alone - items)

    def _tell(self, run: BatchRun) -> None:
        counts.add("batch_job_runs", job=self._record.name, stop_reason=run.stop_reason.value)
        for outcome in ("done", "failed", "dead", "recovered"):
            if amount := getattr(run, outcome):
                counts.add("batch_job_items", amount, job=self._record.name, outcome=outcome)
