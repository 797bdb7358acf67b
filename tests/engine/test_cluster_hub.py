import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from keystead.engine import CutOff, ServerAway, Valkey, connect
from keystead.engine.cluster import ClusterValkey
from keystead.engine.cluster_hub import ClusterHub
from keystead.engine.listener import Listener
from keystead.keys import TEXT, Channel, Keyspace
from keystead.settings import ValkeySettings
from keystead.telemetry import counts
from keystead.testing.cluster import LocalCluster
from tests.engine.slot_moves import slot_move

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("cluster")]

CHANNELS = [f"shard{number}" for number in range(20)]  # they lie on all three primaries
ROOM = Channel(Keyspace("social.chat", tag="chat:{room}"), "chat:event:{room}", TEXT, purpose="what is said")


def shard_subscribers(cluster: LocalCluster, *channels: str) -> list[int]:
    """How many connections listen to each channel, over all nodes."""
    replies = [node.call("PUBSUB", "SHARDNUMSUB", *channels) for node in cluster.nodes if node.running]
    return [sum(int(reply[place * 2 + 1]) for reply in replies) for place in range(len(channels))]


async def until(holds: Callable[[], bool], seconds: float = 30) -> None:
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.01)


async def heard(listener: Listener, publish: Callable[[], Awaitable[object]], seconds: float = 30) -> bytes:
    """Publish until something arrives: while a subscription moves, messages may be lost."""
    async with asyncio.timeout(seconds):
        while True:
            await publish()
            message = await listener.get(0.05)
            if message is not None:
                return message.payload


async def test_shard_channels_of_all_nodes_and_plain_ones_come_to_one_listener(
    cluster: Valkey, valkey_cluster: LocalCluster
) -> None:
    async with cluster.hub().subscribe("plain", patterns=["p:*"], sharded=CHANNELS) as listener:
        for channel in CHANNELS:
            assert await cluster.execute_command("SPUBLISH", channel, channel) == 1
        got = sorted([(await anext(listener)).payload.decode() for _ in CHANNELS])
        assert got == sorted(CHANNELS)
        await cluster.publish("plain", "x")
        assert (await anext(listener)).payload == b"x"
        await cluster.publish("p:1", "y")
        assert (await anext(listener)).pattern == b"p:*"
        assert cluster.hub().listeners == 1
        assert cluster.hub().silent_seconds < 5
    await until(lambda: shard_subscribers(valkey_cluster, *CHANNELS) == [0] * len(CHANNELS))
    assert cluster.hub().listeners == 0


async def test_declared_channels_are_sharded_and_decoded(cluster: Valkey) -> None:
    rooms = [ROOM.at(str(number)) for number in range(10)]
    async with cluster.hub().subscribe(*rooms) as listener:
        for room in rooms:
            assert await room.publish(cluster, f"in {room.arguments['room']}") == 1
        got = sorted([(await anext(listener)).decode(rooms[0]) for _ in rooms])
        assert got == sorted(f"in {number}" for number in range(10))


async def test_subscription_moves_along_with_its_slot(cluster: Valkey, valkey_cluster: LocalCluster) -> None:
    gaps: list[int] = []
    hub = cluster.hub()
    with slot_move(valkey_cluster, "{moving}a") as move:
        async with (
            hub.subscribe(sharded=["{moving}a", "{moving}b"], on_gap=lambda: gaps.append(1)) as first,
            hub.subscribe(sharded=["{moving}a"]) as second,
            hub.subscribe("plain", sharded=["elsewhere"]) as third,
        ):
            move.begin()
            move.finish()
            await until(lambda: first.gaps == 1 and second.gaps == 1)
            assert int(move.target.call("PUBSUB", "SHARDNUMSUB", "{moving}a")[1]) == 1
            assert await cluster.execute_command("SPUBLISH", "{moving}a", "x") == 1
            assert await cluster.execute_command("SPUBLISH", "{moving}b", "y") == 1
            assert [(await anext(first)).payload for _ in range(2)] == [b"x", b"y"]
            assert (await anext(second)).payload == b"x"
            on_change = cast(ClusterValkey, cluster).topology.on_change
            assert on_change is not None
            on_change()  # nothing is on its way any more, so nobody is told again
            await asyncio.sleep(0.1)
            assert (first.gaps, second.gaps, third.gaps) == (1, 1, 0)
            assert gaps == [1]
            assert hub.listeners == 3
        await until(lambda: shard_subscribers(valkey_cluster, "{moving}a", "{moving}b") == [0, 0])


async def test_joining_a_slot_that_moved_unseen_follows_it(cluster: Valkey, valkey_cluster: LocalCluster) -> None:
    with slot_move(valkey_cluster, "{moving}a") as move:
        async with cluster.hub().subscribe(sharded=["elsewhere"]):
            move.begin()
            move.finish()
            async with cluster.hub().subscribe(sharded=["{moving}a"]) as listener:
                assert await cluster.execute_command("SPUBLISH", "{moving}a", "x") == 1
                assert (await anext(listener)).payload == b"x"
                assert listener.gaps == 0


async def test_leaving_and_coming_back_at_once_is_no_move(cluster: Valkey, valkey_cluster: LocalCluster) -> None:
    """The server's word that we left arrives when we are back already, and must not be taken for news."""
    for _ in range(20):
        async with cluster.hub().subscribe(sharded=["shard1"]):
            pass
        async with cluster.hub().subscribe(sharded=["shard1"]) as listener:
            assert await cluster.execute_command("SPUBLISH", "shard1", "x") == 1
            assert (await anext(listener)).payload == b"x"
            assert listener.gaps == 0
    assert cluster.hub().silent_seconds < 5
    await until(lambda: shard_subscribers(valkey_cluster, "shard1") == [0])


async def test_subscriptions_move_to_the_replica_that_takes_over(
    cluster: Valkey, valkey_cluster: LocalCluster
) -> None:
    primary = valkey_cluster.primary_of("shard1")
    async with cluster.hub().subscribe("plain", sharded=CHANNELS) as listener:
        await asyncio.get_running_loop().run_in_executor(None, valkey_cluster.fail_over, primary)
        replica = valkey_cluster.primary_of("shard1")
        assert replica is not primary
        await cluster.set("shard1", "a command that learns of the change")
        await until(lambda: shard_subscribers(valkey_cluster, *CHANNELS) == [1] * len(CHANNELS))
        await until(lambda: int(replica.call("PUBSUB", "SHARDNUMSUB", "shard1")[1]) == 1)
        for channel in CHANNELS:
            assert await heard(listener, lambda channel=channel: cluster.execute_command("SPUBLISH", channel, "x"))
        while await listener.get(0.05) is not None:
            pass
        await cluster.publish("plain", "y")
        assert (await anext(listener)).payload == b"y"


async def test_slow_listener_of_several_nodes_is_cut_off_from_all(
    cluster: Valkey, valkey_cluster: LocalCluster
) -> None:
    hub = cluster.hub()
    before = counts.value("hub_messages_dropped")
    async with hub.subscribe(sharded=CHANNELS, most_messages=50) as slow, hub.subscribe(sharded=CHANNELS[:1]) as quick:
        for number in range(400):
            await cluster.execute_command("SPUBLISH", CHANNELS[number % len(CHANNELS)], number)
        with pytest.raises(CutOff) as cut:
            await anext(slow)
        assert cut.value.dropped == 51
        assert counts.value("hub_messages_dropped") - before == 51
        assert [int((await anext(quick)).payload) for _ in range(20)] == list(range(0, 400, 20))
    await until(lambda: shard_subscribers(valkey_cluster, *CHANNELS) == [0] * len(CHANNELS))


async def test_cancelled_while_entering_leaves_nothing_behind(
    cluster: Valkey, valkey_cluster: LocalCluster
) -> None:
    async def enter() -> None:
        async with cluster.hub().subscribe("plain", sharded=CHANNELS):
            entered.append(1)

    entered: list[int] = []
    for turns in range(0, 60, 3):
        task = asyncio.create_task(enter())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert cluster.hub().listeners == 0
    await until(lambda: shard_subscribers(valkey_cluster, *CHANNELS) == [0] * len(CHANNELS))
    await until(lambda: all(node.call("PUBSUB", "NUMSUB", "plain")[1] == 0 for node in valkey_cluster.primaries()))


async def test_channel_whose_slot_nobody_serves_is_refused_in_time(
    cluster: Valkey, valkey_cluster: LocalCluster
) -> None:
    client = await connect(valkey_cluster.url, settings=ValkeySettings(outage_seconds=2.0))
    with slot_move(valkey_cluster, "{moving}a") as move:
        move.source.call("CLUSTER", "DELSLOTS", move.slot)
        try:
            async with asyncio.timeout(30):
                with pytest.raises(ServerAway):
                    async with client.hub().subscribe(sharded=["{moving}a"]):
                        pass
            assert client.hub().listeners == 0
        finally:
            move.source.call("CLUSTER", "ADDSLOTS", move.slot)
            await client.aclose()


async def test_closing_the_client_ends_iteration(valkey_cluster: LocalCluster) -> None:
    valkey_cluster.heal()
    client = await connect(valkey_cluster.url)
    async with client.hub().subscribe("plain", sharded=CHANNELS) as listener:
        await client.aclose()
        async with asyncio.timeout(30):
            assert [message async for message in listener] == []
    with pytest.raises(ServerAway, match="closed"):
        async with client.hub().subscribe(sharded=["x"]):
            pass


async def test_slot_that_moves_while_a_listener_enters_is_not_forgotten(
    cluster: Valkey, valkey_cluster: LocalCluster
) -> None:
    """Its first channel is confirmed and moves away while the second is still being asked for."""
    proceed = asyncio.Event()
    hub = cast(ClusterHub, cluster.hub())
    settle = hub._settle

    async def settle_slowly(listener: Listener, name: bytes) -> None:
        if name == b"elsewhere":
            await proceed.wait()
        await settle(listener, name)

    hub._settle = settle_slowly  # type: ignore[method-assign]

    async def listen() -> bytes:
        async with hub.subscribe(sharded=["{moving}a", "elsewhere"]) as listener:
            entered.set()
            return (await anext(listener)).payload

    entered = asyncio.Event()
    with slot_move(valkey_cluster, "{moving}a") as move:
        listening = asyncio.create_task(listen())
        await until(lambda: shard_subscribers(valkey_cluster, "{moving}a") == [1])
        move.begin()
        move.finish()
        await until(lambda: move.target.call("PUBSUB", "SHARDNUMSUB", "{moving}a")[1] == 1)
        proceed.set()
        await entered.wait()
        assert await cluster.execute_command("SPUBLISH", "{moving}a", "x") == 1
        async with asyncio.timeout(30):
            assert await listening == b"x"


async def test_cluster_hub_is_as_silent_as_the_most_silent_node(cluster: Valkey, valkey_cluster: LocalCluster) -> None:
    """One node does not answer for a while; the others are heard all the time."""
    hub = cluster.hub()
    assert hub.silent_seconds == 0.0, "nothing is listened to, so nothing can be missed"
    async with hub.subscribe(sharded=CHANNELS) as listener:
        valkey_cluster.primary_of(CHANNELS[0]).call("CLIENT", "PAUSE", 3000, "ALL")
        await until(lambda: hub.silent_seconds > 2.0)
        others = [channel for channel in CHANNELS
                  if valkey_cluster.primary_of(channel) is not valkey_cluster.primary_of(CHANNELS[0])]
        assert await cluster.execute_command("SPUBLISH", others[0], "x") == 1
        assert (await anext(listener)).payload == b"x"
        await until(lambda: hub.silent_seconds < 2.0)
        assert listener.gaps == 0
    assert hub.silent_seconds == 0.0
