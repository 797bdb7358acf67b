"""Jobs in every place, without waiting for a worker; and a worker for tests that want one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from keystead.engine import Valkey
from keystead.jobs import JobBook, Jobs, Worker, WorkerSettings, current_job, job
from keystead.jobs.keys import Queue

PATIENCE_SECONDS = 60


@job(name="shop.greet")
async def greet(name: str) -> None: ...


@job(name="shop.report", progress=True, keep_seconds=600)
async def report(pages: int) -> dict[str, int]:
    for page in range(pages):
        await current_job().progress(f"read page {page + 1}", at=page + 1, of=pages)
    return {"pages": pages}


@job(name="shop.endless")
async def endless() -> None:
    await asyncio.Event().wait()


BOOK = JobBook.of(greet, report, endless)


def jobs_on(valkey: Valkey) -> Jobs:
    return Jobs(valkey, BOOK)


async def hold(valkey: Valkey, most: int, *, worker: str = "holder", queue: str = "") -> None:
    """Let a worker of this name take the oldest jobs, and sit on them."""
    hands = Queue(queue).work.worker(worker)
    await hands.beat(valkey)
    assert (await hands.take(valkey, most, now=0.0)).items


async def bury(valkey: Valkey, error: str, *, queue: str = "", most: int = 1, now: float = 1000.0) -> None:
    """Let the oldest jobs die of an error."""
    hands = Queue(queue).work.worker("undertaker")
    await hands.beat(valkey)
    taken = await hands.take(valkey, most, now=now)
    assert taken.items
    await hands.bury(valkey, taken.items, error=error, now=now)


@asynccontextmanager
async def working(valkey: Valkey, *queues: str) -> AsyncIterator[Worker]:
    """A real worker beside the test."""
    worker = Worker(valkey, BOOK, WorkerSettings(queues=queues or ("hot",), concurrency=7))
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(worker.run())
        try:
            yield worker
        finally:
            worker.stop()
            await asyncio.wait_for(running, PATIENCE_SECONDS)
