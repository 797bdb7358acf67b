"""Every kind of limit: what it allows, what it leaves on the server, and what several say together."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from keystead.engine import Valkey, connect
from keystead.engine.failures import ErrorReply
from keystead.errors import DeclarationError, Unavailable
from keystead.keys import Keyspace, Layout, Registry
from keystead.patterns.limits import WhenAway, check_all
from keystead.patterns.limits_logs import DistinctAttempts, DistinctValues, Renewal, SlidingList, SlidingLog
from keystead.patterns.limits_slots import Gcra, GcraRate, LastUsedAt, SpacedSlots
from keystead.patterns.limits_windows import Cooldown, FixedWindow, RestartingWindow
from keystead.settings import ValkeySettings
from keystead.testing.checks import check_no_undeclared_keys
from keystead.testing.clock import MovableClock

NOW = 1_700_000_000.25
SHOP = Keyspace("shop", tag="shop")
ONCE = Cooldown(SHOP, "once:{user_sub}", seconds=15, purpose="one start each 15 s")
WINDOW = FixedWindow(SHOP, "window:{ip}", most=3, window_seconds=60, purpose="calls of an address")
UNITS = FixedWindow(SHOP, "units:{tenant}", most=10, window_seconds=60, counts_refused=False, purpose="report units")
AGAIN = RestartingWindow(SHOP, "again:{user_sub}", most=2, window_seconds=60, purpose="codes asked for")
LOG = SlidingLog(SHOP, "log:{uid}", windows=((2, 60), (3, 3600)), kept_seconds=3660, purpose="mails to one identity")
TIMES = SlidingList(SHOP, "times", most=3, window_seconds=60, counts_refused=True, purpose="checks by anybody")
CALM_TIMES = SlidingList(SHOP, "calm_times", most=2, window_seconds=60, purpose="checks by anybody, refused not noted")
VALUES = DistinctValues(SHOP, "values:{visitor}", most=2, window_seconds=60, purpose="addresses a visitor tried")
FIRST_VALUES = DistinctValues(SHOP, "first_values:{visitor}", most=2, window_seconds=60, renewal=Renewal.FROM_FIRST,
                              purpose="addresses a visitor tried since the first")
GUESSES = DistinctAttempts(SHOP, "guesses:{jti}", free=3, pause_seconds=60, longest_seconds=1861,
                           purpose="wrong passwords for one log-in")
SLOTS = SpacedSlots(SHOP, "min_start", gap_seconds=5, most_ahead_seconds=20, purpose="next delayed mail")
API = LastUsedAt(SHOP, "api:{api}", gap_seconds=2, purpose="last call of an outside service")
RATE = Gcra(SHOP, "rate:{tenant}", most=60, per_seconds=600, burst=3, purpose="requests of a tenant")
CLOSED = FixedWindow(SHOP, "closed:{ip}", most=3, window_seconds=60, when_away=WhenAway.CLOSED, purpose="sign-ups")


class World:
    """A client and a clock that takes the server's expiries along."""

    def __init__(self, valkey: Valkey, clock: MovableClock) -> None:
        self.valkey = valkey
        self.clock = clock

    @property
    def now(self) -> float:
        return self.clock.now()

    async def raw(self, *command: str | bytes) -> object:
        return await self.valkey.execute_command(*command)

    def name(self, limit: object) -> bytes:
        return limit.reference.name(self.valkey.layout)  # type: ignore[attr-defined]


@pytest_asyncio.fixture
async def world(server: Valkey, request: pytest.FixtureRequest) -> AsyncIterator[World]:
    tagged = server.layout is Layout.TAGGED
    servers = list(request.getfixturevalue("valkey_cluster").primaries()) if tagged else [
        request.getfixturevalue("valkey_server")]
    yield World(server, MovableClock(servers, now=NOW))
    check_no_undeclared_keys(Registry([SHOP], server.layout), *servers)


async def test_cooldown_allows_one_use_and_its_key_is_the_documented_flag(world: World) -> None:
    start = ONCE.at("u1")
    first, second = await start.use(world.valkey), await start.use(world.valkey)

    assert (first.allowed, first.remaining, first.retry_after_seconds) == (True, 0, 0)
    assert (second.allowed, second.remaining) == (False, 0)
    assert 5 < second.retry_after_seconds <= 15
    assert await world.raw("GET", world.name(start)) == b"1"
    assert (await ONCE.at("u2").use(world.valkey)).allowed
    world.clock.advance(15)
    assert (await start.use(world.valkey)).allowed


async def test_cooldown_that_was_started_by_another_program_holds(world: World) -> None:
    await world.raw("SET", world.name(ONCE.at("u1")), "1", "EX", "15")
    assert not (await ONCE.at("u1").use(world.valkey)).allowed


async def test_cooldown_can_be_forgotten_after_a_failure_that_was_not_the_users(world: World) -> None:
    await ONCE.at("u1").use(world.valkey)
    assert await ONCE.at("u1").forget(world.valkey)
    assert (await ONCE.at("u1").use(world.valkey)).allowed


async def test_fixed_window_counts_refused_uses_and_does_not_move_its_end(world: World) -> None:
    window = WINDOW.at("203.0.113.7")
    told = []
    for _ in range(5):
        told.append(await window.use(world.valkey))
        world.clock.advance(10)

    assert [(each.allowed, each.remaining) for each in told] == [
        (True, 2), (True, 1), (True, 0), (False, 0), (False, 0)]
    assert 10 < told[4].retry_after_seconds <= 20
    assert await world.raw("GET", world.name(window)) == b"5"
    world.clock.advance(10)
    assert (await window.use(world.valkey)).allowed


async def test_fixed_window_that_lost_its_expiry_gets_a_new_one(world: World) -> None:
    window = WINDOW.at("203.0.113.7")
    await world.raw("SET", world.name(window), "7")
    assert not (await window.use(world.valkey)).allowed
    world.clock.advance(60)
    assert (await window.use(world.valkey)).allowed


async def test_fixed_window_gives_back_never_below_zero_and_keeps_its_end(world: World) -> None:
    window = WINDOW.at("203.0.113.7")
    await window.use(world.valkey)
    assert await window.give_back(world.valkey) == 1
    assert await window.give_back(world.valkey) == 0
    assert await world.raw("GET", world.name(window)) == b"0"
    assert 0 < await world.raw("PTTL", world.name(window)) <= 60_000  # type: ignore[operator]


async def test_a_use_with_a_cost_takes_all_of_it_or_nothing(world: World) -> None:
    units = UNITS.at("acme")
    assert (await units.use(world.valkey, cost=7)).remaining == 3
    refused = await units.use(world.valkey, cost=4)
    assert (refused.allowed, refused.remaining) == (False, 3)
    assert (await units.use(world.valkey, cost=3)).allowed
    assert await world.raw("GET", world.name(units)) == b"10"
    with pytest.raises(DeclarationError, match="never fits"):
        await units.use(world.valkey, cost=11)
    with pytest.raises(DeclarationError, match="counts_refused=False"):
        await WINDOW.at("203.0.113.7").use(world.valkey, cost=2)


async def test_restarting_window_is_renewed_by_each_use_also_a_refused_one(world: World) -> None:
    again = AGAIN.at("u1")
    told = []
    for _ in range(3):
        told.append((await again.use(world.valkey)).allowed)
        world.clock.advance(50)
    assert told == [True, True, False]
    assert not (await again.use(world.valkey)).allowed, "a refused use restarted the window"
    world.clock.advance(60)
    assert (await again.use(world.valkey)).allowed


async def test_sliding_log_holds_every_window_and_says_when_there_is_room(world: World) -> None:
    log = LOG.at("id_1")
    assert [(await log.use(world.valkey, now=world.now)).remaining for _ in range(2)] == [1, 0]
    refused = await log.use(world.valkey, now=world.now)
    assert (refused.allowed, refused.retry_after_seconds) == (False, 60)
    world.clock.advance(60)
    assert (await log.use(world.valkey, now=world.now)).allowed
    refused = await log.use(world.valkey, now=world.now)
    assert (refused.allowed, refused.retry_after_seconds) == (False, 3540), "three in the hour"
    world.clock.advance(refused.retry_after_seconds)
    assert (await log.use(world.valkey, now=world.now)).allowed
    assert await world.raw("ZCARD", world.name(log)) == 2, "what is over was pruned"
    assert await world.raw("PTTL", world.name(log)) > 3_600_000  # type: ignore[operator]


async def test_the_same_member_of_a_sliding_log_is_one_use(world: World) -> None:
    log = LOG.at("id_1")
    for _ in range(5):
        assert (await log.use(world.valkey, now=world.now, member="rpc_1")).allowed
    assert await world.raw("ZCARD", world.name(log)) == 1
    assert float(await world.raw("ZSCORE", world.name(log), "rpc_1")) == NOW  # type: ignore[arg-type]


async def test_sliding_log_counts_uses_of_a_host_whose_clock_is_ahead(world: World) -> None:
    log = LOG.at("id_1")
    for _ in range(2):
        assert (await log.use(world.valkey, now=world.now + 30)).allowed
    assert (await log.use(world.valkey, now=world.now)).retry_after_seconds == 90


async def test_list_of_times_is_trimmed_and_keeps_whoever_insists_out(world: World) -> None:
    told = []
    for _ in range(5):
        told.append((await TIMES.at().use(world.valkey, now=world.now)).allowed)
        world.clock.advance(20)
    assert told == [True, True, True, True, True], "three in sixty seconds were never exceeded"
    told = [(await TIMES.at().use(world.valkey, now=world.now)).allowed for _ in range(4)]
    assert told == [True, False, False, False]
    assert await world.raw("LLEN", world.name(TIMES.at())) == 3
    world.clock.advance(50)
    assert not (await TIMES.at().use(world.valkey, now=world.now)).allowed
    world.clock.advance(60)
    assert (await TIMES.at().use(world.valkey, now=world.now)).allowed


async def test_list_of_times_that_does_not_note_refused_uses_says_when_there_is_room(world: World) -> None:
    times = CALM_TIMES.at()
    await times.use(world.valkey, now=world.now)
    world.clock.advance(15)
    await times.use(world.valkey, now=world.now)
    refused = await times.use(world.valkey, now=world.now)
    assert (refused.allowed, refused.retry_after_seconds) == (False, 45)
    world.clock.advance(45)
    assert (await times.use(world.valkey, now=world.now)).allowed


async def test_known_values_are_free_and_new_ones_are_refused_beyond_the_limit(world: World) -> None:
    values = VALUES.at("v1")
    told = [(await values.use(world.valkey, value, now=world.now)).allowed for value in "abacb"]
    assert told == [True, True, True, False, True]
    assert await world.raw("SMEMBERS", world.name(values)) == {b"a", b"b"}
    world.clock.advance(50)
    assert not (await values.use(world.valkey, "c", now=world.now)).allowed
    world.clock.advance(50)
    assert not (await values.use(world.valkey, "c", now=world.now)).allowed, "each use started the time again"


async def test_values_whose_time_runs_from_the_first_end_then(world: World) -> None:
    values = FIRST_VALUES.at("v1")
    for value in "ab":
        await values.use(world.valkey, value, now=world.now)
        world.clock.advance(25)
    refused = await values.use(world.valkey, "c", now=world.now)
    assert not refused.allowed
    world.clock.advance(refused.retry_after_seconds)
    assert (await values.use(world.valkey, "c", now=world.now)).allowed


async def test_different_guesses_get_slow_and_the_same_one_stays_free(world: World) -> None:
    guesses = GUESSES.at("jti_1")
    told = [(await guesses.use(world.valkey, value, now=world.now, lasts_seconds=1000)).allowed for value in "abaca"]
    assert told == [True] * 5
    refused = await guesses.look(world.valkey, now=world.now)
    assert (refused.allowed, refused.retry_after_seconds) == (False, 60)
    assert not (await guesses.use(world.valkey, "d", now=world.now)).allowed
    assert (await guesses.use(world.valkey, "b", now=world.now)).allowed, "known"
    world.clock.advance(60)
    assert (await guesses.look(world.valkey, now=world.now)).allowed
    assert (await guesses.use(world.valkey, "d", now=world.now, lasts_seconds=940)).allowed
    for _ in range(9):  # one a minute from then on, counted from the newest
        assert (await guesses.use(world.valkey, "e", now=world.now)).allowed is False
        world.clock.advance(6)
    assert await world.raw("ZCARD", world.name(guesses)) == 4
    assert float(await world.raw("ZSCORE", world.name(guesses), "a")) == NOW  # type: ignore[arg-type]
    assert 800_000 < await world.raw("PTTL", world.name(guesses)) <= 940_000  # type: ignore[operator]
    with pytest.raises(DeclarationError, match="longer than"):
        await guesses.use(world.valkey, "x", now=world.now, lasts_seconds=5000)


async def test_spaced_slots_follow_each_other_until_the_row_is_too_long(world: World) -> None:
    told = [await SLOTS.at().use(world.valkey, now=NOW, delay_seconds=7) for _ in range(4)]
    assert [each.starts_at - NOW for each in told] == [7, 12, 17, 22]
    assert [each.allowed for each in told] == [True, True, True, False]
    assert told[3].retry_after_seconds == 2
    assert await world.raw("GET", world.name(SLOTS.at())) == b"1700000015.25"
    assert 5_000 < await world.raw("PTTL", world.name(SLOTS.at())) <= 15_000  # type: ignore[operator]
    assert (await SLOTS.at().use(world.valkey, now=NOW + 2, delay_seconds=7)).starts_at == NOW + 22


async def test_spaced_slots_go_on_from_a_value_of_another_program(world: World) -> None:
    await world.raw("SET", world.name(SLOTS.at()), "1700000010")
    assert (await SLOTS.at().use(world.valkey, now=NOW)).starts_at == 1_700_000_010
    assert await world.raw("GET", world.name(SLOTS.at())) == b"1700000015"


async def test_outside_calls_keep_their_distance_while_waiters_queue(world: World) -> None:
    api = API.at("pexels")
    told = [await api.use(world.valkey, now=world.now) for _ in range(3)]
    assert [each.starts_at - NOW for each in told] == [0, 2, 4]
    world.clock.advance(3)
    assert (await api.use(world.valkey, now=world.now)).starts_at == NOW + 6, "the key did not expire under waiters"
    assert await world.raw("GET", world.name(api)) == b"1700000006.25", "the last call given out"
    refused = await api.use(world.valkey, now=world.now, most_wait_seconds=4)
    assert (refused.allowed, refused.retry_after_seconds) == (False, 1)
    world.clock.advance(refused.retry_after_seconds)
    assert (await api.use(world.valkey, now=world.now, most_wait_seconds=4)).starts_at == NOW + 8, "none was reserved"


async def test_gcra_allows_a_burst_and_then_the_rate(world: World) -> None:
    rate = RATE.at("acme")
    told = [await rate.use(world.valkey, now=world.now) for _ in range(4)]
    assert [(each.allowed, each.remaining) for each in told] == [(True, 2), (True, 1), (True, 0), (False, 0)]
    assert told[3].retry_after_seconds == 10
    assert {each.starts_at for each in told} == {NOW}
    world.clock.advance(10)
    assert [(await rate.use(world.valkey, now=world.now)).allowed for _ in range(2)] == [True, False]
    world.clock.advance(600)
    assert [(await rate.use(world.valkey, now=world.now, cost=cost)).allowed for cost in (2, 2, 1)] == [
        True, False, True]


async def test_gcra_of_a_very_high_rate_allows_exactly_its_burst(world: World) -> None:
    rate = Gcra(Keyspace("x", tag="shop"), "rate:{tenant}", most=1_000_000, per_seconds=60, burst=50, purpose="many")
    async with world.valkey.pipeline(transaction=True) as pipeline:  # its key lives three milliseconds
        told = [rate.at("acme").use(pipeline, now=NOW) for _ in range(51)]
        await pipeline.execute()
    assert [(await each).allowed for each in told] == [True] * 50 + [False]


async def test_a_rate_may_come_with_each_use(world: World) -> None:
    slots = SLOTS.at()
    told = [await slots.use(world.valkey, now=NOW, gap_seconds=gap) for gap in (0.5, 2, None, 1)]
    assert [each.starts_at - NOW for each in told] == [0, 0.5, 2.5, 7.5]
    rate = RATE.at("acme")
    quick = GcraRate(10, 1.0, 2)
    told = [await rate.use(world.valkey, now=NOW, rate=quick) for _ in range(3)]
    assert [(each.allowed, each.remaining) for each in told] == [(True, 1), (True, 0), (False, 0)]
    assert told[2].retry_after_seconds == 0.1
    assert (await rate.use(world.valkey, now=NOW + 0.1, rate=quick)).allowed
    assert GcraRate(5, 1.0).burst == 5
    for wrong, says in (
        (lambda: slots.use(world.valkey, now=NOW, gap_seconds=5.1), "not between nothing and the declared 5"),
        (lambda: slots.use(world.valkey, now=NOW, gap_seconds=0.0), "not between nothing"),
        (lambda: slots.use(world.valkey, now=NOW, gap_seconds=float("nan")), "not between nothing"),
        (lambda: rate.use(world.valkey, now=NOW, rate=GcraRate(1, 31.0)), "at most the declared 30 s"),
        (lambda: rate.use(world.valkey, now=NOW, cost=3, rate=quick), "more than a whole burst"),
        (lambda: GcraRate(0, 1.0), "most must be"),
    ):
        with pytest.raises(DeclarationError, match=says):
            wrong()


async def test_looking_counts_nothing(world: World) -> None:
    for limit in (WINDOW.at("203.0.113.7"), LOG.at("id_1"), VALUES.at("v1"), SLOTS.at(), RATE.at("acme")):
        for _ in range(10):
            assert (await limit.look(world.valkey, now=world.now)).allowed
        assert not await world.raw("EXISTS", world.name(limit))
    for _ in range(3):
        await WINDOW.at("203.0.113.7").use(world.valkey)
    assert not (await WINDOW.at("203.0.113.7").look(world.valkey, now=world.now)).allowed


async def test_several_limits_are_counted_all_or_none(world: World) -> None:
    limits = [WINDOW.at("203.0.113.7"), LOG.at("id_1"), SLOTS.at(), RATE.at("acme"), VALUES.at("v1").rule(NOW, "a")]
    for _ in range(2):
        assert (await check_all(world.valkey, limits, now=world.now)).allowed
    before = await contents(world)
    refused = await check_all(world.valkey, limits, now=world.now)

    assert not refused.allowed
    assert [each.allowed for each in refused.decisions] == [True, False, True, True, True]
    assert refused.retry_after_seconds == 60
    assert await contents(world) == before


async def contents(world: World) -> dict[bytes, object]:
    return {
        world.name(WINDOW.at("203.0.113.7")): await world.raw("GET", world.name(WINDOW.at("203.0.113.7"))),
        world.name(LOG.at("id_1")): await world.raw("ZCARD", world.name(LOG.at("id_1"))),
        world.name(SLOTS.at()): await world.raw("GET", world.name(SLOTS.at())),
        world.name(RATE.at("acme")): await world.raw("GET", world.name(RATE.at("acme"))),
        world.name(VALUES.at("v1")): await world.raw("SCARD", world.name(VALUES.at("v1"))),
    }


async def test_limits_that_cannot_be_checked_together_say_so(world: World) -> None:
    with pytest.raises(DeclarationError, match="twice"):
        await check_all(world.valkey, [RATE.at("a"), RATE.at("a")], now=NOW)
    with pytest.raises(DeclarationError, match="together"):
        await check_all(world.valkey, [TIMES.at()], now=NOW)
    with pytest.raises(DeclarationError, match="got 0"):
        await check_all(world.valkey, [], now=NOW)


async def test_a_limit_is_never_exceeded_by_uses_at_the_same_moment(world: World) -> None:
    window, log, rate = UNITS.at("acme"), LOG.at("id_1"), RATE.at("acme")
    told = await asyncio.gather(*(window.use(world.valkey) for _ in range(300)))
    assert sum(each.allowed for each in told) == 10
    assert sorted(each.remaining for each in told if each.allowed) == list(range(10))
    told = await asyncio.gather(*(log.use(world.valkey, now=NOW) for _ in range(100)))
    assert sum(each.allowed for each in told) == 2
    told = await asyncio.gather(*(rate.use(world.valkey, now=NOW) for _ in range(100)))
    assert sum(each.allowed for each in told) == 3


async def test_uses_of_one_moment_get_each_their_own_answer(world: World) -> None:
    names = [f"203.0.113.{number % 50}" for number in range(200)]
    told = await asyncio.gather(*(WINDOW.at(name).use(world.valkey) for name in names))
    for name in set(names):
        mine = [decision.allowed for decision, whose in zip(told, names, strict=True) if whose == name]
        assert mine == [True, True, True, False]


async def test_a_key_of_another_type_fails_only_its_own_caller(world: World) -> None:
    await world.raw("RPUSH", world.name(WINDOW.at("203.0.113.0")), "not a number")
    asked = [WINDOW.at(f"203.0.113.{number}").use(world.valkey) for number in range(20)]
    told = await asyncio.gather(*asked, return_exceptions=True)
    assert [isinstance(each, ErrorReply) for each in told] == [True] + [False] * 19
    await world.raw("DEL", world.name(WINDOW.at("203.0.113.0")))


async def test_a_cancelled_caller_does_not_take_the_others_along(world: World) -> None:
    tasks = [asyncio.create_task(UNITS.at("acme").use(world.valkey)) for _ in range(8)]  # type: ignore[arg-type]
    await asyncio.sleep(0)
    for task in tasks[:4]:
        task.cancel()
    told = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(each, asyncio.CancelledError) for each in told[:4])
    assert all(each.allowed for each in told[4:])  # type: ignore[union-attr]


async def test_uses_share_a_pipeline_and_a_transaction(world: World) -> None:
    for transaction in (False, True):
        async with world.valkey.pipeline(transaction=transaction) as pipeline:
            first = WINDOW.at("203.0.113.7").use(pipeline)
            second = RATE.at("acme").use(pipeline, now=NOW)
            third = check_all(pipeline, [AGAIN.at("u1"), VALUES.at("v1").rule(NOW, "a")], now=NOW)
            seen = [WINDOW.at("203.0.113.7").look(pipeline, now=NOW), GUESSES.at("j1").look(pipeline, now=NOW)]
            await pipeline.execute()
        assert (await first).allowed and (await second).allowed and (await third).allowed
        assert [(await each).allowed for each in seen] == [True, True]
    assert await world.raw("GET", world.name(WINDOW.at("203.0.113.7"))) == b"2"


@pytest.fixture
def away() -> Iterator[ValkeySettings]:
    yield ValkeySettings(outage_seconds=1.0)


async def test_an_open_limit_lets_through_and_a_closed_one_refuses_while_the_server_is_away(
    fault_proxy, away: ValkeySettings
) -> None:
    proxy = await fault_proxy()
    valkey = await connect(proxy.url, settings=away)
    try:
        await proxy.aclose()
        for told in (
            await WINDOW.at("203.0.113.7").use(valkey, now=NOW),
            await RATE.at("acme").use(valkey, now=NOW),
            await check_all(valkey, [WINDOW.at("203.0.113.7"), RATE.at("acme")], now=NOW),
        ):
            assert (told.allowed, told.degraded) == (True, True)
        told = await asyncio.gather(*(WINDOW.at("203.0.113.7").use(valkey) for _ in range(20)))
        assert all(each.degraded for each in told)
        with pytest.raises(Unavailable):
            await CLOSED.at("203.0.113.7").use(valkey)
        with pytest.raises(Unavailable):
            await API.at("pexels").use(valkey, now=NOW)
        with pytest.raises(Unavailable):
            await check_all(valkey, [WINDOW.at("203.0.113.7"), CLOSED.at("203.0.113.7")], now=NOW)
        async with valkey.pipeline(transaction=False) as pipeline:
            queued = WINDOW.at("203.0.113.7").use(pipeline)
            with pytest.raises(Unavailable):
                await pipeline.execute()
        assert (await queued).degraded
    finally:
        await valkey.aclose()


async def test_a_server_that_does_not_answer_is_away_after_a_second(fault_proxy) -> None:
    proxy = await fault_proxy()
    valkey = await connect(proxy.url)
    try:
        await WINDOW.at("203.0.113.7").use(valkey)
        proxy.drop_replies()
        began = asyncio.get_running_loop().time()
        open_ones = [WINDOW.at("203.0.113.7").use(valkey), RATE.at("acme").use(valkey, now=NOW),
                     check_all(valkey, [WINDOW.at("203.0.113.7"), RATE.at("acme")], now=NOW)]
        told = await asyncio.gather(*open_ones, CLOSED.at("203.0.113.7").use(valkey), return_exceptions=True)
        assert all(each.degraded for each in told[:3])  # type: ignore[union-attr]
        assert isinstance(told[3], Unavailable)
        assert asyncio.get_running_loop().time() - began < 8, "long before the connection counts as dead"
    finally:
        await valkey.aclose()


@pytest.mark.parametrize("make", [
    lambda space: FixedWindow(space, "w", most=0, window_seconds=1, purpose="x"),
    lambda space: FixedWindow(space, "w", most=1, window_seconds=0, purpose="x"),
    lambda space: Cooldown(space, "w", seconds=float("inf"), purpose="x"),
    lambda space: SlidingLog(space, "w", windows=(), purpose="x"),
    lambda space: SlidingLog(space, "w", windows=((1, 60),), kept_seconds=59, purpose="x"),
    lambda space: Gcra(space, "w", most=1, per_seconds=60, burst=0, purpose="x"),
])
def test_a_limit_that_cannot_work_is_refused_when_declared(make) -> None:
    with pytest.raises(DeclarationError):
        make(Keyspace("bad"))
