"""Sweep job: looks through an index again and again for what has become stale, is due, or was forgotten.

``docs/jobs/batch-jobs.md`` says how to write one.
"""

import asyncio
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any, ClassVar

from keystead.clock import Clock, real_seconds
from keystead.engine import Valkey
from keystead.errors import DeclarationError, Unavailable
from keystead.jobs.batch_job import AWAY_SECONDS, BUDGET_SECONDS, RECORD_SECONDS
from keystead.jobs.batch_job_run import BatchRun, RunRecord, StopReason
from keystead.jobs.crew import pause
from keystead.keys import RecordKey
from keystead.patterns import LockHeld, SmartLock
from keystead.telemetry import counts, logger

_log = logger("jobs")


class SweepRun:
    """One sweep that is going on: when it began, what it counts, and whether it should end."""

    def __init__(self, started_at: float, counters: dict[str, int], reason: Callable[[], StopReason | None]) -> None:
        self.started_at, self.counts = started_at, counters
        self._reason = reason

    def count(self, name: str, by: int = 1) -> None:
        """Add to a counter, which must be a field of the run's struct."""
        if name not in self.counts:
            raise DeclarationError(f"{name!r} is no counter of this job's runs: {', '.join(self.counts) or 'none'}")
        self.counts[name] += by

    def reason_to_stop(self) -> StopReason | None:
        """To be asked before each step: the process ends, or the time is over."""
        return self._reason()


class SweepJob:
    """A job whose work lies in an index rather than in a list. A subclass sets ``lock`` and ``runs``, writes ``sweep``.

    Each step of a sweep must be atomic and bear being done by two processes at once: the lock is only held by ``run``.
    """

    lock: ClassVar[SmartLock]
    runs: ClassVar[RecordKey[Any]]
    every_seconds: ClassVar[float] = 5.0
    stated: ClassVar[frozenset[str]] = frozenset()  # fields that are no counts: of several sweeps the last one's holds
    budget_seconds: ClassVar[float] = BUDGET_SECONDS

    def __init__(
        self, valkey: Valkey, clock: Clock, *, stopping: Callable[[], bool] = lambda: False, hostname: str = ""
    ) -> None:
        """``stopping`` says that the process was asked to end. ``hostname`` is the place that the lock is held by."""
        self.valkey, self.clock, self.stopping = valkey, clock, stopping
        self._hostname = hostname or f"jobs-{socket.gethostname()}"
        self._record = RunRecord(self.runs)

    async def sweep(self, run: SweepRun) -> StopReason:
        """Do what there is to do, asking ``run.reason_to_stop()`` between steps; says why it ended."""
        raise NotImplementedError

    async def run(self) -> BatchRun | None:
        """One sweep under the lock; None, at once, while another run holds it."""
        holding = self.lock.at().hold(self.valkey, self.clock, hostname=self._hostname, stopping=self.stopping)
        async with AsyncExitStack() as held:
            try:
                await held.enter_async_context(holding)
            except LockHeld:
                counts.add("batch_job_runs", job=self._record.name, stop_reason="held")
                return None
            await self._record.begun(self.valkey, self.clock.now())
            run, ended = await self._swept(lambda: False)
            await self._record.ended(self.valkey, ended, run.started_at + ended.running_seconds)
            counts.add("batch_job_runs", job=self._record.name, stop_reason=ended.stop_reason.value)
            return ended

    async def work(self, stop: asyncio.Event) -> None:
        """Sweep every ``every_seconds`` until ``stop`` is set, without the lock; any number may do so at once.

        A server that is away is waited for. What a sweep did is written to the hash of the run, at most every 15
        seconds; sweeps that found nothing are not.
        """
        loop = asyncio.get_running_loop()
        written_at, kept = float("-inf"), self._record.zeros()
        while not stop.is_set() and not self.stopping():
            seconds = self.every_seconds
            try:
                run, ended = await self._swept(stop.is_set)
                kept = {name: value if name in self.stated else value + kept[name]
                        for name, value in run.counts.items()}
                if any(kept.values()) and loop.time() - written_at >= RECORD_SECONDS:
                    whole = BatchRun(ended.stop_reason, ended.running_seconds, kept)
                    await self._record.ended(
                        self.valkey, whole, run.started_at + ended.running_seconds, started_at=run.started_at
                    )
                    written_at, kept = loop.time(), self._record.zeros()
                if ended.stop_reason is StopReason.TIME_EXHAUSTED:
                    seconds = 0.0  # there is more
            except Unavailable as error:
                _log.warning("sweep could not reach what it needs", job=self._record.name, reason=str(error))
                seconds = max(seconds, AWAY_SECONDS)
            await pause(seconds, stop)

    async def _swept(self, stopped: Callable[[], bool]) -> tuple[SweepRun, BatchRun]:
        started_at = self.clock.now()

        def reason() -> StopReason | None:
            if self.stopping() or stopped():
                return StopReason.SIGNAL
            over = real_seconds(self.clock, self.clock.now() - started_at) >= self.budget_seconds
            return StopReason.TIME_EXHAUSTED if over else None

        run = SweepRun(started_at, self._record.zeros(), reason)
        why = await self.sweep(run)
        return run, BatchRun(why, self.clock.now() - started_at, run.counts)
