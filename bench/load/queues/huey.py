"""Huey over a list, results off, one thread. A job is popped and kept nowhere else while it runs."""

import logging

from huey import RedisHuey

from bench.load.queues import scene

logging.getLogger("huey").setLevel(logging.WARNING)
huey = RedisHuey("bench", url=scene.URL, results=False)


@huey.task(name="tick")
def tick(sent):
    scene.tick(sent)


@huey.task(name="nap")
def nap():
    scene.nap()


class Queue:
    distribution = "huey"

    async def start(self):
        huey.storage.queue_size()

    async def bulk(self, count):
        for _ in range(count):
            tick(0.0)

    async def one(self, sent):
        tick(sent)

    async def nap(self):
        nap()

    async def stop(self):
        huey.storage.close()

    def work(self):
        huey.create_consumer(workers=1, periodic=False).run()


open_queue = Queue
