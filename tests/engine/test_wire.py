"""The wire heals itself: it comes back by itself, says why it is away, and never goes mad."""

import asyncio
from typing import Any

import pytest

from keystead.engine import LoginRefused, ServerAway, ServerTooOld, Valkey, connect
from keystead.engine.commands import pack
from keystead.engine.connection import Connection
from keystead.engine.endpoint import Endpoint
from keystead.engine.failures import AnswerLost, NotSent
from keystead.engine.wire import Wire
from keystead.settings import ValkeySettings
from keystead.telemetry import counts
from keystead.testing.proxy import FaultProxy
from keystead.testing.server import LocalServer
from tests.engine.noise import no_noise
from tests.engine.peers import HELLO, PONG, answering, serving

QUICK = ValkeySettings(connect_timeout_seconds=5.0, outage_seconds=0.4)


def deadline(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


def wire_to(*endpoints: Endpoint, settings: ValkeySettings = QUICK, **hooks: Any) -> Wire:
    """A wire that is told another place each time, and the last one from then on."""
    places = list(endpoints)

    async def find() -> Endpoint:
        return places.pop(0) if len(places) > 1 else places[0]

    return Wire(find, settings, **hooks)


@pytest.fixture
def place(valkey_server: LocalServer, valkey: Valkey) -> Endpoint:
    return Endpoint(path=str(valkey_server.socket_path), client_name="wire")


async def test_lost_connection_is_replaced_counted_and_numbered(place: Endpoint) -> None:
    before = counts.value("wire_reconnects")
    wire = wire_to(place)
    await wire.open()
    first = await wire.ready(10, deadline(20))
    assert await first.send(pack(("PING",))) == b"PONG"
    sent = wire.commands
    first.abort("cut")
    assert wire.connection is None
    second = await wire.ready(10, deadline(20))
    assert second is not first
    assert (wire.generation, wire.reconnects, wire.last_problem) == (2, 1, "cut")
    assert counts.value("wire_reconnects") == before + 1
    assert wire.commands > sent, "commands of the past are not forgotten"
    await wire.aclose()


async def test_next_connection_goes_where_the_server_is_now(place: Endpoint, valkey: Valkey) -> None:
    other = Endpoint(path=place.path, client_name="moved")
    wire = wire_to(place, other)
    await wire.open()
    assert wire.connection is not None
    wire.replace(wire.connection, "no longer the primary")
    await wire.ready(0, deadline(20))
    assert {each["name"] for each in await valkey.client_list()} >= {"moved"}
    stranger = wire.connection
    assert stranger is not None
    await wire.aclose()


async def test_replacing_an_old_connection_leaves_the_new_one_alone(place: Endpoint) -> None:
    wire = wire_to(place)
    await wire.open()
    old = wire.connection
    assert old is not None
    old.abort("cut")
    new = await wire.ready(0, deadline(20))
    wire.replace(old, "too late")
    assert wire.connection is new and new.closed_because is None
    await wire.aclose()


async def test_server_away_is_told_with_the_reason_when_time_is_up(tmp_path: Any) -> None:
    wire = wire_to(Endpoint(path=str(tmp_path / "nothing")))
    started = asyncio.get_running_loop().time()
    with pytest.raises(ServerAway, match=r"the server is away: .*nothing cannot be reached: No such file"):
        await wire.ready(0, deadline(0.2))
    assert 0.19 < asyncio.get_running_loop().time() - started < 20
    with pytest.raises(ServerAway):
        await wire.ready(0, deadline(-1))
    await wire.aclose()


async def test_attempts_are_spaced_and_do_not_storm_the_server(tmp_path: Any) -> None:
    attempts = 0

    async def find() -> Endpoint:
        nonlocal attempts
        attempts += 1
        return Endpoint(path=str(tmp_path / "nothing"))

    wire = Wire(find, ValkeySettings(outage_seconds=10))
    results = await asyncio.gather(*(wire.ready(0, deadline(2)) for _ in range(500)), return_exceptions=True)
    assert all(isinstance(each, ServerAway) for each in results)
    assert 2 <= attempts <= 15
    await wire.aclose()


async def test_refused_log_in_is_told_at_once_and_mended_later(valkey_server: LocalServer, valkey: Valkey) -> None:
    valkey_server.call("ACL", "SETUSER", "late", "on", ">right", "~*", "+@all")
    wire = wire_to(Endpoint(path=str(valkey_server.socket_path), username="late", password="right"))
    try:
        await wire.open()
        valkey_server.call("ACL", "SETUSER", "late", "resetpass", ">changed")
        assert wire.connection is not None
        wire.connection.abort("cut")
        started = asyncio.get_running_loop().time()
        with pytest.raises(LoginRefused, match="refused user late"):
            await wire.ready(0, deadline(60))
        assert asyncio.get_running_loop().time() - started < 30, "waiting would not help"
        valkey_server.call("ACL", "SETUSER", "late", "resetpass", ">right")
        async with asyncio.timeout(30):
            while wire.connection is None:
                await asyncio.sleep(0.01)
        assert await (await wire.ready(0, deadline(20))).send(pack(("PING",))) == b"PONG"
    finally:
        await wire.aclose()
        valkey_server.call("ACL", "DELUSER", "late")


async def test_server_that_came_back_too_old_is_told(valkey_server: LocalServer) -> None:
    old = HELLO.replace(b"9.0.0", b"7.0.0")
    async with serving(answering(HELLO, PONG)) as first, serving(answering(old, PONG)) as second:
        wire = wire_to(*(Endpoint(port=int(url.rpartition(":")[2])) for url in (first, second)))
        await wire.open()
        with pytest.raises(ServerTooOld, match=r"valkey 7\.0\.0"):
            while True:
                connection = await wire.ready(0, deadline(20))
                await asyncio.gather(connection.send(pack(("PING",))), return_exceptions=True)
        await wire.aclose()


@pytest.mark.parametrize("problem", [NotSent(), AnswerLost("lost"), OSError("odd"), ServerAway("gone")], ids=repr)
async def test_any_failure_of_setting_up_is_tried_again(place: Endpoint, problem: Exception) -> None:
    problems = [problem, problem]

    async def on_open(connection: Connection) -> None:
        if problems:
            raise problems.pop()

    with no_noise():
        wire = wire_to(place, on_open=on_open)
        connection = await wire.ready(0, deadline(20))
        assert await connection.send(pack(("PING",))) == b"PONG"
        await wire.aclose()


async def test_first_connection_raises_what_is_wrong_at_once(tmp_path: Any) -> None:
    wire = wire_to(Endpoint(path=str(tmp_path / "nothing")))
    with pytest.raises(ServerAway, match="cannot be reached"):
        await wire.open()
    await wire.aclose()


async def test_closing_frees_those_who_wait_and_stops_healing(tmp_path: Any) -> None:
    with no_noise():
        before = asyncio.all_tasks()
        wire = wire_to(Endpoint(path=str(tmp_path / "nothing")))
        waiting = [asyncio.create_task(wire.ready(0, deadline(60))) for _ in range(10)]
        await asyncio.sleep(0.05)
        await wire.aclose()
        async with asyncio.timeout(20):
            for each in await asyncio.gather(*waiting, return_exceptions=True):
                assert isinstance(each, ServerAway) and "closed" in str(each)
        assert asyncio.all_tasks() == before
        await wire.aclose()


async def test_closed_while_opening_leaves_no_connection(place: Endpoint, valkey: Valkey) -> None:
    found = asyncio.Event()

    async def find() -> Endpoint:
        await found.wait()
        return place

    wire = Wire(find, QUICK)
    opening = asyncio.create_task(wire.open())
    await asyncio.sleep(0)
    await wire.aclose()
    found.set()
    with pytest.raises(ServerAway):
        await opening
    assert wire.connection is None
    while any(each["name"] == "wire" for each in await valkey.client_list()):
        await asyncio.sleep(0.005)


async def test_idle_client_is_ready_again_before_anyone_asks(fault_proxy: Any) -> None:
    proxy: FaultProxy = await fault_proxy()
    client = await connect(proxy.url)
    proxy.cut()
    async with asyncio.timeout(30):
        while client._wire.generation < 2:
            await asyncio.sleep(0.005)
    assert await client.ping()
    await client.aclose()
