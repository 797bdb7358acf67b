"""A worker beside a test, and patience that a slow machine cannot exhaust."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from keystead.engine import Valkey
from keystead.jobs import JobBook, Worker, WorkerSettings
from keystead.keys import Registry


@asynccontextmanager
async def at_work(valkey: Valkey, book: JobBook, name: str = "", middleware=(), **settings) -> AsyncIterator[Worker]:
    """A worker that works while the block runs, and has ended after it."""
    worker = Worker(valkey, book, WorkerSettings(**settings), name=name, middleware=middleware)
    task = asyncio.create_task(worker.run())
    try:
        yield worker
        if not worker.stopping:
            worker.stop()
        async with asyncio.timeout(60):
            await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(holds: Callable[[], Awaitable[object] | object], seconds: float = 30.0) -> None:
    """Wait until something holds; fails after a time that only a broken program needs."""
    async with asyncio.timeout(seconds):
        while True:
            found = holds()
            if asyncio.iscoroutine(found):
                found = await found
            if found:
                return
            await asyncio.sleep(0.01)


async def left_keys(valkey: Valkey) -> set[str]:
    """Every key there is, by its documented pattern; a key that nobody declared fails."""
    from keystead.jobs.keys import JOBS

    registry, found = Registry([JOBS], layout=valkey.layout), set()
    for node in await valkey.nodes():
        for key in await node.call(("KEYS", "*")):
            match = registry.resolve(key)
            assert match is not None, f"nobody declared {key!r}"
            found.add(match.declaration.pattern)
    return found
