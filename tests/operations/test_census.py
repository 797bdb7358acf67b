"""Counting keys by pattern in the background, once for all processes of an installation."""

import asyncio

from keystead.clock import SystemClock
from keystead.edge.keys import API_IP, EDGE, LOGIN_IP
from keystead.engine import connect
from keystead.keys import Registry
from keystead.operations import Census
from keystead.operations import census as census_module
from keystead.operations.keys import CENSUS, CENSUS_TURN, OPERATIONS
from keystead.testing.clock import MovableClock

REGISTRY = Registry([EDGE, OPERATIONS])


def census_of(valkey, clock=None):
    return Census(valkey, REGISTRY, clock or SystemClock())


async def until(condition):
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


async def scans(valkey):
    return (await valkey.info("commandstats")).get("cmdstat_scan", {}).get("calls", 0)


async def test_walk_counts_by_pattern(valkey):
    for last in range(7):
        await API_IP.at(f"203.0.113.{last}").set(valkey, 1)
    await valkey.set("stray", "x")
    census = census_of(valkey)
    assert census.counts is None and census.counted_at is None
    assert await census.renew()
    assert census.counts.of(API_IP).keys == 7 and census.counts.of(API_IP).memory_bytes > 0
    assert census.counts.of(LOGIN_IP).keys == 0
    assert census.counts.undeclared_keys == 1
    assert census.counted_at is not None and not census.counting


async def test_others_read_what_one_has_counted(valkey):
    await API_IP.at("203.0.113.7").set(valkey, 1)
    await valkey.set("stray", "x")
    first, second, third = (census_of(valkey) for _ in range(3))
    assert await first.renew()
    await valkey.config_resetstat()
    assert await second.renew() and await third.renew()
    assert second.counts == third.counts == first.counts
    assert second.counted_at == first.counted_at
    assert await scans(valkey) == 0
    second.want()
    assert await second.renew(0.0) and await scans(valkey) > 0, "whoever wants newer ones takes the turn"
    assert await third.renew(0.001) and third.counted_at >= second.counted_at


async def test_what_any_process_counted_last_is_known_without_a_walk(valkey):
    clock = MovableClock([], now=5000.0)
    one, other = census_of(valkey, clock), census_of(valkey, clock)
    assert await other.known(60) is None
    await one.renew()
    assert (await other.known(60)).undeclared_keys == 0
    await valkey.set("stray", "x")
    clock.advance(30)
    await one.renew(0.0)
    before = await scans(valkey)
    assert (await other.known(60)).undeclared_keys == 1 and await scans(valkey) == before
    clock.advance(61)
    assert await other.known(60) is None and (await other.known(600)).undeclared_keys == 1


async def test_one_walks_at_a_time(valkey):
    census = census_of(valkey)
    async with CENSUS_TURN.at(census._digest).hold(valkey, SystemClock()):
        assert not await census.renew()
        assert census.counts is None and census.counting, "somebody else counts"
    assert await census.renew() and not census.counting


async def test_other_declarations_are_counted_apart(valkey):
    await API_IP.at("203.0.113.7").set(valkey, 1)
    without = Census(valkey, Registry([OPERATIONS]), SystemClock())
    assert await without.renew() and without.counts.undeclared_keys == 1
    census = census_of(valkey)
    assert await census.renew() and census.counts.undeclared_keys == 0


async def test_counts_are_renewed_once_they_are_too_old(valkey):
    clock = MovableClock(now=1_800_000_000)
    census = census_of(valkey, clock)
    assert await census.renew(600)
    first = census.counts
    clock.advance(599)
    assert await census.renew(600) and census.counts is first
    clock.advance(2)
    assert await census.renew(600) and census.counts is not first
    earlier = census_of(valkey, MovableClock(now=clock.now() - 7200))
    assert await earlier.renew(600)
    assert earlier.counted_at < census.counted_at, "a count from before a clock was put right does not stop it"


async def test_wanted_walk_does_not_wait_for_the_rest(valkey):
    census = census_of(valkey)
    task = asyncio.ensure_future(census.run())
    await until(lambda: census.counts is not None)
    await API_IP.at("203.0.113.7").set(valkey, 1)
    census.want()
    await until(lambda: census.counts.of(API_IP).keys == 1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_walk_that_is_wanted_while_another_goes_on_follows_it(valkey, monkeypatch):
    walks, may_end, counted = [], asyncio.Event(), census_module.count_patterns

    async def long_walk(*given, **named):
        walks.append(await counted(*given, **named))
        await may_end.wait()
        return walks[-1]

    monkeypatch.setattr(census_module, "count_patterns", long_walk)
    monkeypatch.setattr(census_module, "RETRY_SECONDS", 0.05)
    census = census_of(valkey)
    tasks = [asyncio.ensure_future(census.run()), asyncio.ensure_future(census.run(600))]
    await until(lambda: walks)
    await API_IP.at("203.0.113.7").set(valkey, 1)
    census.want()
    await asyncio.sleep(0.2)
    assert len(walks) == 1
    may_end.set()
    await until(lambda: census.counts is not None and census.counts.of(API_IP).keys == 1)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_long_walk_is_followed_by_a_long_rest(valkey, monkeypatch):
    clock, took = MovableClock(now=1_800_000_000), 0.5
    monkeypatch.setattr(census_module, "REST_SECONDS", 0.0)

    counted = census_module.count_patterns

    async def slow_walk(*given, **named):
        await asyncio.sleep(took)
        return await counted(*given, **named)

    monkeypatch.setattr(census_module, "count_patterns", slow_walk)
    census = census_of(valkey, clock)
    assert await census.renew()
    first = census.counts
    clock.advance(4 * took)
    assert await census.renew() and census.counts is first
    clock.advance(600)
    assert await census.renew() and census.counts is not first


async def test_last_count_stays_while_the_server_is_away_and_is_renewed_after(fault_proxy, valkey, monkeypatch):
    monkeypatch.setattr(census_module, "RETRY_SECONDS", 0.05)
    proxy = await fault_proxy()
    away = await connect(proxy.url)
    census = census_of(away)
    task = asyncio.ensure_future(census.run())
    try:
        await until(lambda: census.counts is not None)
        first = census.counts
        await proxy.refuse()
        proxy.cut()
        assert not await census.renew(0.0)
        assert census.counts is first and not census.counting
        await API_IP.at("203.0.113.7").set(valkey, 1)
        census.want()
        await proxy.restore()
        await until(lambda: census.counts.of(API_IP).keys == 1)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await away.aclose()


async def test_a_full_server_is_counted_too(valkey):
    await valkey.set("stray", "x" * 1000)
    census = census_of(valkey)
    await valkey.config_set("maxmemory", "1")
    try:
        assert await census.renew() and census.counts.undeclared_keys == 1
    finally:
        await valkey.config_set("maxmemory", "0")
    assert await CENSUS.at(census._digest).get(valkey) is None


async def test_what_was_kept_before_the_server_was_full_does_not_come_back(valkey):
    clock = MovableClock(now=1_800_000_000)
    other, census = census_of(valkey, clock), census_of(valkey, clock)
    assert await other.renew()
    await valkey.set("stray", "x" * 1000)
    clock.advance(100)
    await valkey.config_set("maxmemory", "1")
    try:
        assert await census.renew() and census.counts.undeclared_keys == 1
        assert await census._read(600) and census.counts.undeclared_keys == 1
    finally:
        await valkey.config_set("maxmemory", "0")


async def test_a_user_who_may_not_walk_gets_no_counts_and_no_failure(valkey, valkey_server):
    await valkey.call(("ACL", "SETUSER", "blind", "on", ">secret", "~*", "&*", "+@all", "-scan"))
    blind = await connect(f"unix://blind:secret@{valkey_server.socket_path}")
    try:
        census = census_of(blind)
        assert not await census.renew() and census.counts is None and not census.counting
    finally:
        await blind.aclose()
        await valkey.call(("ACL", "DELUSER", "blind"))
