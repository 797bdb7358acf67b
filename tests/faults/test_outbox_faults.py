"""Outboxes while relays are killed without warning: what arrived, how often, in which order."""

import asyncio
import random

import pytest

from keystead.engine import Valkey
from keystead.testing.cluster import LocalCluster
from keystead.testing.server import LocalServer

from .outbox_relay import ARRIVED, OUT, Job
from .programs import Forked


async def start(url: str, most: int) -> Forked:
    process = await Forked.start("tests.faults.outbox_relay", url, str(most))
    async with asyncio.timeout(60):
        assert await process.stdout.readline() == b"ready\n"
    return process


async def relays_are_killed(valkey: Valkey, url: str, kills: int) -> None:
    """Entries keep coming while one of two relays dies again and again; all must arrive once and in order."""
    rng, total = random.Random(5), 0
    relays = [await start(url, 7), await start(url, 20)]
    try:
        async with asyncio.timeout(180):
            for number in range(kills):
                for _ in range(20):
                    await OUT.add(valkey, *(Job(str(each)) for each in range(total, total + 10)))
                    total += 10
                    await asyncio.sleep(rng.uniform(0, 0.002))
                relays[number % 2].kill()
                await relays[number % 2].wait()
                relays[number % 2] = await start(url, rng.choice((1, 7, 50)))
            while await OUT.length(valkey):
                await asyncio.sleep(0.02)
    finally:
        for relay in relays:
            relay.kill()
            await relay.wait()
    assert [int(job.uid) for job in await ARRIVED.at().range(valkey)] == list(range(total))


async def test_killed_relays_lose_double_and_disorder_nothing(valkey: Valkey, valkey_server: LocalServer) -> None:
    await relays_are_killed(valkey, valkey_server.url, 5)


@pytest.mark.cluster
@pytest.mark.xdist_group("cluster")
async def test_killed_relays_of_a_cluster_lose_double_and_disorder_nothing(
    cluster: Valkey, valkey_cluster: LocalCluster
) -> None:
    await relays_are_killed(cluster, valkey_cluster.url, 2)
