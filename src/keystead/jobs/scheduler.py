"""The distributed scheduler, as a program that uses it sees it: schedule, cancel, look, pause.

A task is a job's name, its arguments and a time. Any number of instances (``scheduler_worker``) run what is due; one of
them leads and moves due tasks to the queue (``scheduler_leader``). ``docs/jobs/scheduler.md`` says what that is worth.
"""

import math
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from keystead.clock import Clock, SystemClock
from keystead.engine import Pipeline, Valkey
from keystead.errors import DeclarationError, Invalid
from keystead.ids import new_uid
from keystead.jobs import scheduler_steps as steps
from keystead.jobs.book import Job, JobBook
from keystead.jobs.keys import (
    SCHEDULER_LEADER,
    TASK_LEASE_SECONDS,
    TASKS_ACTIVE,
    TASKS_DEAD,
    TASKS_PAUSED,
    TASKS_PAYLOAD,
    TASKS_PROCESSING,
    TASKS_QUEUE,
    TASKS_SCHEDULED,
)
from keystead.jobs.models import Task
from keystead.jobs.retry import DEFAULT, Retry
from keystead.jobs.scheduler_steps import Cancelled, IfKnown, Revived, Scheduled
from keystead.keys import Reply

LONGEST_ID: Final = 200
TASK_RETRY: Final = Retry(tries=5, first_seconds=5.0, most_seconds=900.0)


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """How an instance of the scheduler works. All instances should agree on the times."""

    concurrency: int = 20  # tasks that one instance runs at once
    take_seconds: float = 1.0  # how long one wait for a due task lasts, and so how long an idle instance takes to stop
    lease_seconds: float = TASK_LEASE_SECONDS
    heartbeat_seconds: float = 10.0
    promote_seconds: float = 1.0  # the leader looks at least this often for what is due
    promote_items: int = 100
    reclaim_seconds: float = 15.0
    grace_seconds: float = 5.0  # how long a task may be without a lease before it is put back
    stop_seconds: float = 20.0  # how long running tasks may go on when the instance is to stop
    retry: Retry = field(default=TASK_RETRY)  # for jobs that declare none of their own
    leads: bool = True  # whether this instance stands for election

    def __post_init__(self) -> None:
        if not 0 < self.heartbeat_seconds < self.lease_seconds <= TASK_LEASE_SECONDS:
            raise DeclarationError(
                f"a task's lease must outlast its heartbeat and last {TASK_LEASE_SECONDS} s at most; got heartbeat "
                f"{self.heartbeat_seconds:g} s, lease {self.lease_seconds:g} s"
            )
        shortest = min(self.promote_seconds, self.take_seconds)
        if self.concurrency < 1 or not 1 <= self.promote_items <= 1000 or shortest <= 0:
            raise DeclarationError(
                "an instance needs concurrency >= 1, promote_items from 1 to 1000, promote_seconds and take_seconds "
                f"above zero; got {self}"
            )


class TaskState(Enum):
    """Where a task is. One that is done or cancelled is not known any more."""

    SCHEDULED = "scheduled"
    READY = "ready"
    PROCESSING = "processing"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class TaskView:
    """What is known of a task. ``due_at`` only while scheduled, ``holder`` (``<worker>:<claim>``) while processing."""

    task: Task
    state: TaskState
    due_at: float | None = None
    holder: str = ""


@dataclass(frozen=True, slots=True)
class ScheduledTask:
    """The task's id, and what scheduling it did."""

    id: str
    outcome: Scheduled


@dataclass(frozen=True, slots=True)
class SchedulerOverview:
    """The scheduler at a glance."""

    scheduled: int
    ready: int
    processing: int
    dead: int
    next_at: float | None
    leader: str  # <instance>:<epoch>, empty while nobody leads
    paused: bool


class Scheduler:
    """Schedules tasks and looks after them. With a ``book``, unknown jobs and wrong arguments are refused at once.

    ``clock`` should be set by the server (``engine.sync_clock``), so that hosts agree.
    """

    def __init__(self, valkey: Valkey, book: JobBook | None = None, clock: Clock | None = None) -> None:
        self._valkey = valkey
        self._book = book
        self._clock = clock or SystemClock()

    def schedule(
        self, job: Job[..., Any] | str, arguments: Mapping[str, Any] | None = None, *, at: float | None = None,
        delay_seconds: float = 0.0, task_id: str = "", if_known: IfKnown = IfKnown.KEEP,
        max_attempts: int | None = None, on: Valkey | Pipeline | None = None,
    ) -> Awaitable[ScheduledTask]:
        """Let a job run with these arguments at a unix time, or after a delay. One atomic step, or part of a pipeline.

        Scheduling the same ``task_id`` twice makes one task: ``if_known`` says which. Without an id each call makes a
        task. A lost reply (``ReplyLost``) leaves open whether the task is known; with an id of your own, repeat it.
        """
        found = self._found(job)
        name, given = found.name if found else str(job), dict(arguments or {})
        if found:
            found.check(given)
        now = self._clock.now()
        due = now + delay_seconds if at is None else at
        if not math.isfinite(due):
            raise Invalid(f"a task needs a time that exists; got {due}")
        tries = max_attempts if max_attempts is not None else _tries(found)
        if tries < 1:
            raise Invalid(f"a task needs at least one attempt; got {tries}")
        task = Task(checked_id(task_id) if task_id else new_uid("task"), name, given, due, now, max_attempts=tries)
        answer = steps.schedule(on or self._valkey, task, if_known)
        return _WithId(task.id, answer)

    def cancel(self, task_id: str, *, on: Valkey | Pipeline | None = None) -> Awaitable[Cancelled]:
        """Keep a task from running. One that runs goes on to its end, and is not tried again if it fails."""
        return steps.cancel(on or self._valkey, checked_id(task_id))

    def revive(
        self, task_id: str, *, delay_seconds: float = 0.0, on: Valkey | Pipeline | None = None
    ) -> Awaitable[Revived]:
        """Let a task that was given up run again, with all its tries."""
        return steps.revive(on or self._valkey, checked_id(task_id), self._clock.now() + delay_seconds)

    async def discard(self, task_id: str) -> bool:
        """Forget a task that was given up; says whether there was one."""
        return await TASKS_DEAD.at().remove(self._valkey, checked_id(task_id)) == 1

    async def find(self, task_id: str) -> TaskView | None:
        """Where a task is, at one instant; None when it is done, was cancelled, or never was."""
        checked_id(task_id)
        async with self._valkey.pipeline(transaction=True) as pipeline:
            known = TASKS_PAYLOAD.at().get(pipeline, task_id)
            due_at = TASKS_SCHEDULED.at().score(pipeline, task_id)
            holder = TASKS_ACTIVE.at(task_id).get(pipeline)
            dead = TASKS_DEAD.at().get(pipeline, task_id)
            await pipeline.execute()
        task, lost = await known, await dead
        if task is None:
            return None if lost is None else TaskView(lost, TaskState.DEAD)
        if (due := await due_at) is not None:
            return TaskView(task, TaskState.SCHEDULED, due_at=due)
        if (who := await holder) is not None:
            return TaskView(task, TaskState.PROCESSING, holder=who)
        return TaskView(task, TaskState.READY)

    async def upcoming(self, most: int = 50) -> list[TaskView]:
        """The tasks that are due next, earliest first. One that moves on meanwhile is left out."""
        ids = await TASKS_SCHEDULED.at().range(self._valkey, 0, most - 1)
        if not ids:
            return []
        key = TASKS_PAYLOAD.at().name(self._valkey.layout)
        raws: list[bytes | None] = await self._valkey.run(("HMGET", key, *(id for id, _ in ids)), list, repeat=True)
        return [
            TaskView(TASKS_PAYLOAD.codec.decode(raw), TaskState.SCHEDULED, due_at=due)
            for raw, (_, due) in zip(raws, ids, strict=True) if raw is not None
        ]

    async def dead(self, most: int = 100) -> list[Task]:
        """Some of the tasks that were given up, in no order."""
        key, found, cursor = TASKS_DEAD.at().name(self._valkey.layout), list[Task](), b"0"
        while len(found) < most:
            cursor, flat = await self._valkey.run(("HSCAN", key, cursor, "COUNT", most), _page, repeat=True)
            found += [TASKS_DEAD.codec.decode(raw) for raw in flat[1::2]]
            if cursor == b"0":
                break
        return found[:most]

    async def overview(self) -> SchedulerOverview:
        """How many tasks are where, who leads, and whether all is paused; at one instant."""
        async with self._valkey.pipeline(transaction=True) as pipeline:
            first = TASKS_SCHEDULED.at().range(pipeline, 0, 0)
            sizes = [
                TASKS_SCHEDULED.at().size(pipeline), TASKS_QUEUE.at().length(pipeline),
                TASKS_PROCESSING.at().length(pipeline), TASKS_DEAD.at().size(pipeline),
            ]
            leader = SCHEDULER_LEADER.at().current(pipeline)
            paused = TASKS_PAUSED.at().is_raised(pipeline)
            await pipeline.execute()
        scheduled, ready, processing, dead = [await size for size in sizes]
        earliest = await first
        return SchedulerOverview(
            scheduled, ready, processing, dead, earliest[0][1] if earliest else None, await leader or "", await paused
        )

    async def pause(self) -> None:
        """From now on no task begins, on any instance, until ``resume``. Those that run go on."""
        await TASKS_PAUSED.at().raise_flag(self._valkey)

    async def resume(self) -> bool:
        """Let tasks begin again, overdue ones first; says whether they were paused."""
        return await TASKS_PAUSED.at().lower_flag(self._valkey)

    def _found(self, job: Job[..., Any] | str) -> Job[..., Any] | None:
        if isinstance(job, Job):
            return job
        if self._book is None:
            return None
        found = self._book.get(job)
        if found is None:
            raise Invalid(f"there is no job named {job!r} in the book; it has {len(self._book)} others")
        return found


class _WithId:
    """An answer to come, with the id that the task has already: on a pipeline it comes after ``execute``."""

    def __init__(self, task_id: str, answer: Awaitable[Scheduled]) -> None:
        self.id = task_id
        self._answer = answer

    def __await__(self) -> Any:
        outcome = yield from self._answer.__await__()
        return ScheduledTask(self.id, outcome)


def checked_id(task_id: str) -> str:
    """The id, if it can be one."""
    if not 1 <= len(task_id) <= LONGEST_ID:
        raise Invalid(f"a task's id has 1 to {LONGEST_ID} characters; got {len(task_id)}")
    try:
        TASKS_ACTIVE.at(task_id)
    except DeclarationError as error:
        raise Invalid(f"that cannot be a task's id: {error}") from None
    return task_id


def retry_of(job: Job[..., Any], usual: Retry) -> Retry:
    """How a job is tried again: as it declares, or as all tasks are."""
    return usual if job.retry is DEFAULT else job.retry


def _tries(job: Job[..., Any] | None) -> int:
    return TASK_RETRY.tries if job is None else retry_of(job, TASK_RETRY).tries


def _page(reply: Reply) -> tuple[bytes, list[bytes]]:
    return reply[0], list(reply[1])
