"""Consumers killed with SIGKILL, and the server with them: nothing is lost, nothing is finished twice."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from keystead.clock import SystemClock
from keystead.engine import Valkey, connect
from keystead.keys import Keyspace
from keystead.patterns.fairqueue import FairQueue
from keystead.patterns.fairqueue_values import Produced
from keystead.testing.server import LocalServer

ITEMS, SHARDS, CAP = 1200, 6, 3
LEASE_SECONDS = 1.5
QUEUE: FairQueue[bytes] = FairQueue(Keyspace("faults"), "faults:work", item=bytes, quantum=4, cap=CAP, max_attempts=100,
                                    lease_seconds=LEASE_SECONDS, purpose="work")
DONE = "done"  # a list beside the queue: what consumers claim to have finished

CONSUMER = """
import asyncio, sys
sys.path.insert(0, {root!r})
from tests.faults.test_fairqueue_faults import consume
asyncio.run(consume({url!r}, {name!r}))
"""


async def consume(url: str, name: str) -> None:
    """Take, work a moment, finish, and note which finishes were accepted. Runs in a process of its own."""
    clock = SystemClock()
    valkey: Valkey | None = None
    while True:
        try:
            valkey = valkey or await connect(url)  # the server may be away at the very start as well
            batch = await QUEUE.take_batch(valkey, 4, name, now=clock.now())
            for item in batch.items:
                await asyncio.sleep(0.002)
                if await QUEUE.beat(valkey, item) and await QUEUE.finish(valkey, item, now=clock.now()):
                    await valkey.rpush(DONE, item.id)
            if not batch.items:
                await asyncio.sleep(0.02)
        except Exception:  # the server is away for a moment; a consumer lives on
            await asyncio.sleep(0.1)


def start(url: str, name: str) -> "subprocess.Popen[bytes]":
    code = CONSUMER.format(root=str(Path(__file__).parents[2]), url=url, name=name)
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def kill(process: "subprocess.Popen[bytes]") -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


async def fill(valkey: Valkey) -> set[str]:
    now, ids = time.time(), []
    async with valkey.pipeline(transaction=False) as pipeline:
        for number in range(ITEMS):
            ids.append(QUEUE.new_id(now))
            QUEUE.produce(pipeline, f"t{number % SHARDS}", ids[-1], b"x", now=now)
        assert set(await pipeline.execute()) == {Produced.OK}
    return set(ids)


async def watch_caps(valkey: Valkey, worst: Counter[str]) -> None:
    """Sample how many items of each shard are in hand at once."""
    names = QUEUE.keys.names(valkey.layout)
    for shard in (f"t{number}" for number in range(SHARDS)):
        worst[shard] = max(worst[shard], await valkey.zcard(names.leased % shard.encode()))


@pytest.mark.slow
async def test_killed_consumers_lose_nothing_and_finish_nothing_twice(
    valkey: Valkey, valkey_server: LocalServer
) -> None:
    ids, rng, worst, kills = await fill(valkey), random.Random(3), Counter[str](), 0
    url = valkey_server.url
    consumers = {f"c{number}": start(url, f"c{number}") for number in range(3)}
    deadline = time.monotonic() + 180
    try:
        while (counts := await QUEUE.length(valkey)).acked < ITEMS and time.monotonic() < deadline:
            await watch_caps(valkey, worst)
            await asyncio.sleep(rng.uniform(0.05, 0.3))
            if kills < 8 and counts.acked > kills * ITEMS // 12:
                name = rng.choice(sorted(consumers))
                kill(consumers.pop(name))
                kills += 1
                consumers[f"c{3 + kills}"] = start(url, f"c{3 + kills}")
    finally:
        for process in consumers.values():
            kill(process)
    counts = await QUEUE.length(valkey)
    noted = Counter(each.decode() for each in await valkey.lrange(DONE, 0, -1))
    assert kills >= 4, f"only {kills} kills"
    assert (counts.acked, counts.ready, counts.leased, counts.dead) == (ITEMS, 0, 0, 0)
    assert set(noted) <= ids and not [each for each, many in noted.items() if many > 1], "finished twice"
    # A consumer killed between its finish and its note leaves no note: at most one each.
    assert ITEMS - len(noted) <= kills
    assert max(worst.values()) <= CAP
    assert await QUEUE.upkeep.recount(valkey, fix=False) is not None


@pytest.mark.slow
async def test_killed_server_comes_back_with_every_item(valkey_server: LocalServer) -> None:
    """Accepted items survive SIGKILL of the server (append-only file): acks and what is left make the whole."""
    server = LocalServer()
    server.start()
    valkey = await connect(server.url)
    try:
        ids = await fill(valkey)
        consumers = [start(server.url, f"c{number}") for number in range(2)]
        try:
            for _ in range(2):
                await asyncio.sleep(0.7)
                server.kill()
                server.restart()
            deadline = time.monotonic() + 180
            while (await QUEUE.length(valkey)).acked < ITEMS and time.monotonic() < deadline:
                await asyncio.sleep(0.1)
        finally:
            for process in consumers:
                kill(process)
        noted = Counter(each.decode() for each in await valkey.lrange(DONE, 0, -1))
        counts = await QUEUE.length(valkey)
        assert (counts.acked, counts.ready, counts.leased, counts.dead) == (ITEMS, 0, 0, 0)
        assert set(noted) <= ids and max(noted.values()) == 1
    finally:
        await valkey.aclose()
        server.stop()


@pytest.mark.slow
async def test_paused_consumer_cannot_finish_what_was_given_away(valkey: Valkey) -> None:
    """A holder that sleeps past its lease is refused, and the new holder is not disturbed."""
    clock: Any = SystemClock()
    await QUEUE.produce(valkey, "a", QUEUE.new_id(clock.now()), b"x", now=clock.now())
    first = await QUEUE.take_most_urgent(valkey, "sleepy", now=clock.now())
    await asyncio.sleep(LEASE_SECONDS + 0.1)
    second = await QUEUE.take_most_urgent(valkey, "awake", now=clock.now(), lease_seconds=60)
    assert first and second and second.attempt == 1
    assert not await QUEUE.finish(valkey, first, now=clock.now())
    assert await QUEUE.beat(valkey, second)
    assert await QUEUE.finish(valkey, second, now=clock.now())
