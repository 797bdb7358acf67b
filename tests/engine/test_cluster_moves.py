"""Slots that move while the client works: MOVED, ASK, TRYAGAIN, CLUSTERDOWN. Every move here is a real one."""

import asyncio
from collections.abc import Iterator
from typing import cast

import pytest
import redis.exceptions

from keystead.engine import ServerAway, Valkey, connect
from keystead.engine.cluster import ClusterValkey
from keystead.settings import ValkeySettings
from keystead.telemetry import counts
from keystead.testing.cluster import LocalCluster
from tests.engine.slot_moves import SlotMove, slot_move

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("cluster")]

ONE, TWO, THREE = "{moving}1", "{moving}2", "{moving}3"


@pytest.fixture
def move(cluster: Valkey, valkey_cluster: LocalCluster) -> Iterator[SlotMove]:
    with slot_move(valkey_cluster, ONE) as move:
        yield move


def owner_port(cluster: Valkey, move: SlotMove) -> int:
    node = cast(ClusterValkey, cluster).topology.owners[move.slot]
    assert node is not None
    return node.endpoint.port


async def test_moved_slot_is_followed_once_and_then_known(cluster: Valkey, move: SlotMove) -> None:
    await asyncio.gather(*(cluster.set(f"{{moving}}{number}", number) for number in range(50)))
    move.begin()
    move.carry(*(f"{{moving}}{number}" for number in range(50)))
    move.finish()
    before = counts.value("cluster_redirects")
    for number in range(50):
        assert await cluster.get(f"{{moving}}{number}") == str(number).encode()
    assert counts.value("cluster_redirects") - before == 1
    assert owner_port(cluster, move) == move.target.options["port"]


async def test_slot_on_its_way_is_asked_for_at_both_ends(cluster: Valkey, move: SlotMove) -> None:
    await cluster.set(ONE, "carried")
    await cluster.set(TWO, "stayed")
    move.begin()
    move.carry(ONE)
    assert await cluster.get(ONE) == b"carried"
    assert await cluster.get(TWO) == b"stayed"
    await cluster.set(THREE, "new")
    assert await cluster.get(THREE) == b"new"
    assert sorted(move.target.call("CLUSTER", "GETKEYSINSLOT", move.slot, 10)) == [ONE.encode(), THREE.encode()]
    assert owner_port(cluster, move) == move.source.options["port"]


async def test_pipeline_over_a_slot_on_its_way_keeps_its_order(cluster: Valkey, move: SlotMove) -> None:
    await cluster.set(ONE, 10)
    await cluster.set(TWO, 20)
    move.begin()
    move.carry(ONE)
    async with cluster.pipeline(transaction=False) as pipe:
        for key in (ONE, TWO, THREE, "elsewhere"):
            for _ in range(3):
                pipe.incr(key)
        assert await pipe.execute() == [11, 12, 13, 21, 22, 23, 1, 2, 3, 1, 2, 3]


async def test_pipeline_follows_a_slot_that_moved(cluster: Valkey, move: SlotMove) -> None:
    await cluster.set(ONE, 10)
    move.begin()
    move.carry(ONE)
    move.finish()
    async with cluster.pipeline(transaction=False) as pipe:
        pipe.set("elsewhere", 1)
        pipe.incr(ONE)
        pipe.run_block([("INCR", ONE), ("INCR", ONE)], list)
        pipe.get(ONE)
        assert await pipe.execute() == [True, 11, [12, 13], b"13"]


async def test_transaction_runs_once_wherever_its_keys_are(cluster: Valkey, move: SlotMove) -> None:
    async def transaction(*keys: str) -> list[int]:
        async with cluster.pipeline(transaction=True) as pipe:
            for key in keys:
                pipe.incr(key)
            return await pipe.execute()

    await cluster.set(ONE, 10)
    await cluster.set(TWO, 20)
    move.begin()
    assert await transaction(ONE, TWO) == [11, 21]  # still at the source
    move.carry(ONE)
    assert await transaction(ONE) == [12]  # at the target
    halves = asyncio.create_task(transaction(ONE, TWO))  # half here, half there: has to wait
    await asyncio.sleep(0.1)
    assert not halves.done()
    move.carry(TWO)
    assert await halves == [13, 22]
    move.finish()
    assert await transaction(ONE, TWO) == [14, 23]


async def test_command_over_keys_half_way_waits_until_they_are_together(cluster: Valkey, move: SlotMove) -> None:
    await cluster.set(ONE, "a")
    await cluster.set(TWO, "b")
    move.begin()
    move.carry(ONE)
    union = asyncio.create_task(cluster.mget(ONE, TWO))
    copying = asyncio.create_task(cluster.rename(TWO, ONE))
    await asyncio.sleep(0.1)
    assert not union.done()
    assert not copying.done()
    move.carry(TWO)
    move.finish()
    assert await union in ([b"a", b"b"], [b"b", None])  # before or after the renaming, never half of it
    assert await copying
    assert await cluster.get(ONE) == b"b"


async def test_waiting_for_keys_half_way_ends_with_the_outage_limit(
    valkey_cluster: LocalCluster, cluster: Valkey, move: SlotMove
) -> None:
    client = await connect(valkey_cluster.url, settings=ValkeySettings(outage_seconds=2))
    try:
        await client.set(ONE, "a")
        await client.set(TWO, "b")
        move.begin()
        move.carry(ONE)
        async with asyncio.timeout(30):
            with pytest.raises(ServerAway, match=f"cannot serve slot {move.slot}"):
                await client.mget(ONE, TWO)
    finally:
        await client.aclose()


async def test_blocking_read_moves_along_with_its_slot(
    cluster: Valkey, move: SlotMove, valkey_cluster: LocalCluster
) -> None:
    popping = asyncio.create_task(cluster.blpop([ONE], timeout=60))
    while b"blocked_clients:0" in move.source.call("INFO", "clients"):
        await asyncio.sleep(0.01)
    move.begin()
    move.finish()
    while b"blocked_clients:0" in move.target.call("INFO", "clients"):
        await asyncio.sleep(0.01)
    await cluster.rpush(ONE, "x")
    assert await popping == (ONE.encode(), b"x")


async def test_watch_and_wait_follow_a_slot_that_moved(cluster: Valkey, move: SlotMove) -> None:
    await cluster.set(ONE, 1)
    move.begin()
    move.carry(ONE)
    move.finish()
    async with cluster.pipeline() as pipe:
        await pipe.watch(ONE)
        assert await pipe.get(ONE) == b"1"
        pipe.multi()
        pipe.incr(ONE)
        assert await pipe.execute() == [2]
    other = await connect(f"cluster://127.0.0.1:{move.source.options['port']}")
    try:
        async with other.pipeline(transaction=False) as pipe:
            pipe.incr(ONE)
            pipe.execute_command("WAIT", 1, 2000)
            assert await pipe.execute() == [3, 1]
    finally:
        await other.aclose()


async def test_wait_pipeline_follows_moved_and_ask(cluster: Valkey, move: SlotMove) -> None:
    async def write(key: str) -> list[int]:
        async with cluster.pipeline(transaction=False) as pipe:
            pipe.incr(key)
            pipe.incr(key)
            pipe.execute_command("WAIT", 1, 2000)
            return await pipe.execute()

    assert await write(ONE) == [1, 2, 1]
    move.begin()
    move.carry(ONE)
    assert await write(ONE) == [3, 4, 1]
    move.finish()
    assert await write(ONE) == [5, 6, 1]


async def test_watched_keys_that_move_before_exec_count_as_changed(cluster: Valkey, move: SlotMove) -> None:
    async with cluster.pipeline() as pipe:
        await pipe.watch(ONE)
        move.begin()
        move.finish()
        pipe.multi()
        pipe.incr(ONE)
        with pytest.raises(redis.exceptions.WatchError):
            await pipe.execute()
    assert await cluster.get(ONE) is None


async def test_counters_are_exact_while_their_slot_moves_under_load(cluster: Valkey, move: SlotMove) -> None:
    keys = [f"{{moving}}{number}" for number in range(20)]
    stop = asyncio.Event()

    async def writer(place: int) -> int:
        done = 0
        while not stop.is_set():
            key = keys[place % len(keys)]
            if place % 3 == 0:
                await cluster.incr(key)
                done += 1
            elif place % 3 == 1:
                async with cluster.pipeline(transaction=False) as pipe:
                    pipe.incr(key).incr(key).get("elsewhere")
                    await pipe.execute()
                done += 2
            else:
                done += await cluster.run_block([("INCR", key), ("INCR", key)], len)
            await asyncio.sleep(0)
        return done

    writers = [asyncio.create_task(writer(place)) for place in range(30)]
    await asyncio.sleep(0.1)
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, move.begin)
    for key in keys:
        await loop.run_in_executor(None, move.carry, key)
        await asyncio.sleep(0.005)
    await loop.run_in_executor(None, move.finish)
    await asyncio.sleep(0.1)
    stop.set()
    acknowledged = sum(await asyncio.gather(*writers))
    assert sum(int(value or 0) for value in await cluster.mget(keys)) == acknowledged
    assert owner_port(cluster, move) == move.target.options["port"]


async def test_slot_that_nobody_serves_is_waited_for(
    cluster: Valkey, valkey_cluster: LocalCluster, move: SlotMove
) -> None:
    hasty = await connect(valkey_cluster.url, settings=ValkeySettings(outage_seconds=2))
    move.source.call("CLUSTER", "DELSLOTS", move.slot)
    try:
        with pytest.raises(ServerAway, match=f"cannot serve slot {move.slot}"):
            await hasty.set(ONE, 1)
        writing = asyncio.create_task(cluster.set(ONE, 1))
        await asyncio.sleep(0.1)
        assert not writing.done()
    finally:
        move.source.call("CLUSTER", "ADDSLOTS", move.slot)
        await hasty.aclose()
    assert await writing is True
    assert await cluster.get(ONE) == b"1"


async def test_wait_in_a_pipeline_that_lost_its_node_counts_as_unavailable(
    cluster: Valkey, valkey_cluster: LocalCluster
) -> None:
    """What stood before the wait was run, so the whole cannot be sent on; rooms try again when told Unavailable."""

    async def write_and_wait() -> None:
        async with cluster.pipeline(transaction=False) as pipe:
            pipe.set("{a}sign", 1)
            pipe.execute_command("BLMOVE", "{a}queue", "{a}hands", "LEFT", "RIGHT", 60)
            pipe.exists("{a}paused")
            await pipe.execute()

    waiting = asyncio.create_task(write_and_wait())
    primary = valkey_cluster.primary_of("{a}queue")
    while b"blocked_clients:1" not in bytes(primary.call("INFO", "clients")):
        await asyncio.sleep(0.01)
    await asyncio.to_thread(valkey_cluster.fail_over, primary)
    with pytest.raises(ServerAway, match="went out of service"):
        await waiting
    assert await cluster.get("{a}sign") == b"1"
