"""Fan-out: what reaches whom, in which order, and what a listener is told when something may be missing."""

import asyncio
import contextlib
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keystead.engine import Valkey, connect
from keystead.errors import Invalid
from keystead.keys import Keyspace, Layout, Registry
from keystead.patterns.fanout import FanOut, FanOutHere
from keystead.patterns.fanout_room import Event, FanOutListener, TooSlow
from keystead.testing.checks import check_no_undeclared_keys
from keystead.testing.server import LocalServer

SPACE = Keyspace("fanouttest", tag="f")
CHAT = FanOut(SPACE, "chat:event:{room}", tag="{room}", linger_seconds=1.5, most_bytes=2000, purpose="events of a chat")


@pytest.fixture
def url(server: Valkey, request: pytest.FixtureRequest) -> str:
    cluster = server.layout is Layout.TAGGED
    return request.getfixturevalue("valkey_cluster" if cluster else "valkey_server").url


class Pods(contextlib.AsyncExitStack):
    async def add(self, url: str) -> FanOutHere:
        valkey = await connect(url)
        self.push_async_callback(valkey.aclose)
        pod = await self.enter_async_context(CHAT.open(valkey))
        pod.valkey = valkey
        return pod


async def some(listener: FanOutListener, number: int) -> list[Event]:
    async with asyncio.timeout(20):
        return [await anext(listener) for _ in range(number)]


async def nothing(listener: FanOutListener, seconds: float = 0.05) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(seconds):
            raise AssertionError(await anext(listener))


async def subscribers(valkey: Valkey, room: str) -> int:
    sharded = valkey.layout is Layout.TAGGED
    name = CHAT.channel.at(room).name(valkey.layout)
    total = 0
    for node in await valkey.nodes():
        total += (await node.execute_command("PUBSUB", "SHARDNUMSUB" if sharded else "NUMSUB", name))[1]
    return total


async def until(condition, seconds: float = 20.0) -> None:
    async with asyncio.timeout(seconds):
        while not await condition():
            await asyncio.sleep(0.005)


async def test_event_reaches_every_process_once_and_byte_for_byte(server, url) -> None:
    raw = b'{"t": "msg",  "body":"\\u00e9 x", "n": 1.50}'
    async with Pods() as pods:
        one, two = await pods.add(url), await pods.add(url)
        async with one.join("r", user="u1") as a, one.join("r", user="u2") as b, two.join("r", user="u3") as c:
            assert await one.publish("r", payload=raw, skip="u1") == 1
            await one.tell("r", payload=b'"typing"', skip="u1")
            assert await two.publish("r", payload=b"2") == 2
            assert await some(a, 1) == [Event(b"2", 2)]
            assert sorted(await some(b, 3), key=repr) == sorted(
                [Event(raw, 1), Event(b'"typing"'), Event(b"2", 2)], key=repr
            )
            assert await some(c, 3) == [Event(raw, 1), Event(b'"typing"'), Event(b"2", 2)]
            for listener in (a, b, c):
                await nothing(listener, 0.03)


async def test_numbered_events_come_in_one_order_to_everyone(server, url) -> None:
    async with Pods() as pods:
        group = [await pods.add(url) for _ in range(3)]
        async with contextlib.AsyncExitStack() as stack:
            listeners = [await stack.enter_async_context(pod.join("r")) for pod in group for _ in range(2)]

            async def send(pod, number):
                for count in range(40):
                    await pod.publish("r", payload=b"[%d,%d]" % (number, count))

            await asyncio.gather(*(send(pod, number) for number, pod in enumerate(group)))
            got = [await some(listener, 120) for listener in listeners]
            assert all(each == got[0] for each in got)
            assert [event.seq for event in got[0]] == list(range(1, 121))
            for number in range(3):
                assert [json.loads(event.payload)[1] for event in got[0]
                        if json.loads(event.payload)[0] == number] == list(range(40))


async def test_room_is_subscribed_while_it_has_listeners_and_a_moment_longer(server, url) -> None:
    async with Pods() as pods:
        one = await pods.add(url)
        assert await subscribers(server, "r") == 0
        async with one.join("r"):
            async with one.join("r"):
                assert await subscribers(server, "r") == 1
            assert await subscribers(server, "r") == 1
        assert await subscribers(server, "r") == 1
        async with one.join("r"):  # back before the time is over: the subscription was never given up
            await asyncio.sleep(CHAT.linger_seconds + 0.2)
            assert await subscribers(server, "r") == 1

        async def left() -> bool:
            return await subscribers(server, "r") == 0

        await until(left)
        assert one.rooms == 0
        async with one.join("r") as again:
            await one.publish("r", payload=b"1")
            assert [event.payload for event in await some(again, 1)] == [b"1"]


async def test_who_joins_at_the_moment_a_room_is_left_gets_one_that_lasts(server, url) -> None:
    async with Pods() as pods:
        one = await pods.add(url)
        async with one.join("r"):
            pass
        [room] = one._rooms.values()
        room._task.cancel()  # what the timer does when the time is over
        async with one.join("r") as listener:
            await one.publish("r", payload=b"1")
            assert [event.payload for event in await some(listener, 1)] == [b"1"]
            assert one.rooms == 1


async def test_only_processes_with_a_member_get_a_message(server, url) -> None:
    async with Pods() as pods:
        group = [await pods.add(url) for _ in range(5)]
        async with group[0].join("r") as a, group[1].join("r") as b, group[2].join("other") as c:
            assert await subscribers(server, "r") == 2
            await group[4].publish("r", payload=b"1")
            await some(a, 1)
            await some(b, 1)
            await nothing(c, 0.03)


async def test_lost_number_is_noticed(server, url) -> None:
    async with Pods() as pods:
        one, two = await pods.add(url), await pods.add(url)
        async with two.join("r") as listener:
            await one.publish("r", payload=b"1")
            await CHAT.sequence_key.at("r").increment(server)  # an event that never arrives
            await one.publish("r", payload=b"3")
            assert await some(listener, 3) == [Event(b"1", 1), Event(resync=True), Event(b"3", 3)]
            await CHAT.sequence_key.at("r").delete(server)  # the server forgot
            await one.publish("r", payload=b'"again"')
            assert await some(listener, 2) == [Event(resync=True), Event(b'"again"', 1)]
            await CHAT.sequence_key.at("r").delete(server)
            await two.publish("r", payload=b'"own"')  # its number was used before, by another
            assert await some(listener, 2) == [Event(resync=True), Event(b'"own"', 1)]


async def test_cut_subscription_tells_every_listener_to_resync_and_goes_on(server, url) -> None:
    async with Pods() as pods:
        one, two = await pods.add(url), await pods.add(url)
        async with two.join("r") as a, two.join("r") as b:
            await one.publish("r", payload=b"1")
            assert await some(a, 1) == await some(b, 1)
            for node in await server.nodes():
                await node.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
            assert await some(a, 1) == await some(b, 1) == [Event(resync=True)]
            await one.publish("r", payload=b"2")
            assert await some(a, 1) == [Event(b"2", 2)]


async def test_message_that_does_not_decode_may_have_been_an_event(server, url) -> None:
    async with Pods() as pods:
        one = await pods.add(url)
        async with one.join("r") as listener:
            verb = "SPUBLISH" if server.layout is Layout.TAGGED else "PUBLISH"
            await server.execute_command(verb, CHAT.channel.at("r").name(server.layout), b'{"p": 1')
            assert await some(listener, 1) == [Event(resync=True)]


async def test_event_too_large_is_sent_as_something_to_fetch(server, url) -> None:
    large = json.dumps("x" * 3000).encode()
    async with Pods() as pods:
        one, two = await pods.add(url), await pods.add(url)
        async with one.join("r") as here, two.join("r") as there:
            await one.publish("r", payload=b"1")
            await some(here, 1)
            await one.publish("r", payload=large, fetch=b'{"t":"fetch","seq":9}')
            assert await some(here, 1) == [Event(large, 2)]  # no need to send it through the server
            assert await some(there, 2) == [Event(b"1", 1), Event(b'{"t":"fetch","seq":9}', 2)]


async def test_slow_listener_is_cut_off_and_the_others_are_not(server, url) -> None:
    async with Pods() as pods:
        one = await pods.add(url)
        async with one.join("r", most_events=5) as slow, one.join("r", most_bytes=20) as small, one.join("r") as good:
            for number in range(20):
                await one.tell("r", payload=b"%d" % (1000 + number))
            with pytest.raises(TooSlow):
                await some(slow, 20)
            with pytest.raises(TooSlow):
                await some(small, 20)
            assert len(await some(good, 20)) == 20


async def test_payload_that_is_no_json_is_refused(valkey, valkey_server) -> None:
    async with Pods() as pods:
        one = await pods.add(valkey_server.url)
        with pytest.raises(Invalid):
            await one.publish("r", payload=b'{"half')


async def test_envelope_of_ones_own_script_has_the_documented_fields(valkey, valkey_server) -> None:
    async with Pods() as pods:
        one, two = await pods.add(valkey_server.url), await pods.add(valkey_server.url)
        raw = one.envelope(b'{"seq": 4}', skip="u1")
        assert raw == b'{"opid":"%s","xuid":"u1","p":{"seq": 4}}' % one.origin.encode()
        async with one.join("r") as here, two.join("r", user="u1") as skipped, two.join("r") as there:
            one.deliver("r", payload=b'{"seq": 4}', skip="u1")
            await valkey.publish("chat:event:r", raw)
            assert await some(here, 1) == await some(there, 1) == [Event(b'{"seq": 4}')]
            await nothing(here, 0.03)
            await nothing(skipped, 0.01)


async def test_keys_are_declared_and_expire(server, url, request) -> None:
    async with Pods() as pods:
        await (await pods.add(url)).publish("r", payload=b"1")
    left = await CHAT.sequence_key.at("r").remaining_seconds(server)
    assert 86000 < left <= 86400
    cluster = server.layout is Layout.TAGGED
    kit = request.getfixturevalue("valkey_cluster" if cluster else "valkey_server")
    check_no_undeclared_keys(Registry([SPACE], layout=server.layout), *(kit.primaries() if cluster else [kit]))


MOVES = st.one_of(
    st.tuples(st.just("publish"), st.integers(0, 2)),
    st.tuples(st.just("publish"), st.integers(0, 2)),
    st.tuples(st.just("publish"), st.integers(0, 2)),
    st.tuples(st.just("cut"), st.just(0)),
    st.tuples(st.just("lose"), st.just(0)),
    st.tuples(st.just("rest"), st.just(0)),
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=st.lists(MOVES, max_size=40))
def test_listener_gets_every_event_in_order_or_is_told_to_resync(valkey_server: LocalServer, moves) -> None:
    """The model is the list of all events: what a listener got is that list with holes, each hole announced."""
    valkey_server.call("FLUSHALL")
    asyncio.run(play(valkey_server.url, moves))


async def play(url: str, moves) -> None:
    async with Pods() as pods:
        group = [await pods.add(url) for _ in range(3)]
        async with contextlib.AsyncExitStack() as stack:
            listeners = [await stack.enter_async_context(pod.join("r")) for pod in group]
            sending: list[asyncio.Task] = []
            number = 0
            for kind, who in moves:
                if kind == "publish":
                    number += 1
                    sending.append(asyncio.create_task(group[who].publish("r", payload=b"%d" % number)))
                elif kind == "cut":
                    await group[0].valkey.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
                elif kind == "lose":
                    await CHAT.sequence_key.at("r").increment(group[0].valkey)
                else:
                    await asyncio.sleep(0.01)
            await asyncio.gather(*sending)

            async def ready() -> bool:
                return await subscribers(group[0].valkey, "r") == 3

            await until(ready)
            last = await group[0].publish("r", payload=b'"end"')
            for listener in listeners:
                expected: int | None = None
                async with asyncio.timeout(20):
                    async for event in listener:
                        if event.resync:
                            expected = None
                            continue
                        assert expected is None or event.seq == expected
                        expected = event.seq + 1
                        if event.payload == b'"end"':
                            assert event.seq == last
                            break
