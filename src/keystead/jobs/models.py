"""What lies in Valkey or crosses a channel. New fields have defaults, so that yesterday's queue can be read today."""

from typing import Any, Literal

import msgspec


class JobRef(msgspec.Struct, frozen=True):
    """A job to be run with these arguments, stored inside something else: a callback."""

    name: str
    kwargs: dict[str, Any] = {}
    queue: str | msgspec.UnsetType = msgspec.UNSET  # a named queue; absent for the usual one


class JobOptions(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a job needs beyond being run. Only jobs that use one of these carry them."""

    keep_seconds: float = 0  # the job has a state that can be read, and is kept so long after its end
    unique: str = ""
    batch: str = ""
    after: tuple[str, ...] = ()
    progress: str = ""  # uid under which progress is told
    done: str = ""  # uid of the channel on which the end is told
    on_success: JobRef | None = None
    on_failure: JobRef | None = None
    tries: int = 0  # instead of what the job declares
    timeout_seconds: float = 0


class JobRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A job in a queue. Other programs write the first three fields; their further ones travel along untouched."""

    name: str
    kwargs: dict[str, Any]
    queued_at: float
    uid: str = ""
    attempt: int = 0  # tries that failed
    slot: float = 0  # the start that was reserved for it, where its rate is limited
    options: JobOptions | None = None
    due_at: float = 0  # not to begin sooner: it waits for a worker only from then on
    trace: str = ""  # where in a trace it was queued, as a W3C traceparent


class JobState(msgspec.Struct, frozen=True):
    """What is known of a job that is kept. ``result`` is JSON text."""

    name: str
    status: str
    queued_at: float
    attempts: int = 0
    started_at: float | None = None
    finished_at: float | None = None
    worker: str = ""
    error: str = ""
    result: str = ""


EndedStatus = Literal["succeeded", "failed", "cancelled"]


class EndedJob(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A job that ended, for whoever looks on: how and when, and nothing of what it was given or gave.

    ``ran_seconds`` is how long its last try took, in real time; None for one that never began. ``error`` has what a log
    may tell of it: its kind, and its words only where they are ours.
    """

    uid: str
    name: str
    queue: str
    status: EndedStatus
    ended_at: float
    attempts: int = 1
    worker: str = ""
    queued_at: float = 0
    ran_seconds: float | None = None
    error: str = ""


class WorkerState(msgspec.Struct, frozen=True):
    """What a worker process tells of itself each second."""

    host: str
    pid: int
    started_at: float
    beat_at: float
    queues: str
    concurrency: int
    running: int = 0
    done: int = 0
    failed: int = 0
    retried: int = 0
    stopping: bool = False


class Control(msgspec.Struct, frozen=True, omit_defaults=True):
    """What all workers are told at once."""

    cancel: str = ""  # uid of a job to be stopped


class Indicator(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far a job is."""

    type: Literal["bar", "spinner", "final"]
    at: float | None = None
    of: float | None = None


class Spawned(msgspec.Struct, frozen=True):
    """A job that another one began."""

    uid: str
    name: str


class ProgressEvent(msgspec.Struct, frozen=True):
    """One step that a job tells of. After ``failed`` and ``succeeded`` nothing follows.

    ``spawned`` is only there for the type of that name. ``ordinal`` counts the events of a job from 1; it is written by
    the script that tells, and absent in events of other programs.
    """

    type: Literal["queued", "started", "bounce", "progress", "spawned", "failed", "succeeded"]
    message: str
    occurred_at: float
    indicator: Indicator | None = None
    spawned: Spawned | msgspec.UnsetType = msgspec.UNSET
    ordinal: int | msgspec.UnsetType = msgspec.UNSET


class Task(msgspec.Struct, frozen=True):
    """A task of the distributed scheduler."""

    id: str
    type: str
    args: dict[str, Any]
    run_at: float
    created_at: float
    attempts: int = 0
    max_attempts: int = 5
    last_error: str = ""
    cancelled: bool = False
