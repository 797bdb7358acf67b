"""Blocks, limits and violations by address."""

import asyncio
import time

import pytest

from keystead.clock import SystemClock
from keystead.edge import guard as guard_module
from keystead.edge.addresses import Networks, client_address
from keystead.edge.blocks import Blocks
from keystead.edge.guard import Guard, Verdict, Weight
from keystead.edge.keys import API_IP, BLOCKED_IP, BUCKET, EDGE, LOGIN_IP, VIOLATIONS
from keystead.edge.limits import API, LOGIN, REGISTER, IpLimit
from keystead.edge.paging import PageRequest
from keystead.edge.refusals import Blocked, TicketUsed
from keystead.edge.tickets import Tickets
from keystead.engine import connect
from keystead.errors import LimitReached, Unavailable
from keystead.keys import Keyspace, Registry
from keystead.patterns import FixedWindow

DAY = 86400
SMALL_WINDOW = FixedWindow(Keyspace("small", tag="edge:{ip}"), "api_ip:{ip}", kinds={"ip": BUCKET}, most=3,
                           window_seconds=60, purpose="the same key with a smaller limit")
SMALL = IpLimit("api_ip", SMALL_WINDOW, 1)


def address(text):
    return client_address(text, (), Networks())


STRANGER = address("203.0.113.7")


@pytest.fixture
def guard(valkey):
    return Guard(valkey)


async def pass_door(guard, who=STRANGER):
    async with guard.passage(who):
        pass


# -- limits -----------------------------------------------------------------------------------------------------------


async def test_uses_up_to_the_limit_are_allowed_and_the_next_is_not(guard):
    decisions = [await guard.count(SMALL, STRANGER) for _ in range(5)]
    assert [(each.allowed, each.remaining) for each in decisions] == [
        (True, 2), (True, 1), (True, 0), (False, 0), (False, 0),
    ]
    assert all(30 < each.reset_seconds <= 60 for each in decisions)


async def test_window_is_not_moved_by_later_uses(guard, valkey):
    await guard.count(SMALL, STRANGER)
    await valkey.pexpire(API_IP.at(STRANGER.bucket).name(valkey.layout), 20_000)
    assert (await guard.count(SMALL, STRANGER)).reset_seconds <= 20


async def test_counter_that_lost_its_expiry_gets_a_new_window(guard, valkey):
    await guard.count(SMALL, STRANGER)
    await valkey.persist(API_IP.at(STRANGER.bucket).name(valkey.layout))
    assert 30 < (await guard.count(SMALL, STRANGER)).reset_seconds <= 60
    assert await API_IP.at(STRANGER.bucket).remaining_seconds(valkey) > 30


async def test_many_at_once_share_one_window(guard):
    decisions = await asyncio.gather(*(guard.count(API, STRANGER) for _ in range(650)))
    assert sum(each.allowed for each in decisions) == 600


async def test_addresses_and_limits_are_counted_apart(guard):
    for _ in range(4):
        await guard.count(SMALL, STRANGER)
    assert (await guard.count(SMALL, address("203.0.113.8"))).remaining == 2
    assert (await guard.count(LOGIN, STRANGER)).remaining == 9


async def test_good_use_is_given_back_and_keeps_the_window(guard, valkey):
    await guard.count(LOGIN, STRANGER)
    await guard.count(LOGIN, STRANGER)
    assert await guard.give_back(LOGIN, STRANGER)
    assert await LOGIN_IP.at(STRANGER.bucket).get(valkey) == 1
    assert await LOGIN_IP.at(STRANGER.bucket).remaining_seconds(valkey) > 800


async def test_nothing_is_given_back_below_zero(guard, valkey):
    assert not await guard.give_back(LOGIN, STRANGER)
    assert await valkey.dbsize() == 0


async def test_refused_use_weighs_as_its_limit_says(guard, valkey):
    for _ in range(SMALL.most + 2):
        await guard.count(SMALL, STRANGER)
    assert await VIOLATIONS.at(STRANGER.bucket).get(valkey) == 2
    for _ in range(REGISTER.most + 1):
        await guard.count(REGISTER, STRANGER)
    assert await VIOLATIONS.at(STRANGER.bucket).get(valkey) == 5


# -- violations and blocks --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sum_before", "blocked_seconds"), [
    (8, 0), (9, 900), (18, 900), (19, 3600), (38, 3600), (39, DAY), (78, DAY), (79, 7 * DAY), (200, 7 * DAY),
])
async def test_steps_are_exact(guard, valkey, sum_before, blocked_seconds):
    await VIOLATIONS.at(STRANGER.bucket).set(valkey, sum_before)
    verdict = await guard.violate(STRANGER, 1, "test")
    assert verdict == Verdict(sum_before + 1, blocked_seconds)
    assert await VIOLATIONS.at(STRANGER.bucket).remaining_seconds(valkey) > DAY - 100
    left = await BLOCKED_IP.at(STRANGER.bucket).remaining_seconds(valkey)
    assert left is None if not blocked_seconds else blocked_seconds - 100 < left <= blocked_seconds


async def test_block_is_never_shortened(guard, valkey):
    await BLOCKED_IP.at(STRANGER.bucket).lasting(8 * DAY).set(valkey, "blocked:manual")
    verdict = await guard.violate(STRANGER, 100, "test")
    assert verdict.blocked_seconds > 7 * DAY
    assert await BLOCKED_IP.at(STRANGER.bucket).get(valkey) == "blocked:manual"


async def test_block_without_end_stays_without_end(guard, valkey):
    key = BLOCKED_IP.at(STRANGER.bucket).name(valkey.layout)
    await valkey.set(key, "blocked:foreign")
    await guard.violate(STRANGER, 100, "test")
    assert await valkey.ttl(key) == -1


async def test_block_is_lengthened_and_says_the_new_reason(guard, valkey):
    await guard.violate(STRANGER, 10, "first")
    await guard.violate(STRANGER, Weight.TOKEN_REUSE, "second")
    assert await BLOCKED_IP.at(STRANGER.bucket).get(valkey) == "blocked:second"
    assert await BLOCKED_IP.at(STRANGER.bucket).remaining_seconds(valkey) > 3500


async def test_blocked_address_is_refused_without_the_reason_and_collects_nothing(guard, valkey):
    await guard.violate(STRANGER, 10, "secret reason")
    with pytest.raises(Blocked) as refusal:
        await pass_door(guard)
    assert 800 < refusal.value.retry_after_seconds <= 900
    assert "secret" not in str(refusal.value)
    assert await VIOLATIONS.at(STRANGER.bucket).get(valkey) == 10


async def test_own_block_is_seen_at_once_in_spite_of_the_memory(guard):
    await pass_door(guard)
    await guard.violate(STRANGER, 10, "test")
    with pytest.raises(Blocked):
        await pass_door(guard)


async def test_foreign_block_is_seen_within_a_second(guard, valkey, monkeypatch):
    monkeypatch.setattr(guard_module, "CLEAN_SECONDS", 0.05)
    await pass_door(guard)
    await Guard(valkey).violate(STRANGER, 10, "by another process")
    deadline = time.monotonic() + 20
    with pytest.raises(Blocked):
        while time.monotonic() < deadline:
            await pass_door(guard)
            await asyncio.sleep(0.01)


async def test_clean_address_is_asked_about_once_a_second(guard, valkey, monkeypatch):
    assert guard_module.CLEAN_SECONDS == 1
    monkeypatch.setattr(guard_module, "CLEAN_SECONDS", 60.0)  # or a slow machine would ask again
    await pass_door(guard)
    before = (await valkey.info("commandstats"))["cmdstat_get"]["calls"]
    for _ in range(100):
        await pass_door(guard)
    assert (await valkey.info("commandstats"))["cmdstat_get"]["calls"] == before


async def test_memory_of_clean_addresses_is_bounded(guard, monkeypatch):
    monkeypatch.setattr(guard_module, "MOST_REMEMBERED", 10)
    for last in range(35):
        await pass_door(guard, address(f"203.0.113.{last}"))
    assert len(guard._seen) <= 10


# -- tarpit -----------------------------------------------------------------------------------------------------------


async def test_address_with_violations_waits_a_few_at_a_time(guard, monkeypatch):
    monkeypatch.setattr(guard_module, "TARPIT_SECONDS", 1.0)
    await guard.violate(STRANGER, 5, "test")
    started = time.monotonic()
    outcomes = await asyncio.gather(*(pass_door(guard) for _ in range(8)), return_exceptions=True)
    assert time.monotonic() - started >= 1.0
    assert [type(each) for each in outcomes].count(LimitReached) == 3
    assert outcomes.count(None) == 5
    await pass_door(guard)


async def test_four_violations_do_not_slow_down(guard, monkeypatch):
    monkeypatch.setattr(guard_module, "TARPIT_SECONDS", 30.0)
    await guard.violate(STRANGER, 4, "test")
    started = time.monotonic()
    await pass_door(guard)
    assert time.monotonic() - started < guard_module.TARPIT_SECONDS


# -- who is never counted ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("friend", ["127.0.0.1", "::1", "10.1.2.3"])
async def test_uncounted_networks_pass_everything(valkey, friend):
    guard = Guard(valkey, uncounted=Networks.parse("127.0.0.0/8, ::1, 10.0.0.0/8", setting="x"))
    for _ in range(REGISTER.most + 3):
        assert (await guard.count(REGISTER, address(friend))).allowed
    assert await guard.violate(address(friend), 100, "test") == Verdict(0, 0)
    await pass_door(guard, address(friend))
    assert await valkey.dbsize() == 0


# -- store away -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("silent", [True, False], ids=["no answer", "no connection"])
async def test_doors_open_and_close_as_declared_while_the_store_is_away(fault_proxy, silent, monkeypatch):
    monkeypatch.setattr(guard_module, "STORE_WAIT_SECONDS", 3.0)
    proxy = await fault_proxy()
    away = await connect(proxy.url)
    try:
        guard = Guard(away)
        if silent:
            proxy.half_open()
        else:
            await proxy.refuse()
            proxy.cut()
        started = time.monotonic()
        await pass_door(guard)
        assert (await guard.count(API, STRANGER)).allowed
        with pytest.raises(Unavailable):
            await guard.count(REGISTER, STRANGER)
        assert await guard.violate(STRANGER, 10, "test") == Verdict(0, 0)
        # One wait for all four: the guard does not ask again right after there was no answer.
        assert time.monotonic() - started < 2.5 * guard_module.STORE_WAIT_SECONDS
    finally:
        await away.aclose()


async def test_full_server_opens_and_closes_the_same_doors(guard, valkey):
    await BLOCKED_IP.at("203.0.113.9").lasting(60).set(valkey, "blocked:test")
    await valkey.config_set("maxmemory", 1)
    try:
        assert (await guard.count(API, STRANGER)).allowed
        with pytest.raises(Unavailable):
            await guard.count(REGISTER, STRANGER)
        assert await guard.violate(STRANGER, 10, "test") == Verdict(0, 0)
        await pass_door(guard)
        with pytest.raises(Blocked):
            await pass_door(guard, address("203.0.113.9"))
    finally:
        await valkey.config_set("maxmemory", 0)


# -- the same on a cluster --------------------------------------------------------------------------------------------


@pytest.mark.cluster
async def test_guard_tickets_and_block_list_work_on_a_cluster(cluster, valkey_cluster, no_undeclared_keys):
    registry = Registry([EDGE], cluster.layout)
    no_undeclared_keys(registry, *valkey_cluster.primaries())
    guard, blocks, tickets = Guard(cluster), Blocks(cluster, registry), Tickets(bytes(32), SystemClock())
    strangers = [address(f"203.0.113.{last}") for last in range(20)]
    for stranger in strangers:
        assert (await guard.count(LOGIN, stranger)).remaining == 9
        assert await guard.give_back(LOGIN, stranger)
        await guard.violate(stranger, 10, "test")
        with pytest.raises(Blocked):
            await pass_door(guard, stranger)
    listed = (await blocks.page(PageRequest(100))).items
    assert {block.address for block in listed} == {each.bucket for each in strangers}
    assert await blocks.unblock("203.0.113.3")
    await pass_door(guard, strangers[3])
    text = tickets.issue("login", "operator", lasts_seconds=60, once=True)
    await tickets.redeem(cluster, "login", text)
    with pytest.raises(TicketUsed):
        await tickets.redeem(cluster, "login", text)


async def test_everything_left_behind_is_declared(guard, valkey, no_undeclared_keys):
    no_undeclared_keys(Registry([EDGE]))
    for limit in (API, LOGIN, REGISTER):
        for who in (STRANGER, address("2001:db8::1"), address("nonsense")):
            for _ in range(limit.most + 4 if limit is REGISTER else 1):
                await guard.count(limit, who)
    assert await valkey.dbsize() == 15
