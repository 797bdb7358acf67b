"""Opening one connection: what is said at log-in, and what a refusal becomes."""

import asyncio
import socket

import pytest

from keystead.engine.endpoint import Endpoint, open_connection
from keystead.engine.failures import LoginRefused, ServerAway
from keystead.settings import ValkeySettings
from keystead.testing.server import LocalServer
from tests.engine.noise import no_noise
from tests.engine.peers import HELLO, PONG, Talk, answering, read_command, serving

QUICK = ValkeySettings(connect_timeout_seconds=20)


async def opened(url: str, **facts: object) -> None:
    endpoint = Endpoint(port=int(url.rpartition(":")[2]), **facts)  # type: ignore[arg-type]
    connection = await open_connection(endpoint, QUICK, on_lost=lambda *_: None)
    await connection.aclose()


def recording(said: list[list[bytes]], *answers: bytes) -> Talk:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            said.append(await read_command(reader))
            writer.write(answer)

    return talk


async def test_log_in_says_who_we_are_in_one_greeting() -> None:
    said: list[list[bytes]] = []
    async with serving(recording(said, HELLO, b"+OK\r\n", PONG)) as url:
        await opened(url, username="u", password="p w", client_name="n", db=4)
    assert said == [
        [b"HELLO", b"3", b"AUTH", b"u", b"p w", b"SETNAME", b"n"], [b"SELECT", b"4"], [b"PING"],
    ]  # fmt: skip


async def test_log_in_without_secrets_is_short() -> None:
    said: list[list[bytes]] = []
    async with serving(recording(said, HELLO, PONG)) as url:
        await opened(url)
    assert said == [[b"HELLO", b"3"], [b"PING"]]


@pytest.mark.parametrize(
    ("answers", "kind", "says"),
    [
        ([b"-WRONGPASS invalid username-password pair\r\n"], LoginRefused, "refused user default"),
        ([b"-NOPERM this user has no permissions\r\n"], LoginRefused, "does not let user default do what log-in needs"),
        ([b"-ERR something else\r\n"], LoginRefused, "refused the log-in: something else"),
        ([HELLO, b"-LOADING loading\r\n"], ServerAway, "still loading"),
        ([HELLO, b"-MASTERDOWN Link with MASTER is down\r\n"], ServerAway, "replica without its primary"),
        ([HELLO], ServerAway, "the server closed the connection"),
        ([b"-ERR max number of clients reached\r\n"], ServerAway, "max number of clients"),
    ],
)
async def test_each_refusal_has_its_error(answers: list[bytes], kind: type[Exception], says: str) -> None:
    with no_noise():
        async with serving(answering(*answers)) as url:
            with pytest.raises(kind, match=says):
                await opened(url, password="secret")


async def test_replica_is_refused_where_a_primary_is_needed() -> None:
    replica = HELLO.replace(b"%2", b"%3") + b"$4\r\nrole\r\n$7\r\nreplica\r\n"
    async with serving(answering(replica, PONG)) as url:
        with pytest.raises(ServerAway, match="not the primary any more"):
            await opened(url, must_be_primary=True)
        await opened(url)


async def test_missing_database_is_told(valkey_server: LocalServer) -> None:
    endpoint = Endpoint(path=str(valkey_server.socket_path), db=9999)
    with pytest.raises(LoginRefused, match="out of range"):
        await open_connection(endpoint, QUICK, on_lost=lambda *_: None)


async def test_dead_peers_are_looked_for_by_the_kernel(valkey_server: LocalServer) -> None:
    connection = await open_connection(Endpoint(port=valkey_server.port), QUICK, on_lost=lambda *_: None)
    assert connection._transport is not None
    sock = connection._transport.get_extra_info("socket")
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
    await connection.aclose()


def test_display_and_repr_hold_no_secret() -> None:
    endpoint = Endpoint(host="h", port=1, username="u", password="hidden")
    assert endpoint.display == "h:1"
    assert "hidden" not in repr(endpoint)
    assert Endpoint(path="/run/s").display == "/run/s"
