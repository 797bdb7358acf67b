"""Locks whose holders are killed, stopped or cut off."""

import asyncio
import time

import pytest

from keystead.clock import SystemClock
from keystead.engine import Valkey, connect
from keystead.patterns import lock_leased_block
from keystead.patterns.lock import LockLost
from keystead.patterns.lock_leased_block import LeaseHolding

from ..patterns.lock_room import patched
from .lock_program import ENTRIES, LEASE_SECONDS, LOCK, REPLICATED, STEADY
from .programs import programs

PROGRAM = "tests.faults.lock_program"
CLOCK = SystemClock()
SLACK_SECONDS = 10.0  # a busy machine


async def test_lock_of_a_killed_holder_is_had_within_one_lease(valkey: Valkey, valkey_server) -> None:
    rounds, waits = 3, []
    async with programs(PROGRAM) as start:
        for number in range(1, rounds + 1):
            holder = await start("hold", valkey_server.url)
            fence = int((await holder.hears("held"))[1])
            waiting = asyncio.create_task(_fence_of_next(valkey))
            await _someone_waits(valkey)
            await holder.kill()
            died = time.monotonic()
            assert await waiting == fence + 1 == 2 * number
            waits.append(time.monotonic() - died)
    assert len(waits) == rounds
    assert max(waits) < LEASE_SECONDS + SLACK_SECONDS


async def test_killed_waiters_are_passed_over_and_the_others_keep_their_order(valkey: Valkey, valkey_server) -> None:
    async with programs(PROGRAM) as start:
        async with LOCK.at().hold(valkey, CLOCK) as held:
            waiters = []
            for place in range(1, 6):
                waiters.append(await start("pass", valkey_server.url))
                await waiters[-1].hears("waiting")
                await _someone_waits(valkey, place)
            await waiters[0].kill()
            await waiters[2].kill()
        numbers = [int((await waiters[place].hears("held"))[1]) for place in (1, 3, 4)]
    assert numbers == [held.fence + 1, held.fence + 2, held.fence + 3], "no number was given to a dead one"


async def test_fenced_write_never_lands_after_takeover_of_a_stopped_holder(valkey: Valkey, valkey_server) -> None:
    """Two writers; whichever holds the lock is stopped, the other takes over, the first wakes and writes on."""
    takeovers, refusals = 4, 0
    async with programs(PROGRAM) as start:
        both = [await start("write", valkey_server.url) for _ in range(2)]
        async with asyncio.timeout(60):
            while not any(each.words("held") for each in both):
                await asyncio.sleep(0.01)
        held, other = both if both[0].words("held") else both[::-1]
        for _ in range(takeovers):
            had, refused = len(other.words("held")), len(held.words("refused"))
            await _entry_of(valkey, int(held.words("held")[-1][1]))
            held.stop()
            await other.hears("held", had + 1)
            await _entry_of(valkey, int(other.words("held")[-1][1]))
            held.go_on()
            said = await held.hears("refused", refused + 1)
            refusals += 1
            assert int(said[2]) > 0
            held, other = other, held
    entries = await ENTRIES.at().range(valkey)
    assert refusals == takeovers
    assert entries == sorted(entries), "an entry of an earlier holder lies behind one of a later"
    assert len(set(entries)) >= takeovers + 1


async def test_holder_that_is_cut_off_stops_before_the_lock_can_be_anothers(fault_proxy, valkey: Valkey) -> None:
    """The holder counts on a tenth of its lease here, so that a slow machine can still look at the rest."""
    proxy = await fault_proxy()
    near = await connect(proxy.url)
    try:
        with patched(lock_leased_block, MARGIN=0.9, RENEWALS=100), pytest.raises(LockLost, match="time ran out"):
            async with STEADY.at().hold(near, CLOCK):
                proxy.half_open()
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    assert await STEADY.at().holder(valkey) is not None
                    assert await STEADY.at().try_acquire(valkey, now=CLOCK.now()) is None
                    raise
    finally:
        await proxy.restore()
        await near.aclose()


async def test_short_cuts_do_not_cost_the_lock(fault_proxy, valkey: Valkey) -> None:
    proxy, cuts = await fault_proxy(), 10
    near = await connect(proxy.url)
    try:
        with patched(lock_leased_block, RENEWALS=100):
            holding = STEADY.at().hold(near, CLOCK)
        async with holding as held:
            for _ in range(cuts):
                proxy.cut()
                await _renewed(held)
                assert await STEADY.at().try_acquire(valkey, now=CLOCK.now()) is None
            held.check()
        assert await STEADY.at().holder(valkey) is None
    finally:
        await near.aclose()


async def test_waiter_whose_connection_is_cut_still_gets_its_turn(fault_proxy, valkey: Valkey) -> None:
    proxy = await fault_proxy()
    near = await connect(proxy.url)
    try:
        async with LOCK.at().hold(valkey, CLOCK):
            waiting = asyncio.create_task(_fence_of_next(near))
            await _someone_waits(valkey)
            proxy.cut()
        async with asyncio.timeout(30):
            assert await waiting == 2
    finally:
        await near.aclose()


async def test_held_lock_survives_a_restart_of_the_server(valkey: Valkey, valkey_server) -> None:
    with patched(lock_leased_block, RENEWALS=100):
        holding = STEADY.at().hold(valkey, CLOCK)
    async with holding as held:
        valkey_server.kill()
        valkey_server.restart()
        await _renewed(held)
        held.check()


@pytest.mark.cluster
@pytest.mark.xdist_group("cluster")
async def test_lock_that_a_replica_knows_of_survives_the_loss_of_its_primary(cluster: Valkey, valkey_cluster) -> None:
    """Taken and, with WAIT, known to the replica: still held after the failover, and its number not given again."""
    lock = REPLICATED.at()
    async with cluster.pipeline(transaction=False) as pipe:
        taking = lock.try_acquire(pipe, now=CLOCK.now())
        pipe.execute_command("WAIT", 1, 5000)
        replies = await pipe.execute()
    lease = await taking
    assert lease is not None and replies[-1] >= 1
    victim = valkey_cluster.primary_of(lock.reference.name(cluster.layout))
    victim.kill()

    assert await lock.try_acquire(cluster, now=CLOCK.now()) is None
    renewed = await lock.renew(cluster, lease)
    assert renewed is not None
    assert await lock.release(cluster, renewed, now=CLOCK.now()) is True
    after = await lock.try_acquire(cluster, now=CLOCK.now())
    assert after is not None and after.fence == lease.fence + 1


async def _someone_waits(valkey: Valkey, many: int = 1) -> None:
    async with asyncio.timeout(60):
        while await valkey.zcard(LOCK.waiting.at().name(valkey.layout)) < many:
            await asyncio.sleep(0.01)


async def _renewed(held: LeaseHolding) -> None:
    """Wait until the server has renewed the lease."""
    before = held.lease.ends_at
    async with asyncio.timeout(20):
        while held.lease.ends_at <= before:
            await asyncio.sleep(0.01)


async def _entry_of(valkey: Valkey, fence: int) -> None:
    """Wait until this holder has written."""
    async with asyncio.timeout(30):
        while await ENTRIES.at().range(valkey, -1, -1) != [f"{fence:06}"]:
            await asyncio.sleep(0.005)


async def _fence_of_next(valkey: Valkey) -> int:
    async with LOCK.at().hold(valkey, CLOCK, patience_seconds=60) as held:
        return held.fence
