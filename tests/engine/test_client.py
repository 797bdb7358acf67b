"""The client: redis-py's idioms over one shared connection."""

import asyncio
import warnings
from typing import Any

import pytest
import redis.exceptions

from keystead.engine import AnswerLost, ServerAway, Valkey, connect
from keystead.engine.client import refusal_of
from keystead.errors import Invalid, ReplyLost, Unavailable
from keystead.settings import ValkeySettings
from keystead.testing.server import LocalServer
from tests.engine.noise import no_noise

MIB = 1024 * 1024


async def test_a_thousand_tasks_each_get_their_own_reply(valkey: Valkey) -> None:
    async def caller(number: int) -> None:
        for turn in range(5):
            await valkey.set(f"k{number}", f"{number}:{turn}")
            assert await valkey.get(f"k{number}") == f"{number}:{turn}".encode()

    await asyncio.gather(*(caller(number) for number in range(1000)))
    assert await valkey.dbsize() == 1000


async def test_one_connection_serves_them_all(valkey: Valkey) -> None:
    await asyncio.gather(*(valkey.echo(str(n)) for n in range(300)))
    assert len([each for each in await valkey.client_list() if each["name"] == "keystead"]) == 1


async def test_several_wires_share_the_load(valkey_server: LocalServer, valkey: Valkey) -> None:
    wide = await connect(valkey_server.url, settings=ValkeySettings(wires=3))
    replies = await asyncio.gather(*(wide.echo(str(n)) for n in range(300)))
    assert replies == [b"%d" % n for n in range(300)]
    assert all(wire.commands >= 100 for wire in wide._wires)
    assert wide.commands_sent == sum(wire.commands for wire in wide._wires)
    await wide.aclose()


# -- the Executor seam -------------------------------------------------------------------------------------------------


async def test_run_decodes_the_raw_reply(valkey: Valkey) -> None:
    assert await valkey.run(("INCRBY", "n", 5), lambda reply: f"now {reply}") == "now 5"
    with pytest.raises(redis.exceptions.ResponseError):
        await valkey.run(("LPUSH", "n", 1), lambda reply: reply)


async def test_run_block_is_all_or_none(valkey: Valkey) -> None:
    decoded = await valkey.run_block([("INCR", "a"), ("INCR", "b"), ("HGETALL", "h")], list)
    assert decoded == [1, 1, {}]
    with pytest.raises(redis.exceptions.ResponseError, match="unknown command"):
        await valkey.run_block([("INCR", "a"), ("NOSUCH",)], list)
    assert await valkey.get("a") == b"1", "a command that cannot be queued aborts the block"
    await valkey.set("text", "x")
    with pytest.raises(redis.exceptions.ResponseError):
        await valkey.run_block([("INCR", "a"), ("LPUSH", "text", 1)], list)


async def test_run_block_stays_together_while_others_write(valkey: Valkey) -> None:
    stop = asyncio.Event()

    async def disturber(number: int) -> None:
        while not stop.is_set():
            await valkey.set("shared", number)

    async def checker(number: int) -> None:
        for _ in range(20):
            seen = await valkey.run_block([("SET", "shared", f"mine{number}"), ("GET", "shared")], lambda row: row[1])
            assert seen == f"mine{number}".encode()

    disturbers = [asyncio.create_task(disturber(number)) for number in range(50)]
    await asyncio.gather(*(checker(number) for number in range(50)))
    stop.set()
    await asyncio.gather(*disturbers)


# -- redis-py idioms ---------------------------------------------------------------------------------------------------


async def test_lock_is_exclusive_and_freed(valkey: Valkey) -> None:
    inside = 0

    async def worker() -> None:
        nonlocal inside
        async with valkey.lock("lock", timeout=5, sleep=0.001):
            inside += 1
            assert inside == 1
            await asyncio.sleep(0.001)
            inside -= 1

    await asyncio.gather(*(worker() for _ in range(10)))
    assert not await valkey.exists("lock")


async def test_pubsub_delivers_on_a_connection_of_its_own(valkey: Valkey) -> None:
    async with valkey.pubsub() as subscription:
        await subscription.subscribe("news")
        assert (await subscription.get_message(timeout=1))["type"] == "subscribe"
        assert await valkey.publish("news", "hello") == 1
        message = await subscription.get_message(timeout=1)
        assert (message["channel"], message["data"]) == (b"news", b"hello")


async def test_registered_script_survives_a_flush(valkey: Valkey) -> None:
    script = valkey.register_script("return redis.call('INCRBY', KEYS[1], ARGV[1])")
    assert await script(keys=["n"], args=[2]) == 2
    await valkey.script_flush()
    assert await script(keys=["n"], args=[3]) == 5


async def test_scan_iter_sees_every_key(valkey: Valkey) -> None:
    await valkey.mset({f"key:{n}": n for n in range(500)})
    await valkey.hset("hash", mapping={f"f{n}": n for n in range(100)})
    assert {key async for key in valkey.scan_iter("key:*", count=50)} == {b"key:%d" % n for n in range(500)}
    assert len([field async for field in valkey.hscan_iter("hash")]) == 100


async def test_transaction_helper_retries_until_nobody_interferes(valkey: Valkey) -> None:
    await valkey.set("n", 0)

    async def increase(pipe: Any) -> None:
        value = int(await pipe.get("n"))
        pipe.multi()
        pipe.set("n", value + 1)

    await asyncio.gather(*(valkey.transaction(increase, "n") for _ in range(20)))
    assert await valkey.get("n") == b"20"


async def test_client_gives_a_connection_for_those_who_must_own_one(valkey: Valkey) -> None:
    async with valkey.client() as own:
        await own.execute_command("SELECT", 5)
        await own.set("there", 1)
    assert await valkey.get("there") is None
    await valkey.execute_command("SWAPDB", 0, 5)
    assert await valkey.get("there") == b"1"
    await valkey.execute_command("SWAPDB", 0, 5)
    await valkey.flushall()


async def test_own_response_callback_is_used(valkey: Valkey) -> None:
    await valkey.set("a", "x")
    valkey.set_response_callback("GET", lambda reply: ("mine", reply))
    assert await valkey.get("a") == ("mine", b"x")


async def test_context_manager_closes(valkey_server: LocalServer) -> None:
    async with await connect(valkey_server.url) as valkey:
        assert await valkey.ping()
    with pytest.raises(ServerAway, match="closed"):
        await valkey.get("x")


# -- commands that hold or change a connection -------------------------------------------------------------------------


async def test_blocking_commands_delay_nobody(valkey: Valkey) -> None:
    waiting = [asyncio.create_task(valkey.blpop(f"list{n}", 90)) for n in range(20)]
    reading = asyncio.create_task(valkey.xread({"stream": "$"}, block=90_000))
    blocked = asyncio.create_task(valkey.execute_command("XREAD", "Block", 90_000, "STREAMS", "stream", "$"))
    piped = asyncio.create_task(valkey.pipeline(transaction=False).set("a", 1).blpop("list99", 90).execute())
    while int((await valkey.info("clients"))["blocked_clients"]) < 23:
        await asyncio.sleep(0.002)
    started = asyncio.get_running_loop().time()
    for _ in range(50):
        await valkey.ping()
    assert asyncio.get_running_loop().time() - started < 30
    await valkey.xadd("stream", {"a": 1})
    for number in [*range(20), 99]:
        await valkey.rpush(f"list{number}", number)
    assert await asyncio.gather(*waiting) == [(f"list{n}".encode(), b"%d" % n) for n in range(20)]
    assert (await reading)[0][0] == b"stream"
    assert b"stream" in str(await blocked).encode()
    assert await piped == [True, (b"list99", b"99")]


async def test_stream_read_that_does_not_block_travels_with_the_rest(valkey: Valkey) -> None:
    before = valkey.commands_sent
    await valkey.xread({"stream": "0"})
    assert valkey.commands_sent == before + 1


async def test_cancelled_blocking_read_takes_nothing_later(valkey: Valkey) -> None:
    waiting = asyncio.create_task(valkey.blpop("list", 0))
    while int((await valkey.info("clients"))["blocked_clients"]) < 1:
        await asyncio.sleep(0.002)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    while int((await valkey.info("clients"))["blocked_clients"]):
        await asyncio.sleep(0.002)
    await valkey.rpush("list", "kept")
    assert await valkey.blpop("list", 1) == (b"list", b"kept")


@pytest.mark.parametrize(
    "command",
    [
        ("SELECT", 1), ("select", 1), (b"SELECT", 1), ("SELECT 1",), ("MULTI",), ("exec",), ("WATCH", "k"),
        ("SUBSCRIBE", "c"), ("psubscribe", "c*"), ("ssubscribe", "c"), ("RESET",), ("QUIT",), ("HELLO", 2),
        ("AUTH", "x"), ("MONITOR",), ("SYNC",), ("CLIENT", "REPLY", "OFF"), ("client", "reply", "off"),
        (b"CLIENT", b"REPLY", b"OFF"), ("CLIENT REPLY OFF",), ("CLIENT SETNAME", "x"), ("CLIENT", "TRACKING", "ON"),
        ("client no-evict", "on"), ("SCRIPT", "DEBUG", "YES"), ("READONLY",),
    ],
    ids=str,
)  # fmt: skip
async def test_commands_that_change_the_shared_connection_are_refused(valkey: Valkey, command: tuple[Any, ...]) -> None:
    with pytest.raises(Invalid, match="would change the connection that all tasks share"):
        await valkey.execute_command(*command)
    pipe = valkey.pipeline(transaction=False)
    pipe.set("a", 1)
    pipe.command_stack.append((command, {}))
    with pytest.raises(Invalid, match="cannot go into a pipeline"):
        await pipe.execute()
    assert await valkey.get("a") is None, "nothing of the pipeline left"


async def test_wait_is_refused_alone_and_works_in_the_pipeline_that_wrote(valkey: Valkey) -> None:
    for command in (("WAIT", 0, 100), ("waitaof", 0, 0, 100), ("WAIT 0 100",)):
        with pytest.raises(Invalid, match="put it into the pipeline that writes"):
            await valkey.execute_command(*command)
    async with valkey.pipeline(transaction=False) as pipe:
        assert await pipe.set("a", 1).wait(0, 100).execute() == [True, 0]
        assert await pipe.set("a", 2).waitaof(0, 0, 1000).execute() == [True, [0, 0]]


async def test_whole_commands_in_one_string_do_not_fill_memory(valkey: Valkey) -> None:
    for number in range(500):
        await valkey.execute_command(f"SET key{number} value")
    assert len(valkey._plans) < 20


@pytest.mark.parametrize("value", [None, True, object(), ["a"], {"a": 1}], ids=lambda value: type(value).__name__)
async def test_arguments_that_cannot_be_sent_leave_the_connection_alone(valkey: Valkey, value: object) -> None:
    with pytest.raises(redis.exceptions.DataError):
        await valkey.execute_command("SET", "a", value)
    with pytest.raises(redis.exceptions.DataError):
        await valkey.pipeline().set("b", 1).execute_command("SET", "a", value).execute()
    assert await valkey.dbsize() == 0


async def test_text_that_is_not_unicode_is_told_how_to_travel(valkey: Valkey) -> None:
    with pytest.raises(redis.exceptions.DataError, match="pass it as bytes"):
        await valkey.set("\udcff", 1)
    assert await valkey.set(bytearray(b"\xff\xfe"), memoryview(b"\x00\xff"))
    assert await valkey.get(b"\xff\xfe") == b"\x00\xff"
    assert await valkey.keys() == [b"\xff\xfe"]
    assert await valkey.scan() == (0, [b"\xff\xfe"])


# -- backpressure ------------------------------------------------------------------------------------------------------


async def test_big_values_of_many_callers_stay_within_the_bound(valkey_server: LocalServer, valkey: Valkey) -> None:
    limit = MIB
    narrow = await connect(valkey_server.url, settings=ValkeySettings(in_flight_bytes=limit))
    most = 0
    done = 0

    async def writer(number: int) -> None:
        nonlocal done
        await narrow.set(f"k{number}", b"x" * 300_000)
        done += 1

    async def watcher() -> None:
        nonlocal most
        while done < 100:
            most = max(most, narrow.in_flight_bytes)
            await asyncio.sleep(0)

    await asyncio.gather(watcher(), *(writer(number) for number in range(100)))
    assert limit - 300_100 < most <= limit + 300_100
    assert await narrow.dbsize() == 100
    assert narrow.in_flight_bytes == 0
    await narrow.aclose()


async def test_small_caller_is_served_among_giants(valkey_server: LocalServer, valkey: Valkey) -> None:
    narrow = await connect(valkey_server.url, settings=ValkeySettings(in_flight_bytes=100_000))
    giants = [asyncio.create_task(narrow.set(f"k{n}", b"x" * 1_000_000)) for n in range(40)]
    await asyncio.sleep(0)
    small = asyncio.create_task(narrow.get("k0"))
    late = [asyncio.create_task(narrow.set(f"late{n}", b"x" * 1_000_000)) for n in range(40)]
    assert len(await small) == 1_000_000, "it came after the first giants"
    assert not all(task.done() for task in late), "and did not wait for those that came later"
    await asyncio.gather(*giants, *late)
    await narrow.aclose()


async def test_pipelines_wait_for_room_as_well(valkey_server: LocalServer, valkey: Valkey) -> None:
    narrow = await connect(valkey_server.url, settings=ValkeySettings(in_flight_bytes=50_000))
    results = await asyncio.gather(
        *(narrow.pipeline().set(f"k{n}", b"x" * 20_000).strlen(f"k{n}").execute() for n in range(50))
    )
    assert results == [[True, 20_000]] * 50
    await narrow.aclose()


# -- lost connections --------------------------------------------------------------------------------------------------


async def test_lost_reply_of_a_write_says_that_it_may_have_been_applied(valkey: Valkey) -> None:
    connection = valkey._wire.connection
    assert connection is not None
    write = asyncio.create_task(valkey.incr("n"))
    read = asyncio.create_task(valkey.get("n"))
    declared = asyncio.create_task(valkey.run(("SET", "s", 1), lambda reply: reply, repeat=True))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    connection.abort("cut")
    with pytest.raises(ReplyLost) as caught:
        await write
    assert isinstance(caught.value, AnswerLost) and isinstance(caught.value, redis.exceptions.ConnectionError)
    assert await read in (None, b"1")
    assert await declared == b"OK"


async def test_command_not_yet_written_is_sent_over_the_next_connection(valkey: Valkey) -> None:
    both = asyncio.gather(valkey.get("x"), valkey.incr("n"))  # the first leaves at once, the second with the turn
    await asyncio.sleep(0)
    assert valkey._wire.connection is not None
    valkey._wire.connection.abort("cut")
    assert await both == [None, 1]


async def test_read_that_breaks_every_connection_is_given_up(fault_proxy: Any, valkey: Valkey) -> None:
    proxy = await fault_proxy()
    client = await connect(proxy.url)
    await client.set("poison", b"x" * 10_000)
    accepted = proxy.accepted

    async def cutting() -> None:
        while True:
            if proxy.cut_after_bytes is None:
                proxy.cut_mid_reply(after_bytes=1_000)
            await asyncio.sleep(0)

    cutter = asyncio.create_task(cutting())
    with pytest.raises(AnswerLost):
        async with asyncio.timeout(30):
            await client.get("poison")
    cutter.cancel()
    assert proxy.accepted - accepted <= 5
    await proxy.restore()
    await client.aclose()


async def test_server_away_is_waited_for_no_longer_than_the_outage_limit(fault_proxy: Any) -> None:
    proxy = await fault_proxy()
    client = await connect(proxy.url, settings=ValkeySettings(outage_seconds=1.0))
    await proxy.refuse()
    proxy.cut()
    while client._wire.connection is not None:
        await asyncio.sleep(0)
    started = asyncio.get_running_loop().time()
    results = await asyncio.gather(*(client.incr("n") for _ in range(100)), return_exceptions=True)
    assert 0.9 < asyncio.get_running_loop().time() - started < 20
    assert all(isinstance(each, Unavailable) for each in results)
    started = asyncio.get_running_loop().time()
    for call in (client.blpop("l", 1), client.pipeline().get("x").execute(), client.pipeline().watch("x")):
        with pytest.raises(Unavailable):
            await call
    await proxy.restore()
    assert await client.incr("m") == 1
    await client.aclose()


async def test_closing_tells_everyone_and_leaves_nothing(valkey_server: LocalServer) -> None:
    with no_noise(), warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        before = asyncio.all_tasks()
        client = await connect(valkey_server.tcp_url, settings=ValkeySettings(wires=2))
        blocked = asyncio.create_task(client.blpop("nothing", 0))
        sockets = [wire.connection._transport.get_extra_info("socket") for wire in client._wires]  # type: ignore[union-attr]
        async with client.pipeline() as pipe:
            await pipe.watch("x")
        waiting = [asyncio.create_task(client.execute_command("DEBUG", "SLEEP", "1")) for _ in range(2)]
        await asyncio.sleep(0.02)
        await client.aclose()
        for task in (blocked, *waiting):
            with pytest.raises(AnswerLost):
                await task
        assert [each.fileno() for each in sockets] == [-1, -1]
        await client.aclose()
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == before
        del client


@pytest.mark.parametrize(
    ("replies", "refused"),
    [
        ([redis.exceptions.BusyLoadingError(), redis.exceptions.BusyLoadingError()], True),
        ([b"OK", redis.exceptions.BusyLoadingError(), redis.exceptions.ExecAbortError()], True),
        ([redis.exceptions.MasterDownError("MASTERDOWN")], True),
        ([b"OK", redis.exceptions.BusyLoadingError()], False),
        ([b"OK", b"OK", redis.exceptions.BusyLoadingError(), redis.exceptions.ExecAbortError()], False),
        ([b"OK", b"QUEUED", redis.exceptions.BusyLoadingError(), redis.exceptions.ExecAbortError()], True),
        ([b"OK", b"QUEUED", [1]], False),
        ([redis.exceptions.BusyLoadingError(), 1], False),
        ([redis.exceptions.ResponseError("no")], False),
        ([], False),
    ],
)
def test_block_is_sent_again_only_if_none_of_it_ran(replies: list[Any], refused: bool) -> None:
    assert (refusal_of(replies) is not None) is refused
