"""The leased lock: one holder, in turn, renewed, and told when it is lost."""

import asyncio
import contextlib
import json
import math
import os
import random
import socket
import time

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule

from keystead.clock import SystemClock
from keystead.engine import Valkey
from keystead.errors import DeclarationError
from keystead.keys import Keyspace, Layout
from keystead.patterns import lock_leased, lock_leased_block
from keystead.patterns.lock import LockHeld, LockLost
from keystead.patterns.lock_lease import (
    LeaseHolder,
    LockLease,
    Place,
    has_compare_and_delete,
    new_holder,
    uid_of,
)
from keystead.patterns.lock_leased import LeasedLock
from keystead.telemetry import counts

from .crash import Died, Mortal
from .lock_room import FACTS, LEASE_SECONDS, LEASED, NUMBERED, REGISTRY, SHORT, patched
from .machines import ServerMachine, on_both, play

NOW = 1_700_000_000.25
CLOCK = SystemClock()
NEAR_SECONDS = 4.0  # an end so near is brought about, since the server's own time runs on while the test does


@pytest.fixture(params=["unnumbered", "numbered"])
def lock(request):
    return LEASED.at("x") if request.param == "unnumbered" else NUMBERED.at("x")


async def left_ms(server: Valkey, lock) -> int:
    return await server.pttl(lock.reference.name(server.layout))


async def test_value_says_who_holds_it_and_the_lease_runs(server: Valkey, lock) -> None:
    lease = await lock.try_acquire(server, now=NOW)

    assert isinstance(lease, LockLease)
    found = json.loads(await server.get(lock.reference.name(server.layout)))
    assert found.pop("uid")
    wanted = {"typ": "lock", "host": socket.gethostname(), "pid": str(os.getpid()), "acquired_at": NOW}
    assert found == wanted | ({"fence": 1} if lock.fence else {})
    assert 0 < await left_ms(server, lock) <= LEASE_SECONDS * 1000
    holder = await lock.holder(server)
    assert isinstance(holder, LeaseHolder) and holder.pid == str(os.getpid())


async def test_second_holder_is_refused_until_the_first_frees_it(server: Valkey, lock) -> None:
    first = await lock.try_acquire(server, now=NOW)
    assert await lock.try_acquire(server, now=NOW) is None

    assert await lock.release(server, first, now=NOW) is True
    assert await lock.release(server, first, now=NOW) is False
    assert await lock.try_acquire(server, now=NOW) is not None


async def test_only_the_holder_frees_or_renews(server: Valkey, lock) -> None:
    first = await lock.try_acquire(server, now=NOW)
    await server.delete(lock.reference.name(server.layout))
    second = await lock.try_acquire(server, now=NOW)

    assert await lock.release(server, first, now=NOW) is False
    assert await lock.renew(server, first) is None
    assert await lock.renew(server, second) is not None
    assert await lock.holder(server) is not None


async def test_renewing_gives_the_whole_lease_again(server: Valkey, lock) -> None:
    lease = await lock.try_acquire(server, now=NOW)
    await server.pexpire(lock.reference.name(server.layout), 10_000)

    renewed = await lock.renew(server, lease)

    assert renewed is not None and renewed.ends_at >= lease.ends_at
    assert await left_ms(server, lock) > 15_000
async def test_operations_share_a_round_trip_in_a_pipeline(server: Valkey, lock) -> None:
    async with server.pipeline(transaction=False) as pipe:
        taking = lock.try_acquire(pipe, now=NOW)
        again = lock.try_acquire(pipe, now=NOW)
        await pipe.execute()
    lease = await taking
    assert isinstance(lease, LockLease) and await again is None

    async with server.pipeline(transaction=False) as pipe:
        renewing, freeing = lock.renew(pipe, lease), lock.release(pipe, lease, now=NOW)
        await pipe.execute()
    assert await renewing is not None and await freeing is True
    assert await lock.holder(server) is None


async def test_servers_without_compare_and_delete_use_the_script(server: Valkey) -> None:
    lock = LEASED.at("x")
    with patched(lock_leased, has_compare_and_delete=lambda valkey: False):
        lease = await lock.try_acquire(server, now=NOW)
        assert await lock.release(server, lease, now=NOW) is True
    assert await lock.holder(server) is None


@pytest.mark.parametrize(("facts", "has"), [
    ({"server": "valkey", "version": "9.1.0", "mode": "standalone"}, True),
    ({"server": "valkey", "version": "8.1.3", "mode": "standalone"}, False),
    ({"server": "redis", "version": "9.0.0", "mode": "standalone"}, False),
    ({"server": "valkey", "version": "9.1.0", "mode": "cluster"}, False),
    ({}, False),
])
def test_compare_and_delete_is_used_only_where_every_server_has_it(facts: dict[str, str], has: bool) -> None:
    class Client:
        pass

    client = Client()
    client.facts = facts
    assert [has_compare_and_delete(client) for _ in range(2)] == [has, has]


def test_holders_are_told_apart_by_their_uid() -> None:
    holders = [new_holder() for _ in range(1000)]
    assert len({uid_of(me) for me in holders}) == 1000
    assert json.loads(holders[0] + b"}")["uid"] == uid_of(holders[0])


async def test_waiter_marks_the_lock_and_is_handed_it(server: Valkey, lock, no_undeclared_keys) -> None:
    if server.layout is Layout.PLAIN:
        no_undeclared_keys(REGISTRY)
    with asking_rarely():
        async with lock.hold(server, CLOCK) as held, asyncio.TaskGroup() as group:
            waiting = group.create_task(entered(lock, server))
            await until(lambda: contested(lock, server))
            released = time.monotonic()
            await held._release()
            await waiting
            assert time.monotonic() - released < 10, "woken, not found by asking again"
            held._release = nothing
    assert await server.dbsize() == (1 if lock.fence else 0), "only the counter stays"


async def test_waiters_are_served_in_the_order_they_came(server: Valkey, lock) -> None:
    order: list[int] = []

    async def wait(number: int) -> None:
        async with lock.hold(server, CLOCK, patience_seconds=None):
            order.append(number)
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group, lock.hold(server, CLOCK):
        for number in range(20):
            group.create_task(wait(number))
            await until(lambda want=number + 1: waiters(lock, server, want))
    assert order == list(range(20))
    if lock.fence:
        assert await lock.fence.get(server) == 21


async def test_a_caller_that_does_not_wait_never_slips_in_before_a_waiter(server: Valkey, lock) -> None:
    told_to_leave = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        async with lock.hold(server, CLOCK):
            group.create_task(entered(lock, server, told_to_leave))
            await until(lambda: contested(lock, server))
        assert await lock.try_acquire(server, now=NOW) is None
        told_to_leave.set()


async def test_patience_ends_and_leaves_no_trace(server: Valkey, lock) -> None:
    async with lock.hold(server, CLOCK):
        began = time.monotonic()
        with pytest.raises(LockHeld):
            async with lock.hold(server, CLOCK, patience_seconds=0.2):
                raise AssertionError("two holders")
        assert 0.2 <= time.monotonic() - began < LEASE_SECONDS / 2
        assert await waiters(lock, server, 0)


async def test_lock_that_was_handed_over_has_little_time_until_it_is_confirmed(server: Valkey, lock) -> None:
    me, holder = new_holder(), await lock.try_acquire(server, now=NOW)
    assert lock_leased.HANDOVER_SECONDS == 3
    with patched(lock_leased, HANDOVER_SECONDS=10.0):
        async with server.hub().subscribe(lock.turn_of(me)):
            await lock.ask(server, me, now=NOW)
            await lock.release(server, holder, now=NOW)
            assert 0 < await left_ms(server, lock) <= 10_000
            assert isinstance(await lock.ask(server, me, now=NOW), LockLease)
        assert 10_000 < await left_ms(server, lock) <= LEASE_SECONDS * 1000


async def test_waits_and_refusals_are_counted(server: Valkey, lock) -> None:
    pattern = lock.reference.declaration.pattern
    waits, refusals = counts.value("lock_waits", lock=pattern), counts.value("lock_refusals", lock=pattern)
    waited = counts.value("lock_wait_seconds", lock=pattern)
    async with lock.hold(server, CLOCK):
        for patience in (0, 0.1):
            with pytest.raises(LockHeld):
                async with lock.hold(server, CLOCK, patience_seconds=patience):
                    raise AssertionError("two holders")
    assert counts.value("lock_waits", lock=pattern) == waits + 1
    assert counts.value("lock_refusals", lock=pattern) == refusals + 2
    assert counts.value("lock_wait_seconds", lock=pattern) >= waited + 0.1


async def test_cancelled_waiter_leaves_the_queue_and_a_lock_handed_to_it_goes_on(server: Valkey, lock) -> None:
    me, other = new_holder(), new_holder()
    holder = await lock.try_acquire(server, now=NOW)
    async with server.hub().subscribe(lock.turn_of(me)), server.hub().subscribe(lock.turn_of(other)) as listener:
        assert isinstance(await lock.ask(server, me, now=NOW), Place)
        assert isinstance(await lock.ask(server, other, now=NOW), Place)
        await lock.release(server, holder, now=NOW)  # handed to me, who gives up at this very moment
        assert await lock.leave(server, me, now=NOW) is True
        assert (await listener.get(20)) is not None
        assert isinstance(await lock.ask(server, other, now=NOW), LockLease)


async def test_waiters_that_died_are_passed_over(server: Valkey, lock) -> None:
    holder = await lock.try_acquire(server, now=NOW)
    for _ in range(5):
        assert isinstance(await lock.ask(server, new_holder(), now=NOW), Place)  # nobody listens for these
    with asking_rarely():
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(entered(lock, server))
            await until(lambda: waiters(lock, server, 6))
            began = time.monotonic()
            await lock.release(server, holder, now=NOW)
            await waiting
    assert time.monotonic() - began < 10


async def test_lock_of_a_dead_holder_goes_to_the_waiter_when_its_lease_ends(server: Valkey) -> None:
    lock = LEASED.at("x")
    assert await lock.try_acquire(server, now=NOW) is not None
    await server.pexpire(lock.reference.name(server.layout), 500)  # the rest of its lease
    began = time.monotonic()
    with asking_rarely():
        async with lock.hold(server, CLOCK, patience_seconds=60):
            assert time.monotonic() - began < 10


async def test_hand_over_to_a_waiter_that_dies_ends_by_itself(server: Valkey) -> None:
    lock, dead = LEASED.at("x"), new_holder()
    with patched(lock_leased, HANDOVER_SECONDS=2.0):
        holder = await lock.try_acquire(server, now=NOW)
        async with server.hub().subscribe(lock.turn_of(dead)):
            await lock.ask(server, dead, now=NOW)
            await lock.release(server, holder, now=NOW)
            assert await lock.holder(server) is not None, "handed over"
            async with lock.hold(server, CLOCK, patience_seconds=20):
                pass


async def test_waiter_that_is_cancelled_just_when_it_has_the_lock_gives_it_back(server: Valkey) -> None:
    lock, hub, has_it = LEASED.at("x"), server.hub(), asyncio.Event()
    subscribe = hub.subscribe

    @contextlib.asynccontextmanager
    async def slow_to_leave(channel):
        async with subscribe(channel) as listener:
            yield listener
        has_it.set()
        await asyncio.sleep(60)

    holder = await lock.try_acquire(server, now=NOW)
    with patched(hub, subscribe=slow_to_leave):
        waiting = asyncio.create_task(entered(lock, server))
        await until(lambda: waiters(lock, server, 1))
        await lock.release(server, holder, now=NOW)
        async with asyncio.timeout(20):
            await has_it.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert await lock.holder(server) is None


async def test_held_lock_is_renewed(server: Valkey) -> None:
    lock = LEASED.at("x")
    key = lock.reference.name(server.layout)
    with renewing_often():
        async with lock.hold(server, CLOCK) as held:
            first, ends_ms = held.lease, await server.pexpiretime(key)
            await until(lambda: later_than(ends_ms + 500, server.pexpiretime(key)))
            assert held.is_held
            await until(lambda: later_than(first.ends_at + 0.5, at_once(held.lease.ends_at)))
            assert await lock.try_acquire(server, now=NOW) is None
    assert await lock.holder(server) is None


async def test_lost_lock_cancels_the_block_and_says_so(server: Valkey) -> None:
    lock, reached = LEASED.at("x"), False
    with renewing_often(), pytest.raises(LockLost, match="door:x:lock"):
        async with lock.hold(server, CLOCK):
            await server.delete(lock.reference.name(server.layout))
            await asyncio.sleep(LEASE_SECONDS / 2)
            reached = True
    assert not reached


async def test_lock_taken_by_another_is_not_freed_by_the_loser(server: Valkey) -> None:
    lock, key = LEASED.at("x"), LEASED.at("x").reference.name(server.layout)
    with renewing_often(), pytest.raises(LockLost):
        async with lock.hold(server, CLOCK):
            async with server.pipeline(transaction=True) as pipe:  # no renewal comes between
                pipe.delete(key)
                taking = lock.try_acquire(pipe, now=NOW)
                await pipe.execute()
            other = await taking
            await asyncio.sleep(LEASE_SECONDS / 2)
    assert other is not None
    assert (await lock.holder(server)).uid == uid_of(other.me)


async def test_block_that_never_awaits_can_check(server: Valkey) -> None:
    lock = SHORT.at("x")
    with pytest.raises(LockLost):
        async with lock.hold(server, CLOCK) as held:
            held.check()
            time.sleep(SHORT.lease_seconds + 0.1)
            held.check()


async def test_block_that_never_awaits_is_told_at_its_end(server: Valkey) -> None:
    lock = SHORT.at("x")
    with pytest.raises(LockLost, match="its time ran out before the block ended: gate:x:lock"):
        async with lock.hold(server, CLOCK):
            time.sleep(SHORT.lease_seconds + 0.1)
    with pytest.raises(ZeroDivisionError):
        async with lock.hold(server, CLOCK):
            time.sleep(SHORT.lease_seconds + 0.1)
            raise ZeroDivisionError


async def test_crash_at_any_command_frees_the_lock_within_one_lease(server: Valkey, lock) -> None:
    for at in range(1, 4):
        for after in (False, True):
            await server.flushall()
            mortal = Mortal(server, at, after=after)
            try:
                lease = await lock.try_acquire(mortal, now=NOW)
                await lock.renew(mortal, lease)
                await lock.release(mortal, lease, now=NOW)
            except Died:
                pass
            left = await left_ms(server, lock)
            assert left == -2 or 0 < left <= LEASE_SECONDS * 1000


def test_fence_needs_the_variables_of_its_lock() -> None:
    with pytest.raises(DeclarationError, match="needs its variables"):
        LeasedLock(Keyspace("t", tag="t"), "a:{b}:lock", fence="a:fence", purpose="x", **FACTS)


async def test_never_two_inside_under_random_waits_and_cancellations(server: Valkey, lock) -> None:
    rng, inside, entries, fences = random.Random(5), 0, 0, []

    async def worker() -> None:
        nonlocal inside, entries
        for last in [False] * 5 + [True]:
            patience = 50 if last else rng.choice([0, 0.01, 5])
            try:
                async with asyncio.timeout(None if last else rng.choice([0.001, 0.01, 5, 5])):
                    async with lock.hold(server, CLOCK, patience_seconds=patience) as held:
                        inside += 1
                        assert inside == 1
                        entries += 1
                        fences.append(held.fence)
                        try:
                            await asyncio.sleep(rng.choice([0, 0.001]))
                        finally:
                            inside -= 1
            except (LockHeld, TimeoutError):
                pass

    async with asyncio.timeout(120), asyncio.TaskGroup() as group:
        for _ in range(20):
            group.create_task(worker())
    assert entries >= 20
    if lock.fence:
        assert fences == sorted(set(fences))
    assert await lock.holder(server) is None, "no cancelled attempt left its lock behind"


# -- a plain model --------------------------------------------------------------------------------------------------


class Model:
    """A lock with an end, and a counter."""

    def __init__(self) -> None:
        self.holder: object = None
        self.ends_at = math.inf
        self.number = 0

    def pass_time(self, now: float) -> None:
        if now >= self.ends_at:
            self.holder, self.ends_at = None, math.inf

    def take(self, who: object, now: float) -> bool:
        if self.holder is not None:
            return False
        self.holder, self.ends_at, self.number = who, now + LEASE_SECONDS, self.number + 1
        return True

    def renew(self, who: object, now: float) -> bool:
        if who is None or self.holder != who:
            return False
        self.ends_at = now + LEASE_SECONDS
        return True

    def release(self, who: object) -> bool:
        if who is None or self.holder != who:
            return False
        self.holder, self.ends_at = None, math.inf
        return True


@on_both
@pytest.mark.parametrize("lock", [LEASED.at("x"), NUMBERED.at("x")], ids=["unnumbered", "numbered"])
def test_lock_behaves_as_its_model(request: pytest.FixtureRequest, place: str, lock) -> None:
    """Three processes take, renew and free, twice at times, crash after any step, and let time pass."""
    who = st.integers(0, 2)

    class Machine(ServerMachine):
        def __init__(self, url: str, servers: list) -> None:
            super().__init__(url, servers)
            self.model = Model()
            self.leases: dict[int, LockLease] = {}

        @rule(who=who)
        def take(self, who: int) -> None:
            lease = self.run(lambda: lock.try_acquire(self.client, now=self.clock.now()))
            assert (lease is not None) == self.model.take(lease and lease.me, self.clock.now())
            if lease is not None:
                self.leases[who] = lease
                assert lease.fence == (self.model.number if lock.fence else 0)

        @rule(who=who)
        def crash_after_taking(self, who: int) -> None:
            lease = self.run(lambda: lock.try_acquire(self.client, now=self.clock.now()))
            assert (lease is not None) == self.model.take(lease and lease.me, self.clock.now())

        @rule(who=who, times=st.integers(1, 2))
        def renew(self, who: int, times: int) -> None:
            if lease := self.leases.get(who):
                for _ in range(times):
                    renewed = self.run(lambda: lock.renew(self.client, lease))
                    assert (renewed is not None) == self.model.renew(lease.me, self.clock.now())

        @rule(who=who, times=st.integers(1, 2))
        def release(self, who: int, times: int) -> None:
            if lease := self.leases.get(who):
                for _ in range(times):
                    freed = self.run(lambda: lock.release(self.client, lease, now=self.clock.now()))
                    assert freed == self.model.release(lease.me)

        @rule(seconds=st.sampled_from([5, 10, 15, 25, LEASE_SECONDS + 1]))
        def time_passes(self, seconds: float) -> None:
            self.clock.advance(seconds)
            self.model.pass_time(self.clock.now() + NEAR_SECONDS)
            if self.model.holder is None:
                self.run(lambda: self.client.delete(lock.reference.name(self.client.layout)))

    play(request, place, Machine)


# -- looking on -----------------------------------------------------------------------------------------------------


def asking_rarely():
    """Waiters that only a message, or the end of a lease, makes ask again."""
    return patched(lock_leased_block, ASK_SECONDS=60.0, ASK_AT_LEAST_EVERY_SECONDS=60.0)


def renewing_often():
    """Holders that renew long before they must, so that a slow machine loses nothing."""
    return patched(lock_leased_block, RENEWALS=100)


async def entered(lock, server: Valkey, told_to_leave: asyncio.Event | None = None) -> None:
    async with lock.hold(server, CLOCK, patience_seconds=LEASE_SECONDS * 2):
        if told_to_leave is not None:
            await told_to_leave.wait()


async def at_once(value):
    return value


async def later_than(bound: float, reading) -> bool:
    return await reading > bound


async def nothing() -> None:
    pass


async def contested(lock, server: Valkey) -> bool:
    holder = await lock.holder(server)
    return holder is not None and holder.contested


async def waiters(lock, server: Valkey, want: int) -> bool:
    return await server.zcard(lock._keys()[1].name(server.layout)) == want


async def until(holds) -> None:
    async with asyncio.timeout(20):
        while not await holds():
            await asyncio.sleep(0.002)
