"""One module per job queue, each with the same shape, so that the programs that measure know none of them.

A module offers ``open_queue()``, which gives a ``Queue``. Where to find the server and which settings to take, it reads
from ``scene``. ``python -m bench.load.queues LIBRARY MODE`` is a process that queues jobs, or a worker.
"""

import asyncio
import importlib
from collections.abc import Awaitable, Callable, Iterator
from typing import Protocol, cast

CHUNK = 500  # jobs in one bulk call
LANES = 20  # callers at a time where a library has no bulk call


class Queue(Protocol):
    """What a library must be able to do to take part. Results are off."""

    distribution: str

    async def start(self) -> None:
        """Connect, so that no later call pays for it."""
        ...

    async def bulk(self, count: int) -> None:
        """Queue so many no-op jobs in the quickest way that the library offers."""
        ...

    async def one(self, sent: float) -> None:
        """Queue one job that tells how long after ``sent`` it began."""
        ...

    async def nap(self) -> None:
        """Queue the job during which its worker is killed."""
        ...

    async def stop(self) -> None: ...

    def work(self) -> None:
        """Be a worker process until killed."""
        ...


def load(library: str) -> Queue:
    """The queue of that library; what follows a colon is a matter of its module (``taskiq:stream``)."""
    module = importlib.import_module(f"{__name__}.{library.partition(':')[0]}")
    return cast(Queue, module.open_queue())


def chunks(count: int) -> Iterator[int]:
    """How many jobs each bulk call takes."""
    for low in range(0, count, CHUNK):
        yield min(CHUNK, count - low)


async def spread(count: int, send: Callable[[], Awaitable[object]]) -> None:
    """Call ``send`` so often, from several lanes at a time."""
    todo = iter(range(count))

    async def lane() -> None:
        for _ in todo:
            await send()

    await asyncio.gather(*(lane() for _ in range(LANES)))
