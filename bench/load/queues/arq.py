"""arq, ten jobs at a time (its default), looking every 10 ms instead of every 500, no results."""

import uvloop
from arq.connections import RedisSettings, create_pool
from arq.worker import Worker

from bench.load.queues import scene, spread

SETTINGS = RedisSettings.from_dsn(scene.URL)


async def tick(ctx, sent):
    scene.tick(sent)


async def nap(ctx):
    await scene.async_nap()


class Queue:
    distribution = "arq"

    async def start(self):
        self.pool = await create_pool(SETTINGS)

    async def bulk(self, count):
        await spread(count, lambda: self.pool.enqueue_job("tick", 0.0))

    async def one(self, sent):
        await self.pool.enqueue_job("tick", sent)

    async def nap(self):
        await self.pool.enqueue_job("nap")

    async def stop(self):
        await self.pool.aclose()

    def work(self):
        uvloop.install()
        Worker(
            [tick, nap], redis_settings=SETTINGS, max_jobs=10, poll_delay=0.01, keep_result=0, log_results=False,
            job_timeout=10 if scene.QUICK_RECOVERY else 300,
        ).run()


open_queue = Queue
