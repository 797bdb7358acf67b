"""Connections of one's own: lent to one borrower at a time, never returned dirty."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from keystead.engine import ServerAway, Valkey, connect
from keystead.engine.commands import pack
from keystead.engine.dedicated import Dedicated
from keystead.engine.endpoint import Endpoint
from keystead.errors import ReplyLost, Unavailable
from keystead.settings import ValkeySettings
from keystead.testing.proxy import FaultProxy
from keystead.testing.server import LocalServer
from tests.engine.noise import no_noise


@pytest.fixture
async def dedicated(valkey_server: LocalServer, valkey: Valkey) -> AsyncIterator[Dedicated]:
    async def find() -> Endpoint:
        return Endpoint(path=str(valkey_server.socket_path), client_name="borrowed")

    dedicated = Dedicated(find, ValkeySettings())
    yield dedicated
    await dedicated.aclose()


async def borrowed(valkey: Valkey) -> int:
    return len([each for each in await valkey.client_list() if each["name"] == "borrowed"])


async def test_connection_is_used_again(dedicated: Dedicated, valkey: Valkey) -> None:
    async with dedicated.borrow() as first:
        assert dedicated.lent == 1
        assert await first.send(pack(("ECHO", "a"))) == b"a"
    async with dedicated.borrow() as second:
        assert second is first
    assert dedicated.lent == 0
    assert await borrowed(valkey) == 1


async def test_borrowers_at_the_same_time_get_different_connections(dedicated: Dedicated, valkey: Valkey) -> None:
    async with dedicated.borrow() as first, dedicated.borrow() as second:
        assert first is not second
    many = [dedicated.borrow() for _ in range(20)]
    connections = [await each.__aenter__() for each in many]
    assert len(set(connections)) == 20
    for each in many:
        await each.__aexit__(None, None, None)
    while await borrowed(valkey) > 8:
        await asyncio.sleep(0.005)


async def test_connection_left_with_an_answer_owed_is_never_lent_again(dedicated: Dedicated, valkey: Valkey) -> None:
    with no_noise():
        with pytest.raises(RuntimeError):
            async with dedicated.borrow() as first:
                unread = first.send(pack(("ECHO", "stale")))
                raise RuntimeError
        assert first.closed_because is not None
        async with dedicated.borrow() as second:
            assert second is not first
            assert await second.send(pack(("ECHO", "fresh"))) == b"fresh"
        await asyncio.gather(unread, return_exceptions=True)


async def test_error_reply_keeps_the_connection(valkey: Valkey) -> None:
    await valkey.set("text", "x")
    for _ in range(5):
        with pytest.raises(Exception, match="WRONGTYPE"):
            await valkey.blpop("text", 1)
    clients = [each for each in await valkey.client_list() if each["name"] == "keystead"]
    assert len(clients) == 2, "the shared one and one of its own"


async def test_idle_connection_that_the_server_closed_is_not_lent(dedicated: Dedicated, valkey: Valkey) -> None:
    async with dedicated.borrow() as first:
        pass
    await valkey.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    while first.closed_because is None:
        await asyncio.sleep(0.001)
    async with dedicated.borrow() as second:
        assert second is not first
        assert await second.send(pack(("PING",))) == b"PONG"


async def test_closing_ends_idle_and_lent_connections_and_refuses_more(dedicated: Dedicated, valkey: Valkey) -> None:
    async with dedicated.borrow():
        pass
    async with dedicated.borrow() as lent:
        waiting = lent.send(pack(("BLPOP", "nothing", 0)))
        await asyncio.sleep(0)
        await dedicated.aclose()
        with pytest.raises(ReplyLost):
            await waiting
    with pytest.raises(ServerAway, match="closed"):
        async with dedicated.borrow():
            pass
    while await borrowed(valkey):
        await asyncio.sleep(0.005)


async def test_connection_that_opens_after_closing_is_dropped(valkey_server: LocalServer, valkey: Valkey) -> None:
    found = asyncio.Event()

    async def find() -> Endpoint:
        await found.wait()
        return Endpoint(path=str(valkey_server.socket_path), client_name="borrowed")

    dedicated = Dedicated(find, ValkeySettings())
    borrowing = asyncio.create_task(dedicated.borrow().__aenter__())
    await asyncio.sleep(0)
    await dedicated.aclose()
    found.set()
    with pytest.raises(ServerAway, match="closed"):
        await borrowing
    while await borrowed(valkey):
        await asyncio.sleep(0.005)


async def test_server_away_is_waited_for_up_to_the_outage_limit(fault_proxy: Any) -> None:
    proxy: FaultProxy = await fault_proxy()

    async def find() -> Endpoint:
        return Endpoint(port=proxy.port)

    dedicated = Dedicated(find, ValkeySettings(outage_seconds=3))
    await proxy.refuse()
    with pytest.raises(ServerAway, match="cannot be reached"):
        async with dedicated.borrow():
            pass
    asyncio.get_running_loop().call_later(0.1, lambda: asyncio.ensure_future(proxy.restore()))
    async with dedicated.borrow() as connection:
        assert await connection.send(pack(("PING",))) == b"PONG"
    await dedicated.aclose()


async def test_blocking_read_on_a_dead_connection_ends_soon_after_its_own_limit(fault_proxy: Any) -> None:
    proxy: FaultProxy = await fault_proxy()
    settings = ValkeySettings(command_timeout_seconds=1.5, connect_timeout_seconds=1.5, outage_seconds=1.5)
    client = await connect(proxy.url, settings=settings)
    assert await client.blpop("list", 0.01) is None
    proxy.half_open()
    started = asyncio.get_running_loop().time()
    with pytest.raises(ReplyLost):
        await client.blpop("list", 0.3)
    assert 1.7 < asyncio.get_running_loop().time() - started < 20
    with pytest.raises(Unavailable):
        async with asyncio.timeout(30):
            await client.xread({"s": "$"}, block=100)
    await proxy.restore()
    assert await client.blpop("list", 0.01) is None
    await client.aclose()


async def test_blocking_read_may_wait_longer_than_a_command(fault_proxy: Any, valkey: Valkey) -> None:
    proxy: FaultProxy = await fault_proxy()
    client = await connect(proxy.url, settings=ValkeySettings(command_timeout_seconds=1.5))
    waiting = asyncio.create_task(client.blpop("list", 60))
    forever = asyncio.create_task(client.blpop("list2", 0))
    await asyncio.sleep(2.5)
    await valkey.rpush("list", "late")
    await valkey.rpush("list2", "later")
    assert await waiting == (b"list", b"late")
    assert await forever == (b"list2", b"later")
    await client.aclose()
