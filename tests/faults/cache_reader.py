"""A process for the fault tests: many readers of one value; says when the source is read."""

import asyncio
import sys

from keystead.engine import connect
from keystead.keys import IntegerKey, Keyspace
from keystead.patterns.cache import Cache

SPACE = Keyspace("faults.cache", tag="fc")
LOADS = IntegerKey(SPACE, "loads", purpose="reads of the source")
BRIEF_SECONDS = 3.0
VALUES = Cache(SPACE, "value:{uid}", bytes, shared_seconds=60, local_seconds=60, lock_seconds=30, channel="ps:value",
               collab=True, purpose="a test")
LOCAL = Cache(SPACE, "local:{uid}", bytes, local_seconds=60, lock_seconds=30, channel="ps:local", collab=True,
              purpose="a test")
BRIEF_VALUES = Cache(SPACE, "brief:{uid}", bytes, shared_seconds=60, local_seconds=60, lock_seconds=BRIEF_SECONDS,
                     channel="ps:brief", collab=True, purpose="a test")
BRIEF_LOCAL = Cache(SPACE, "brief_local:{uid}", bytes, local_seconds=60, lock_seconds=BRIEF_SECONDS,
                    channel="ps:brief_local", collab=True, purpose="a test")
FAMILIES = {"shared": VALUES, "local": LOCAL, "brief shared": BRIEF_VALUES, "brief local": BRIEF_LOCAL}


async def read(url: str, family: str, uid: str, tasks: int, load_seconds: float) -> None:
    valkey = await connect(url)

    async def load() -> bytes:
        await LOADS.at().increment(valkey)
        print("loading", flush=True)
        await asyncio.sleep(load_seconds)
        return b"value"

    async with FAMILIES[family].open(valkey) as cache:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        got = await asyncio.gather(*(cache.get(uid, load=load) for _ in range(tasks)))
        print("got", len([value for value in got if value == b"value"]), flush=True)
        await asyncio.to_thread(sys.stdin.readline)
    await valkey.aclose()


if __name__ == "__main__":
    asyncio.run(read(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5])))
