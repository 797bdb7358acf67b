"""Ours, with its defaults: a job stays on the server until its worker acknowledges it."""

from contextlib import AsyncExitStack

import uvloop

from bench.load.queues import CHUNK, chunks, scene
from keystead.engine import connect
from keystead.jobs import JobBook, Jobs, Worker, job


@job(name="tick")
async def tick(sent: float) -> None:
    scene.tick(sent)


@job(name="nap")
async def nap() -> None:
    await scene.async_nap()


BOOK = JobBook.of(tick, nap)
ARGUMENTS = [{"sent": 0.0}] * CHUNK


class Queue:
    distribution = "keystead"

    async def start(self) -> None:
        self._opened = AsyncExitStack()
        self._jobs: Jobs = await self._opened.enter_async_context(Jobs.connect(scene.URL, BOOK))

    async def bulk(self, count: int) -> None:
        for size in chunks(count):
            await self._jobs.enqueue_many(tick, ARGUMENTS[:size])

    async def one(self, sent: float) -> None:
        await self._jobs.enqueue(tick, sent=sent)

    async def nap(self) -> None:
        await self._jobs.enqueue(nap)

    async def stop(self) -> None:
        await self._opened.aclose()

    def work(self) -> None:
        async def run() -> None:
            valkey = await connect(scene.URL)
            try:
                await Worker(valkey, BOOK).run()
            finally:
                await valkey.aclose()

        uvloop.run(run())


open_queue = Queue
