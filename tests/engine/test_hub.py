import asyncio
import gc
import math
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
import redis.exceptions
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keystead.engine import CutOff, Message, ServerAway, Valkey, connect
from keystead.engine.hub import Hub
from keystead.errors import Corrupt, DeclarationError, Invalid
from keystead.keys import Channel, ChannelPattern, Keyspace, Layout
from keystead.telemetry import counts
from keystead.testing.server import LocalServer


class Greeting(msgspec.Struct, frozen=True):
    text: str


CHAT = Keyspace("social.chat", tag="chat")
ROOM = Channel(CHAT, "chat:event:{room}", Greeting, purpose="what is said in a room")
ROOMS = ChannelPattern(CHAT, "chat:event:*", Greeting, purpose="what is said anywhere")


async def subscribers(valkey: Valkey, *channels: str) -> list[int]:
    reply = await valkey.call(("PUBSUB", "NUMSUB", *channels))
    return [int(number) for number in reply[1::2]]


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(30):
        while not await holds():
            await asyncio.sleep(0.005)


async def test_inside_the_block_the_server_has_confirmed(valkey: Valkey) -> None:
    for number in range(50):
        async with valkey.hub().subscribe(f"c{number}") as listener:
            assert await valkey.publish(f"c{number}", "x") == 1
            message = await anext(listener)
            assert (message.channel, message.payload, message.pattern) == (f"c{number}".encode(), b"x", None)


async def test_messages_keep_their_order(valkey: Valkey) -> None:
    async with valkey.hub().subscribe("a", "b") as listener:
        for number in range(500):
            await valkey.publish("ab"[number % 2], number)
        assert [int((await anext(listener)).payload) for _ in range(500)] == list(range(500))


async def test_payloads_are_bytes_as_they_were_sent(valkey: Valkey) -> None:
    payloads = [b"", b"\x00\xff\r\n$3\r\n", b"x" * 300_000, bytes(range(256))]
    channel = b"\xff\x00 binary"
    async with valkey.hub().subscribe(channel) as listener:
        for payload in payloads:
            await valkey.publish(channel, payload)
        for payload in payloads:
            message = await anext(listener)
            assert (message.channel, message.payload) == (channel, payload)


async def test_listeners_of_one_channel_share_one_subscription(valkey: Valkey) -> None:
    hub = valkey.hub()
    async with hub.subscribe("c") as first:
        async with hub.subscribe("c", "d") as second:
            assert await subscribers(valkey, "c", "d") == [1, 1]
            assert await valkey.publish("c", "x") == 1
            assert (await anext(first)).payload == (await anext(second)).payload == b"x"
            assert hub.listeners == 2
        await until(lambda: _equal(subscribers(valkey, "c", "d"), [1, 0]))
        await valkey.publish("c", "y")
        assert (await anext(first)).payload == b"y"
    await until(lambda: _equal(subscribers(valkey, "c"), [0]))
    assert hub.listeners == 0


async def _equal(call: Awaitable[object], expected: object) -> bool:
    return await call == expected


async def test_patterns_say_which_channel_and_which_pattern(valkey: Valkey) -> None:
    async with valkey.hub().subscribe("news:one", patterns=["news:*"]) as listener:
        await valkey.publish("news:one", "x")
        got = [await anext(listener), await anext(listener)]
        assert sorted(message.pattern or b"" for message in got) == [b"", b"news:*"]
        assert {message.channel for message in got} == {b"news:one"}
    await until(lambda: _equal(valkey.pubsub_numpat(), 0))


async def test_get_gives_up_in_time_and_loses_nothing(valkey: Valkey) -> None:
    async with valkey.hub().subscribe("c") as listener:
        assert await listener.get(0.01) is None
        await valkey.publish("c", "x")
        message = await listener.get(2)
        assert message is not None
        assert message.payload == b"x"


async def test_nothing_to_listen_to_is_refused(valkey: Valkey) -> None:
    with pytest.raises(Invalid, match="at least one channel"):
        async with valkey.hub().subscribe():
            pass


# -- declared channels ------------------------------------------------------------------------------------------------


async def test_declared_channel_is_heard_and_decoded(valkey: Valkey) -> None:
    room = ROOM.at("lobby")
    async with valkey.hub().subscribe(room) as listener:
        await room.publish(valkey, Greeting("hello"))
        message = await anext(listener)
        assert message.channel == b"chat:event:lobby"
        assert message.decode(room) == Greeting("hello")


async def test_payload_that_does_not_decode_leaves_the_listener_alone(valkey: Valkey) -> None:
    room = ROOM.at("lobby")
    async with valkey.hub().subscribe(room) as listener:
        await valkey.publish("chat:event:lobby", b"\xff not json")
        await room.publish(valkey, Greeting("after"))
        with pytest.raises(Corrupt, match=r"chat:event:lobby does not decode.*declared as chat:event:\{room\}"):
            (await anext(listener)).decode(room)
        assert (await anext(listener)).decode(room) == Greeting("after")


async def test_tagged_layout_listens_in_the_shard(valkey_server: LocalServer, valkey: Valkey) -> None:
    tagged = await connect(valkey_server.url, layout=Layout.TAGGED)
    try:
        room = ROOM.at("lobby")
        async with tagged.hub().subscribe(room) as listener:
            assert await tagged.call(("PUBSUB", "SHARDNUMSUB", "{chat}chat:event:lobby")) == [
                b"{chat}chat:event:lobby", 1,
            ]
            await room.publish(tagged, Greeting("hello"))
            assert (await anext(listener)).decode(room) == Greeting("hello")
        with pytest.raises(DeclarationError, match="cannot be subscribed by pattern"):
            async with tagged.hub().subscribe(patterns=[ROOMS]):
                pass
    finally:
        await tagged.aclose()


async def test_declared_pattern_is_heard_and_decoded(valkey: Valkey) -> None:
    async with valkey.hub().subscribe(patterns=[ROOMS]) as listener:
        await ROOM.at("one").publish(valkey, Greeting("hello"))
        message = await anext(listener)
        assert message.pattern == b"chat:event:*"
        assert message.decode(ROOMS.codec) == Greeting("hello")


# -- slow listeners ---------------------------------------------------------------------------------------------------


async def test_slow_listener_is_cut_off_with_its_count_while_others_go_on(valkey: Valkey) -> None:
    hub = valkey.hub()
    before = counts.value("hub_messages_dropped")
    async with hub.subscribe("c", "other") as quick, hub.subscribe("c", most_messages=100) as slow:
        for number in range(300):
            await valkey.publish("c", number)
            assert int((await anext(quick)).payload) == number
        assert hub.listeners == 1
        with pytest.raises(CutOff, match="101 messages waiting") as cut:
            await anext(slow)
        assert cut.value.dropped == 101
        assert counts.value("hub_messages_dropped") - before == 101
        await valkey.publish("c", "more")
        assert (await anext(quick)).payload == b"more"
        with pytest.raises(CutOff):
            await anext(slow)


async def test_slow_listener_holds_no_more_bytes_than_it_may(valkey: Valkey) -> None:
    hub = valkey.hub()
    payload = b"x" * 10_000
    async with hub.subscribe("c", most_bytes=100_000) as slow, hub.subscribe("c") as quick:
        for number in range(200):
            await valkey.publish("c", payload)
            await anext(quick)
            if number == 9:
                assert hub.listeners == 2
        with pytest.raises(CutOff) as cut:
            await anext(slow)
        assert cut.value.dropped == 11
        gc.collect()
        assert sum(isinstance(each, Message) for each in gc.get_objects()) == 0


async def test_messages_before_a_cut_off_can_still_be_read_in_time(valkey: Valkey) -> None:
    async with valkey.hub().subscribe("c", most_messages=10) as listener:
        for _ in range(5):
            for number in range(10):
                await valkey.publish("c", number)
            assert [int((await anext(listener)).payload) for _ in range(10)] == list(range(10))


# -- refusals, closing, cancellation ----------------------------------------------------------------------------------


async def test_subscription_that_the_server_refuses_raises_and_harms_no_other(
    valkey_server: LocalServer, valkey: Valkey
) -> None:
    await valkey.execute_command("ACL", "SETUSER", "narrow", "on", ">pw", "+@all", "resetchannels", "&mine*")
    client = await connect(f"valkey://narrow:pw@127.0.0.1:{valkey_server.port}")
    try:
        hub = client.hub()
        with pytest.raises(redis.exceptions.NoPermissionError):  # the connection opens with this wish
            async with hub.subscribe("theirs"):
                pass
        async with hub.subscribe("mine") as listener:
            with pytest.raises(redis.exceptions.NoPermissionError):
                async with hub.subscribe("mine2", "theirs"):
                    pass
            await client.publish("mine", "x")
            assert (await anext(listener)).payload == b"x"
            assert hub.listeners == 1
        await until(lambda: _equal(subscribers(valkey, "mine", "mine2", "theirs"), [0, 0, 0]))
    finally:
        await client.aclose()
        await valkey.execute_command("ACL", "DELUSER", "narrow")


async def test_closing_the_client_ends_iteration(valkey_server: LocalServer, valkey: Valkey) -> None:
    client = await connect(valkey_server.url)
    got: list[bytes] = []

    async def consume() -> None:
        async with client.hub().subscribe("c") as listener:
            ready.set()
            async for message in listener:
                got.append(message.payload)

    ready = asyncio.Event()
    consumer = asyncio.create_task(consume())
    await ready.wait()
    await valkey.publish("c", "x")
    while not got:
        await asyncio.sleep(0.005)
    before = len(asyncio.all_tasks())
    await client.aclose()
    async with asyncio.timeout(30):
        await consumer
    assert got == [b"x"]
    assert len(asyncio.all_tasks()) == before - 1
    with pytest.raises(ServerAway, match="closed"):
        async with client.hub().subscribe("c"):
            pass


async def test_cancellation_at_any_await_leaves_nothing_behind(valkey_server: LocalServer, valkey: Valkey) -> None:
    """Cancel after every possible number of turns of the loop, on a fresh hub and on one that is open."""
    client = await connect(valkey_server.url)
    try:
        for fresh in (True, False):
            finished = turns = 0
            while finished < 3:  # three in a row that were through before the cancellation
                hub = Hub(client._find, client.settings) if fresh else client.hub()

                entered: list[int] = []
                task = asyncio.create_task(_enter(hub, entered))
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                finished = finished + 1 if entered and not task.cancelled() else 0
                turns += 1
                assert hub.listeners == 0
                if fresh:
                    # The connection may be opening still; what it subscribes to must be given up.
                    async with hub.subscribe("probe") as listener:
                        await valkey.publish("probe", "x")
                        await anext(listener)
                await until(lambda: _equal(subscribers(valkey, "a", "b", "probe"), [0, 0, 0]))
                await until(lambda: _equal(valkey.pubsub_numpat(), 0))
                if fresh:
                    await hub.aclose()
            assert turns > 5
    finally:
        await client.aclose()


async def _enter(hub: Hub, entered: list[int]) -> None:
    async with hub.subscribe("a", "b", patterns=["p*"]):
        entered.append(1)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    plans=st.lists(
        st.tuples(
            st.lists(st.sampled_from("abc"), min_size=1, max_size=3),
            st.integers(0, 12),  # turns before entering
            st.integers(0, 12),  # turns inside, or until it is cancelled
            st.sampled_from(["leave", "cancel", "stay"]),
        ),
        min_size=1,
        max_size=12,
    )
)
async def test_storm_of_coming_and_going_ends_with_exactly_what_is_wanted(
    valkey: Valkey, plans: list[tuple[list[str], int, int, str]]
) -> None:
    hub = valkey.hub()
    end = asyncio.Event()
    staying: list[tuple[set[str], list[str]]] = []

    async def one(channels: list[str], before: int, inside: int, fate: str) -> None:
        for _ in range(before):
            await asyncio.sleep(0)
        async with hub.subscribe(*channels) as listener:
            if fate != "stay":
                for _ in range(inside):
                    await asyncio.sleep(0)
                return
            got: list[str] = []
            staying.append((set(channels), got))
            await end.wait()
            while (message := await listener.get(0.1 if len(got) >= len(set(channels)) else 5)) is not None:
                got.append(message.channel.decode())

    async def run(plan: tuple[list[str], int, int, str]) -> None:
        task = asyncio.create_task(one(*plan))
        if plan[3] == "cancel":
            for _ in range(plan[2]):
                await asyncio.sleep(0)
            task.cancel()
        await asyncio.gather(task, return_exceptions=plan[3] == "cancel")

    wanted = {channel for channels, _, _, fate in plans if fate == "stay" for channel in channels}
    stays = sum(fate == "stay" for *_, fate in plans)
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        runs = [tasks.create_task(run(plan)) for plan in plans]
        while sum(not each.done() for each in runs) > stays or len(staying) < stays:
            await asyncio.sleep(0.001)
        assert hub.listeners == stays
        await until(lambda: _equal(subscribers(valkey, "a", "b", "c"), [int(each in wanted) for each in "abc"]))
        for channel in "abc":
            await valkey.publish(channel, "x")
        end.set()
    for channels, got in staying:
        assert sorted(got) == sorted(channels)
    await until(lambda: _equal(subscribers(valkey, "a", "b", "c"), [0, 0, 0]))


async def test_hub_that_was_never_connected_is_silent_for_ever(valkey: Valkey) -> None:
    assert valkey.hub().silent_seconds == math.inf


async def test_silence_ends_with_each_answered_ping(valkey: Valkey) -> None:
    hub = valkey.hub()
    async with hub.subscribe("a"):
        for _ in range(2):
            await asyncio.sleep(0.05)  # so that there is something to fall below
            before = hub.silent_seconds
            assert 0 < before < math.inf
            async with asyncio.timeout(30):
                while hub.silent_seconds >= before:
                    before = max(before, hub.silent_seconds)
                    await asyncio.sleep(0.005)


async def test_silence_grows_while_the_server_does_not_answer(valkey: Valkey) -> None:
    hub = valkey.hub()

    async def silent() -> bool:
        return hub.silent_seconds > 2.0

    async def heard() -> bool:
        return hub.silent_seconds < 2.0

    async with hub.subscribe("a") as listener:
        await valkey.execute_command("CLIENT", "PAUSE", 3000, "ALL")
        await until(silent)
        await until(heard)
        assert await valkey.publish("a", "x") == 1 and (await anext(listener)).payload == b"x"


async def test_message_that_is_late_itself_does_not_end_the_silence(valkey: Valkey, fault_proxy: Any) -> None:
    """Another message, a purge say, may be just as late: only the time of an answered ping proves anything."""
    proxy = await fault_proxy()
    client = await connect(proxy.url)
    try:
        async with client.hub().subscribe("a") as listener:
            proxy.delay(3.0)
            await valkey.publish("a", "late")
            assert (await anext(listener)).payload == b"late"
            assert client.hub().silent_seconds > 2.0
    finally:
        await client.aclose()
