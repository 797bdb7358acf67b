"""Work that goes on until it is told to stop, and the crew that does several kinds of it in one process."""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, Final, Protocol, TypeVar

from keystead.scrubbing import failure_told
from keystead.telemetry import counts, logger

T = TypeVar("T")

FIRST_PAUSE_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 30.0
# Who went on for so long before failing begins again as quickly as at first.
STEADY_SECONDS: Final = 60.0

counts.describe("crew_failures", "work of a crew that failed and was begun again, by its name")

_log = logger("jobs")


class Work(Protocol):
    """Something that goes on until ``stop`` is set; any number of processes may do it at once.

    It ends soon after that, with nothing half done. Ending before means that there is nothing to do here.
    """

    async def work(self, stop: asyncio.Event) -> None: ...


class Crew:
    """Does all of these works side by side. One that fails is logged and begun again, after a growing pause."""

    def __init__(self, *works: Work) -> None:
        self._works = works

    async def work(self, stop: asyncio.Event) -> None:
        """Until ``stop`` is set and every work has ended."""
        async with asyncio.TaskGroup() as tasks:
            for work in self._works:
                tasks.create_task(self._keep_working(work, stop))

    async def _keep_working(self, work: Work, stop: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        seconds = FIRST_PAUSE_SECONDS
        while not stop.is_set():
            begun_at = loop.time()
            try:
                await work.work(stop)
                return
            except Exception as error:  # this is the loop of a worker: one kind of work must not end the others
                name = type(work).__name__
                counts.add("crew_failures", work=name)
                _log.error("work of the crew failed and is begun again", work=name, error=failure_told(error))
            if loop.time() - begun_at > STEADY_SECONDS:
                seconds = FIRST_PAUSE_SECONDS
            await pause(seconds, stop)
            seconds = min(seconds * 2, LONGEST_PAUSE_SECONDS)


async def pause(seconds: float, stop: asyncio.Event) -> None:
    """Sleep, or until ``stop`` is set."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(max(seconds, 0.0)):
            await stop.wait()


async def unless_stopped(stop: asyncio.Event, waiting: Coroutine[Any, Any, T]) -> T | None:
    """What ``waiting`` gives; it is cancelled, and the answer is None, as soon as ``stop`` is set."""
    found: list[T] = []
    failure: list[Exception] = []

    async def wait() -> None:
        try:
            found.append(await waiting)
        except Exception as error:  # raised again below: a task group would wrap what the caller looks for
            failure.append(error)
        finally:
            watcher.cancel()

    async def watch() -> None:
        await stop.wait()
        waiter.cancel()

    async with asyncio.TaskGroup() as tasks:
        waiter = tasks.create_task(wait())
        watcher = tasks.create_task(watch())
    if failure:
        raise failure[0]
    return found[0] if found else None
