"""streaQ: streams, 16 jobs at a time, uvloop, no results."""

import logging

from streaq import Worker

from bench.load.queues import chunks, scene

logging.getLogger("streaq").setLevel(logging.WARNING)
worker = Worker(
    redis_url=scene.URL, concurrency=16, idle_timeout=8 if scene.QUICK_RECOVERY else 60,
    anyio_kwargs={"use_uvloop": True},
)


@worker.task(name="tick", ttl=0, silent=True)
async def tick(sent: float) -> None:
    scene.tick(sent)


@worker.task(name="nap", ttl=0, silent=True)
async def nap() -> None:
    await scene.async_nap()


class Queue:
    distribution = "streaq"

    async def start(self):
        await worker.__aenter__()

    async def bulk(self, count):
        for size in chunks(count):
            await worker.enqueue_many([tick.enqueue(0.0) for _ in range(size)])

    async def one(self, sent):
        await tick.enqueue(sent)

    async def nap(self):
        await nap.enqueue()

    async def stop(self):
        await worker.__aexit__(None, None, None)

    def work(self):
        worker.run_sync()


open_queue = Queue
