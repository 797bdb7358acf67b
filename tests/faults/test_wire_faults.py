"""What becomes of commands in flight when the server or the connection fails. Every test counts."""

import asyncio
import random
import resource
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis.exceptions

from keystead.engine import AnswerLost, ServerAway, Valkey, connect
from keystead.errors import ReplyLost, Unavailable
from keystead.settings import ValkeySettings
from keystead.testing.proxy import FaultProxy
from keystead.testing.server import LocalServer
from tests.engine.lua import make_script
from tests.engine.noise import no_noise

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def safe_server() -> Iterator[LocalServer]:
    """A server that has written to disk whatever it has answered."""
    server = LocalServer({"appendfsync": "always"})
    server.start()
    yield server
    server.stop()


# -- the server dies ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answered_before", [0, 1, 400, 999])
async def test_server_killed_with_a_thousand_commands_in_flight(safe_server: LocalServer, answered_before: int) -> None:
    """Every command is acknowledged and there, or raised and there at most once. Nobody hangs."""
    safe_server.ensure_running()
    safe_server.call("FLUSHALL")
    with no_noise():
        client = await connect(safe_server.url, settings=ValkeySettings(outage_seconds=60, command_timeout_seconds=60))
        tasks = [asyncio.create_task(client.incr(f"k{number}")) for number in range(answered_before)]
        await asyncio.gather(*tasks)
        # Keeps the server busy, so that all after it are in flight when the server dies.
        stall = asyncio.create_task(client.execute_command("DEBUG", "SLEEP", "50"))
        await asyncio.sleep(0)
        tasks += [asyncio.create_task(client.incr(f"k{number}")) for number in range(answered_before, 1000)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert client._wire.connection is not None
        assert client._wire.connection.waiting_commands >= 1000 - answered_before
        safe_server.kill()
        late = [asyncio.create_task(client.incr(f"late{number}")) for number in range(100)]
        await asyncio.to_thread(safe_server.ensure_running)
        async with asyncio.timeout(60):
            results = await asyncio.gather(*tasks, stall, return_exceptions=True)
            late_results = await asyncio.gather(*late, return_exceptions=True)
        assert isinstance(results[1000], ReplyLost)
        outcomes = Counter[tuple[str, int]]()
        for number, result in enumerate(results[:1000]):
            stored = int(safe_server.call("GET", f"k{number}") or 0)
            outcomes[type(result).__name__, stored] += 1
            if isinstance(result, int):
                assert (result, stored) == (1, 1)
            else:
                assert isinstance(result, AnswerLost)
                assert stored in (0, 1)
        assert sum(count for (kind, _), count in outcomes.items() if kind == "int") == answered_before
        assert sum(count for (kind, _), count in outcomes.items() if kind == "AnswerLost") == 1000 - answered_before
        for number, result in enumerate(late_results):
            stored = int(safe_server.call("GET", f"late{number}") or 0)
            assert (result, stored) == (1, 1) or (isinstance(result, AnswerLost) and stored in (0, 1))
        assert await client.ping()
        await client.aclose()


async def test_server_killed_again_and_again_loses_no_acknowledged_write(safe_server: LocalServer) -> None:
    safe_server.ensure_running()
    safe_server.call("FLUSHALL")
    client = await connect(safe_server.url, settings=ValkeySettings(outage_seconds=60))
    acknowledged: set[int] = set()
    uncertain = 0
    stop = False

    async def writer(lane: int) -> None:
        nonlocal uncertain
        number = lane
        while not stop:
            try:
                assert await client.sadd("seen", number) == 1
                acknowledged.add(number)
            except ReplyLost:
                uncertain += 1
            number += 50

    writers = [asyncio.create_task(writer(lane)) for lane in range(50)]
    for kills in range(3):
        async with asyncio.timeout(60):
            while len(acknowledged) <= kills * 50:
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.05 + random.random() * 0.05)
        safe_server.kill()
        await asyncio.to_thread(safe_server.ensure_running)
    async with asyncio.timeout(60):
        while len(acknowledged) <= 150:
            await asyncio.sleep(0.01)
        stop = True
        await asyncio.gather(*writers)
    stored = {int(member) for member in await client.smembers("seen")}
    assert acknowledged <= stored
    assert len(stored - acknowledged) <= uncertain <= 150
    assert len(acknowledged) > 100
    assert 1 <= client._wire.reconnects <= 3, "a kill may fall into the time of reconnecting"
    await client.aclose()


# -- the connection fails ----------------------------------------------------------------------------------------------


async def test_connection_cut_mid_reply_never_gives_half_a_reply_or_anothers(fault_proxy: Any, valkey: Valkey) -> None:
    await valkey.mset({f"k{number}": f"value-{number}-" + "x" * (number * 7 % 500) for number in range(100)})
    expected = await valkey.mget([f"k{number}" for number in range(100)])
    proxy: FaultProxy = await fault_proxy()
    client = await connect(proxy.url)
    lost = 0
    with no_noise():
        for turn in range(40):
            proxy.cut_mid_reply(after_bytes=turn * 37 + 1)
            async with asyncio.timeout(60):
                reads = asyncio.gather(*(client.get(f"k{number}") for number in range(100)))
                writes = asyncio.gather(
                    *(client.incr(f"turn{turn}:{number}") for number in range(20)), return_exceptions=True
                )
                assert list(await reads) == expected
                results = await writes
            for number, result in enumerate(results):
                stored = int(await valkey.get(f"turn{turn}:{number}") or 0)
                assert stored <= 1
                assert (result, stored) == (1, 1) or isinstance(result, ReplyLost)
                lost += isinstance(result, ReplyLost)
    assert client._wire.reconnects >= 30
    assert lost > 100
    await proxy.restore()
    await client.aclose()


async def test_dropped_replies_lose_writes_clearly_and_repeat_reads(fault_proxy: Any, valkey: Valkey) -> None:
    proxy: FaultProxy = await fault_proxy()
    settings = ValkeySettings(command_timeout_seconds=1.0, connect_timeout_seconds=1.0, outage_seconds=60)
    client = await connect(proxy.url, settings=settings)
    await client.set("r", "read me")
    proxy.drop_replies()
    writes = [asyncio.create_task(client.incr(f"w{number}")) for number in range(50)]
    reads = [asyncio.create_task(client.get("r")) for _ in range(50)]
    block = asyncio.create_task(client.pipeline().incr("b").get("b").execute())
    declared = asyncio.create_task(client.run(("SET", "d", 1), lambda reply: reply, repeat=True))
    started = asyncio.get_running_loop().time()
    results = await asyncio.gather(*writes, block, return_exceptions=True)
    assert 0.9 < asyncio.get_running_loop().time() - started < 30
    assert all(isinstance(each, ReplyLost) for each in results)
    assert [await valkey.get(f"w{number}") for number in range(50)] == [b"1"] * 50, "they were applied, once"
    assert not any(read.done() for read in reads)
    await proxy.restore()
    async with asyncio.timeout(60):
        assert await asyncio.gather(*reads) == [b"read me"] * 50
        assert await declared == b"OK"
    assert await client.incr("w0") == 2
    await client.aclose()


async def test_half_open_connection_is_noticed_and_healed(fault_proxy: Any, valkey: Valkey) -> None:
    proxy: FaultProxy = await fault_proxy()
    settings = ValkeySettings(command_timeout_seconds=1.0, connect_timeout_seconds=1.0, outage_seconds=2)
    client = await connect(proxy.url, settings=settings)
    await client.blpop("warm", 0.01)
    proxy.half_open()
    started = asyncio.get_running_loop().time()
    results = await asyncio.gather(
        *(client.incr(f"n{number}") for number in range(50)),
        client.get("x"), client.blpop("list", 0.1), client.pipeline().set("a", 1).execute(),
        client.xread({"s": "$"}, block=100), return_exceptions=True,
    )  # fmt: skip
    elapsed = asyncio.get_running_loop().time() - started
    assert all(isinstance(each, Unavailable) for each in results)
    assert elapsed < 20, "a write fails after the command timeout; a read tries until the outage limit is over as well"
    await proxy.restore()
    async with asyncio.timeout(60):
        while True:
            try:
                assert await client.set("back", 1)
                break
            except Unavailable:
                continue
    assert await client.blpop("list", 0.01) is None
    await client.aclose()


async def test_long_silence_of_the_network_is_waited_out_within_the_limit(fault_proxy: Any, valkey: Valkey) -> None:
    proxy: FaultProxy = await fault_proxy()
    client = await connect(proxy.url, settings=ValkeySettings(outage_seconds=60))
    await proxy.refuse()
    proxy.cut()
    while client._wire.connection is not None:
        await asyncio.sleep(0)
    waiting = [asyncio.create_task(client.incr("n")) for _ in range(100)]
    await asyncio.sleep(0.3)
    assert not any(task.done() for task in waiting)
    await proxy.restore()
    async with asyncio.timeout(60):
        assert sorted(await asyncio.gather(*waiting)) == list(range(1, 101)), "none was sent before, so none was lost"
    await client.aclose()


# -- the server is not itself ------------------------------------------------------------------------------------------


async def test_script_flush_under_load_reaches_no_caller(
    valkey: Valkey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = make_script(tmp_path, monkeypatch)
    stop = False
    flushes = 0

    async def flusher() -> None:
        nonlocal flushes
        while not stop:
            await valkey.script_flush()
            flushes += 1
            await asyncio.sleep(0.001)

    async def caller() -> None:
        for _ in range(40):
            await count(valkey, keys=["n"], args=[1])

    async def piper(transaction: bool) -> None:
        for _ in range(10):
            pipe = valkey.pipeline(transaction=transaction)
            for _ in range(4):
                count(pipe, keys=["n"], args=[1])
            await pipe.execute()

    flushing = asyncio.create_task(flusher())
    await asyncio.gather(*(caller() for _ in range(40)), *(piper(lane % 2 == 0) for lane in range(10)))
    stop = True
    await flushing
    assert flushes >= 5
    assert int(await valkey.get("n")) == 40 * 40 + 10 * 10 * 4


async def test_commands_wait_while_the_server_loads_and_then_succeed(
    valkey_server: LocalServer, valkey: Valkey
) -> None:
    client = await connect(valkey_server.url, settings=ValkeySettings(outage_seconds=60))
    for command in (
        ("DEBUG", "POPULATE", 20_000, "filler", 100), ("CONFIG", "SET", "key-load-delay", 100),
        ("CONFIG", "SET", "loading-process-events-interval-bytes", 4096),
    ):  # fmt: skip
        valkey_server.call(*command)
    refused = 0

    async def watcher() -> None:
        nonlocal refused
        async with client.client() as own:
            while reloading.is_alive():
                try:
                    await own.get("x")
                except redis.exceptions.BusyLoadingError:
                    refused += 1
                except redis.exceptions.ConnectionError:
                    pass
                await asyncio.sleep(0.005)

    async def caller(number: int) -> None:
        while reloading.is_alive():
            await client.incr(f"n{number}")
            done[number] += 1
            block = await client.run_block([("INCR", f"b{number}"), ("INCR", f"b{number}")], list)
            assert block == [2 * done[number] - 1, 2 * done[number]]
            assert await client.pipeline().incr(f"p{number}").get(f"p{number}").execute() == [
                done[number], str(done[number]).encode()
            ]  # fmt: skip
            assert await client.blpop(f"nothing{number}", 0.01) is None

    done = Counter[int]()
    reloading = threading.Thread(target=valkey_server.call, args=("DEBUG", "RELOAD"))
    reloading.start()
    try:
        async with asyncio.timeout(120):
            await asyncio.gather(watcher(), *(caller(number) for number in range(10)))
    finally:
        reloading.join()
        valkey_server.call("CONFIG", "SET", "key-load-delay", 0)
        valkey_server.call("CONFIG", "SET", "loading-process-events-interval-bytes", 2 * MIB)
    assert refused > 3, "the server was seen loading"
    for number in range(10):
        assert int(await client.get(f"n{number}")) == done[number] > 0
        assert int(await client.get(f"b{number}")) == 2 * done[number]
    await client.aclose()


async def test_server_out_of_memory_refuses_writes_clearly_and_recovers(valkey: Valkey) -> None:
    await valkey.set("there", "before")
    used = (await valkey.info("memory"))["used_memory"]
    await valkey.config_set("maxmemory", used + MIB)
    try:
        results = await asyncio.gather(
            *(valkey.set(f"k{number}", b"x" * 200_000) for number in range(50)), return_exceptions=True
        )
        refused = [each for each in results if each is not True]
        assert 40 <= len(refused) < 50
        assert all(isinstance(each, redis.exceptions.OutOfMemoryError) for each in refused)
        assert "maxmemory" in str(refused[0])
        with pytest.raises(redis.exceptions.OutOfMemoryError):
            await valkey.pipeline().set("other", b"x" * 200_000).get("there").execute()
        assert await valkey.get("there") == b"before", "reads go on"
        assert await valkey.dbsize() == 51 - len(refused)
    finally:
        await valkey.config_set("maxmemory", 0)
    assert await valkey.set("other", b"x" * 200_000)


async def test_server_that_takes_no_more_clients_is_waited_for(valkey_server: LocalServer, valkey: Valkey) -> None:
    client = await connect(valkey_server.url, settings=ValkeySettings(outage_seconds=60))
    with no_noise():
        own = client._wire.connection
        assert own is not None
        await valkey.config_set("maxclients", 1)
        try:
            own.abort("cut")
            waiting = asyncio.create_task(client.incr("n"))
            while "max number of clients" not in client._wire.last_problem:
                await asyncio.sleep(0.005)
        finally:
            await valkey.config_set("maxclients", 10_000)
        async with asyncio.timeout(60):
            assert await waiting == 1
        await client.aclose()


# -- extremes ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_a_million_elements_arrive_while_others_proceed(valkey_server: LocalServer, valkey: Valkey) -> None:
    for part in range(100):
        await valkey.rpush("list", *range(part * 10_000, (part + 1) * 10_000))
    client = await connect(valkey_server.url, settings=ValkeySettings(wires=2))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    longest = 0.0
    pings = 0

    async def others() -> None:
        nonlocal longest, pings
        loop = asyncio.get_running_loop()
        while not big.done():
            started = loop.time()
            await asyncio.sleep(0)
            pings += 1
            token = str(pings)
            assert await client.echo(token) == token.encode()
            longest = max(longest, loop.time() - started)

    big = asyncio.create_task(client.lrange("list", 0, -1))
    await asyncio.gather(others(), others())
    elements = await big
    grown_mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert len(elements) == 1_000_000
    assert (elements[0], elements[-1]) == (b"0", b"999999")
    assert grown_mib < 250, "one copy of the elements and a little more"
    assert pings > 3
    assert longest < 30
    await client.aclose()


async def test_keys_that_are_no_unicode_go_everywhere(valkey: Valkey) -> None:
    rng = random.Random(7)
    keys = [b"\xff\xfe\x00\r\n" + rng.randbytes(20) for _ in range(200)]
    await asyncio.gather(*(valkey.set(key, key[::-1]) for key in keys))
    assert await valkey.mget(keys) == [key[::-1] for key in keys]
    assert await asyncio.gather(*(valkey.get(key) for key in keys)) == [key[::-1] for key in keys]
    assert {key async for key in valkey.scan_iter(count=50)} == set(keys)
    pipe = valkey.pipeline()
    for key in keys:
        pipe.strlen(key)
    assert await pipe.execute() == [25] * 200
    assert await valkey.run(("GETDEL", keys[0]), lambda reply: reply) == keys[0][::-1]
    with pytest.raises(redis.exceptions.ResponseError):
        await valkey.execute_command(b"\xff\xfe", keys[0])
    with pytest.raises(redis.exceptions.ResponseError):
        await valkey.eval("return redis.error_reply(ARGV[1])", 0, b"\xff\xfe\xfd")
    assert await valkey.dbsize() == 199


def test_errors_are_both_ours_and_those_redis_py_users_catch() -> None:
    assert issubclass(AnswerLost, ReplyLost) and issubclass(AnswerLost, redis.exceptions.ConnectionError)
    assert issubclass(ServerAway, Unavailable) and issubclass(ServerAway, redis.exceptions.ConnectionError)
