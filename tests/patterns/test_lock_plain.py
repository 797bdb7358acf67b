"""The plain lock: the value 1, freed only by whoever took it and only in time."""

import asyncio
import math
import time

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule

from keystead.clock import SystemClock
from keystead.engine import Valkey
from keystead.keys import Layout
from keystead.patterns import lock_plain
from keystead.patterns.lock import LockHeld, LockLost
from keystead.patterns.lock_plain import PlainHold, PlainLock

from .lock_room import FACTS, PLAIN, PLAIN_SECONDS, REGISTRY, ROOM, patched
from .machines import ServerMachine, on_both, play

NOW = 1_700_000_000.0
LEASE = PLAIN_SECONDS
BRIEF = PlainLock(ROOM, "brief:{name}:lock", lease_seconds=4.0, purpose="a moment alone", **FACTS)
NEAR_SECONDS = 5.0  # an end so near is brought about, since the server's own time runs on while the test does


async def test_value_is_one_and_it_expires(server: Valkey, no_undeclared_keys) -> None:
    if server.layout is Layout.PLAIN:
        no_undeclared_keys(REGISTRY)
    assert await PLAIN.at("x").try_acquire(server, now=NOW) is not None
    key = PLAIN.at("x").reference.name(server.layout)
    assert await server.get(key) == b"1"
    assert 0 < await server.pttl(key) <= LEASE * 1000
    assert await PLAIN.at("x").try_acquire(server, now=NOW) is None


async def test_freed_by_its_holder_once(server: Valkey) -> None:
    lock = PLAIN.at("x")
    hold = await lock.try_acquire(server, now=NOW)
    assert await lock.release(server, hold, now=NOW + 1) is True
    assert await lock.release(server, hold, now=NOW + 1) is False
    assert await lock.try_acquire(server, now=NOW) is not None


async def test_a_release_that_arrives_late_does_not_free_the_next_holder(server: Valkey) -> None:
    """The holder believed to be in time when it sent the command; the server knows better."""
    lock = PLAIN.at("x")
    first = await lock.try_acquire(server, now=NOW)
    await server.pexpire(lock.reference.name(server.layout), 20)
    async with asyncio.timeout(20):
        while (second := await lock.try_acquire(server, now=NOW)) is None:
            await asyncio.sleep(0.01)
    believing = PlainHold(first.acquired_at, first.ends_ms, math.inf)

    assert await lock.release(server, believing, now=NOW) is False

    assert await server.get(lock.reference.name(server.layout)) == b"1"
    assert await lock.release(server, second, now=NOW) is True


async def test_moves_travel_in_a_pipeline(server: Valkey) -> None:
    lock = PLAIN.at("x")
    hold = await lock.try_acquire(server, now=NOW)
    async with server.pipeline(transaction=False) as pipe:
        freed, taken = lock.release(pipe, hold, now=NOW), lock.try_acquire(pipe, now=NOW)
        await pipe.execute()
    assert await freed is True and await taken is not None


async def test_nothing_is_sent_once_the_time_is_over(valkey: Valkey) -> None:
    lock = PLAIN.at("x")
    hold = await lock.try_acquire(valkey, now=NOW)
    before = valkey.commands_sent
    assert await lock.release(valkey, hold, now=NOW + LEASE) is False
    assert valkey.commands_sent == before


async def test_block_holds_frees_and_refuses(server: Valkey) -> None:
    clock = SystemClock()
    async with PLAIN.at("x").hold(server, clock) as held:
        assert LEASE / 2 < held.remaining_seconds < LEASE
        with pytest.raises(LockHeld):
            async with PLAIN.at("x").hold(server, clock):
                raise AssertionError("two holders")
    assert await server.exists(PLAIN.at("x").reference.name(server.layout)) == 0


async def test_patient_caller_asks_again_until_it_is_freed_or_patience_ends(server: Valkey) -> None:
    lock, clock = PLAIN.at("x"), SystemClock()
    assert await lock.try_acquire(server, now=NOW) is not None
    with pytest.raises(LockHeld):
        async with lock.hold(server, clock, patience_seconds=0.05):
            raise AssertionError("two holders")
    await server.pexpire(lock.reference.name(server.layout), 300)
    async with lock.hold(server, clock, patience_seconds=30) as held:
        assert held.is_held


async def test_block_is_cancelled_before_the_time_is_over(server: Valkey) -> None:
    # A wide margin: the block is cancelled three seconds before the lock ends, so a slow machine can still look.
    lock = BRIEF.at("x")
    with patched(lock_plain, MARGIN=0.75), pytest.raises(LockLost, match="brief:x:lock"):
        async with lock.hold(server, SystemClock()):
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                assert await server.exists(lock.reference.name(server.layout))
                raise


async def test_block_that_never_awaits_is_told_at_its_end(valkey: Valkey) -> None:
    with pytest.raises(LockLost, match="its time ran out before the block ended: brief:x:lock"):
        async with BRIEF.at("x").hold(valkey, SystemClock()):
            time.sleep(BRIEF.lease_seconds + 0.1)


async def test_lock_that_an_operator_made_permanent_is_left_alone(server: Valkey) -> None:
    lock = PLAIN.at("x")
    hold = await lock.try_acquire(server, now=NOW)
    await server.persist(lock.reference.name(server.layout))
    assert await lock.release(server, hold, now=NOW) is False


@on_both
def test_lock_behaves_as_its_model(request: pytest.FixtureRequest, place: str) -> None:
    lock, who = PLAIN.at("x"), st.integers(0, 1)

    class Machine(ServerMachine):
        def __init__(self, url: str, servers: list) -> None:
            super().__init__(url, servers)
            self.holds: dict[int, PlainHold] = {}
            self.holder: PlainHold | None = None

        @rule(who=who)
        def take(self, who: int) -> None:
            hold = self.run(lambda: lock.try_acquire(self.client, now=self.clock.now()))
            assert (hold is not None) == (self.holder is None)
            if hold is not None:
                self.holder = self.holds[who] = hold

        @rule(who=who, times=st.integers(1, 2))
        def release(self, who: int, times: int) -> None:
            for _ in range(times):
                hold = self.holds.get(who)
                if hold is not None:
                    freed = self.run(lambda hold=hold: lock.release(self.client, hold, now=self.clock.now()))
                    assert freed == (hold is self.holder)
                    self.holder = None if freed else self.holder

        @rule(seconds=st.sampled_from([4.0, 20.0, 40.0, 100.0]))
        def time_passes(self, seconds: float) -> None:
            self.clock.advance(seconds)
            if self.holder is not None and self.clock.now() + NEAR_SECONDS >= self.holder.acquired_at + LEASE:
                self.run(lambda: self.client.delete(lock.reference.name(self.client.layout)))
                self.holder = None

    play(request, place, Machine)
