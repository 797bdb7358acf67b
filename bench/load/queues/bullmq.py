"""BullMQ for Python, ten jobs at a time, finished jobs removed."""

import asyncio

import uvloop
from bullmq import Queue as BullQueue
from bullmq import Worker

from bench.load.queues import chunks, scene

REMOVED = {"removeOnComplete": True}


class Queue:
    distribution = "bullmq"

    async def start(self):
        self.queue = BullQueue("bench", {"connection": scene.URL})

    async def bulk(self, count):
        for size in chunks(count):
            await self.queue.addBulk([{"name": "tick", "data": {"sent": 0.0}, "opts": REMOVED} for _ in range(size)])

    async def one(self, sent):
        await self.queue.add("tick", {"sent": sent}, REMOVED)

    async def nap(self):
        await self.queue.add("nap", {}, REMOVED)

    async def stop(self):
        await self.queue.close()

    def work(self):
        async def process(job, token):
            if job.name == "nap":
                await scene.async_nap()
            else:
                scene.tick(job.data["sent"])

        async def run():
            options = {"connection": scene.URL, "concurrency": 10}
            if scene.QUICK_RECOVERY:
                options |= {"lockDuration": 8000, "stalledInterval": 5000}
            self.worker = Worker("bench", process, options)
            await asyncio.Event().wait()

        uvloop.run(run())


open_queue = Queue
