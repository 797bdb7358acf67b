"""Leaders that are killed or stopped: another takes over in time, and nothing of the earlier one lands afterwards."""

import asyncio
import time

from keystead.engine import Valkey, connect
from keystead.patterns.leader import Term

from .lock_program import ENTRIES, LEADER, LEASE_SECONDS
from .programs import Program, programs

PROGRAM = "tests.faults.lock_program"
SLACK_SECONDS = 10.0  # a busy machine


async def leading(instances: list[Program], epoch: int) -> Program:
    """Whoever said that it leads with this epoch, or a later one."""
    async with asyncio.timeout(60):
        while True:
            for instance in instances:
                if any(int(said[1]) >= epoch for said in instance.words("leading")):
                    return instance
            await asyncio.sleep(0.005)


async def entry_of(valkey: Valkey, leader: Program) -> None:
    """Wait until this leader has written."""
    entries = ENTRIES.at().name(valkey.layout)
    async with asyncio.timeout(60):
        while await valkey.lpos(entries, f"{int(leader.words('leading')[-1][1]):06}") is None:
            await asyncio.sleep(0.01)


async def test_killed_leader_is_replaced_within_one_lease(valkey: Valkey, valkey_server) -> None:
    rounds, waits = 3, []
    async with programs(PROGRAM) as start:
        instances = [await start("lead", valkey_server.url) for _ in range(3)]
        for epoch in range(1, rounds + 1):
            leader = await leading(instances, epoch)
            await leader.kill()
            instances.remove(leader)
            died = time.monotonic()
            await leading(instances, epoch + 1)
            waits.append(time.monotonic() - died)
            instances.append(await start("lead", valkey_server.url))
        said = [int(words[1]) for instance in start.started for words in instance.words("leading")]
    assert len(said) == len(set(said)), "no epoch was given twice"
    assert max(waits) < LEASE_SECONDS + SLACK_SECONDS
    entries = await ENTRIES.at().range(valkey)
    assert entries == sorted(entries)


async def test_nothing_of_a_stopped_leader_lands_after_the_takeover(valkey: Valkey, valkey_server) -> None:
    """Each in turn is stopped while leading, replaced, and woken. It must find out by itself and be refused."""
    takeovers, refused = 4, 0
    async with programs(PROGRAM) as start:
        instances = [await start("lead", valkey_server.url) for _ in range(2)]
        for _ in range(takeovers):
            leader = await leading(instances, await LEADER.at().epoch.get(valkey) or 1)
            other = next(each for each in instances if each is not leader)
            followed, led = len(leader.words("followed")), len(other.words("leading"))
            await entry_of(valkey, leader)
            leader.stop()
            await other.hears("leading", led + 1)
            await entry_of(valkey, other)
            leader.go_on()
            said = await leader.hears("followed", followed + 1)
            assert said[2].startswith("refused"), said
            refused += 1
    entries = await ENTRIES.at().range(valkey)
    assert refused == takeovers
    assert entries == sorted(entries), "an entry of an earlier leader lies behind one of a later"
    assert len(set(entries)) >= takeovers + 1


async def test_two_leaders_never_believe_at_once(fault_proxy, valkey: Valkey) -> None:
    """One is cut off again and again; the belief of both is watched all the while."""
    proxy, both, samples = await fault_proxy(), 0, 0
    near = await connect(proxy.url)
    terms: list[Term] = []
    try:
        async with LEADER.at().campaign(near, instance="cut") as cut, \
                LEADER.at().campaign(valkey, instance="well") as well:
            for _ in range(3):
                async with asyncio.timeout(60):
                    while not cut.is_leader:
                        if well.is_leader:
                            await well.resign()
                        await asyncio.sleep(0.005)
                terms.append(cut.term)
                proxy.half_open()
                async with asyncio.timeout(60):
                    while not well.is_leader:
                        both += cut.is_leader and well.is_leader
                        samples += 1
                        await asyncio.sleep(0.001)
                both += cut.is_leader
                terms.append(well.term)
                await proxy.restore()
    finally:
        await near.aclose()
    assert both == 0 and samples > 100
    epochs = [term.epoch for term in terms if term is not None]
    assert epochs == sorted(set(epochs)) and len(epochs) == 6
