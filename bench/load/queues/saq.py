"""SAQ, ten jobs at a time, orjson, results dropped."""

import orjson
import uvloop
from saq import Queue as SaqQueue
from saq import Worker

from bench.load.queues import scene, spread


async def tick(ctx, *, sent):
    scene.tick(sent)


async def nap(ctx):
    await scene.async_nap()


def connect():
    return SaqQueue.from_url(scene.URL, dump=orjson.dumps, load=orjson.loads)


class Queue:
    distribution = "saq"

    async def start(self):
        self.queue = connect()
        await self.queue.connect()

    async def bulk(self, count):
        await spread(count, lambda: self.queue.enqueue("tick", sent=0.0, ttl=-1))

    async def one(self, sent):
        await self.queue.enqueue("tick", sent=sent, ttl=-1)

    async def nap(self):
        await self.queue.enqueue("nap", **({"retries": 3, "timeout": 8} if scene.QUICK_RECOVERY else {}))

    async def stop(self):
        await self.queue.disconnect()

    def work(self):
        async def run():
            queue = connect()
            await queue.connect()
            timers = {"sweep": 5} if scene.QUICK_RECOVERY else None
            await Worker(queue, [("tick", tick), ("nap", nap)], concurrency=10, timers=timers).start()

        uvloop.run(run())


open_queue = Queue
