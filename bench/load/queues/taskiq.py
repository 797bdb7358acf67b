"""taskiq with its list broker or its stream broker, one process, 200 tasks at a time, no result backend."""

import os
import sys

from taskiq_redis import ListQueueBroker, RedisStreamBroker

from bench.load.queues import scene, spread

if scene.VARIANT == "stream":
    broker = RedisStreamBroker(
        scene.URL,
        idle_timeout=8_000 if scene.QUICK_RECOVERY else 600_000,
        unacknowledged_lock_timeout=5 if scene.QUICK_RECOVERY else None,
    )
else:
    broker = ListQueueBroker(scene.URL)


@broker.task(task_name="tick")
async def tick(sent: float) -> None:
    scene.tick(sent)


@broker.task(task_name="nap")
async def nap() -> None:
    await scene.async_nap()


class Queue:
    distribution = "taskiq"

    async def start(self):
        await broker.startup()

    async def bulk(self, count):
        await spread(count, lambda: tick.kiq(0.0))

    async def one(self, sent):
        await tick.kiq(sent)

    async def nap(self):
        await nap.kiq()

    async def stop(self):
        await broker.shutdown()

    def work(self):
        os.execv(sys.executable, [
            sys.executable, "-m", "taskiq", "worker", f"{__name__}:broker",
            "--workers", "1", "--max-async-tasks", "200", "--log-level", "WARNING",
        ])


open_queue = Queue
