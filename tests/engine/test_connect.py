"""From a URL to a client: log-in, TLS, and one clear line for everything that can be wrong."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis.exceptions

from keystead.engine import LoginRefused, ServerAway, ServerTooOld, Valkey, connect
from keystead.errors import Invalid, Unavailable
from keystead.keys.layout import Layout
from keystead.settings import ValkeySettings
from keystead.testing.server import LocalServer, free_ports
from tests.engine.peers import HELLO, PONG, answering, make_certificates, serving, tls_before

QUICK = ValkeySettings(connect_timeout_seconds=1.0, outage_seconds=0.3, command_timeout_seconds=1.0)


@pytest.fixture(scope="module")
def guarded_server() -> Iterator[LocalServer]:
    """A server with a password, and a user who may only read and write keys that begin with app:."""
    server = LocalServer()
    server.start()
    server.call("ACL", "SETUSER", "app", "on", ">app secret", "~app:*", "+@all")
    server.call("ACL", "SETUSER", "reader", "on", ">read", "~*", "+get")
    server.call("ACL", "SETUSER", "default", ">open sesame")
    yield server
    server.process.kill()
    server.stop()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    return make_certificates(tmp_path_factory.mktemp("tls"))


async def problem(url: str) -> Exception:
    with pytest.raises((Unavailable, Invalid)) as caught:
        await connect(url, settings=QUICK)
    message = str(caught.value)
    assert "\n" not in message
    assert "sesame" not in message and "secret" not in message
    return caught.value


async def test_default_user_logs_in_with_the_password(guarded_server: LocalServer) -> None:
    valkey = await connect(f"valkey://:open%20sesame@127.0.0.1:{guarded_server.port}")
    assert await valkey.acl_whoami() == "default"
    await valkey.aclose()


async def test_acl_user_is_who_the_server_sees_on_every_kind_of_connection(guarded_server: LocalServer) -> None:
    valkey = await connect(f"valkey://app:app%20secret@127.0.0.1:{guarded_server.port}")
    assert await valkey.acl_whoami() == "app"
    with pytest.raises(redis.exceptions.NoPermissionError):
        await valkey.get("other")
    with pytest.raises(redis.exceptions.NoPermissionError):
        await valkey.blpop("other", 1)
    await valkey.rpush("app:list", 1)
    assert await valkey.blpop("app:list", 1) == (b"app:list", b"1")
    async with valkey.pipeline() as pipe:
        await pipe.watch("app:x")
        assert await pipe.execute_command("ACL WHOAMI") == "app"
    async with valkey.client() as own:
        assert await own.acl_whoami() == "app"
    await valkey.aclose()


async def test_user_who_may_not_ping_may_still_do_what_it_may(guarded_server: LocalServer) -> None:
    valkey = await connect(f"valkey://reader:read@127.0.0.1:{guarded_server.port}")
    assert await valkey.get("nothing") is None
    await valkey.aclose()


async def test_database_name_and_layout_come_from_the_caller(valkey_server: LocalServer, valkey: Valkey) -> None:
    other = await connect(f"{valkey_server.tcp_url}/3?client_name=painter", layout=Layout.TAGGED)
    await other.set("here", 1)
    assert await valkey.get("here") is None
    assert other.layout is Layout.TAGGED
    assert valkey.layout is Layout.PLAIN
    async with other.pipeline() as pipe:
        await pipe.watch("here")
        assert await pipe.get("here") == b"1"
    clients = {each["name"]: each for each in await valkey.client_list()}
    assert clients["painter"]["db"] == "3"
    assert clients["painter"]["resp"] == "3"
    assert "keystead" in clients
    await other.aclose()
    valkey_server.call("FLUSHALL")


async def test_facts_tell_server_and_version(valkey: Valkey) -> None:
    assert valkey.facts["server"] in ("valkey", "redis")
    assert int(valkey.facts["version"].split(".")[0]) >= 7
    assert valkey.facts["role"] == "master"


async def test_wrong_password_says_which_user_was_refused(guarded_server: LocalServer) -> None:
    error = await problem(f"valkey://app:nonsense@127.0.0.1:{guarded_server.port}")
    assert isinstance(error, LoginRefused)
    assert isinstance(error, redis.exceptions.AuthenticationError)
    assert "refused user app" in str(error) and "check the user and password" in str(error)
    assert "nonsense" not in str(error)


async def test_missing_password_says_where_to_put_it(guarded_server: LocalServer) -> None:
    error = await problem(f"valkey://127.0.0.1:{guarded_server.port}")
    assert "wants a password" in str(error) and "valkey://user:password@host" in str(error)


async def test_server_that_is_not_there_is_told_at_once() -> None:
    port = free_ports(1)[0]
    started = asyncio.get_running_loop().time()
    error = await problem(f"valkey://127.0.0.1:{port}")
    assert isinstance(error, ServerAway)
    assert f"127.0.0.1:{port} cannot be reached" in str(error)
    assert asyncio.get_running_loop().time() - started < 20


async def test_socket_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert f"{tmp_path}/s cannot be reached" in str(await problem(f"unix://{tmp_path}/s"))


@pytest.mark.parametrize("host", ["no.such.host.invalid", "x" * 70 + ".example"])
async def test_host_name_that_cannot_be_found_is_told(host: str) -> None:
    assert "cannot be reached" in str(await problem(f"valkey://{host}:1"))


async def test_unknown_scheme_lists_the_known_ones() -> None:
    error = await problem("http://localhost")
    assert isinstance(error, Invalid)
    assert "valkey://" in str(error) and "cluster://" in str(error)


@pytest.mark.parametrize(
    ("greeting", "says"),
    [
        (b"-ERR unknown command 'HELLO'\r\n", "older than Redis 6"),
        (HELLO.replace(b"9.0.0", b"7.2.5"), "valkey 7.2.5"),
        (HELLO.replace(b"$6\r\nvalkey", b"$5\r\nredis").replace(b"9.0.0", b"6.2.9"), "redis 6.2.9"),
        (b"*2\r\n$6\r\nserver\r\n$5\r\nredis\r\n", "RESP3"),
    ],
)
async def test_old_server_is_refused_with_what_is_needed(greeting: bytes, says: str) -> None:
    async with serving(answering(greeting, PONG)) as url:
        error = await problem(url)
    assert isinstance(error, ServerTooOld)
    assert says in str(error) and "Valkey 8 or Redis 7" in str(error)


async def test_something_that_is_not_a_server_of_ours_is_told() -> None:
    async def web(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with serving(web) as url:
        assert "not an answer" in str(await problem(url))


async def test_refusal_before_any_question_is_passed_on() -> None:
    async def full(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"-ERR max number of clients reached\r\n")
        await writer.drain()

    async with serving(full) as url:
        assert "max number of clients reached" in str(await problem(url))


async def test_silent_server_is_given_up_after_the_connect_timeout() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(-1)

    async with serving(silent) as url:
        assert "did not answer within 1 s" in str(await problem(url))
        assert "is TLS spoken on this port?" in str(await problem(url.replace("valkey://", "rediss://")))


async def test_loading_server_is_away_and_says_so() -> None:
    async with serving(answering(HELLO, b"-LOADING Valkey is loading the dataset in memory\r\n")) as url:
        error = await problem(url)
    assert isinstance(error, ServerAway)
    assert "still loading" in str(error)


async def test_nothing_is_left_behind_when_connecting_failed(guarded_server: LocalServer) -> None:
    before = asyncio.all_tasks()
    await problem(f"valkey://app:nonsense@127.0.0.1:{guarded_server.port}")
    assert asyncio.all_tasks() == before


# -- TLS -------------------------------------------------------------------------------------------------------------


async def test_tls_carries_everything(
    valkey_server: LocalServer, valkey: Valkey, certificates: tuple[Path, ...]
) -> None:
    authority, certificate, key = certificates
    async with tls_before(valkey_server.socket_path, certificate, key) as port:
        secure = await connect(f"valkeys://127.0.0.1:{port}?ca={authority}")
        big = bytes(range(256)) * 8192
        assert await asyncio.gather(*(secure.echo(f"{n}") for n in range(500))) == [b"%d" % n for n in range(500)]
        await secure.set("big", big)
        assert await secure.get("big") == big
        async with secure.pipeline() as pipe:
            await pipe.watch("big")
            pipe.multi()
            assert await pipe.strlen("big").execute() == [len(big)]
        assert await secure.blpop("none", 0.01) is None
        await secure.aclose()


async def test_tls_certificate_of_a_stranger_is_refused(
    valkey_server: LocalServer, certificates: tuple[Path, ...], tmp_path: Path
) -> None:
    _, certificate, key = certificates
    stranger, _, _ = make_certificates(tmp_path)
    async with tls_before(valkey_server.socket_path, certificate, key) as port:
        assert "CERTIFICATE_VERIFY_FAILED" in str(await problem(f"valkeys://127.0.0.1:{port}?ca={stranger}"))
        trusting = await connect(f"valkeys://127.0.0.1:{port}?verify=no")
        assert await trusting.ping()
        await trusting.aclose()


async def test_tls_client_certificate_is_shown_to_a_server_that_wants_one(
    valkey_server: LocalServer, certificates: tuple[Path, ...]
) -> None:
    authority, certificate, key = certificates
    async with tls_before(valkey_server.socket_path, certificate, key, authority) as port:
        known = await connect(f"valkeys://127.0.0.1:{port}?ca={authority}&cert={certificate}&key={key}")
        assert await known.ping()
        await known.aclose()
        assert isinstance(await problem(f"valkeys://127.0.0.1:{port}?ca={authority}"), ServerAway)


async def test_plain_client_at_a_tls_port_is_told(valkey_server: LocalServer, certificates: tuple[Path, ...]) -> None:
    _, certificate, key = certificates
    async with tls_before(valkey_server.socket_path, certificate, key) as port:
        assert isinstance(await problem(f"valkey://127.0.0.1:{port}"), ServerAway)


async def test_certificate_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "nowhere.pem"
    error = await problem(f"valkeys://127.0.0.1:1?ca={missing}")
    assert isinstance(error, Invalid)
    assert str(missing) in str(error)
