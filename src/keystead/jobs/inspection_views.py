"""What an inspection tells: queues, workers, jobs wherever they lie, dead letters by their error."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

import msgspec

from keystead.errors import DeclarationError, Invalid
from keystead.jobs.keys import HOT as HOT
from keystead.jobs.keys import Queue
from keystead.jobs.models import EndedJob, JobRecord, JobState, WorkerState
from keystead.keys import Undecodable

Place = Literal["queued", "delayed", "running", "waiting", "dead"]
PLACES: Final[tuple[Place, ...]] = ("queued", "delayed", "running", "waiting", "dead")


def queue_named(shown: str) -> Queue:
    """The queue that people call so; the one without a name is ``hot``."""
    try:
        return Queue(shown)
    except DeclarationError:
        raise Invalid(f"{shown!r} cannot be the name of a queue: one is text without colons or control characters") \
            from None


@dataclass(frozen=True, slots=True)
class QueueView:
    """How many jobs of a queue lie where. ``waiting`` ones wait for other jobs; that count is close, not exact."""

    name: str
    queued: int
    delayed: int
    running: int
    waiting: int
    dead: int
    paused: bool
    workers: int

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class WorkerView:
    """A worker. ``state`` is what it told last, None a while after it fell silent; ``alive`` that it beats."""

    name: str
    alive: bool
    seen_at: float
    state: WorkerState | None

    def as_dict(self) -> dict[str, object]:
        told = {} if self.state is None else msgspec.to_builtins(self.state)
        return {"name": self.name, "alive": self.alive, "seen_at": self.seen_at, **told}


@dataclass(frozen=True, slots=True)
class Totals:
    """How many jobs ended how, ever."""

    done: int = 0
    failed: int = 0
    retried: int = 0

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything at one moment; ``at`` is when."""

    at: float
    queues: tuple[QueueView, ...]
    workers: tuple[WorkerView, ...]
    totals: Totals

    def as_dict(self) -> dict[str, object]:
        return {
            "at": self.at, "queues": [one.as_dict() for one in self.queues],
            "workers": [one.as_dict() for one in self.workers], "totals": self.totals.as_dict(),
        }


@dataclass(frozen=True, slots=True)
class JobView:
    """A job where it lies. ``record`` is None for bytes that are no job; ``problem`` then says why.

    Only some have: ``due_at`` a delayed one, ``worker`` a running one; ``error``, ``dead_at`` and ``attempts`` a dead.
    """

    place: Place
    queue: str
    record: JobRecord | None
    raw: bytes
    problem: str = ""
    due_at: float | None = None
    worker: str = ""
    error: str = ""
    dead_at: float | None = None
    attempts: int | None = None

    @property
    def uid(self) -> str:
        return self.record.uid if self.record is not None else ""

    @property
    def name(self) -> str:
        return self.record.name if self.record is not None else ""

    def as_dict(self) -> dict[str, object]:
        found: dict[str, Any] = {"place": self.place, "queue": self.queue}
        if self.record is not None:
            found |= msgspec.to_builtins(self.record)
        else:
            found |= {"problem": self.problem, "bytes": len(self.raw)}
        extra: Mapping[str, object] = {
            "due_at": self.due_at, "worker": self.worker, "error": self.error, "dead_at": self.dead_at,
            "attempts": self.attempts,
        }
        return found | {name: value for name, value in extra.items() if value not in (None, "")}


def view_of(place: Place, queue: Queue, raw: bytes) -> JobView:
    """The job of these bytes; what does not decode is shown as such instead of hiding the others."""
    try:
        return JobView(place, queue.name or HOT, queue.work.queue_key.codec.decode(raw), raw)
    except Undecodable as error:
        return JobView(place, queue.name or HOT, None, raw, problem=error.reason)


@dataclass(frozen=True, slots=True)
class JobPage:
    """Some jobs of one place, from number ``first`` on, of ``total``."""

    jobs: list[JobView]
    first: int
    total: int

    def as_dict(self) -> dict[str, object]:
        return {"first": self.first, "total": self.total, "jobs": [one.as_dict() for one in self.jobs]}


@dataclass(frozen=True, slots=True)
class EndedPage:
    """Some of the jobs that ended lately, newest first, of ``total`` that are listed."""

    jobs: list[EndedJob]
    total: int

    def as_dict(self) -> dict[str, object]:
        return {"total": self.total, "jobs": [msgspec.structs.asdict(job) for job in self.jobs]}


@dataclass(frozen=True, slots=True)
class JobFound:
    """One job: its state if that is kept, and where it lies if it was found there.

    A job that ended has no place. If no state of it is kept either, ``ended`` is what the list of those that ended
    lately says of it. ``searched_all`` is false when a queue was too long to be searched whole, so that a job without
    a place may still be in there.
    """

    uid: str
    queue: str
    state: JobState | None
    view: JobView | None
    searched_all: bool = True
    ended: EndedJob | None = None

    def as_dict(self) -> dict[str, object]:
        return {
            "uid": self.uid, "queue": self.queue,
            "state": None if self.state is None else msgspec.to_builtins(self.state),
            "found": None if self.view is None else self.view.as_dict(), "searched_all": self.searched_all,
            "ended": None if self.ended is None else msgspec.structs.asdict(self.ended),
        }


@dataclass(frozen=True, slots=True)
class ErrorGroup:
    """Dead letters whose errors begin alike. ``names`` are the jobs with their counts; ``sample`` is the newest."""

    error: str
    queue: str
    count: int
    first_at: float
    last_at: float
    names: dict[str, int]
    sample: JobView

    def as_dict(self) -> dict[str, object]:
        return {
            "error": self.error, "queue": self.queue, "count": self.count, "first_at": self.first_at,
            "last_at": self.last_at, "names": self.names, "sample": self.sample.as_dict(),
        }


@dataclass(frozen=True, slots=True)
class RecurringView:
    """An entry of the recurring jobs of a queue; times are unix seconds, ``last_at`` None before its first run.

    ``name`` is that of its job, empty for an entry of another program that stores none.
    """

    queue: str
    hash: str
    name: str
    next_at: float
    last_at: float | None

    @property
    def title(self) -> str:
        return self.name or f"entry {self.hash}"

    def as_dict(self) -> dict[str, object]:
        return asdict(self)
