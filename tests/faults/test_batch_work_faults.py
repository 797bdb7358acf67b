"""Batch jobs that go on all the time, in processes that are killed without warning: what was lost, what doubled."""

import asyncio
import random
from collections import Counter

from keystead.engine import Valkey
from keystead.patterns import WorkList
from keystead.testing.server import LocalServer

from .batch_work_program import DONE, KINDS, STARTED, Listed
from .programs import programs

PROGRAM = "tests.faults.batch_work_program"
ROUND = 300


async def add(valkey: Valkey, kind: type[Listed], numbers: range) -> None:
    if isinstance(kind.source, WorkList):
        await kind.source.push(valkey, *numbers)
    else:
        await kind.source.schedule_many(valkey, {number: float(number) for number in numbers})


async def until_done(valkey: Valkey, number: int) -> None:
    async with asyncio.timeout(120):
        for kind in KINDS:
            while await DONE.at(kind.kind).length(valkey) < number:
                await asyncio.sleep(0.005)


async def test_killed_workers_lose_nothing_and_finish_nothing_twice(
    valkey: Valkey, valkey_server: LocalServer
) -> None:
    rng, total, kills = random.Random(3), 0, 3
    async with programs(PROGRAM) as start:
        alive = [await start(valkey_server.url) for _ in range(2)]
        for _ in range(kills):
            before = total
            for kind in KINDS:
                await add(valkey, kind, range(total, total + ROUND))
            total += ROUND
            await until_done(valkey, before + rng.randrange(1, ROUND // 2))
            place = rng.randrange(2)
            await alive[place].kill()
            alive[place] = await start(valkey_server.url)
        await until_done(valkey, total)
    for kind in KINDS:
        assert Counter(await DONE.at(kind.kind).range(valkey)) == Counter(range(total)), f"{kind.kind}: each once"
        assert set(await STARTED.at(kind.kind).range(valkey)) == set(range(total))
        assert await kind.source.dead.length(valkey) == 0
