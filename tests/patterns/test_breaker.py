"""Breaker: closed, open, half open, by count and by share, beside a plain model."""

import asyncio
import time

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule

from keystead.clock import SystemClock
from keystead.engine import Valkey, connect
from keystead.errors import DeclarationError, LimitReached
from keystead.keys import Keyspace, Layout, Registry
from keystead.patterns import breaker as module
from keystead.patterns.breaker import Breaker, BreakerOpen, BreakerState, FailMode, Failures, FailureShare, Permit
from keystead.telemetry import counts
from keystead.testing.clock import MovableClock

from .crash import Died, Mortal
from .lock_room import patched
from .machines import ServerMachine, on_both, play

ROOM = Keyspace("tests.breaker", tag="breaker")
FACTS = {"writers": ("tests",), "readers": ("tests",)}
COUNTED = Breaker(ROOM, "broker_errors", trips=Failures(10, within_seconds=300), probe_seconds=10, rest_seconds=0,
                  purpose="recent failures of the broker", **FACTS)
SHARED = Breaker(ROOM, "sms:{provider}:calls", trips=FailureShare(50, of_calls=20), probe="sms:{provider}:try",
                 probe_seconds=30, purpose="recent calls of a provider", **FACTS)
CLOSING = Breaker(ROOM, "card_errors", trips=Failures(1), fails=FailMode.CLOSED, purpose="failures of the card broker",
                  **FACTS)
RESTING = Breaker(ROOM, "host_errors", trips=Failures(3, within_seconds=600), rest_seconds=600,
                  purpose="recent failures of a host", **FACTS)
REGISTRY = Registry([ROOM])
NOW = 1_700_000_000.0
CLOSED, HALF_OPEN, OPEN = BreakerState.CLOSED, BreakerState.HALF_OPEN, BreakerState.OPEN


async def fail(server: Valkey, breaker, times: int, now: float = NOW) -> BreakerState:
    state = CLOSED
    for number in range(times):
        state = await breaker.record(server, Permit(f"f{now}-{number}", CLOSED), went_well=False, now=now)
    return state


async def test_nine_failures_leave_it_closed_and_ten_open_it(server: Valkey, no_undeclared_keys) -> None:
    if server.layout is Layout.PLAIN:
        no_undeclared_keys(REGISTRY)
    breaker = COUNTED.at()
    assert await fail(server, breaker, 9) is CLOSED
    permit = await breaker.ask(server, now=NOW)
    assert (permit.state, permit.failures, permit.allowed) == (CLOSED, 9, True)
    assert await breaker.record(server, permit, went_well=False, now=NOW) is OPEN
    key = breaker._calls.name(server.layout)
    assert await server.zcard(key) == 10
    assert 300_000 < await server.pttl(key) <= 360_000


async def test_half_open_admits_one_try_and_the_others_are_told_when_to_come_again(server: Valkey) -> None:
    breaker = COUNTED.at()
    await fail(server, breaker, 10)
    permits = [await breaker.ask(server, now=NOW) for _ in range(5)]
    assert [permit.state for permit in permits] == [HALF_OPEN, OPEN, OPEN, OPEN, OPEN]
    assert all(3 < permit.retry_after_seconds <= 10 for permit in permits[1:])


async def test_try_that_goes_well_closes_it(server: Valkey) -> None:
    breaker = COUNTED.at()
    await fail(server, breaker, 10)
    permit = await breaker.ask(server, now=NOW)
    assert await breaker.record(server, permit, went_well=True, now=NOW) is CLOSED
    assert await server.dbsize() == 0
    assert (await breaker.ask(server, now=NOW)).state is CLOSED


async def test_try_that_fails_keeps_it_open_until_the_next(valkey: Valkey, moving_clock: MovableClock) -> None:
    breaker = COUNTED.at()
    await fail(valkey, breaker, 10, moving_clock.now())
    permit = await breaker.ask(valkey, now=moving_clock.now())
    assert await breaker.record(valkey, permit, went_well=False, now=moving_clock.now()) is OPEN
    assert (await breaker.ask(valkey, now=moving_clock.now())).state is OPEN
    moving_clock.advance(10.5)
    assert (await breaker.ask(valkey, now=moving_clock.now())).state is HALF_OPEN


async def test_stray_failure_while_open_does_not_put_off_the_next_try(valkey: Valkey, moving_clock) -> None:
    breaker = SMALL.at()
    await fail(valkey, breaker, 3, moving_clock.now())
    moving_clock.advance(SMALL.probe_seconds)
    await breaker.record(valkey, Permit("slow", CLOSED), went_well=False, now=moving_clock.now())
    assert (await breaker.ask(valkey, now=moving_clock.now())).state is HALF_OPEN


async def test_it_closes_by_itself_when_the_failures_have_left_the_window(server: Valkey) -> None:
    breaker = COUNTED.at()
    await fail(server, breaker, 10)
    assert (await breaker.ask(server, now=NOW + 299)).state is HALF_OPEN
    assert (await breaker.ask(server, now=NOW + 299)).state is OPEN
    assert (await breaker.ask(server, now=NOW + 300)).state is CLOSED


async def test_it_rests_for_its_whole_time_even_when_failures_leave_the_window(server: Valkey) -> None:
    breaker = RESTING.at()
    await fail(server, breaker, 2)
    assert await fail(server, breaker, 1, NOW + 590) is OPEN
    assert await breaker.record(server, Permit("slow", CLOSED), went_well=False, now=NOW + 610) is OPEN
    assert (await breaker.ask(server, now=NOW + 1000)).state is OPEN
    await server.delete(breaker._probe.name(server.layout))  # the rest is over
    assert (await breaker.ask(server, now=NOW + 1300)).state is CLOSED


async def test_late_success_of_a_call_that_was_no_try_closes_nothing(server: Valkey) -> None:
    breaker = COUNTED.at()
    permit = await breaker.ask(server, now=NOW)
    await fail(server, breaker, 10)
    assert await breaker.record(server, permit, went_well=True, now=NOW) is OPEN


async def test_share_of_the_last_calls_opens_it_and_the_first_try_waits(valkey: Valkey, moving_clock) -> None:
    breaker = SHARED.at("twilio")
    for number in range(19):
        permit = Permit(f"c{number}", CLOSED)
        now = moving_clock.now() + number / 1000
        assert await breaker.record(valkey, permit, went_well=number >= 10, now=now) is CLOSED
    last = Permit("c19", CLOSED)
    assert await breaker.record(valkey, last, went_well=True, now=moving_clock.now() + 0.02) is OPEN
    refused = await breaker.ask(valkey, now=moving_clock.now() + 1)
    assert refused.state is OPEN and 15 < refused.retry_after_seconds <= 30
    assert (await SHARED.at("other").ask(valkey, now=moving_clock.now())).state is CLOSED
    moving_clock.advance(31)
    assert (await breaker.ask(valkey, now=moving_clock.now())).state is HALF_OPEN


@pytest.mark.parametrize(("declared", "noted", "went_well"), [(COUNTED, 9, False), (SHARED, 20, True)])
async def test_calls_of_a_clock_that_was_ahead_do_not_count(server: Valkey, declared, noted, went_well) -> None:
    breaker = declared.at() if declared is COUNTED else declared.at("acme")
    for number in range(noted):
        await breaker.record(server, Permit(f"early{number}", CLOSED), went_well=went_well, now=NOW + 86400)
    assert await fail(server, breaker, 9) is CLOSED
    assert (await breaker.ask(server, now=NOW)).failures == 9
    assert await fail(server, breaker, 20, now=NOW + 1) is OPEN


async def test_only_the_last_calls_are_kept(server: Valkey) -> None:
    breaker = SHARED.at("twilio")
    for number in range(50):
        await breaker.record(server, Permit(f"c{number}", CLOSED), went_well=True, now=NOW + number)
    assert await server.zcard(breaker._calls.name(server.layout)) == 20


async def test_call_recorded_twice_counts_once(server: Valkey) -> None:
    breaker = COUNTED.at()
    for _ in range(20):
        state = await breaker.record(server, Permit("same", CLOSED), went_well=False, now=NOW)
    assert state is CLOSED and await server.zcard(breaker._calls.name(server.layout)) == 1


async def test_asking_and_recording_travel_in_a_pipeline(server: Valkey) -> None:
    breaker = COUNTED.at()
    async with server.pipeline(transaction=False) as pipe:
        asked = breaker.ask(pipe, now=NOW)
        noted = breaker.record(pipe, Permit("a", CLOSED), went_well=False, now=NOW)
        await pipe.execute()
    assert (await asked).state is CLOSED and await noted is CLOSED


async def test_block_records_its_end_and_refuses_while_open(server: Valkey) -> None:
    breaker, clock, made = CLOSING.at(), SystemClock(), 0
    with pytest.raises(ZeroDivisionError):
        async with breaker.call(server, clock):
            made += 1
            raise ZeroDivisionError
    with pytest.raises(BreakerOpen, match="card_errors") as refused:
        async with breaker.call(server, clock):
            made += 1
    assert isinstance(refused.value, LimitReached) and refused.value.retry_after_seconds > 3
    assert made == 1


async def test_error_that_is_no_failure_of_the_service_does_not_count(server: Valkey) -> None:
    breaker = CLOSING.at()
    with pytest.raises(KeyError):
        async with breaker.call(server, SystemClock(), failures=(OSError,)):
            raise KeyError
    with pytest.raises(asyncio.CancelledError):
        async with breaker.call(server, SystemClock()):
            raise asyncio.CancelledError
    assert (await breaker.ask(server, now=NOW)).state is CLOSED


async def test_good_call_costs_one_round_trip_where_only_failures_are_kept(valkey: Valkey) -> None:
    async with COUNTED.at().call(valkey, SystemClock()):
        pass
    before = valkey.commands_sent
    async with COUNTED.at().call(valkey, SystemClock()):
        pass
    assert valkey.commands_sent == before + 1


async def test_open_breaker_answers_in_one_round_trip(valkey: Valkey) -> None:
    breaker = COUNTED.at()
    await fail(valkey, breaker, 10)
    assert (await breaker.ask(valkey, now=NOW)).state is HALF_OPEN
    before = valkey.commands_sent
    assert [(await breaker.ask(valkey, now=NOW)).state for _ in range(100)] == [OPEN] * 100
    assert valkey.commands_sent == before + 100


@pytest.mark.parametrize("declared", [COUNTED, CLOSING], ids=["open", "closed"])
async def test_declared_mode_answers_within_a_second_while_the_server_is_away(declared, fault_proxy) -> None:
    proxy = await fault_proxy()
    client = await connect(proxy.url)
    degraded = counts.value("breaker_degraded", breaker=declared.calls.pattern)
    try:
        proxy.half_open()
        began, made = time.monotonic(), 0
        assert module.STORE_WAIT_SECONDS <= 1
        with patched(module, STORE_WAIT_SECONDS=0.2):
            if declared.fails is FailMode.OPEN:
                async with declared.at().call(client, SystemClock()) as permit:
                    made += permit.degraded
            else:
                with pytest.raises(BreakerOpen):
                    async with declared.at().call(client, SystemClock()):
                        made += 1
        assert made == (declared.fails is FailMode.OPEN)
        assert time.monotonic() - began < client.settings.command_timeout_seconds / 2, "not held up by the connection"
        assert counts.value("breaker_degraded", breaker=declared.calls.pattern) == degraded + 1
    finally:
        await proxy.restore()
        await client.aclose()


async def test_crash_of_the_one_who_tries_lets_another_try_later(valkey: Valkey, moving_clock: MovableClock) -> None:
    breaker = COUNTED.at()
    await fail(valkey, breaker, 10, moving_clock.now())
    with pytest.raises(Died):
        await breaker.ask(Mortal(valkey, 1, after=True), now=moving_clock.now())
    assert (await breaker.ask(valkey, now=moving_clock.now())).state is OPEN
    moving_clock.advance(10.5)
    assert (await breaker.ask(valkey, now=moving_clock.now())).state is HALF_OPEN


@pytest.mark.parametrize("trips", [Failures(0), Failures(1, within_seconds=0), FailureShare(0), FailureShare(101),
                                   FailureShare(50, of_calls=1001)])
def test_rules_that_make_no_sense_are_refused(trips) -> None:
    with pytest.raises(DeclarationError, match="errors"):
        Breaker(Keyspace("t", tag="t"), "errors", trips=trips, purpose="x")


# -- a plain model --------------------------------------------------------------------------------------------------


class Model:
    """Calls as a list of (time, went well), until when a try is under way, and until when it rests."""

    def __init__(self, declared: Breaker) -> None:
        self.declared, self.calls, self.trying_until, self.resting_until = declared, [], 0.0, 0.0

    def is_open(self, now: float) -> bool:
        trips = self.declared.trips
        self.calls = [call for call in self.calls if call[0] > now - trips.within_seconds]
        if isinstance(trips, Failures):
            return len(self.calls) >= trips.count
        self.calls = self.calls[-trips.of_calls:]
        failed = sum(not well for _, well in self.calls)
        return len(self.calls) >= trips.of_calls and failed * 100 >= trips.percent * len(self.calls)

    def ask(self, now: float) -> BreakerState:
        if not self.is_open(now) and now >= self.resting_until:
            return CLOSED
        if now < self.trying_until:
            return OPEN
        self.trying_until = now + self.declared.probe_seconds
        return HALF_OPEN

    def record(self, well: bool, probe: bool, now: float) -> BreakerState:
        if well and probe:
            self.calls, self.trying_until, self.resting_until = [], 0.0, 0.0
            return CLOSED
        was_open = self.is_open(now)
        by_share = isinstance(self.declared.trips, FailureShare)
        if not well or by_share:
            self.calls.append((now if by_share else int(now), well))
        opened = self.is_open(now)
        if opened and not was_open and now >= self.trying_until:
            self.trying_until = self.resting_until = now + self.declared.rest_seconds
        return OPEN if opened or now < self.resting_until else CLOSED


# Long times in steps of five: an end is reached or far away, while the server's own clock runs as the test does.
SMALL = Breaker(ROOM, "small_errors", trips=Failures(3, within_seconds=600), probe_seconds=100,
                purpose="failures in the model's test", **FACTS)
SMALL_SHARE = Breaker(ROOM, "small_calls", trips=FailureShare(50, of_calls=4, within_seconds=600), probe_seconds=100,
                      purpose="calls in the model's test", **FACTS)


@on_both
@pytest.mark.parametrize("declared", [SMALL, SMALL_SHARE], ids=["by count", "by share"])
def test_breaker_behaves_as_its_model(request: pytest.FixtureRequest, place: str, declared: Breaker) -> None:
    breaker = declared.at()

    class Machine(ServerMachine):
        def __init__(self, url: str, servers: list) -> None:
            super().__init__(url, servers)
            self.model = Model(declared)
            self.permits: list[Permit] = []

        @rule()
        def ask(self) -> None:
            self.clock.advance(5)
            permit = self.run(lambda: breaker.ask(self.client, now=self.clock.now()))
            assert permit.state is self.model.ask(self.clock.now())
            if permit.allowed:
                self.permits.append(permit)

        @rule(well=st.booleans(), times=st.integers(1, 2), oldest=st.booleans())
        def record(self, well: bool, times: int, oldest: bool) -> None:
            if not self.permits:
                return
            permit = self.permits.pop(0 if oldest else -1)
            self.clock.advance(5)
            expected = self.model.record(well, permit.is_probe, self.clock.now())
            for _ in range(times if not (well and permit.is_probe) else 1):
                state = self.run(lambda: breaker.record(self.client, permit, went_well=well, now=self.clock.now()))
                assert state is expected

        @rule(seconds=st.sampled_from([30.0, 90.0, 110.0, 300.0, 610.0]))
        def time_passes(self, seconds: float) -> None:
            self.clock.advance(seconds)

    play(request, place, Machine, examples=30, steps=30)
