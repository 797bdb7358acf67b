"""A process for the fault tests: takes members that are due and notes each with its finish, until it is killed."""

import asyncio
import sys

from keystead.engine import connect
from keystead.keys import Keyspace, ListKey
from keystead.patterns.delayed import DelayedSet

SPACE = Keyspace("faults", tag="f")
SOON = DelayedSet(SPACE, "soon", int, member="a number", purpose="a test", alive_seconds=3.0, tries=100)
NOTED = ListKey(SPACE, "noted", int, purpose="what was finished")
NOW = 100.0


async def work(url: str, name: str) -> None:
    valkey = await connect(url)
    worker = SOON.worker(name)
    print("ready", flush=True)
    async with worker.alive(valkey):
        while True:
            await SOON.adopt(valkey, now=NOW)
            taken = await worker.take(valkey, 10, now=NOW)
            for item in taken:
                await asyncio.sleep(0.0005)
                async with valkey.pipeline(transaction=True) as pipeline:
                    worker.finish(pipeline, [item])
                    NOTED.at().push_right(pipeline, item.value)
                    await pipeline.execute()
            if not taken:
                await asyncio.sleep(0.01)


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], sys.argv[2]))
