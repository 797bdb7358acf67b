"""Replies never go to the wrong caller and nobody hangs: whoever is cancelled, wherever, and whatever is cut."""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any

import pytest
import redis.exceptions
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keystead.engine import Valkey, connect
from keystead.errors import Unavailable
from keystead.settings import ValkeySettings
from keystead.testing.proxy import FaultProxy
from keystead.testing.server import LocalServer
from tests.engine.noise import no_noise

Conversation = Callable[[Valkey, str], Awaitable[None]]


async def echo(client: Valkey, token: str) -> None:
    assert await client.echo(token) == token.encode()


async def set_and_get(client: Valkey, token: str) -> None:
    await client.run(("SET", f"own:{token}", token), lambda reply: reply, repeat=True)
    assert await client.get(f"own:{token}") == token.encode()


async def block(client: Valkey, token: str) -> None:
    replies = await client.run_block([("SET", f"own:{token}", token), ("GET", f"own:{token}")], list, repeat=True)
    assert replies == [b"OK", token.encode()]


async def pipeline(client: Valkey, token: str) -> None:
    replies = await client.pipeline(transaction=False).echo(token).echo(token + "!").execute()
    assert replies == [token.encode(), token.encode() + b"!"]


async def push_and_pop(client: Valkey, token: str) -> None:
    assert await client.rpush(f"list:{token}", token) >= 1
    assert await client.blpop(f"list:{token}", 1) == (f"list:{token}".encode(), token.encode())


async def watch(client: Valkey, token: str) -> None:
    async with client.pipeline() as pipe:
        await pipe.watch(f"watched:{token}")
        assert await pipe.echo(token) == token.encode()
        pipe.multi()
        assert await pipe.echo(token).execute() == [token.encode()]


# A watcher that loses its connection is told as when someone else wrote: nothing happened, try again.
LOST = (Unavailable, redis.exceptions.WatchError)
CONVERSATIONS: list[Conversation] = [echo, set_and_get, block, pipeline, push_and_pop, watch]


# -- cancelled at every await point ------------------------------------------------------------------------------------


class CancelledAt:
    """Runs a coroutine and cancels it at its n-th wait, as a task would: what it waits for, then the coroutine."""

    def __init__(self, inner: Coroutine[Any, Any, Any], step: int) -> None:
        self._inner = inner
        self._step = step
        self.waits = 0

    def __await__(self) -> Generator[Any, Any, Any]:
        try:
            waited_for = self._inner.send(None)
            while True:
                self.waits += 1
                if self.waits == self._step:
                    if waited_for is not None:
                        waited_for._asyncio_future_blocking = False
                        waited_for.cancel()
                    waited_for = self._inner.throw(asyncio.CancelledError())
                    continue
                try:
                    yield waited_for
                except BaseException as error:
                    waited_for = self._inner.throw(error)
                else:
                    waited_for = self._inner.send(None)
        except StopIteration as end:
            return end.value


async def cancel_at_every_step(client: Valkey, conversation: Conversation) -> int:
    """One caller cancelled at step 1, 2, 3… until it finishes; others must not notice. Returns how many steps."""
    for step in range(1, 100):
        others = [asyncio.create_task(echo(client, f"before{step}-{n}")) for n in range(3)]  # type: ignore[arg-type]
        victim = CancelledAt(conversation(client, f"victim{step}"), step)  # type: ignore[arg-type]
        cancelled = False
        async with asyncio.timeout(30):
            try:
                await victim
            except asyncio.CancelledError:
                cancelled = True
            others += [asyncio.create_task(each(client, f"after{step}")) for each in CONVERSATIONS]  # type: ignore[arg-type]
            await asyncio.gather(*others)
        if not cancelled:
            return step - 1
    raise AssertionError("the conversation never ended")


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda each: each.__name__)
async def test_caller_cancelled_at_every_await_point_shifts_no_reply(
    valkey: Valkey, conversation: Conversation
) -> None:
    with no_noise():
        steps = await cancel_at_every_step(valkey, conversation)
    assert steps >= 1
    assert valkey.in_flight_bytes == 0


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda each: each.__name__)
async def test_caller_cancelled_at_every_await_point_while_there_is_no_room(
    valkey_server: LocalServer, valkey: Valkey, conversation: Conversation
) -> None:
    narrow = await connect(valkey_server.url, settings=ValkeySettings(in_flight_bytes=60))
    with no_noise():
        assert await cancel_at_every_step(narrow, conversation) >= 1
        assert narrow._wire.connection is not None
        assert (narrow.in_flight_bytes, narrow._wire.connection._granted_bytes) == (0, 0)
        assert not narrow._wire.connection.congested
    await narrow.aclose()


@pytest.mark.parametrize("noticed", [True, False], ids=["noticed", "unnoticed"])
@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda each: each.__name__)
async def test_caller_cancelled_at_every_await_point_of_a_reconnect(
    fault_proxy: Any, valkey: Valkey, conversation: Conversation, noticed: bool
) -> None:
    proxy: FaultProxy = await fault_proxy()
    client = await connect(proxy.url)
    with no_noise():
        for step in range(1, 100):
            proxy.cut()
            while noticed and client._wire.connection is not None:
                await asyncio.sleep(0)
            victim = CancelledAt(conversation(client, f"victim{step}"), step)  # type: ignore[arg-type]
            async with asyncio.timeout(30):
                with contextlib.suppress(asyncio.CancelledError, *LOST):
                    await victim
                for each in CONVERSATIONS:
                    try:
                        await each(client, f"after{step}")
                    except LOST:
                        await each(client, f"again{step}")
            if victim.waits < step:
                break
        else:
            raise AssertionError("the conversation never ended")
        await client.aclose()


async def test_client_closed_at_every_await_point_of_opening_leaves_nothing(valkey_server: LocalServer) -> None:
    with no_noise():
        before = asyncio.all_tasks()
        for step in range(1, 100):
            try:
                client = await CancelledAt(connect(valkey_server.url), step)
            except asyncio.CancelledError:
                continue
            break
        else:
            raise AssertionError("opening never ended")
        assert step > 2
        await client.aclose()
        assert asyncio.all_tasks() == before
        async with asyncio.timeout(30):
            while b"name=keystead" in valkey_server.call("CLIENT", "LIST"):
                await asyncio.sleep(0.005)


# -- everything at once, by chance -------------------------------------------------------------------------------------


async def storm(server: LocalServer, seed: int, callers: int, cuts: int, wires: int, room: int) -> None:
    rng = random.Random(seed)
    async with FaultProxy(server.tcp_url) as proxy:
        client = await connect(
            proxy.url, settings=ValkeySettings(wires=wires, in_flight_bytes=room, command_timeout_seconds=20)
        )
        finished = lost = cancelled = 0

        async def caller(number: int) -> None:
            nonlocal finished, lost
            for turn in range(rng.randrange(1, 6)):
                try:
                    await rng.choice(CONVERSATIONS)(client, f"{seed}-{number}-{turn}-" + "x" * rng.randrange(200))
                    finished += 1
                except LOST:
                    lost += 1

        tasks = [asyncio.create_task(caller(number)) for number in range(callers)]

        async def trouble() -> None:
            nonlocal cancelled
            for _ in range(cuts):
                for _ in range(rng.randrange(30)):
                    await asyncio.sleep(0)
                if rng.random() < 0.5:
                    proxy.cut()
                else:
                    proxy.cut_mid_reply(rng.randrange(2000))
                for _ in range(3):
                    cancelled += rng.choice(tasks).cancel()

        async with asyncio.timeout(90):
            results = await asyncio.gather(trouble(), *tasks, return_exceptions=True)
        wrong = [each for each in results if each is not None and not isinstance(each, asyncio.CancelledError)]
        assert wrong == []
        await proxy.restore()
        await echo(client, "still here")
        assert client.in_flight_bytes == 0
        await client.aclose()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32), callers=st.integers(1, 60), cuts=st.integers(0, 8), wires=st.integers(1, 3),
    room=st.sampled_from([50, 1000, 64 * 1024 * 1024]),
)  # fmt: skip
def test_no_reply_is_ever_anothers_in_a_storm(
    valkey_server: LocalServer, seed: int, callers: int, cuts: int, wires: int, room: int
) -> None:
    async def run() -> None:
        with no_noise():
            await storm(valkey_server, seed, callers, cuts, wires, room)

    valkey_server.ensure_running()
    asyncio.run(run())
