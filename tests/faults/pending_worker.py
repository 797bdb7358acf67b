"""Processes for the fault tests: one opens members, one changes them, one settles what is stale, until killed."""

import asyncio
import random
import sys
import time

import msgspec

from keystead.engine import Valkey, connect
from keystead.keys import IntegerKey, Keyspace, ListKey
from keystead.patterns.pending import PendingIndex


class Sent(msgspec.Struct, frozen=True):
    status: str = "queued"
    num_failures: int = 0
    num_changes: int = 0


SPACE = Keyspace("faults", tag="f")
PENDING = PendingIndex(SPACE, "pending", record="pending:{number}", of=Sent, member="a number", score="stale from",
                       failures="num_failures", purpose="a test")
JOBS = ListKey(SPACE, "jobs", int, purpose="what followed, one for each member")
OPENED = IntegerKey(SPACE, "opened", purpose="how many were opened")
AGAIN_SECONDS = 0.2


async def opening(valkey: Valkey) -> None:
    """Members with rising numbers, each counted in the step that opens it."""
    number = await OPENED.at().get(valkey) or 0
    while True:
        async with valkey.pipeline(transaction=True) as pipeline:
            PENDING.open(pipeline, str(number), Sent(), time.time(), only_new=True)
            OPENED.at().increment(pipeline)
            await pipeline.execute()
        number += 1
        await asyncio.sleep(0.002)  # not more than can be settled


async def changing(valkey: Valkey) -> None:
    """News of members, which others may be settling just now."""
    while True:
        for entry in await PENDING.due(valkey, 20, until=time.time() + 60):
            await PENDING.update(valkey, entry.member, entry.record.num_changes, status=random.choice("abc"))
        await asyncio.sleep(0.01)


async def settling(valkey: Valkey) -> None:
    """Each stale member is asked for a few times, then removed together with the job that follows."""
    while True:
        now = time.time()
        for entry in await PENDING.take_stale(valkey, 10, now=now, again_at=now + AGAIN_SECONDS):
            if entry.record.num_failures > 1:
                await PENDING.remove(
                    valkey, entry.member, entry.record.num_changes, push=[(JOBS.at(), entry.member.encode())]
                )
        await asyncio.sleep(0.001)


async def main(role: str, url: str) -> None:
    valkey = await connect(url)
    print("ready", flush=True)
    await {"open": opening, "change": changing, "settle": settling}[role](valkey)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
