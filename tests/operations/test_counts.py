import asyncio
import random

import pytest

from keystead.keys import Layout
from keystead.operations import PatternCount
from keystead.operations.counts import WEIGHED_FIRST, count_patterns

from . import shop


async def test_keys_and_memory_are_counted_by_declaration(valkey):
    for day in range(30):
        await shop.VISITS.at(day).increment(valkey)
    await shop.CART.at("ann").set(valkey, shop.Order("ann", 1))
    await valkey.set("queue:1", "x")
    await valkey.mset({"stray:1": "x" * 1000, "stray:2": "y" * 1000})
    counts = await count_patterns(valkey, shop.registry(), keys_per_second=100_000)
    assert counts.keys == 34
    assert counts.of(shop.VISITS).keys == 30
    assert counts.of(shop.CART) == PatternCount(1, await valkey.memory_usage("cart:ann"), estimated=False)
    assert counts.of(shop.OTHER).keys == 1
    assert counts.of(shop.PRICE) == PatternCount()
    assert counts.undeclared_keys == 2
    assert counts.undeclared_memory_bytes > 2000
    ((pattern, keys),) = counts.undeclared_patterns.items()
    assert pattern.startswith("stray:") and keys == 2
    assert counts.memory_bytes == counts.undeclared_memory_bytes + sum(
        counts.of(each).memory_bytes for each in shop.registry()
    )


async def test_memory_of_many_keys_is_estimated_from_a_sample(valkey):
    sizes = random.Random(3)
    keys = {f"price:{number}": "x" * sizes.randint(10, 400) for number in range(5000)}
    await valkey.mset(keys)
    await valkey.config_resetstat()
    counts = await count_patterns(valkey, shop.registry(), keys_per_second=1_000_000)
    stats = await valkey.info("commandstats")
    found = counts.of(shop.PRICE)
    async with valkey.pipeline(transaction=False) as pipeline:
        for key in keys:
            pipeline.memory_usage(key)
        exact = sum(await pipeline.execute())
    assert found.keys == 5000
    assert found.estimated
    assert found.memory_bytes == pytest.approx(exact, rel=0.15)
    assert stats["cmdstat_memory|usage"]["calls"] <= WEIGHED_FIRST + 5000 // 50 + 1
    assert not {"cmdstat_keys", "cmdstat_get", "cmdstat_getrange"} & set(stats), "values are not read"


async def test_the_pace_is_kept(valkey):
    await valkey.mset({f"price:{number}": "x" for number in range(2000)})
    began = asyncio.get_running_loop().time()
    await count_patterns(valkey, shop.registry(), keys_per_second=2000)
    assert asyncio.get_running_loop().time() - began > 0.5


@pytest.mark.cluster
async def test_every_primary_of_a_cluster_is_counted(cluster):
    for number in range(300):
        await cluster.set(f"stray:{number}", "x")
    for day in range(20):
        await shop.VISITS.at(day).increment(cluster)
    counts = await count_patterns(cluster, shop.registry(Layout.TAGGED), keys_per_second=100_000)
    assert (counts.keys, counts.undeclared_keys, counts.of(shop.VISITS).keys) == (320, 300, 20)
