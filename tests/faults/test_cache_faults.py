"""The cache while channels are cut, processes are killed and the server goes away."""

import asyncio
import contextlib
import os
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process, create_subprocess_exec
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from keystead.engine import Valkey, connect, hub
from keystead.errors import Unavailable
from keystead.keys import Keyspace
from keystead.patterns.cache import Cache
from keystead.patterns.cache_instance import CacheInstance
from keystead.settings import ValkeySettings
from keystead.testing.proxy import FaultProxy
from keystead.testing.server import LocalServer

from .cache_reader import BRIEF_SECONDS, LOADS, SPACE, VALUES

PROJECT = Path(__file__).parents[2]
BOUND_SECONDS = 2.0
HELD = Cache(SPACE, "held:{uid}", int, shared_seconds=60, local_seconds=60, lock_seconds=0.5, channel="ps:held",
             collab=True, staleness_seconds=BOUND_SECONDS, purpose="a test")
FREE = Cache(SPACE, "free:{uid}", int, local_seconds=60, channel="ps:free", staleness_seconds=BOUND_SECONDS,
             purpose="a test: not bound to the channel")


async def start(url: str, family: str, tasks: int, load_seconds: float) -> Process:
    process = await create_subprocess_exec(
        sys.executable, "-m", "tests.faults.cache_reader", url, family, "a", str(tasks), str(load_seconds),
        cwd=PROJECT, stdout=PIPE, stdin=PIPE,
    )
    await line(process, b"ready")
    return process


async def line(process: Process, expected: bytes) -> None:
    assert process.stdout is not None
    async with asyncio.timeout(90):
        while (found := (await process.stdout.readline()).strip()) != expected:
            assert found in (b"loading", b"ready"), found


def go(process: Process) -> None:
    assert process.stdin is not None
    process.stdin.write(b"\n")


async def stop(*processes: Process) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def until(condition, seconds: float = 30.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.005)


@contextlib.asynccontextmanager
async def heard_through(proxy: FaultProxy, server: LocalServer, cache: Cache) -> AsyncIterator[CacheInstance]:
    """An instance whose commands go straight to the server and whose channel goes through the proxy."""
    valkey = await connect(server.url)
    ear = await connect(proxy.url, settings=ValkeySettings(command_timeout_seconds=3.0, connect_timeout_seconds=3.0))
    valkey.hub = ear.hub
    try:
        async with cache.open(valkey) as instance:
            yield instance
    finally:
        await valkey.aclose()
        await ear.aclose()


class Source:
    def __init__(self) -> None:
        self.number = 1
        self.reads = 0

    async def load(self) -> int:
        self.reads += 1
        return self.number


@pytest.fixture
def quick_pings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "PING_SECONDS", 0.05)


# -- the channel -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["half_open", "drop_replies", "cut_and_refuse"])
async def test_missed_purge_is_served_no_longer_than_the_bound(
    valkey: Valkey, valkey_server, fault_proxy, quick_pings, fault
) -> None:
    proxy: FaultProxy = await fault_proxy()
    source = Source()
    async with heard_through(proxy, valkey_server, HELD) as cache:
        assert await cache.get("a", load=source.load) == 1
        await until(lambda: cache.held("a") is not None)
        if fault == "cut_and_refuse":
            await proxy.refuse()
            proxy.cut()
        else:
            getattr(proxy, fault)()
        source.number = 2
        await HELD.at("a").purge(valkey, now=time.time())
        purged_at = time.monotonic()
        served = 0
        while time.monotonic() < purged_at + BOUND_SECONDS + 0.3:
            begun_at = time.monotonic()
            got = await cache.get("a", load=source.load)
            if got == 1:
                served += 1
                assert begun_at <= purged_at + BOUND_SECONDS
            await asyncio.sleep(0.01)
        assert served > 0, "the purge was not missed at all"
        assert cache.held("a") is None
        assert await cache.get("a", load=source.load) == 2
        await proxy.restore()
        await until(lambda: cache._shelf.is_open())
        assert await cache.get("a", load=source.load) == 2
        await until(lambda: cache.held("a") == b"2")


async def test_what_was_held_before_a_cut_is_gone_after_it(
    valkey: Valkey, valkey_server, fault_proxy, quick_pings
) -> None:
    proxy: FaultProxy = await fault_proxy()
    source = Source()
    async with heard_through(proxy, valkey_server, HELD) as cache, heard_through(proxy, valkey_server, FREE) as free:
        for number in range(1, 6):
            source.number = number
            assert await cache.get("a", load=source.load) == number
            await free.get("a", load=source.load)
            await until(lambda: cache.held("a") is not None)
            generation = cache._shelf.generation
            proxy.cut()
            await HELD.at("a").purge(valkey, now=time.time())
            await until(lambda generation=generation: cache._shelf.generation > generation)
            assert cache.held("a") is None
            assert free.held("a") == b"1"  # only promised its own time to live


async def test_slow_resubscription_does_not_bring_old_values_back(
    valkey: Valkey, valkey_server, fault_proxy, quick_pings
) -> None:
    """A connection that is up and not yet subscribed hears nothing: what is held stays unused."""
    proxy: FaultProxy = await fault_proxy()
    source = Source()
    async with heard_through(proxy, valkey_server, HELD) as cache:
        assert await cache.get("a", load=source.load) == 1
        await until(lambda: cache.held("a") is not None)
        proxy.half_open()
        await asyncio.sleep(0.05)
        source.number = 2
        await HELD.at("a").purge(valkey, now=time.time())
        purged_at = time.monotonic()
        await asyncio.sleep(BOUND_SECONDS - 0.1)
        proxy.cut()
        await proxy.restore()
        proxy.delay(0.06)
        while time.monotonic() < purged_at + 2 * BOUND_SECONDS:
            begun_at = time.monotonic()
            raw = cache.held("a")
            assert raw != b"1" or begun_at <= purged_at + BOUND_SECONDS
            await asyncio.sleep(0.002)


# -- processes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["shared", "local"])
async def test_cold_value_is_read_once_by_many_processes(valkey: Valkey, valkey_server, family) -> None:
    processes = [await start(valkey_server.url, family, 100, 0.05) for _ in range(4)]
    try:
        for process in processes:
            go(process)
        for process in processes:
            await line(process, b"got 100")
        assert await LOADS.at().get(valkey) == 1
    finally:
        await stop(*processes)


@pytest.mark.parametrize("family", ["shared", "local"])
async def test_loader_killed_under_the_lock_delays_others_by_its_time_only(
    valkey: Valkey, valkey_server, family
) -> None:
    doomed = await start(valkey_server.url, f"brief {family}", 10, 60)
    others = [await start(valkey_server.url, f"brief {family}", 50, 0.05) for _ in range(2)]
    try:
        go(doomed)
        await line(doomed, b"loading")
        for process in others:
            go(process)
        await asyncio.sleep(0.1)
        begin = time.monotonic()
        await stop(doomed)
        for process in others:
            await line(process, b"got 50")
        assert time.monotonic() - begin < BRIEF_SECONDS + 15  # the lock's time, and a busy machine
        assert await LOADS.at().get(valkey) == 2  # the dead one's, and one for all the others
    finally:
        await stop(doomed, *others)


# -- the server --------------------------------------------------------------------------------------------------------


async def test_server_killed_leaves_the_source_and_comes_back_as_cache(quick_pings) -> None:
    server = LocalServer({"appendonly": "yes", "appendfsync": "always"})
    server.start()
    source = Source()
    try:
        valkey = await connect(server.url, settings=ValkeySettings(outage_seconds=1.5))
        async with HELD.open(valkey) as cache:
            assert await cache.get("a", load=source.load) == 1
            await until(lambda: cache.held("a") is not None)
            server.kill()
            killed_at = time.monotonic()
            source.number = 2
            while time.monotonic() < killed_at + 3 * BOUND_SECONDS:
                begun_at = time.monotonic()
                got = await cache.get("a", load=source.load)
                assert got == 2 or begun_at <= killed_at + BOUND_SECONDS + 0.05
                await asyncio.sleep(0.02)
            assert got == 2
            server.restart()
            await HELD.at("a").purge(valkey, now=time.time())
            await until(lambda: cache._shelf.is_open())
            reads = source.reads
            assert await cache.get("a", load=source.load) == 2
            assert await cache.get("a", load=source.load) == 2
            assert source.reads <= reads + 1
            assert cache.held("a") == b"2"
        await valkey.aclose()
    finally:
        server.stop()


async def test_scripts_forgotten_by_the_server_are_given_again(valkey: Valkey) -> None:
    source = Source()
    async with VALUES.open(valkey) as cache:
        for number in range(3):
            await valkey.script_flush()
            assert await cache.get(f"k{number}", load=lambda: _bytes(source)) == b"1"
            await valkey.script_flush()
            assert await VALUES.at(f"k{number}").purge(valkey, now=time.time())


async def _bytes(source: Source) -> bytes:
    return b"%d" % await source.load()


async def test_opening_while_the_channel_cannot_be_had_works_without_it(valkey, valkey_server, fault_proxy) -> None:
    proxy: FaultProxy = await fault_proxy()
    cache = Cache(Keyspace("t", tag="t"), "t:{uid}", int, shared_seconds=60, local_seconds=60, channel="ps:t",
                  collab=True, staleness_seconds=0.2, purpose="a test")
    source = Source()
    await proxy.refuse()
    commands = await connect(valkey_server.url)
    ear_proxy = await fault_proxy()
    ear = await connect(ear_proxy.url)
    ear_proxy.drop_replies()
    commands.hub = ear.hub
    try:
        async with cache.open(commands) as instance:
            assert await instance.get("a", load=source.load) == 1
            assert instance.held("a") is None
            assert await instance.get("a", load=source.load) == 1
            await ear_proxy.restore()
            await until(lambda: instance._shelf.is_open())
        assert source.reads == 1
    finally:
        await commands.aclose()
        await ear.aclose()


@pytest.mark.cluster
@pytest.mark.xdist_group("cluster")
@pytest.mark.parametrize("how", ["killed", "hanging"])
async def test_primary_of_the_channel_lost_leaves_no_old_value(valkey_cluster, quick_pings, how) -> None:
    """From the bound after the primary was last heard until the channel is back nothing held is used, moves and all."""
    valkey_cluster.heal()
    valkey_cluster.flush()
    settings = ValkeySettings(outage_seconds=60, command_timeout_seconds=3, connect_timeout_seconds=2)
    valkey, admin = await connect(valkey_cluster.url, settings=settings), await connect(valkey_cluster.url)
    source = Source()
    primary = valkey_cluster.primary_of(HELD.place({"uid": "a"}, valkey.layout).value)
    try:
        async with HELD.open(valkey) as cache:
            assert await cache.get("a", load=source.load) == 1
            await until(lambda: cache.held("a") is not None)
            generation = cache._shelf.generation
            if how == "killed":
                primary.kill()
            else:
                os.kill(primary.pid, signal.SIGSTOP)
            lost_at = time.monotonic()
            source.number = 2
            async with asyncio.timeout(90):
                while cache._shelf.generation == generation or not cache._shelf.is_open():
                    begun_at = time.monotonic()
                    assert cache.held("a") is None or begun_at <= lost_at + BOUND_SECONDS
                    await asyncio.sleep(0.002)
            async with asyncio.timeout(60):
                while True:
                    with contextlib.suppress(Unavailable):
                        await HELD.at("a").purge(admin, now=time.time())
                        break
            cache.forget("a")
            assert await cache.get("a", load=source.load) == 2
    finally:
        if how == "hanging":
            os.kill(primary.pid, signal.SIGCONT)
        await valkey.aclose()
        await admin.aclose()
        valkey_cluster.heal()
