"""Each fault, seen by a plain client."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import redis.exceptions
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from keystead.errors import Invalid
from keystead.testing.proxy import FaultProxy
from keystead.testing.server import LocalServer

MakeProxy = Callable[..., Awaitable[FaultProxy]]
LOST = (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError)


@pytest.fixture
async def proxy(fault_proxy: MakeProxy, valkey_server: LocalServer) -> FaultProxy:
    valkey_server.call("FLUSHALL")
    return await fault_proxy()


@pytest.fixture
async def client(proxy: FaultProxy) -> AsyncIterator[Redis]:
    retry = Retry(NoBackoff(), 0)
    async with Redis(port=proxy.port, protocol=3, socket_timeout=4, retry=retry, max_connections=1) as client:
        await client.ping()
        yield client


async def test_traffic_passes_unchanged(proxy: FaultProxy, client: Redis) -> None:
    value = bytes(range(256)) * 40_000
    await client.set("big", value)
    assert await client.get("big") == value
    assert (proxy.accepted, proxy.connections) == (1, 1)


async def test_cut_closes_open_connections_and_takes_new_ones(proxy: FaultProxy, client: Redis) -> None:
    reader, writer = await asyncio.open_connection(proxy.host, proxy.port)
    writer.write(b"PING\r\n")
    assert await reader.readline() == b"+PONG\r\n"
    proxy.cut()
    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        await reader.readexactly(1)
    assert proxy.connections == 0
    writer.close()
    await client.connection_pool.disconnect()
    assert await client.ping()


async def test_cut_mid_reply_delivers_exactly_the_allowed_bytes(proxy: FaultProxy, valkey_server: LocalServer) -> None:
    valkey_server.call("SET", "k", b"x" * 100_000)
    proxy.cut_mid_reply(after_bytes=1000)
    reader, writer = await asyncio.open_connection(proxy.host, proxy.port)
    writer.write(b"GET k\r\n")
    assert len(await reader.read(-1)) == 1000
    writer.close()
    reader, writer = await asyncio.open_connection(proxy.host, proxy.port)
    writer.write(b"PING\r\n")
    assert await reader.readline() == b"+PONG\r\n"
    writer.close()


async def test_delay_holds_each_way_without_slowing_throughput(proxy: FaultProxy, client: Redis) -> None:
    proxy.delay(0.5)
    started = time.monotonic()
    await client.ping()
    assert time.monotonic() - started >= 1.0
    reader, writer = await asyncio.open_connection(proxy.host, proxy.port)
    started = time.monotonic()
    for _ in range(20):
        writer.write(b"PING\r\n")
        await asyncio.sleep(0.005)
    for _ in range(20):
        assert await reader.readline() == b"+PONG\r\n"
    assert time.monotonic() - started < 10, "one after the other would take twenty seconds"
    writer.close()


async def test_dropped_replies_leave_the_command_applied(
    proxy: FaultProxy, client: Redis, valkey_server: LocalServer
) -> None:
    proxy.drop_replies()
    with pytest.raises(LOST):
        await client.incr("n")
    assert valkey_server.call("GET", "n") == b"1"
    assert proxy.dropped_bytes == len(b":1\r\n")


async def test_restore_cuts_connections_that_lost_replies(proxy: FaultProxy) -> None:
    reader, writer = await asyncio.open_connection(proxy.host, proxy.port)
    proxy.drop_replies()
    writer.write(b"INCR n\r\n")
    while not proxy.dropped_bytes:
        await asyncio.sleep(0.001)
    await proxy.restore()
    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        await reader.readexactly(1)
    writer.close()


async def test_throttle_limits_the_rate(proxy: FaultProxy, client: Redis, valkey_server: LocalServer) -> None:
    valkey_server.call("SET", "k", b"x" * 30_000)
    proxy.throttle(bytes_per_second=100_000)
    started = time.monotonic()
    assert len(await client.get("k")) == 30_000
    assert time.monotonic() - started >= 0.25


async def test_half_open_connection_stays_open_and_silent_until_restored(proxy: FaultProxy) -> None:
    reader, writer = await asyncio.open_connection(proxy.host, proxy.port)
    writer.write(b"PING\r\n")
    assert await reader.readline() == b"+PONG\r\n"
    proxy.half_open()
    writer.write(b"PING\r\n")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(reader.readline(), 0.2)
    assert proxy.connections == 1
    await proxy.restore()
    assert await asyncio.wait_for(reader.readline(), 20) == b"+PONG\r\n"
    writer.close()


async def test_refused_connections_come_back_on_the_same_port(proxy: FaultProxy, client: Redis) -> None:
    port = proxy.port
    await proxy.refuse()
    assert await client.ping(), "open connections go on"
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(proxy.host, port)
    await proxy.restore()
    assert proxy.port == port
    _, writer = await asyncio.open_connection(proxy.host, port)
    writer.close()


async def test_server_killed_behind_the_proxy_closes_the_client(fault_proxy: MakeProxy) -> None:
    server = LocalServer()
    server.start()
    try:
        proxy = await fault_proxy(server.url)
        reader, writer = await asyncio.open_connection(proxy.host, proxy.port)
        writer.write(b"PING\r\n")
        assert await reader.readline() == b"+PONG\r\n"
        server.kill()
        assert await asyncio.wait_for(reader.read(-1), 20) == b""
        writer.close()
        while proxy.connections:
            await asyncio.sleep(0.001)
        reader, writer = await asyncio.open_connection(proxy.host, proxy.port)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        writer.close()
    finally:
        server.stop()


def test_proxy_before_a_cluster_is_refused() -> None:
    with pytest.raises(Invalid, match="one server"):
        FaultProxy("cluster://a:1")
