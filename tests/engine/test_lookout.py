"""Looking from where nobody is disturbed: replicas that answer, are in step, and are what they seem."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from keystead.engine import ServerTooOld, Valkey, connect, lookout
from keystead.testing.cluster import LocalCluster
from keystead.testing.server import LocalServer
from tests.engine.peers import HELLO, PONG, answering, serving
from tests.engine.test_sentinel import built_house

PATIENCE_SECONDS = 60.0


@pytest.fixture
def replica(valkey_server: LocalServer) -> Iterator[LocalServer]:
    """A replica of the test server."""
    server = LocalServer({"replicaof": f"127.0.0.1 {valkey_server.port}"})
    valkey_server.ensure_running()
    valkey_server.call("CONFIG", "SET", "repl-diskless-sync-delay", 0)
    server.start()
    try:
        yield server
    finally:
        server.stop()


async def in_step(server: LocalServer) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while b"master_link_status:up" not in server.call("INFO", "replication"):
            await asyncio.sleep(0.02)



async def config_port(node: Valkey) -> int:
    return int((await node.config_get("port"))["port"])


async def test_replica_of_a_single_server_is_preferred(valkey_server: LocalServer, replica: LocalServer) -> None:
    await in_step(replica)
    async with lookout(valkey_server.tcp_url) as look:
        assert look.replicas == 1 and not look.notes
        assert await config_port(look.nodes[0]) == replica.port
    async with lookout(valkey_server.tcp_url, primary=True) as look:
        assert look.replicas == 0
        assert await config_port(look.nodes[0]) == valkey_server.port


async def test_replica_asked_for_by_name_is_used_itself(valkey_server: LocalServer, replica: LocalServer) -> None:
    await in_step(replica)
    async with lookout(replica.tcp_url) as look:
        assert await config_port(look.nodes[0]) == replica.port


async def test_user_who_may_not_ask_for_the_role_finds_replicas_all_the_same(
    valkey_server: LocalServer, replica: LocalServer
) -> None:
    await in_step(replica)
    for server in (valkey_server, replica):
        server.call("ACL", "SETUSER", "looker", "reset", "on", ">pw", "~*", "+@all", "-role")
    try:
        async with lookout(valkey_server.tcp_url.replace("://", "://looker:pw@")) as look:
            assert look.replicas == 1
    finally:
        valkey_server.call("ACL", "DELUSER", "looker")


async def test_replica_that_does_not_let_us_in_is_left_with_a_note(
    valkey_server: LocalServer, replica: LocalServer
) -> None:
    await in_step(replica)
    replica.call("CONFIG", "SET", "requirepass", "secret")
    async with lookout(valkey_server.tcp_url) as look:
        assert look.replicas == 0
        assert await config_port(look.nodes[0]) == valkey_server.port
        assert len(look.notes) == 1 and "a replica cannot be used" in look.notes[0]


async def test_something_else_at_a_replicas_address_is_not_taken_for_it(valkey_server: LocalServer) -> None:
    stranger = LocalServer()
    stranger.start()
    replica = LocalServer({"replicaof": f"127.0.0.1 {valkey_server.port}", "replica-announce-port": stranger.port})
    valkey_server.ensure_running()
    valkey_server.call("CONFIG", "SET", "repl-diskless-sync-delay", 0)
    replica.start()
    try:
        await in_step(replica)
        async with lookout(valkey_server.tcp_url) as look:
            assert look.replicas == 0
            assert "not used" in look.notes[0]
    finally:
        replica.stop()
        stranger.stop()


async def test_sentinels_lead_to_a_replica(tmp_path: Path) -> None:
    with built_house(tmp_path) as house:
        primary = house.primary()
        (replica,) = (server for server in house.servers if server is not primary)
        await in_step(replica)
        async with lookout(house.url) as look:
            assert look.replicas == 1
            assert await config_port(look.nodes[0]) == replica.port


@pytest.mark.cluster
async def test_every_shard_of_a_cluster_has_one_node(cluster: Valkey, valkey_cluster: LocalCluster) -> None:
    async with lookout(valkey_cluster.url) as look:
        ports = {await config_port(node) for node in look.nodes}
    assert ports == {int(str(node.options["port"])) for node in valkey_cluster.replicas()}


@pytest.mark.cluster
async def test_shard_without_a_replica_is_looked_at_on_its_primary(
    cluster: Valkey, valkey_cluster: LocalCluster
) -> None:
    gone = valkey_cluster.replicas()[0]
    gone.kill()
    async with lookout(valkey_cluster.url) as look:
        assert len(look.nodes) == 3 and look.replicas == 2
        assert [note for note in look.notes if "cannot be" in note]
    valkey_cluster.heal()


async def test_old_server_is_looked_at_and_not_worked_with() -> None:
    old = HELLO.replace(b"9.0.0", b"7.2.5")
    async with serving(answering(old, PONG, b"*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n")) as url, lookout(url) as look:
        assert look.nodes[0].facts["version"] == "7.2.5"
    async with serving(answering(old, PONG)) as url:
        with pytest.raises(ServerTooOld):
            await connect(url)
