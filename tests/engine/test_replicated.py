"""Writes that are answered only when a replica has them."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

import pytest
import redis.exceptions

from keystead.engine import AnswerLost, NotReplicated, Valkey, connect
from keystead.engine.commands import pack
from keystead.engine.connection import Connection
from keystead.engine.replicated import ReplicatedConnection, changes, mark, ran
from keystead.errors import Invalid, ReplyLost
from keystead.keys.slots import key_slot
from keystead.settings import ValkeySettings
from keystead.testing.cluster import LocalCluster
from keystead.testing.server import LocalServer

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("cluster")]

SHORT = ValkeySettings(replicas=1, replicas_timeout_seconds=0.3, outage_seconds=60.0)
PATIENT = ValkeySettings(replicas=1, replicas_timeout_seconds=9.0, outage_seconds=60.0)


@pytest.fixture
async def make(valkey_cluster: LocalCluster) -> "AsyncIterator[object]":
    valkey_cluster.heal()
    valkey_cluster.flush()
    made: list[Valkey] = []

    async def make(settings: ValkeySettings) -> Valkey:
        made.append(await connect(valkey_cluster.url, settings=settings))
        return made[-1]

    yield make
    for client in made:
        await client.aclose()


@pytest.fixture
async def client(make) -> Valkey:
    return await make(PATIENT)


@pytest.fixture
async def hasty(make) -> Valkey:
    return await make(SHORT)


@contextmanager
def hanging_replica(cluster: LocalCluster, key: str) -> Iterator[None]:
    """The replica of this key's primary takes nothing in meanwhile."""
    pid = cluster.replica_of(cluster.primary_of(key)).pid
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def wait_calls(cluster: LocalCluster, key: str) -> int:
    facts = bytes(cluster.primary_of(key).call("INFO", "commandstats")).decode()
    line = next((line for line in facts.splitlines() if line.startswith("cmdstat_wait:")), "calls=0,")
    return int(line.partition("calls=")[2].partition(",")[0])


async def test_every_kind_of_write_is_answered_when_replicas_have_it(client):
    await client.set("{a}x", 1)
    async with client.pipeline(transaction=True) as block:
        block.incr("{a}x").get("{a}x")
        assert await block.execute() == [2, b"2"]
    async with client.pipeline(transaction=False) as pipeline:
        pipeline.incr("{a}x").incr("{b}x").get("{c}x")
        assert await pipeline.execute() == [3, 1, None]
    assert await client.eval("return redis.call('INCR', KEYS[1])", 1, "{a}x") == 4
    async with client.pipeline() as pipe:
        await pipe.watch("{a}x")
        value = int(await pipe.get("{a}x"))
        pipe.multi()
        pipe.set("{a}x", value + 1)
        assert await pipe.execute() == [True]
    await client.rpush("{a}queue", "item")
    assert await client.blmove("{a}queue", "{a}hands", 5) == b"item"
    assert await client.get("{a}x") == b"5"


async def test_write_is_not_answered_while_its_replica_takes_nothing_in(hasty, valkey_cluster):
    with hanging_replica(valkey_cluster, "x"):
        with pytest.raises(NotReplicated, match=r"0 of 1 replicas had it after 0\.3 s") as told:
            await hasty.set("x", 1)
        assert isinstance(told.value, ReplyLost) and isinstance(told.value, redis.exceptions.ConnectionError)
        assert await hasty.get("x") == b"1", "reads are not held up"


async def test_write_waits_for_a_replica_that_is_slow(client, valkey_cluster):
    with hanging_replica(valkey_cluster, "x"):
        writing = asyncio.ensure_future(client.set("x", 1))
        while not int(valkey_cluster.primary_of("x").call("EXISTS", "x")):
            await asyncio.sleep(0.01)
        assert not writing.done()
    assert await writing


async def test_every_kind_of_write_says_that_no_replica_has_it(hasty, valkey_cluster):
    script = "return redis.call('INCR', KEYS[1])"
    with hanging_replica(valkey_cluster, "{a}x"):
        with pytest.raises(NotReplicated):
            await hasty.eval(script, 1, "{a}x")
        for transaction in (True, False):
            async with hasty.pipeline(transaction=transaction) as pipe:
                pipe.incr("{a}x").get("{a}x")
                with pytest.raises(NotReplicated):
                    await pipe.execute()
        async with hasty.pipeline() as pipe:
            await pipe.watch("{a}x")
            pipe.multi()
            pipe.incr("{a}x")
            with pytest.raises(NotReplicated):
                await pipe.execute()
        with pytest.raises(NotReplicated):
            await hasty.run_block([("INCR", "{a}x")], lambda replies: replies)
        assert await hasty.get("{a}x") == b"5", "each was applied, and none was sent twice"


async def test_take_that_had_to_wait_is_covered_too(hasty, valkey_cluster):
    async with hasty.pipeline(transaction=False) as pipe:  # opens the connection that is used again below
        pipe.execute_command("BLMOVE", "{a}queue", "{a}hands", "LEFT", "RIGHT", 0.01)
        assert await pipe.execute() == [None]
    taking = asyncio.ensure_future(hasty.blmove("{a}queue", "{a}hands", 30))
    primary = valkey_cluster.primary_of("{a}queue")
    while b"blocked_clients:1" not in bytes(primary.call("INFO", "clients")):
        await asyncio.sleep(0.01)
    with hanging_replica(valkey_cluster, "{a}queue"):
        primary.call("RPUSH", "{a}queue", "item")
        with pytest.raises(AnswerLost):
            await taking
    assert await hasty.lrange("{a}hands", 0, -1) == [b"item"]
    assert await hasty.keys("*") == [b"{a}hands"]


async def test_take_that_brought_nothing_asks_no_replica(hasty, valkey_cluster):
    with hanging_replica(valkey_cluster, "{a}queue"):
        assert await hasty.blmove("{a}queue", "{a}hands", 0.01) is None


async def test_writes_that_leave_together_share_one_question(client, valkey_cluster):
    await client.set("{a}0", 0)
    before = wait_calls(valkey_cluster, "{a}0")
    await asyncio.gather(*(client.set(f"{{a}}{number}", number) for number in range(200)))
    assert wait_calls(valkey_cluster, "{a}0") - before <= 200 / 20


async def test_reads_ask_no_replica(client, valkey_cluster):
    before = wait_calls(valkey_cluster, "{a}x")
    await client.get("{a}x")
    await client.spublish("{a}channel", "news")
    async with client.pipeline(transaction=True) as block:
        block.get("{a}x").hgetall("{a}y")
        await block.execute()
    assert wait_calls(valkey_cluster, "{a}x") == before


async def test_harmless_command_is_repeated_until_a_replica_has_it(make, valkey_cluster):
    client = await make(SHORT)
    with hanging_replica(valkey_cluster, "x"):
        repeating = asyncio.ensure_future(client.call(("SET", "x", 1), repeat=True))
        started = time.monotonic()
        with pytest.raises(NotReplicated):
            await repeating
    assert time.monotonic() - started > 1.0, "tried four times"


async def test_answered_writes_survive_a_failover(client, valkey_cluster):
    """The primary is killed while many write: what was answered is there afterwards."""
    answered: dict[str, int] = {}
    stop = asyncio.Event()

    async def write(name: str) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            try:
                await client.set(name, number)
                answered[name] = number
            except ReplyLost:
                pass

    async with asyncio.TaskGroup() as group:
        for number in range(20):
            group.create_task(write(f"{{a}}{number}"))
        while len(answered) < 20 or min(answered.values()) < 20:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(valkey_cluster.kill_and_replace, valkey_cluster.primary_of("{a}0"))
        await asyncio.to_thread(valkey_cluster.heal)
        before = dict(answered)
        async with asyncio.timeout(60):
            while answered == before:
                await asyncio.sleep(0.05)
        stop.set()
    for name, number in answered.items():
        assert int(await client.get(name)) >= number


async def test_failover_takes_back_what_was_answered_only_without_replicas(make, valkey_cluster):
    """The replica gets nothing more for a while before its primary is killed, so that writes are really lost."""
    answered: dict[str, set[int]] = {"{a}careful": set(), "{a}careless": set()}
    stop = asyncio.Event()

    async def write(client: Valkey, name: str) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            with suppress(ReplyLost):
                await client.sadd(name, number)
                answered[name].add(number)
            await asyncio.sleep(0.001)

    async def lost(client: Valkey, name: str) -> set[int]:
        return answered[name] - {int(member) for member in await client.smembers(name)}

    careful, careless = await make(SHORT), await make(replace(SHORT, replicas=0))
    async with asyncio.TaskGroup() as group:
        group.create_task(write(careful, "{a}careful"))
        group.create_task(write(careless, "{a}careless"))
        while not all(answered.values()):
            await asyncio.sleep(0.01)
        primary = valkey_cluster.primary_of("{a}")
        await asyncio.to_thread(valkey_cluster.kill_and_replace, primary, ahead_seconds=2.0)
        stop.set()
    assert not await lost(careful, "{a}careful")
    assert await lost(careless, "{a}careless")
    with pytest.raises(NotReplicated):
        await careful.sadd("{a}careful", "nobody is there to copy it")
    await asyncio.to_thread(valkey_cluster.heal)
    assert await careful.sadd("{a}careful", "somebody is")


async def test_server_says_no_as_before(client):
    await client.set("{a}x", "word")
    with pytest.raises(redis.exceptions.ResponseError, match="not an integer"):
        await client.incr("{a}x")
    results = await asyncio.gather(
        client.incr("{a}x"), client.set("{a}y", 1), client.get("{a}y"), return_exceptions=True
    )
    assert isinstance(results[0], redis.exceptions.ResponseError) and results[1:] == [True, b"1"]


async def test_script_that_the_server_forgot_is_given_again(client):
    script = client.register_script("return redis.call('INCR', KEYS[1])")
    assert await script(keys=["{a}n"]) == 1
    await client.script_flush()
    assert await script(keys=["{a}n"]) == 2


async def test_nothing_is_different_without_replicas(valkey_server):
    valkey_server.ensure_running()
    client = await connect(valkey_server.url)
    try:
        assert type(client._wire.connection) is Connection
    finally:
        await client.aclose()


async def test_lone_server_cannot_promise_copies(valkey_server: LocalServer):
    valkey_server.ensure_running()
    client = await connect(valkey_server.url, settings=SHORT)
    try:
        assert type(client._wire.connection) is ReplicatedConnection
        with pytest.raises(NotReplicated):
            await client.set("x", 1)
        with pytest.raises(NotReplicated):
            await client.lpush("queue", "item")
        with pytest.raises(NotReplicated):
            await client.blmove("queue", "hands", 5)
    finally:
        await client.aclose()


async def test_broken_connection_tells_those_who_left_and_sends_the_others_again(valkey, valkey_server):
    client = await connect(valkey_server.url, settings=replace(PATIENT, replicas_timeout_seconds=5.0))
    try:
        connection = client._wire.connection
        left = [asyncio.ensure_future(client.incr("n")) for _ in range(40)]
        while valkey_server.call("GET", "n") is None:
            await asyncio.sleep(0.01)
        applied = int(valkey_server.call("GET", "n"))
        connection.abort("cut by the test")
        while int(valkey_server.call("GET", "n")) < 40:
            await asyncio.sleep(0.01)
        assert {type(each.exception()) for each in left[:applied]} == {AnswerLost}
        assert valkey_server.call("GET", "n") == b"40", "what had not left was applied once, and waits for its replica"
        for each in left:
            each.cancel()
        await asyncio.gather(*left, return_exceptions=True)
    finally:
        await client.aclose()


@pytest.mark.parametrize(
    ("settings", "url", "why"),
    [
        (ValkeySettings(), "embedded://nowhere", "no replicas"),
        (ValkeySettings(replicas_timeout_seconds=10.0), "valkey://127.0.0.1:1", "less than"),
        (ValkeySettings(replicas_timeout_seconds=0.0), "valkey://127.0.0.1:1", "more than 0"),
    ],
)
async def test_wish_that_cannot_be_met_is_refused(settings, url, why):
    with pytest.raises(Invalid, match=why):
        await connect(url, settings=settings, replicas=1)


def test_blocks_that_changed_nothing_are_known():
    assert not changes(pack(("GET", "x")), 1) and changes(pack(("set", "x", "y")), 1)
    block = [("MULTI",), ("GET", "x"), ("EXEC",)]
    assert not changes(b"".join(map(pack, block)), 3)
    assert changes(b"".join(map(pack, [*block, ("EVALSHA", "00", 1, "x")])), 4)
    moved = redis.exceptions.MovedError("1 127.0.0.1:1")
    aborted = redis.exceptions.ExecAbortError("aborted")
    assert not ran([moved]) and not ran([b"OK", b"QUEUED", moved, aborted])
    assert ran([b"OK", moved]) and ran([b"OK", b"QUEUED", [1]])


@pytest.mark.parametrize("key", [b"plain", b"{tag}name", b"{}odd", b"a}b", b"{a}b}c", b""])
def test_mark_lies_in_the_slot_of_its_key(key):
    assert key_slot(mark(key)) == key_slot(key)
