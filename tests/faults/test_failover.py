"""A primary of a cluster dies, hangs, or gives way while the client writes. Counts are printed; run with -s to see."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import cast

import pytest

from keystead.engine import AnswerLost, Valkey, connect
from keystead.engine.cluster import ClusterValkey
from keystead.engine.embedded_process import ValkeyProcess
from keystead.errors import Unavailable
from keystead.settings import ValkeySettings
from keystead.testing.cluster import LocalCluster

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("cluster")]

OUTAGE_SECONDS = 60.0
COMMAND_SECONDS = 5.0


@dataclass
class Tally:
    """What the writers saw."""

    acknowledged: dict[str, int] = field(default_factory=dict)  # the highest number, by writer
    writes: int = 0
    lost: int = 0
    away: int = 0
    short_of_replicas: int = 0
    reads: int = 0
    longest_seconds: float = 0.0
    longest_read_seconds: float = 0.0


@pytest.fixture
async def client(valkey_cluster: LocalCluster) -> AsyncIterator[Valkey]:
    valkey_cluster.heal()
    valkey_cluster.flush()
    settings = ValkeySettings(
        outage_seconds=OUTAGE_SECONDS, command_timeout_seconds=COMMAND_SECONDS, connect_timeout_seconds=2
    )
    client = await connect(valkey_cluster.url, settings=settings)
    yield client
    await client.aclose()


async def write(client: Valkey, name: str, stop: asyncio.Event, tally: Tally) -> None:
    """Write ever higher numbers; each counts as acknowledged when a replica has it."""
    number = 0
    while not stop.is_set():
        number += 1
        started = time.monotonic()
        try:
            async with client.pipeline(transaction=False) as pipe:
                pipe.set(name, number)
                pipe.execute_command("WAIT", 1, 1000)
                replicas = (await pipe.execute())[1]
            if replicas >= 1:
                tally.acknowledged[name] = number
                tally.writes += 1
            else:
                tally.short_of_replicas += 1
        except AnswerLost:
            tally.lost += 1
        except Unavailable:
            tally.away += 1
        tally.longest_seconds = max(tally.longest_seconds, time.monotonic() - started)
        await asyncio.sleep(0.002)


async def read(client: Valkey, name: str, stop: asyncio.Event, tally: Tally) -> None:
    """Harmless commands: no error may be seen, whatever happens to the cluster."""
    while not stop.is_set():
        started = time.monotonic()
        await client.get(name)
        await client.mget(name, "elsewhere", "k1", "k2")
        await client.ping()
        async with client.pipeline(transaction=False) as pipe:
            pipe.get(name).strlen(name)
            await pipe.execute()
        tally.reads += 1
        tally.longest_read_seconds = max(tally.longest_read_seconds, time.monotonic() - started)
        await asyncio.sleep(0.002)


async def first_write(client: Valkey, name: str) -> float:
    """Seconds until a write to this key works."""
    started = time.monotonic()
    while True:
        try:
            await client.set(name, 1)
            return time.monotonic() - started
        except AnswerLost:
            continue


async def test_killed_primary_loses_no_acknowledged_write(client: Valkey, valkey_cluster: LocalCluster) -> None:
    names = [f"writer{number}" for number in range(24)]
    victim = valkey_cluster.primary_of("victim")
    tally, stop = Tally(), asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        for name in names:
            tasks.create_task(write(client, name, stop, tally))
        for number in range(6):
            tasks.create_task(read(client, f"writer{number}", stop, tally))
        await asyncio.sleep(0.3)
        async with asyncio.timeout(30):
            while len(tally.acknowledged) < len(names):
                await asyncio.sleep(0.01)
        before = tally.writes
        victim.kill()
        recovery_seconds = await first_write(client, "victim")
        await asyncio.sleep(0.5)
        stop.set()
    replacement = valkey_cluster.primary_of("victim")
    assert replacement is not victim
    stored = dict(zip(names, await client.mget(names), strict=True))
    print(
        f"\nfailover: recovered after {recovery_seconds:.2f} s; {tally.writes} writes acknowledged "
        f"({before} before), {tally.lost} answers lost, {tally.away} away, "
        f"{tally.short_of_replicas} without replica; {tally.reads} reads, longest {tally.longest_read_seconds:.2f} s"
    )
    missing = {name: number for name, number in tally.acknowledged.items() if int(stored[name] or 0) < number}
    assert missing == {}
    assert len(tally.acknowledged) == len(names)
    assert tally.away == 0
    assert tally.lost <= len(names)  # at most the one that was under way
    assert recovery_seconds < OUTAGE_SECONDS
    assert max(tally.longest_seconds, tally.longest_read_seconds) < OUTAGE_SECONDS + COMMAND_SECONDS

    # The old primary comes back as a replica, and serves again after the next change.
    await _in_thread(valkey_cluster.heal)
    assert valkey_cluster.replica_of(replacement) is victim
    await _in_thread(valkey_cluster.fail_over, replacement)
    assert valkey_cluster.primary_of("victim") is victim
    await client.set("victim", "home again")
    assert victim.call("GET", "victim") == b"home again"
    assert await client.mget(names) == list(stored.values())


async def test_hanging_primary_is_left_when_it_is_replaced(client: Valkey, valkey_cluster: LocalCluster) -> None:
    """A machine that stops answering without closing anything: worse than one that dies."""
    await client.set("victim", "v")
    victim = valkey_cluster.primary_of("victim")
    assert victim.call("WAIT", 1, 20_000, seconds=30) == 1
    _signal(victim, signal.SIGSTOP)
    try:
        started = time.monotonic()
        reads = await asyncio.gather(*(client.get("victim") for _ in range(50)))
        seconds = time.monotonic() - started
        print(f"\nhanging primary: 50 reads answered after {seconds:.2f} s")
        assert reads == [b"v"] * 50
        assert seconds < COMMAND_SECONDS + OUTAGE_SECONDS
        await client.set("victim", "w")
    finally:
        _signal(victim, signal.SIGCONT)
    await _in_thread(valkey_cluster.heal)
    assert await client.get("victim") == b"w"


async def test_orderly_fail_over_is_invisible_to_callers(client: Valkey, valkey_cluster: LocalCluster) -> None:
    """Nothing is killed, so not even commands that must not be repeated may fail, or be done twice."""
    primary = valkey_cluster.primary_of("counter")
    stop = asyncio.Event()

    async def count() -> int:
        done = 0
        while not stop.is_set():
            await client.incr("counter")
            async with client.pipeline(transaction=True) as pipe:
                pipe.incr("counter").incr("counter")
                await pipe.execute()
            done += 3
        return done

    counting = [asyncio.create_task(count()) for _ in range(10)]
    popping = asyncio.create_task(client.blpop(["{counter}list"], timeout=120))
    await asyncio.sleep(0.1)
    await _in_thread(valkey_cluster.fail_over, primary)
    await asyncio.sleep(0.3)
    stop.set()
    assert sum(await asyncio.gather(*counting)) == int(await client.get("counter"))
    assert not popping.done()
    await client.rpush("{counter}list", "x")
    assert await popping == (b"{counter}list", b"x")
    assert valkey_cluster.primary_of("counter") is not primary


async def test_subscriptions_survive_a_killed_primary_without_any_command(
    client: Valkey, valkey_cluster: LocalCluster
) -> None:
    """Nobody sends a command that would notice: the hub itself must."""
    victim = valkey_cluster.primary_of("victim")
    gaps: list[str] = []
    hub = client.hub()
    async with (
        hub.subscribe("plain", sharded=["victim", "{victim}2"], on_gap=lambda: gaps.append("both")) as both,
        hub.subscribe(sharded=["{victim}2"], on_gap=lambda: gaps.append("second")) as second,
    ):
        victim.kill()
        started = time.monotonic()
        async with asyncio.timeout(OUTAGE_SECONDS):
            while second.gaps == 0 or both.gaps == 0:
                await asyncio.sleep(0.02)
        print(f"\nshard channels moved after {time.monotonic() - started:.2f} s")
        assert hub.silent_seconds < COMMAND_SECONDS
        replacement = valkey_cluster.primary_of("victim")
        assert replacement is not victim
        assert replacement.call("SPUBLISH", "{victim}2", "x") == 1
        assert replacement.call("SPUBLISH", "victim", "y") == 1
        assert (await anext(second)).payload == b"x"
        assert sorted([(await anext(both)).payload for _ in range(2)]) == [b"x", b"y"]
        assert second.gaps == 1
        assert both.gaps <= 2  # two if its plain channel was listened to at the killed node
        assert sorted(gaps) == ["both"] * both.gaps + ["second"]


async def test_client_opens_while_a_primary_is_down(valkey_cluster: LocalCluster, client: Valkey) -> None:
    victim = valkey_cluster.primary_of("victim")
    victim.kill()
    fresh = await connect(valkey_cluster.url, settings=ValkeySettings(outage_seconds=OUTAGE_SECONDS))
    try:
        async with fresh.pipeline() as pipe:
            await pipe.watch("victim")  # waits for the replica to take over
            pipe.multi()
            pipe.set("victim", 1)
            assert await pipe.execute() == [True]
        assert await fresh.dbsize() == 1
        assert len(cast(ClusterValkey, fresh).topology.primaries) == 3
    finally:
        await fresh.aclose()


async def test_outage_ends_with_unavailable_in_time(valkey_cluster: LocalCluster, client: Valkey) -> None:
    hasty = await connect(valkey_cluster.url, settings=ValkeySettings(outage_seconds=2))
    victim = valkey_cluster.primary_of("victim")
    replica = valkey_cluster.replica_of(victim)
    replica.call("CONFIG", "SET", "cluster-replica-no-failover", "yes")  # so that the outage lasts
    victim.kill()
    try:
        started = time.monotonic()
        outcomes = await asyncio.gather(
            hasty.get("victim"), hasty.incr("victim"), hasty.flushall(), hasty.blpop(["victim"], timeout=1),
            return_exceptions=True,
        )
        assert time.monotonic() - started < 20
        assert [isinstance(each, Unavailable) for each in outcomes] == [True] * 4
        assert await hasty.ping() is True
    finally:
        replica.call("CONFIG", "SET", "cluster-replica-no-failover", "no")
        await hasty.aclose()
        await _in_thread(valkey_cluster.heal)


async def _in_thread(call: object, *args: object) -> None:
    await asyncio.get_running_loop().run_in_executor(None, call, *args)  # type: ignore[arg-type]


def _signal(node: ValkeyProcess, number: signal.Signals) -> None:
    os.kill(node.pid, number)
