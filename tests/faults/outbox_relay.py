"""A relay process for the fault tests: brings entries to another tag until it is killed."""

import asyncio
import sys

import msgspec

from keystead.engine import connect
from keystead.keys import Keyspace, ListKey
from keystead.patterns.outbox import Inbox, Outbox


class Job(msgspec.Struct, frozen=True):
    uid: str


HERE, THERE = Keyspace("here", tag="here"), Keyspace("there", tag="there")
OUT = Outbox(HERE, "outbox", Job, purpose="a test")
SEEN = Inbox(THERE, "relayed:{uid}", purpose="a test")
ARRIVED = ListKey(THERE, "arrived", Job, purpose="a test")


async def work(url: str, most: int) -> None:
    valkey = await connect(url)
    deliver = SEEN.into(valkey, ARRIVED.at())
    print("ready", flush=True)
    while True:
        if await OUT.wait(valkey, 1.0):
            await OUT.relay(valkey, deliver, now=1.0, most=most)


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], int(sys.argv[2])))
