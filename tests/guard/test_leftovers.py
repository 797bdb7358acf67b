"""What is left on servers, whatever client a test used."""

from collections.abc import Iterator
from typing import Any
from unittest.mock import MagicMock, Mock

import pytest
import redis
import redis.asyncio

from keystead.engine import Valkey
from keystead.guard import guarded
from keystead.guard.leftovers import Leftovers, is_client
from keystead.testing.cluster import LocalCluster
from keystead.testing.server import LocalServer

from .shop import SHOP
from .test_clients import port_of


@pytest.fixture
def leftovers() -> Iterator[Leftovers]:
    made = Leftovers(SHOP)
    yield made
    made.close()


def litter(server: LocalServer) -> None:
    server.ensure_running()
    server.call("FLUSHALL")
    server.call("SET", "basket:1", "x")
    server.call("SET", "cart:1", "x")
    server.call("HSET", "cart:2", "a", "b")
    server.call("SET", "session:1", "x")
    server.call("SET", "session:2", "x", "EX", "60")
    server.call("SET", "asynq:x", "x")


WRONG = [
    "basket:1 (string) is not in keystead.toml",
    "cart:1 is a string; cart:{id} is of type hash",
    "session:1 has no expiry; the ttl of session:{token} is 1 h",
]


def test_servers_of_waiting_clients_are_looked_at(valkey_server: LocalServer, leftovers: Leftovers) -> None:
    litter(valkey_server)
    by_port = redis.Redis(port=valkey_server.port)
    by_path = redis.Redis(unix_socket_path=str(valkey_server.socket_path))
    for client in (by_port, by_path, guarded(redis.Redis(port=valkey_server.port), SHOP, strict=True)):
        assert sorted(leftovers.look([client, 7, None]).values()) == WRONG
        client.close()
    assert len(leftovers._twins) == 2, "one connection for one server"


async def test_servers_of_asynchronous_clients_are_looked_at(
        valkey_server: LocalServer, valkey: Valkey, leftovers: Leftovers) -> None:
    litter(valkey_server)
    for client in (redis.asyncio.Redis(port=valkey_server.port), valkey):
        assert sorted(leftovers.look([client]).values()) == WRONG
    await client.aclose()


def test_databases_are_told_apart(valkey_server: LocalServer, leftovers: Leftovers) -> None:
    litter(valkey_server)
    with redis.Redis(port=valkey_server.port, db=3) as client:
        assert leftovers.look([client]) == {}


@pytest.mark.cluster
async def test_clusters_are_looked_at(valkey_cluster: LocalCluster, leftovers: Leftovers) -> None:
    valkey_cluster.heal()
    valkey_cluster.flush()
    client = redis.asyncio.RedisCluster("127.0.0.1", port_of(valkey_cluster))
    for number in range(20):
        await client.set(f"basket:{number}", "x")
        await client.hset(f"cart:{number}", "a", "b")
    assert len(leftovers.look([client])) == 20
    await client.aclose()


def test_imitation_is_asked_itself(leftovers: Leftovers) -> None:
    class Imitation:
        def execute_command(self, *words: Any) -> None: ...
        def scan_iter(self, count: int) -> Iterator[bytes]:
            return iter(())

    assert is_client(Imitation()) and not is_client("x") and not is_client(redis.Redis().pipeline())
    assert leftovers.look([Imitation()]) == {}


def test_server_that_is_away_is_passed_by(leftovers: Leftovers) -> None:
    server = LocalServer()
    server.start()
    client = redis.Redis(port=server.port)
    client.set("basket:1", "x")
    assert len(leftovers.look([client])) == 1
    server.stop()
    assert leftovers.look([client]) == {} and leftovers.look([redis.Redis(port=server.port, db=3)]) == {}


def test_server_that_does_not_let_us_in_is_told(leftovers: Leftovers) -> None:
    server = LocalServer()
    server.start()
    try:
        server.call("CONFIG", "SET", "requirepass", "secret")
        with pytest.raises(redis.exceptions.AuthenticationError):
            leftovers.look([redis.Redis(port=server.port)])
    finally:
        server.stop()


def test_mocks_and_proxies_are_not_touched(leftovers: Leftovers) -> None:
    class Proxy:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError("outside of its context")

    mocks = [Mock(), Mock(spec=redis.Redis), MagicMock(spec=redis.Redis)]
    assert leftovers.look([Proxy(), *mocks]) == {} and not any(mock.mock_calls for mock in mocks)
