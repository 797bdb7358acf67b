"""Celery: the solo pool, 100 messages fetched ahead, no results, gossip, mingle, heartbeat or events."""

import os
import sys

from celery import Celery

from bench.load.queues import scene

# The sweep for lost messages looks only about every 100 s by default, whatever the visibility timeout.
SOON = {"visibility_timeout": 10, "unacked_restore_interval": 5, "unacked_restore_throttle": 1}

app = Celery("bench", broker=scene.URL)
app.conf.update(
    task_ignore_result=True,
    task_acks_late=scene.QUICK_RECOVERY,
    task_reject_on_worker_lost=scene.QUICK_RECOVERY,
    broker_transport_options=SOON if scene.QUICK_RECOVERY else {},
    worker_prefetch_multiplier=1 if scene.QUICK_RECOVERY else 100,
    broker_connection_retry_on_startup=True,
    worker_send_task_events=False,
)


@app.task(name="tick")
def tick(sent):
    scene.tick(sent)


@app.task(name="nap")
def nap():
    scene.nap()


class Queue:
    distribution = "celery"

    async def start(self):
        self.producer = app.amqp.Producer(app.connection_for_write())

    async def bulk(self, count):
        for _ in range(count):
            tick.apply_async((0.0,), producer=self.producer, add_to_parent=False)

    async def one(self, sent):
        tick.apply_async((sent,), producer=self.producer, add_to_parent=False)

    async def nap(self):
        nap.apply_async(producer=self.producer)

    async def stop(self):
        self.producer.close()

    def work(self):
        os.execv(sys.executable, [
            sys.executable, "-m", "celery", "-A", __name__, "worker", "--pool", "solo", "--concurrency", "1",
            "--loglevel", "ERROR", "--without-gossip", "--without-mingle", "--without-heartbeat",
        ])


open_queue = Queue
