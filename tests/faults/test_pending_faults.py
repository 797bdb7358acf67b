"""Pending indexes while those who open, change and settle members are killed without warning."""

import asyncio
import random
from collections import Counter

from keystead.engine import Valkey
from keystead.testing.server import LocalServer

from .pending_worker import AGAIN_SECONDS, JOBS, OPENED, PENDING
from .programs import programs

ROLES = ("open", "change", "settle")


async def out_of_step(valkey: Valkey) -> set[str]:
    """Members with half a pair."""
    async with valkey.pipeline(transaction=True) as pipeline:
        pipeline.zrange(PENDING.index.name(valkey.layout), 0, -1)
        pipeline.keys("pending:*")
        index, records = await pipeline.execute()
    return {member.decode() for member in index} ^ {record.decode().partition(":")[2] for record in records}


async def test_killed_processes_leave_whole_pairs_and_each_job_follows_once(
    valkey: Valkey, valkey_server: LocalServer
) -> None:
    """Twelve processes are killed; then every member that was opened has been settled by exactly one job."""
    rng = random.Random(7)
    async with programs("tests.faults.pending_worker") as start:
        running = {role: await start(role, valkey_server.url) for role in ROLES}
        for _ in range(4):
            for role, program in running.items():
                await program.hears("ready", seconds=60)
                await asyncio.sleep(rng.uniform(0.02, 0.2))
                await program.kill()
                assert await out_of_step(valkey) == set()
                running[role] = await start(role, valkey_server.url)
        async with asyncio.timeout(120):
            while (await OPENED.at().get(valkey) or 0) < 200:
                await asyncio.sleep(AGAIN_SECONDS)
            await running["open"].kill()
            await running["change"].kill()
            while await PENDING.size(valkey):
                await asyncio.sleep(AGAIN_SECONDS)
    opened = await OPENED.at().get(valkey)
    assert opened is not None
    assert Counter(await JOBS.at().range(valkey)) == Counter(range(opened))
    assert await valkey.keys("pending*") == []
