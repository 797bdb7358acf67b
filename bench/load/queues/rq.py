"""RQ with its SimpleWorker (no fork for each job), results off, pipelined enqueue_many."""

import redis
from rq import Queue as RqQueue
from rq import Retry, SimpleWorker

from bench.load.queues import chunks, scene

connection = redis.Redis.from_url(scene.URL)
queue = RqQueue("bench", connection=connection)


class Queue:
    distribution = "rq"

    async def start(self):
        connection.ping()

    async def bulk(self, count):
        for size in chunks(count):
            queue.enqueue_many([
                RqQueue.prepare_data(scene.tick, (0.0,), result_ttl=0, description="t") for _ in range(size)
            ])

    async def one(self, sent):
        queue.enqueue(scene.tick, sent, result_ttl=0, description="t")

    async def nap(self):
        queue.enqueue(scene.nap, **({"retry": Retry(max=3), "job_timeout": 6} if scene.QUICK_RECOVERY else {}))

    async def stop(self):
        connection.close()

    def work(self):
        SimpleWorker(
            [queue], connection=connection, log_job_description=False,
            maintenance_interval=5 if scene.QUICK_RECOVERY else 600,
        ).work(logging_level="WARNING")


open_queue = Queue
