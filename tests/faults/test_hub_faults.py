"""The hub when its connection is cut, goes silent, or comes back to other rules."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
import redis.exceptions

from keystead.engine import ServerAway, Valkey, connect
from keystead.engine import hub as hub_module
from keystead.engine.listener import Listener
from keystead.settings import ValkeySettings
from keystead.testing.proxy import FaultProxy
from keystead.testing.server import LocalServer

MakeProxy = Callable[..., Awaitable[FaultProxy]]


@asynccontextmanager
async def through(proxy: FaultProxy, **settings: float) -> AsyncIterator[Valkey]:
    client = await connect(proxy.url, settings=ValkeySettings(**settings))
    try:
        yield client
    finally:
        await client.aclose()


async def subscribed(valkey: Valkey, channel: str, number: int = 1) -> None:
    async with asyncio.timeout(30):
        while (await valkey.call(("PUBSUB", "NUMSUB", channel)))[1] != number:
            await asyncio.sleep(0.01)


async def gap(listener: Listener, number: int) -> None:
    async with asyncio.timeout(30):
        while listener.gaps < number:
            await asyncio.sleep(0.01)


async def test_cut_connection_subscribes_to_everything_again(valkey: Valkey, fault_proxy: MakeProxy) -> None:
    proxy = await fault_proxy()
    gaps: list[str] = []
    async with through(proxy) as client:
        hub = client.hub()
        names = [f"c{number}" for number in range(200)]
        async with (
            hub.subscribe(*names, on_gap=lambda: gaps.append("many")) as many,
            hub.subscribe("c1", patterns=["p*"], sharded=["s"], on_gap=lambda: gaps.append("mixed")) as mixed,
        ):
            for round_number in (1, 2, 3):
                proxy.cut()
                await gap(many, round_number)
                await gap(mixed, round_number)
                for name in names:
                    assert await valkey.publish(name, name) == 1
                assert [(await anext(many)).payload.decode() for _ in names] == names
                await valkey.publish("pattern", "x")
                await valkey.execute_command("SPUBLISH", "s", "y")
                assert [(await anext(mixed)).payload for _ in range(3)] == [b"c1", b"x", b"y"]
            assert (many.gaps, mixed.gaps) == (3, 3)
            assert sorted(gaps) == ["many"] * 3 + ["mixed"] * 3
            assert hub.listeners == 2


async def test_half_open_connection_is_noticed_by_pings(valkey: Valkey, fault_proxy: MakeProxy) -> None:
    proxy = await fault_proxy()
    async with through(proxy, command_timeout_seconds=2.0, connect_timeout_seconds=2.0) as client:
        hub = client.hub()
        async with hub.subscribe("c") as listener:
            heard = hub.silent_seconds
            accepted = proxy.accepted
            proxy.half_open()
            # A ping goes out within a second and is given the command timeout.
            async with asyncio.timeout(30):
                while proxy.accepted == accepted:
                    await asyncio.sleep(0.02)
            assert hub.silent_seconds > max(heard, 1.9)
            assert listener.gaps == 0
            silent = hub.silent_seconds
            await asyncio.sleep(0.2)
            assert hub.silent_seconds > silent
            await proxy.restore()
            await gap(listener, 1)
            assert hub.silent_seconds < silent
            await valkey.publish("c", "x")
            assert (await anext(listener)).payload == b"x"


async def test_quiet_channel_is_not_taken_for_a_dead_one(
    valkey: Valkey, fault_proxy: MakeProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_module, "PING_SECONDS", 0.2)
    proxy = await fault_proxy()
    async with through(proxy, command_timeout_seconds=3.0) as client, client.hub().subscribe("c") as listener:
        await asyncio.sleep(4)
        assert client.hub().silent_seconds < 3
        assert listener.gaps == 0


async def test_lost_confirmation_ends_with_the_outage_limit_and_leaves_nothing(
    valkey: Valkey, fault_proxy: MakeProxy
) -> None:
    proxy = await fault_proxy()
    settings = {"command_timeout_seconds": 1.0, "connect_timeout_seconds": 1.0, "outage_seconds": 2.0}
    async with through(proxy, **settings) as client:
        async with client.hub().subscribe("before"):
            proxy.drop_replies()
            async with asyncio.timeout(30):
                with pytest.raises(ServerAway):
                    async with client.hub().subscribe("c"):
                        pass
            assert client.hub().listeners == 1
            await proxy.restore()
            await subscribed(valkey, "before")
        await subscribed(valkey, "before", 0)
        await subscribed(valkey, "c", 0)


async def test_who_joins_during_an_outage_enters_when_it_is_over_and_missed_nothing(
    valkey: Valkey, fault_proxy: MakeProxy
) -> None:
    proxy = await fault_proxy()
    async with through(proxy) as client, client.hub().subscribe("first") as first:
        await proxy.refuse()
        proxy.cut()
        entered = asyncio.Event()

        async def join() -> int:
            async with client.hub().subscribe("second") as second:
                entered.set()
                assert (await anext(second)).payload == b"x"
                return second.gaps

        joining = asyncio.create_task(join())
        await asyncio.sleep(0.1)
        assert not entered.is_set()
        await proxy.restore()
        await entered.wait()
        await valkey.publish("second", "x")
        assert await joining == 0
        await gap(first, 1)
        assert first.gaps == 1


async def test_killed_server_that_comes_back_is_listened_to_again() -> None:
    server = LocalServer()
    server.start()
    try:
        client = await connect(server.url)
        async with client.hub().subscribe("c", sharded=["s"]) as listener:
            server.kill()
            await asyncio.sleep(0.05)
            await asyncio.get_running_loop().run_in_executor(None, server.restart)
            await gap(listener, 1)
            assert await client.publish("c", "x") == 1
            assert await client.execute_command("SPUBLISH", "s", "y") == 1
            assert [(await anext(listener)).payload for _ in range(2)] == [b"x", b"y"]
            assert listener.gaps == 1
        await client.aclose()
    finally:
        server.stop()


async def test_right_taken_away_meanwhile_ends_that_listener_alone(valkey: Valkey, fault_proxy: MakeProxy) -> None:
    await valkey.execute_command("ACL", "SETUSER", "reader", "on", ">pw", "+@all", "resetchannels", "&mine", "&lent")
    proxy = await fault_proxy()
    client = await connect(proxy.url.replace("://", "://reader:pw@"))
    try:
        async with client.hub().subscribe("mine") as mine, client.hub().subscribe("lent", "mine") as lent:
            await valkey.execute_command("ACL", "SETUSER", "reader", "resetchannels", "&mine")  # cuts the connection
            await gap(mine, 1)
            with pytest.raises(redis.exceptions.NoPermissionError):
                await anext(lent)
            await valkey.publish("mine", "x")
            assert (await anext(mine)).payload == b"x"
            assert client.hub().listeners == 1
    finally:
        await client.aclose()
        await valkey.execute_command("ACL", "DELUSER", "reader")


async def test_mistake_in_a_callback_stays_with_its_listener(valkey: Valkey, fault_proxy: MakeProxy) -> None:
    proxy = await fault_proxy()
    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["exception"]))

    def broken() -> None:
        raise ValueError("a mistake of the caller")

    async with (
        through(proxy) as client,
        client.hub().subscribe("c", on_gap=broken) as one,
        client.hub().subscribe("c") as other,
    ):
        proxy.cut()
        await gap(one, 1)
        await gap(other, 1)
        await valkey.publish("c", "x")
        assert (await anext(one)).payload == (await anext(other)).payload == b"x"
    assert [type(each) for each in reported] == [ValueError]


async def test_flapping_connection_under_load_loses_only_what_fell_into_gaps(
    valkey: Valkey, fault_proxy: MakeProxy
) -> None:
    """Whatever arrives is in order and arrives once; what is missing lies around a reported gap."""
    proxy = await fault_proxy()
    async with through(proxy) as client, client.hub().subscribe("c", most_messages=100_000) as listener:
        for number in range(3000):
            await valkey.publish("c", number)
            if number % 600 == 300:
                await gap(listener, number // 600)
                proxy.cut()
        await gap(listener, 5)
        await subscribed(valkey, "c")
        await valkey.publish("c", 3000)
        got: list[int] = []
        while not got or got[-1] != 3000:
            message = await listener.get(20)
            assert message is not None
            got.append(int(message.payload))
        assert got == sorted(set(got))
        holes = sum(after - before > 1 for before, after in itertools.pairwise(got))
        assert holes <= listener.gaps == 5
