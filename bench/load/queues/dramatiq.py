"""Dramatiq with its Redis broker, one thread, 1,000 messages fetched ahead, stock middleware."""

import os
import time

os.environ["dramatiq_queue_prefetch"] = "1000"  # noqa: SIM112 (the library reads it so, when imported)

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from bench.load.queues import scene

broker = RedisBroker(
    url=scene.URL,
    heartbeat_timeout=10_000 if scene.QUICK_RECOVERY else 60_000,
    maintenance_chance=100_000 if scene.QUICK_RECOVERY else 1_000,
)
dramatiq.set_broker(broker)


@dramatiq.actor(actor_name="tick")
def tick(sent):
    scene.tick(sent)


@dramatiq.actor(actor_name="nap")
def nap():
    scene.nap()


class Queue:
    distribution = "dramatiq"

    async def start(self):
        broker.client.ping()

    async def bulk(self, count):
        for _ in range(count):
            tick.send(0.0)

    async def one(self, sent):
        tick.send(sent)

    async def nap(self):
        nap.send()

    async def stop(self):
        broker.close()

    def work(self):
        dramatiq.Worker(broker, worker_threads=1).start()
        while True:
            time.sleep(60)


open_queue = Queue
