"""Loops of recurring jobs that are killed without warning: every second of every job is queued once."""

import asyncio
import random
import time
from collections import defaultdict

from keystead.engine import Valkey
from keystead.jobs.keys import Queue
from keystead.testing.server import LocalServer

from .programs import programs
from .recurring_program import LIST

KILLS = 6


async def test_killed_loops_miss_nothing_and_double_nothing(valkey: Valkey, valkey_server: LocalServer) -> None:
    began_at, chance = repr(time.time()), random.Random(11)
    queue = Queue().work.queue
    async with programs("tests.faults.recurring_program") as start:
        loops = [await start(valkey_server.url, began_at) for _ in range(2)]
        for loop in loops:
            await loop.hears("ready")
        for kill in range(KILLS):
            await asyncio.sleep(chance.uniform(0.05, 0.3))
            await loops[kill % 2].kill()
            if kill % 3 == 2:  # the other one too: nobody is there for a while
                await loops[1 - kill % 2].kill()
                loops[1 - kill % 2] = await start(valkey_server.url, began_at)
            loops[kill % 2] = await start(valkey_server.url, began_at)
            for loop in loops:
                await loop.hears("ready")
        length = await queue.length(valkey)
        async with asyncio.timeout(60):
            while await queue.length(valkey) < length + 50:
                await asyncio.sleep(0.02)
    runs: dict[str, list[int]] = defaultdict(list)
    for record in await queue.range(valkey):
        runs[record.name].append(int(record.uid.rpartition("_")[2]))
    assert runs.keys() == {one.name for one in LIST}
    for queued in runs.values():
        assert queued == list(range(queued[0], queued[0] + len(queued))), "missed, doubled or out of order"
    assert sum(map(len, runs.values())) > 5 * KILLS
