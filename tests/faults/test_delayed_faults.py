"""Delayed sets while workers are killed without warning: each due member is finished once, the others still wait."""

import asyncio
import random
from collections import Counter

from keystead.engine import Valkey
from keystead.testing.server import LocalServer

from .delayed_worker import NOTED, NOW, SOON
from .programs import Forked


async def start(url: str, name: str) -> Forked:
    process = await Forked.start("tests.faults.delayed_worker", url, name)
    async with asyncio.timeout(60):
        assert await process.stdout.readline() == b"ready\n"
    return process


async def test_killed_workers_finish_each_due_member_once(valkey: Valkey, valkey_server: LocalServer) -> None:
    rng, total = random.Random(9), 0
    workers = [await start(valkey_server.url, f"w{number}") for number in range(2)]
    await SOON.schedule_many(valkey, {-number: NOW + number for number in range(1, 21)})  # not due
    try:
        async with asyncio.timeout(180):
            for kills in range(5):
                await SOON.schedule_many(valkey, {number: rng.uniform(0, NOW) for number in range(total, total + 200)})
                total += 200
                await asyncio.sleep(rng.uniform(0.01, 0.1))
                workers[kills % 2].kill()
                await workers[kills % 2].wait()
                workers[kills % 2] = await start(valkey_server.url, f"w{kills % 2}" if kills % 3 else f"new{kills}")
            while await NOTED.at().length(valkey) < total:
                await asyncio.sleep(0.02)
    finally:
        for worker in workers:
            worker.kill()
            await worker.wait()
    assert Counter(await NOTED.at().range(valkey)) == Counter(range(total))
    assert await SOON.size(valkey) == 20
