"""Batch jobs whose process is killed or asked to stop: counts of what was lost, doubled, and in two places."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from keystead.engine import Valkey
from keystead.patterns import SmartAttempt, WorkList, new_lock_id
from keystead.testing.clock import MovableClock
from keystead.testing.server import LocalServer

from .batch_job_program import DONE, ENDLESS, JOBS, PLACE, ROUND, STARTED, Each
from .programs import programs

PROGRAM = "tests.faults.batch_job_program"


async def add(valkey: Valkey, kind: type[Each], numbers: range) -> None:
    if isinstance(kind.source, WorkList):
        await kind.source.push(valkey, *numbers)
    else:
        await kind.source.schedule_many(valkey, {number: float(number) for number in numbers})


async def places(valkey: Valkey, kind: type[Each]) -> tuple[list[int], list[int], list[int]]:
    """Who waits, who lies in purgatory, and who is done, at one instant."""
    async with valkey.pipeline(transaction=True) as pipeline:
        found: list[Awaitable[list[Any]]] = (
            [kind.source.queue.range(pipeline), kind.source.worker().purgatory.range(pipeline)]
            if isinstance(kind.source, WorkList)
            else [kind.source.due.range(pipeline), kind.source.worker().purgatory.range(pipeline)]
        )
        done = DONE.at(kind.kind).range(pipeline)
        await pipeline.execute()
    waiting, held = [[each[0] if isinstance(each, tuple) else each for each in await part] for part in found]
    return waiting, held, await done


async def until(check: Callable[[], Awaitable[bool]], seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not await check():
            await asyncio.sleep(0.002)


async def until_done(valkey: Valkey, kind: type[Each], number: int) -> None:
    async def enough() -> bool:
        return await DONE.at(kind.kind).length(valkey) >= number

    await until(enough)


async def until_every_lock_is_held(valkey: Valkey) -> None:
    for kind in JOBS:
        await until(partial(kind.lock.at().reference.exists, valkey))


async def new_round(valkey: Valkey, total: int) -> int:
    """More numbers for every kind, the last of which takes for ever; gives how many there are now."""
    await ENDLESS.at().set(valkey, total + ROUND - 1)
    for kind in JOBS:
        await add(valkey, kind, range(total, total + ROUND))
    return total + ROUND


async def time_frees_the_locks(valkey: Valkey, clock: MovableClock) -> None:
    """A dead process leaves its lock. The next in its place lets it run out, and five minutes later it is gone."""
    for lock in (kind.lock.at() for kind in JOBS):
        attempt = await lock.try_acquire(valkey, hostname=PLACE, lock_id=new_lock_id(), now=clock.now())
        left = await lock.reference.remaining_seconds(valkey)
        assert attempt is SmartAttempt.SAME_PLACE and left is not None and left <= 300
    clock.advance(301)
    for kind in JOBS:
        assert not await kind.lock.at().reference.exists(valkey)


async def test_killed_runs_lose_nothing_and_do_nothing_twice(
    valkey: Valkey, valkey_server: LocalServer, moving_clock: MovableClock
) -> None:
    rng, total, kills, met_in_purgatory = random.Random(5), 0, 4, Counter[str]()
    async with programs(PROGRAM) as start:
        for _ in range(kills):
            total = await new_round(valkey, total)
            watched = rng.choice(JOBS)
            already = await DONE.at(watched.kind).length(valkey)
            program = await start(valkey_server.url)
            await until_done(valkey, watched, already + rng.randrange(1, ROUND // 2))
            await until_every_lock_is_held(valkey)
            await program.kill()
            for kind in JOBS:
                waiting, held, done = await places(valkey, kind)
                assert Counter([*waiting, *held, *done]) == Counter(range(total)), f"{kind.kind}: one place for each"
                met_in_purgatory[kind.kind] += bool(held)
            await time_frees_the_locks(valkey, moving_clock)
        await ENDLESS.at().delete(valkey)
        await start(valkey_server.url)
        for kind in JOBS:
            await until_done(valkey, kind, total)
    assert met_in_purgatory.total() >= kills, "they were killed while they held something"
    for kind in JOBS:
        waiting, held, done = await places(valkey, kind)
        assert (waiting, held, done) == ([], [], list(range(total))), "after a death the same item comes first"
        tries = Counter(await STARTED.at(kind.kind).range(valkey))
        assert len(tries) == total and sum(tries.values()) <= total + kills * kind.slice_items


async def test_runs_that_are_asked_to_stop_put_back_what_they_have_and_free_the_lock(
    valkey: Valkey, valkey_server: LocalServer
) -> None:
    for kind in JOBS:
        await add(valkey, kind, range(20_000))
    async with programs(PROGRAM) as start:
        program = await start(valkey_server.url)
        for kind in JOBS:
            await until_done(valkey, kind, 1)
        program.process.terminate()
        async with asyncio.timeout(60):
            assert await program.process.wait() == 0
        await program.hears("ended")
        assert sorted(said[1:] for said in program.words("ran")) == sorted([kind.kind, "signal"] for kind in JOBS)
    for kind in JOBS:
        waiting, held, done = await places(valkey, kind)
        assert held == [] and [*done, *waiting] == list(range(20_000))
        assert not await kind.lock.at().reference.exists(valkey)


async def test_locks_of_runs_that_are_stuck_last_a_minute_after_the_signal(
    valkey: Valkey, valkey_server: LocalServer
) -> None:
    total = await new_round(valkey, 0)
    async with programs(PROGRAM) as start:
        program = await start(valkey_server.url)
        for kind in JOBS:
            await until_done(valkey, kind, (ROUND - 1) // kind.slice_items * kind.slice_items)
            assert await kind.lock.at().reference.remaining_seconds(valkey) is None, "nobody wants it: it has no end"
        program.process.terminate()
        for kind in JOBS:
            await until(partial(_is_ending, valkey, kind))
        await program.kill()
    for kind in JOBS:
        left = await kind.lock.at().reference.remaining_seconds(valkey)
        assert left is not None and left <= 60
        waiting, held, done = await places(valkey, kind)
        assert held and Counter([*waiting, *held, *done]) == Counter(range(total))


async def _is_ending(valkey: Valkey, kind: type[Each]) -> bool:
    return await kind.lock.at().reference.remaining_seconds(valkey) is not None
