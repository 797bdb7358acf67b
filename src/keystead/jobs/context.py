"""What a running job can know of itself."""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass

from keystead.clock import Clock, SystemClock
from keystead.engine import Valkey
from keystead.errors import NotFound
from keystead.jobs.models import JobRecord

Tells = Callable[[str, float | None, float | None], Awaitable[None]]


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
    on: Valkey | None = None
    by: Clock | None = None
    tells: Tells | None = None  # only of a job that was enqueued with progress, or declared so
    loop: asyncio.AbstractEventLoop | None = None

    async def progress(self, message: str, at: float | None = None, of: float | None = None) -> None:
        """Tell whoever watches how far it is; with ``at`` and ``of`` a bar. Nobody can watch: nothing happens."""
        if self.tells is not None:
            await self.tells(message, at, of)

    def progress_from_thread(self, message: str, at: float | None = None, of: float | None = None) -> None:
        """The same for a job that is not async."""
        if self.loop is not None:
            asyncio.run_coroutine_threadsafe(self.progress(message, at, of), self.loop).result()

    @property
    def valkey(self) -> Valkey:
        """The connection of the worker that runs it, for what the job reads and counts; it stays open for others."""
        if self.on is None:
            raise NotFound("this job runs without a worker, and so without a connection")
        return self.on

    def now(self) -> float:
        """The time by the worker's clock, which the server has set."""
        return SystemClock().now() if self.by is None else self.by.now()

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
