"""A worker process for the fault tests: takes numbers, hands each over to the list of done ones, until it is killed."""

import asyncio
import os
import signal
import sys

from keystead.engine import connect
from keystead.keys import Keyspace, ListKey
from keystead.patterns.worklist import WorkList

SPACE = Keyspace("faults", tag="f")
NUMBERS = WorkList(SPACE, "numbers", int, purpose="a test", alive_seconds=3.0, tries=1000)
CAREFUL = WorkList(SPACE, "careful", int, purpose="a test", alive_seconds=3.0)
DONE = ListKey(SPACE, "done", bytes, purpose="what was handed over")
STARTED = ListKey(SPACE, "started", bytes, purpose="every try")


async def work(url: str, name: str, batch: int, numbers: WorkList[int]) -> None:
    valkey = await connect(url)
    worker = numbers.worker(name)
    print("ready", flush=True)
    async with worker.alive(valkey):
        await worker.recover(valkey, now=1.0)
        while True:
            await numbers.adopt(valkey, now=1.0)
            for item in await worker.wait_and_take(valkey, batch, 0.2, now=1.0):
                await STARTED.at().push_right(valkey, item.raw)
                if item.value < 0:  # an item that no worker survives
                    os.kill(os.getpid(), signal.SIGKILL)
                await asyncio.sleep(0.0005)
                await worker.hand_over(valkey, [(item, item.raw)], DONE.at())


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], sys.argv[2], int(sys.argv[3]), CAREFUL if sys.argv[4:] else NUMBERS))
