"""Jobs of many tenants: each gets its turn, so one with a hundred thousand jobs delays the others by one turn.

The work list is faster; this is for where a noisy tenant would otherwise hold up the quiet ones.
"""

import asyncio
import os
import secrets
import socket
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from time import perf_counter
from typing import Any

from keystead.clock import Clock, SystemClock, real
from keystead.engine import Valkey
from keystead.engine.failures import ErrorReply
from keystead.errors import Invalid, LimitReached, Unavailable
from keystead.jobs.book import Job, JobBook
from keystead.jobs.client import Jobs
from keystead.jobs.context import RunningJob
from keystead.jobs.ended import EndedNotes
from keystead.jobs.endings import Ending
from keystead.jobs.execution import Execution
from keystead.jobs.keys import ASKED, FAIR, FAIR_LEASE_SECONDS, SERVED
from keystead.jobs.models import JobRecord
from keystead.jobs.records import encode_record
from keystead.jobs.retry import GiveUp
from keystead.jobs.tenants_shares import count
from keystead.keys import SortedSetKey
from keystead.patterns import FairConsumer, Leased, Produced, Requeued
from keystead.scrubbing import failure_told
from keystead.telemetry import logger

RETRY_SECONDS = 1.0
COUNT_SECONDS = 1.0
QUEUE = "fair"  # as jobs of tenants are told where others have the name of a queue

# What the task that holds an item would tell of it, if the try that failed turns out to be its last.
_last_try: ContextVar[tuple[str, JobRecord, Ending] | None] = ContextVar("last_try", default=None)

_log = logger("jobs")


class FairJobs:
    """Enqueues jobs for tenants. ``jobs`` gives connection, clock and book."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs

    async def enqueue(
        self, tenant: str, work: Job[..., Any] | str, kwargs: dict[str, Any], *, cost: int = 1, priority: int = 5,
        delay_seconds: float = 0.0,
    ) -> str:
        """Queue a job for a tenant and return its id.

        ``cost`` is what it takes of the tenant's turn, ``priority`` 0..9 (9 first) orders the tenant's own jobs.
        Raises ``LimitReached`` when the tenant, or the queue, holds as many as it may.
        """
        jobs, now = self._jobs, self._jobs.clock.now()
        job = work if isinstance(work, Job) else jobs.book.get(work)
        if job is not None:
            job.check(kwargs)
        name, uid = work if isinstance(work, str) else work.name, FAIR.new_id(now)
        encode_record(name, kwargs, now, uid=uid)  # refuses what cannot travel, in the words of any other job
        produced, _ = await asyncio.gather(
            FAIR.produce(
                jobs.valkey, tenant, uid, JobRecord(name, kwargs, now, uid), now=now, cost=cost, priority=priority,
                delay_seconds=delay_seconds,
            ),
            _counted(jobs.valkey, ASKED, {tenant: cost}, real(jobs.clock).now()),
        )
        if produced in (Produced.FULL, Produced.PAUSED):
            raise LimitReached(f"tenant {tenant}: it takes no more now ({produced.value})", retry_after_seconds=1)
        if produced is Produced.TOO_BIG:
            raise Invalid(f"job {name} of tenant {tenant}: larger, or dearer, than the queue takes")
        return uid


class FairWorker:
    """Runs the jobs of tenants in turns.

    A job that fails comes back with a pause that doubles each time; after five tries, or with ``GiveUp``, it is dead:
    ``FAIR.upkeep.dead(valkey, tenant)`` lists those, ``retry_dead`` gives them another chance.
    """

    def __init__(
        self, valkey: Valkey, book: JobBook, *, clock: Clock | None = None, concurrency: int = 20, threads: int = 16,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        self._valkey, self._book = valkey, book
        self._clock: Clock = clock or SystemClock()
        self._execution = Execution(threads)
        self._stopping = False
        self._served: Counter[str] = Counter()
        name = f"{socket.gethostname().replace(':', '-')}-{os.getpid()}-{secrets.token_hex(3)}"
        self._ended = EndedNotes(name, self._clock)
        self._consumer = FairConsumer(
            FAIR, valkey, self._clock, self._handle, most_items=concurrency, lease_seconds=FAIR_LEASE_SECONDS,
            retry_seconds=retry_seconds, name=name, dead=self._given_up,
        )

    def stop(self) -> None:
        """Take nothing more; ``run`` ends when what runs has ended."""
        self._stopping = True
        self._consumer.stop()

    async def run(self) -> None:
        """Work until ``stop``. Cancelled, it hands back what it holds, not counted as a try."""
        counting = asyncio.ensure_future(self._keep_counting())
        try:
            await self._consumer.run()
        finally:
            counting.cancel()
            await asyncio.gather(counting, return_exceptions=True)
            self._execution.close()
            await self._count()

    async def _keep_counting(self) -> None:
        while True:
            await asyncio.sleep(COUNT_SECONDS)
            await self._count()

    async def _count(self) -> None:
        served, self._served = self._served, Counter()
        if served:
            await _counted(self._valkey, SERVED, served, real(self._clock).now())
        with suppress(Unavailable, ErrorReply):  # for whoever looks on; it is told with the next
            await self._ended.hand_over(self._valkey)

    async def _given_up(self, dead: Sequence[tuple[str, str]]) -> None:
        """Of one that died with its worker nobody here knows more than its id; it is among the tenant's dead."""
        tried = _last_try.get()
        if tried is not None and tried[0] in [uid for _, uid in dead]:
            self._ended.note(tried[1], QUEUE, tried[2])

    async def _handle(self, item: Leased[JobRecord]) -> None:
        record = item.value
        job, began = self._book.get(record.name), perf_counter()

        def failed(error: Exception) -> Ending:
            return Ending("failed", attempts=item.attempt + 1, seconds=perf_counter() - began,
                          reason=failure_told(error))

        try:
            if job is None:
                raise GiveUp(f"no job is named {record.name[:200]}")
            context = RunningJob(record, item.id, QUEUE, lambda: self._stopping, self._valkey, self._clock)
            await self._execution.run(job, context, job.timeout_seconds)
            ending = Ending("succeeded", attempts=item.attempt + 1, seconds=perf_counter() - began)
            self._ended.note(record, QUEUE, ending)
        except GiveUp as error:
            _log.error("job given up", job=record.name[:200], tenant=item.shard, uid=item.id, error=failure_told(error))
            if await FAIR.bury(self._valkey, [item], now=self._clock.now()) == [Requeued.DEAD]:
                self._ended.note(record, QUEUE, failed(error))
        except Exception as error:
            _log.warning("job failed", job=record.name[:200], tenant=item.shard, uid=item.id, error=failure_told(error))
            _last_try.set((item.id, record, failed(error)))
            raise
        finally:
            self._served[item.shard] += item.cost


async def _counted(valkey: Valkey, minutes: SortedSetKey[str], costs: Mapping[str, float], now: float) -> None:
    """For whoever looks on; nothing depends on it."""
    with suppress(Unavailable, ErrorReply):
        await count(valkey, minutes, costs, now=now)
