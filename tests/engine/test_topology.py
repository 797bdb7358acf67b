import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import redis.exceptions

from keystead.engine.commands import pack
from keystead.engine.connect_pool import redis_pool
from keystead.engine.endpoint import Endpoint
from keystead.engine.failures import LoginRefused, ServerAway
from keystead.engine.topology import Topology
from keystead.keys.slots import SLOTS
from keystead.settings import ValkeySettings
from keystead.testing.cluster import LocalCluster
from keystead.testing.proxy import FaultProxy
from keystead.testing.server import free_ports

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("cluster")]

Make = Callable[..., Topology]
MakeProxy = Callable[..., Awaitable[FaultProxy]]


@pytest.fixture
async def make(valkey_cluster: LocalCluster) -> AsyncIterator[Make]:
    made: list[Topology] = []

    def build(*ports: int, **settings: float) -> Topology:
        seeds = [Endpoint(port=port) for port in ports or valkey_cluster.ports]
        topology = Topology(seeds, ValkeySettings(**settings), redis_pool)
        made.append(topology)
        return topology

    valkey_cluster.heal()
    yield build
    for each in made:
        await each.aclose()


async def test_map_covers_every_slot_with_the_three_primaries(make: Make, valkey_cluster: LocalCluster) -> None:
    topology = make()
    await topology.refresh()
    assert len(topology.owners) == SLOTS
    assert None not in topology.owners
    assert {node.endpoint.port for node in topology.primaries} == {
        node.options["port"] for node in valkey_cluster.primaries()
    }


async def test_second_refresh_keeps_the_nodes_and_tells_nobody(make: Make) -> None:
    topology = make()
    told: list[int] = []
    topology.on_change = lambda: told.append(1)
    await topology.refresh()
    before = list(topology.owners)
    await topology.refresh()
    assert topology.owners == before
    assert told == [1]


async def test_silent_node_does_not_hold_up_the_others(
    make: Make, fault_proxy: MakeProxy, valkey_cluster: LocalCluster
) -> None:
    proxy = await fault_proxy(f"valkey://127.0.0.1:{valkey_cluster.ports[0]}")
    proxy.half_open()
    topology = make(proxy.port, valkey_cluster.ports[1], connect_timeout_seconds=120)
    before = asyncio.all_tasks()
    async with asyncio.timeout(20):  # far less than the connect timeout
        await topology.refresh()
    assert len(topology.primaries) == 3
    assert asyncio.all_tasks() == before


async def test_nobody_there_names_every_reason(make: Make) -> None:
    first, second = free_ports(2)
    with pytest.raises(ServerAway, match=rf"127.0.0.1:{first} cannot be reached.*127.0.0.1:{second} cannot be reached"):
        await make(first, second).refresh()


async def test_background_refresh_that_fails_is_remembered_and_not_raised(make: Make) -> None:
    topology = make(free_ports(1)[0])
    topology.refresh_soon()
    async with asyncio.timeout(30):
        while not topology.last_problem:
            await asyncio.sleep(0.01)
    assert "cannot be reached" in topology.last_problem


async def test_wish_during_a_refresh_gets_another_one_after_it(make: Make) -> None:
    topology = make()
    topology.refresh_soon()
    await asyncio.sleep(0)
    topology.refresh_soon()
    topology.refresh_soon()
    async with asyncio.timeout(30):
        while topology.refreshes < 2:
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.3)
    assert topology.refreshes == 2


async def test_node_that_left_the_map_answers_what_was_under_way(make: Make, valkey_cluster: LocalCluster) -> None:
    topology = make()
    await topology.refresh()
    replica = valkey_cluster.replicas()[0]
    node = topology.node_at("127.0.0.1", int(str(replica.options["port"])))
    connection = await node.wire.ready(0, asyncio.get_running_loop().time() + 30)
    slow = connection.send(pack(("DEBUG", "SLEEP", "1")))  # longer than a refresh takes
    await asyncio.sleep(0.05)
    await topology.refresh()
    assert node not in topology.nodes.values()
    assert not slow.done()
    assert await slow == b"OK"
    async with asyncio.timeout(30):
        while not node.wire.closed:
            await asyncio.sleep(0.01)


async def test_closing_ends_a_node_that_is_being_retired(make: Make, valkey_cluster: LocalCluster) -> None:
    topology = make()
    await topology.refresh()
    node = topology.node_at("127.0.0.1", int(str(valkey_cluster.replicas()[0].options["port"])))
    connection = await node.wire.ready(0, asyncio.get_running_loop().time() + 30)
    waiting = connection.send(pack(("DEBUG", "SLEEP", "1")))
    await asyncio.sleep(0.05)
    await topology.refresh()
    await topology.aclose()
    assert node.wire.closed
    assert waiting.exception() is not None


async def test_moved_is_believed_and_checked(make: Make, valkey_cluster: LocalCluster) -> None:
    topology = make()
    await topology.refresh()
    owner = topology.owners[7]
    other = next(node for node in topology.primaries if node is not owner)
    wrong = redis.exceptions.MovedError(f"7 127.0.0.1:{other.endpoint.port}")
    assert topology.moved(wrong, owner) is other
    assert topology.owners[7] is other
    async with asyncio.timeout(30):  # the refresh that follows knows better
        while topology.owners[7] is not owner:
            await asyncio.sleep(0.01)


async def test_redirect_without_host_means_the_one_that_answered(make: Make) -> None:
    topology = make()
    await topology.refresh()
    by = topology.primaries[0]
    node = topology.redirected(redis.exceptions.AskError("7 :7000"), by)
    assert (node.endpoint.host, node.endpoint.port) == ("127.0.0.1", 7000)


async def test_refused_log_in_wins_over_other_reasons(make: Make, valkey_cluster: LocalCluster) -> None:
    ports = [free_ports(1)[0], valkey_cluster.ports[0]]
    seeds = [Endpoint(port=port, username="someone", password="wrong") for port in ports]
    topology = Topology(seeds, ValkeySettings(), redis_pool)
    with pytest.raises(LoginRefused):
        await topology.refresh()
    await topology.aclose()
