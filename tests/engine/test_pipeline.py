"""Pipelines: redis-py's idiom, typed access, scripts, and blocks that nobody gets in between."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import redis.exceptions

from keystead.engine import AnswerLost, Valkey, connect
from keystead.engine.scripts import Script
from keystead.errors import DeclarationError, ReplyLost, Unavailable
from keystead.settings import ValkeySettings
from tests.engine.lua import make_script
from tests.engine.noise import no_noise


@pytest.fixture
def increase(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    return make_script(tmp_path, monkeypatch)


async def test_chained_commands_answer_in_order(valkey: Valkey) -> None:
    for transaction in (True, False):
        await valkey.flushall()
        async with valkey.pipeline(transaction=transaction) as pipe:
            pipe.set("a", 1).incr("a").hset("h", mapping={"x": 1})
            results = await pipe.hgetall("h").zadd("z", {"m": 1}).execute()
        assert results == [True, 2, 1, {b"x": b"1"}, 1]


async def test_empty_pipeline_sends_nothing(valkey: Valkey) -> None:
    before = valkey.commands_sent
    assert await valkey.pipeline().execute() == []
    assert valkey.commands_sent == before


async def test_pipeline_can_be_used_again_after_execute(valkey: Valkey) -> None:
    pipe = valkey.pipeline()
    assert await pipe.incr("n").execute() == [1]
    assert await pipe.incr("n").execute() == [2]


async def test_errors_are_raised_with_the_command_or_returned(valkey: Valkey) -> None:
    for transaction in (True, False):
        await valkey.flushall()
        pipe = valkey.pipeline(transaction=transaction)
        with pytest.raises(redis.exceptions.ResponseError, match=r"Command # 2 \(LPUSH a 1\) of pipeline caused error"):
            await pipe.set("a", "x").lpush("a", 1).incr("b").execute()
        assert await valkey.get("b") == b"1", "the commands after it ran"
        results = await pipe.lpush("a", 1).incr("b").execute(raise_on_error=False)
        assert isinstance(results[0], redis.exceptions.ResponseError)
        assert results[1] == 2


async def test_transaction_with_a_command_that_cannot_be_queued_does_nothing(valkey: Valkey) -> None:
    pipe = valkey.pipeline()
    with pytest.raises(redis.exceptions.ResponseError, match="NOSUCH"):
        await pipe.set("a", 1).execute_command("NOSUCH").execute()
    assert await valkey.get("a") is None


async def test_blocks_are_contiguous_while_a_hundred_tasks_write(valkey: Valkey) -> None:
    """Also without MULTI nobody gets in between, and with MULTI not even another client."""
    stop = False

    async def disturber(number: int) -> None:
        while not stop:
            await valkey.set("shared", f"d{number}")

    async def checker(number: int, transaction: bool) -> None:
        for turn in range(10):
            mine = f"{number}-{turn}"
            pipe = valkey.pipeline(transaction=transaction)
            for _ in range(5):
                pipe.set("shared", mine).get("shared")
            assert (await pipe.execute())[1::2] == [mine.encode()] * 5

    disturbers = [asyncio.create_task(disturber(number)) for number in range(100)]
    await asyncio.gather(*(checker(number, number % 2 == 0) for number in range(20)))
    stop = True
    await asyncio.gather(*disturbers)


async def test_pipeline_of_ten_thousand_commands(valkey: Valkey) -> None:
    pipe = valkey.pipeline(transaction=False)
    for number in range(10_000):
        pipe.set(f"k{number}", number)
    assert await pipe.execute() == [True] * 10_000
    assert await valkey.dbsize() == 10_000


# -- the Executor seam -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transaction", [True, False])
async def test_run_and_run_block_settle_after_execute(valkey: Valkey, transaction: bool) -> None:
    pipe = valkey.pipeline(transaction=transaction)
    first = pipe.run(("INCR", "n"), lambda reply: f"now {reply}")
    pipe.incr("n")
    block = pipe.run_block([("INCR", "n"), ("INCR", "m")], tuple)
    last = pipe.run(("HGETALL", "h"), dict)
    assert await pipe.execute() == ["now 1", 2, (3, 1), {}]
    assert (await first, await block, await last) == ("now 1", (3, 1), {})
    assert await first == "now 1", "a settled value can be awaited again"


async def test_awaiting_before_execute_says_so(valkey: Valkey) -> None:
    pipe = valkey.pipeline()
    pending = pipe.run(("INCR", "n"), lambda reply: reply)
    with pytest.raises(DeclarationError, match=r"await its execute\(\) first"):
        await pending
    await pipe.execute()
    assert await pending == 1


async def test_failed_command_fails_its_own_value_only(valkey: Valkey) -> None:
    await valkey.set("text", "x")
    for transaction in (True, False):
        pipe = valkey.pipeline(transaction=transaction)
        bad = pipe.run(("LPUSH", "text", 1), lambda reply: reply)
        worse = pipe.run(("GET", "text"), int)
        broken = pipe.run_block([("INCR", "text")], list)
        good = pipe.run(("GET", "text"), lambda reply: reply)
        with pytest.raises(redis.exceptions.ResponseError):
            await pipe.execute()
        with pytest.raises(redis.exceptions.ResponseError):
            await bad
        with pytest.raises(ValueError):
            await worse
        with pytest.raises(redis.exceptions.ResponseError):
            await broken
        assert await good == b"x"


async def test_lost_pipeline_fails_every_value(valkey: Valkey) -> None:
    pipe = valkey.pipeline()
    pending = pipe.run(("INCR", "n"), lambda reply: reply)
    running = asyncio.create_task(pipe.execute())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert valkey._wire.connection is not None
    valkey._wire.connection.abort("cut")
    with pytest.raises(ReplyLost):
        await running
    with pytest.raises(ReplyLost):
        await pending


async def test_lost_pipeline_of_reads_is_asked_again(valkey: Valkey) -> None:
    await valkey.set("a", 1)
    transaction, plain = valkey.pipeline(), valkey.pipeline(transaction=False)
    for pipe in (transaction.get("a").ttl("a"), plain.get("a").config_get("maxmemory")):
        running = asyncio.create_task(pipe.execute())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert valkey._wire.connection is not None
        valkey._wire.connection.abort("cut")
        assert (await running)[0] == b"1"


# -- WATCH -------------------------------------------------------------------------------------------------------------


async def test_watched_key_that_changed_stops_the_transaction(valkey: Valkey) -> None:
    async with valkey.pipeline() as pipe:
        await pipe.watch("n")
        await valkey.set("n", 5)
        pipe.multi()
        pending = pipe.run(("INCR", "n"), lambda reply: reply)
        with pytest.raises(redis.exceptions.WatchError):
            await pipe.execute()
        with pytest.raises(redis.exceptions.WatchError):
            await pending
    assert await valkey.get("n") == b"5"


async def test_reads_after_watch_answer_at_once_and_writes_with_execute(valkey: Valkey) -> None:
    await valkey.hset("h", mapping={"a": 1})
    async with valkey.pipeline() as pipe:
        await pipe.watch("h")
        assert await pipe.hgetall("h") == {b"a": b"1"}
        assert await pipe.run(("HGETALL", "h"), lambda reply: reply) == {b"a": b"1"}, "raw replies are RESP3 here too"
        with pytest.raises(DeclarationError, match=r"multi\(\) first"):
            pipe.run_block([("INCR", "n")], list)
        pipe.multi()
        pending = pipe.run_block([("INCR", "n"), ("INCR", "n")], list)
        pipe.hset("h", "a", 2)
        assert await pipe.execute() == [[1, 2], 0]
        assert await pending == [1, 2]


async def test_unwatch_and_reset_free_the_connection(valkey: Valkey) -> None:
    pipe = valkey.pipeline()
    await pipe.watch("n")
    await pipe.unwatch()
    await pipe.watch("n")
    await pipe.reset()
    await valkey.set("n", 1)
    assert await pipe.incr("n").execute() == [2]
    assert len(valkey.connection_pool._in_use_connections) == 0


async def test_watch_survives_a_pooled_connection_that_was_cut_meanwhile(fault_proxy: Any, valkey: Valkey) -> None:
    proxy = await fault_proxy()
    client = await connect(proxy.url)
    for turn in range(1, 6):
        async with client.pipeline() as pipe:
            await pipe.watch("n")
            pipe.multi()
            assert await pipe.incr("n").execute() == [turn]
        proxy.cut()
    await client.aclose()


async def test_watching_on_a_dead_connection_ends_in_time(fault_proxy: Any) -> None:
    proxy = await fault_proxy()
    client = await connect(proxy.url, settings=ValkeySettings(command_timeout_seconds=1.5))
    for half_open_after_watch in (True, False):
        with pytest.raises(Unavailable):
            async with asyncio.timeout(30), client.pipeline() as pipe:
                await pipe.watch("n")
                if half_open_after_watch:
                    pipe.multi()
                    pipe.incr("n")
                proxy.half_open()
                await (pipe.execute() if half_open_after_watch else pipe.get("n"))
        await proxy.restore()
    await client.aclose()


async def test_cancelled_watcher_never_shifts_replies(valkey: Valkey) -> None:
    await valkey.mset({"a": "A", "b": "B"})

    async def watcher(name: str) -> None:
        async with valkey.pipeline() as pipe:
            await pipe.watch(name)
            for _ in range(3):
                assert await pipe.get(name) == name.upper().encode()
            pipe.multi()
            assert await pipe.get(name).get(name).execute() == [name.upper().encode()] * 2

    with no_noise():
        for turn in range(60):
            task = asyncio.create_task(watcher("ab"[turn % 2]))
            for _ in range(turn % 20):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert task.cancelled() or task.exception() is None
            await watcher("ab"[turn % 2])


# -- scripts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transaction", [True, False])
async def test_script_runs_in_its_place_even_when_the_server_never_saw_it(
    valkey: Valkey, increase: Script, transaction: bool
) -> None:
    await valkey.script_flush()
    pipe = valkey.pipeline(transaction=transaction)
    pipe.set("n", 10)
    one = increase(pipe, keys=["n"], args=[1])
    pipe.get("n")
    two = increase(pipe, keys=["n"], args=[2])
    pipe.get("n")
    assert await pipe.execute() == [True, 11, b"11", 13, b"13"]
    assert (await one, await two) == (11, 13)


async def test_script_text_travels_once(valkey: Valkey, increase: Script) -> None:
    await valkey.script_flush()
    await valkey.config_resetstat()
    for _ in range(3):
        pipe = valkey.pipeline(transaction=False)
        for _ in range(10):
            increase(pipe, keys=["n"], args=[1])
        await pipe.execute()
    stats = await valkey.info("commandstats")
    assert (stats["cmdstat_eval"]["calls"], stats["cmdstat_evalsha"]["calls"]) == (1, 29)
    assert await valkey.get("n") == b"30"


async def test_flushed_script_is_given_again_and_runs_exactly_once(valkey: Valkey, increase: Script) -> None:
    assert await increase(valkey, keys=["n"], args=[1]) == 1
    pipe = valkey.pipeline(transaction=False)
    increase(pipe, keys=["n"], args=[1])
    await pipe.execute()
    await valkey.script_flush()
    pending = increase(pipe, keys=["n"], args=[5])
    pipe.set("other", 1)
    assert await pipe.execute() == [7, True]
    assert await pending == 7


async def test_script_that_fails_says_so_in_its_own_value(valkey: Valkey, increase: Script) -> None:
    await valkey.script_flush()
    await valkey.set("text", "x")
    pipe = valkey.pipeline(transaction=False)
    bad = increase(pipe, keys=["text"], args=[1])
    good = increase(pipe, keys=["n"], args=[1])
    await pipe.execute(raise_on_error=False)
    with pytest.raises(redis.exceptions.ResponseError, match="not an integer"):
        await bad
    assert await good == 1


async def test_script_after_watch_and_in_multi(valkey: Valkey, increase: Script) -> None:
    await valkey.script_flush()
    async with valkey.pipeline() as pipe:
        await pipe.watch("n")
        assert await increase(pipe, keys=["other"], args=[1]) == 1
        pipe.multi()
        pending = increase(pipe, keys=["n"], args=[2])
        assert await pipe.execute() == [2]
        assert await pending == 2


async def test_registered_script_in_a_pipeline(valkey: Valkey) -> None:
    script = valkey.register_script("return redis.call('INCR', KEYS[1])")
    await valkey.script_flush()
    for transaction in (True, False):
        pipe = valkey.pipeline(transaction=transaction)
        await script(keys=["n"], client=pipe)
        pipe.get("n")
        assert (await pipe.execute())[1] in (b"1", b"2")


async def test_server_away_while_loading_scripts_frees_the_pipeline(fault_proxy: Any) -> None:
    proxy = await fault_proxy()
    client = await connect(proxy.url, settings=ValkeySettings(outage_seconds=1.0))
    script = client.register_script("return 1")
    pipe = client.pipeline()
    await script(client=pipe)
    await proxy.refuse()
    proxy.cut()
    with pytest.raises(Unavailable):
        await pipe.execute()
    assert len(pipe) == 0
    await client.aclose()
    assert issubclass(AnswerLost, Unavailable)
