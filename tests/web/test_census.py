"""Counting keys by pattern in the background."""

import asyncio

from keystead.clock import SystemClock
from keystead.edge.keys import API_IP, EDGE, LOGIN_IP
from keystead.engine import connect
from keystead.keys import Registry
from keystead.web import census as census_module
from keystead.web.census import Census


async def until(condition):
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


async def test_walk_counts_by_pattern(valkey):
    for last in range(7):
        await API_IP.at(f"203.0.113.{last}").set(valkey, 1)
    await valkey.set("stray", "x")
    census = Census(valkey, Registry([EDGE]), SystemClock())
    assert census.counts is None and census.counted_at is None
    assert await census.walk()
    assert census.counts.of(API_IP).keys == 7 and census.counts.of(API_IP).memory_bytes > 0
    assert census.counts.of(LOGIN_IP).keys == 0
    assert census.counts.undeclared_keys == 1
    assert census.counted_at is not None and not census.counting


async def test_wanted_walk_does_not_wait_for_the_rest(valkey):
    census = Census(valkey, Registry([EDGE]), SystemClock())
    task = asyncio.ensure_future(census.run())
    await until(lambda: census.counts is not None)
    await API_IP.at("203.0.113.7").set(valkey, 1)
    census.want()
    await until(lambda: census.counts.of(API_IP).keys == 1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_long_walk_is_followed_by_a_long_rest(valkey, monkeypatch):
    monkeypatch.setattr(census_module, "REST_SECONDS", 0.0)
    census = Census(valkey, Registry([EDGE]), SystemClock())
    walks = []

    async def slow_walk():
        walks.append(asyncio.get_running_loop().time())
        await asyncio.sleep(0.1)
        return True

    monkeypatch.setattr(census, "walk", slow_walk)
    task = asyncio.ensure_future(census.run())
    await until(lambda: len(walks) == 2)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert walks[1] - walks[0] >= 0.5


async def test_last_count_stays_while_the_server_is_away_and_is_renewed_after(fault_proxy, valkey, monkeypatch):
    monkeypatch.setattr(census_module, "RETRY_SECONDS", 0.05)
    proxy = await fault_proxy()
    away = await connect(proxy.url)
    census = Census(away, Registry([EDGE]), SystemClock())
    task = asyncio.ensure_future(census.run())
    try:
        await until(lambda: census.counts is not None)
        first = census.counts
        await proxy.refuse()
        proxy.cut()
        census.want()
        await until(lambda: census.counting)
        assert census.counts is first
        await API_IP.at("203.0.113.7").set(valkey, 1)
        await proxy.restore()
        await until(lambda: census.counts.of(API_IP).keys == 1)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await away.aclose()
