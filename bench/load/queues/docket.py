"""Docket: streams, ten jobs at a time (its default), looking every 1 ms instead of every 250, no results kept."""

import logging
from datetime import timedelta

import uvloop
from docket import Docket, Worker

from bench.load.queues import CHUNK, scene

logging.getLogger("docket").setLevel(logging.WARNING)


async def tick(sent: float) -> None:
    scene.tick(sent)


async def nap() -> None:
    await scene.async_nap()


def connect():
    docket = Docket("bench", url=scene.URL, execution_ttl=timedelta(0))
    docket.register(tick)
    docket.register(nap)
    return docket


class Queue:
    distribution = "pydocket"

    async def start(self):
        self.docket = connect()
        await self.docket.__aenter__()

    async def bulk(self, count):
        call = self.docket.call
        await self.docket.add_many((call(tick)(0.0) for _ in range(count)), chunk_size=CHUNK)

    async def one(self, sent):
        await self.docket.add(tick)(sent)

    async def nap(self):
        await self.docket.add(nap)()

    async def stop(self):
        await self.docket.__aexit__(None, None, None)

    def work(self):
        async def run():
            redelivery = timedelta(seconds=8) if scene.QUICK_RECOVERY else timedelta(minutes=5)
            async with connect() as docket, Worker(
                docket, concurrency=10, redelivery_timeout=redelivery, schedule_automatic_tasks=False,
                minimum_check_interval=timedelta(milliseconds=1),
            ) as worker:
                await worker.run_forever()

        uvloop.run(run())


open_queue = Queue
