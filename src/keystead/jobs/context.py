"""What a running job can know of itself."""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass

from keystead.errors import NotFound
from keystead.jobs.models import JobRecord


@dataclass(slots=True)  # not frozen: one is made for every job, and freezing costs four times as much
class RunningJob:
    """The job that runs here: ``current_job()``.

    ``attempt`` counts from 1. ``stopping`` says whether the worker wants to end: a long job then finishes early, or
    raises ``RetryLater`` to go on elsewhere.
    """

    record: JobRecord
    uid: str
    queue: str
    is_stopping: Callable[[], bool]

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def attempt(self) -> int:
        return self.record.attempt + 1

    @property
    def stopping(self) -> bool:
        return self.is_stopping()


running: ContextVar[RunningJob] = ContextVar("keystead_running_job")


def current_job() -> RunningJob:
    """The job that this code runs in, in a task or in a thread."""
    try:
        return running.get()
    except LookupError:
        raise NotFound("current_job() is for code that a worker runs; here no job is running") from None
