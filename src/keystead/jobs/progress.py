"""Progress: what a job tells of its work, and how someone watches from the start or comes later.

``docs/jobs/progress.md`` says what a watcher can rely on.
"""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from keystead.clock import Clock
from keystead.engine import Script
from keystead.engine.scripts import ScriptRunner
from keystead.errors import Unavailable
from keystead.jobs.keys import PROGRESS, PROGRESS_COUNT, PROGRESS_EVENTS, PROGRESS_SECONDS
from keystead.jobs.models import Indicator, ProgressEvent, Spawned
from keystead.jobs.retry import RetryLater
from keystead.keys import Layout
from keystead.telemetry import logger

TELL = Script("keystead.jobs", "scripts/tell.lua")
KEPT_EVENTS: Final = 50
LONGEST_MESSAGE: Final = 2000
SPINNER: Final = Indicator("spinner")
FINAL: Final = Indicator("final")

_log = logger("jobs")
_encode = msgspec.json.Encoder().encode

EventType = Literal["queued", "started", "bounce", "progress", "spawned", "failed", "succeeded"]


class Bounce(Exception):
    """Raised by a job that cannot finish here and has put itself back into the queue: neither done nor failed."""


@dataclass(frozen=True, slots=True)
class Told:
    """How many events there were by now, and how many heard this one on the server that answered."""

    count: int
    subscribers: int


class Progress:
    """Tells of one job, under ``uid``. Each operation is one atomic step.

    ``on`` is a connection or a pipeline. On a pipeline the event leaves with what else is in there, so that a job is
    queued and its first event told in one transaction. Messages are cut after 2,000 characters.
    """

    __slots__ = ("_clock", "_places", "uid")

    def __init__(self, uid: str, clock: Clock) -> None:
        self.uid = uid
        self._clock = clock
        self._places = PROGRESS_EVENTS.at(uid), PROGRESS_COUNT.at(uid)

    def queued(self, on: ScriptRunner, message: str = "waiting for its turn") -> Awaitable[Told]:
        return self._tell(on, "queued", message, SPINNER)

    def started(self, on: ScriptRunner, message: str = "started") -> Awaitable[Told]:
        return self._tell(on, "started", message, SPINNER)

    def progress(
        self, on: ScriptRunner, message: str, at: float | None = None, of: float | None = None
    ) -> Awaitable[Told]:
        """One step; with ``at`` and ``of`` a bar, otherwise a line without one."""
        return self._tell(on, "progress", message, None if at is None or of is None else Indicator("bar", at, of))

    def spinner(self, on: ScriptRunner, message: str) -> Awaitable[Told]:
        """One step of which nobody knows how long it takes."""
        return self._tell(on, "progress", message, SPINNER)

    def spawned(self, on: ScriptRunner, message: str, uid: str, name: str) -> Awaitable[Told]:
        """This job began another one, whose progress can be watched under ``uid``."""
        return self._tell(on, "spawned", message, None, Spawned(uid, name))

    def bounce(self, on: ScriptRunner, message: str = "will go on later") -> Awaitable[Told]:
        """The job went back into the queue; it will start again."""
        return self._tell(on, "bounce", message, SPINNER)

    def failed(self, on: ScriptRunner, message: str = "failed") -> Awaitable[Told]:
        """The end: the job will not be tried again."""
        return self._tell(on, "failed", message, FINAL)

    def succeeded(self, on: ScriptRunner, message: str = "done") -> Awaitable[Told]:
        """The end: the job has done its work."""
        return self._tell(on, "succeeded", message, FINAL)

    def _tell(
        self, on: ScriptRunner, kind: EventType, message: str, indicator: Indicator | None,
        spawned: Spawned | msgspec.UnsetType = msgspec.UNSET,
    ) -> Awaitable[Told]:
        event = ProgressEvent(kind, message[:LONGEST_MESSAGE], self._clock.now(), indicator, spawned)
        layout = on.layout
        return TELL(
            on, keys=self._places,
            args=(_encode(event), KEPT_EVENTS, PROGRESS_SECONDS * 1000,
                  "PUBLISH" if layout is Layout.PLAIN else "SPUBLISH", PROGRESS.at(self.uid).name(layout)),
            decode=lambda reply: Told(*reply),
        )


def _never(error: Exception) -> bool:
    return False


@asynccontextmanager
async def telling(
    on: ScriptRunner, uid: str, clock: Clock, *, will_retry: Callable[[Exception], bool] = _never
) -> AsyncIterator[Progress]:
    """Tell of the begin and the end of a job around its work.

    ``succeeded`` on a clean exit. A ``Bounce`` is told as such and goes no further. An exception that ``will_retry``
    knows to be tried again, or a ``RetryLater``, is told as a bounce and raised; any other is told as ``failed``, by
    the name of its type only, and raised. A server that is away does not change how the work ends.
    """
    progress = Progress(uid, clock)
    await _tried(progress.started(on))
    try:
        yield progress
    except Bounce as bounce:
        await _tried(progress.bounce(on, str(bounce)) if str(bounce) else progress.bounce(on))
    except Exception as error:  # raised again: it is the worker who acts on it
        if isinstance(error, RetryLater) or will_retry(error):
            await _tried(progress.bounce(on))
        else:
            await _tried(progress.failed(on, f"failed: {type(error).__name__}"))
        raise
    else:
        await _tried(progress.succeeded(on))


async def _tried(told: Awaitable[Told]) -> None:
    with contextlib.suppress(Unavailable):
        await told
        return
    _log.warning("progress not told")
