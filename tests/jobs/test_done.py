"""The completion channel: who listens before the job is queued hears its end."""

import asyncio
from collections.abc import Awaitable, Callable

from keystead.engine import Valkey, connect
from keystead.jobs.done import awaiting_done, say_done
from keystead.jobs.keys import DONE
from keystead.testing.proxy import FaultProxy


async def test_caller_who_listens_first_hears_the_end(server: Valkey) -> None:
    async with awaiting_done(server) as done:
        assert await say_done(server, done.uid) == 1
        assert await done.wait(20)
        assert await done.wait(0) and not done.may_have_missed_it  # once heard it stays heard


async def test_payload_is_exactly_the_documented_word(server: Valkey) -> None:
    async with server.hub().subscribe(DONE.at("u1")) as listener:
        await say_done(server, "u1")
        message = await listener.get(20)
    assert message is not None and message.payload == b"done"


async def test_end_is_said_with_the_rest_of_a_transaction(valkey: Valkey) -> None:
    async with awaiting_done(valkey, "u1") as done:
        async with valkey.pipeline(transaction=True) as pipeline:
            say_done(pipeline, "u1")
            assert not await done.wait(0.1)
            await pipeline.execute()
        assert await done.wait(20)


async def test_other_words_and_other_jobs_are_not_the_end(valkey: Valkey) -> None:
    async with awaiting_done(valkey, "u1") as done, awaiting_done(valkey, "u2") as other:
        await DONE.at("u1").publish(valkey, b"started")
        await say_done(valkey, "u2")
        assert await other.wait(20) and not await done.wait(0.1)
        await say_done(valkey, "u1")
        assert await done.wait(20)


async def test_waiting_ends_with_its_time(valkey: Valkey) -> None:
    async with awaiting_done(valkey) as done:
        assert not await done.wait(0.05) and not done.may_have_missed_it


async def test_end_said_before_is_not_heard(valkey: Valkey) -> None:
    assert await say_done(valkey, "u1") == 0
    async with awaiting_done(valkey, "u1") as done:
        assert not await done.wait(0.05)


async def test_interrupted_waiter_knows_that_it_may_have_missed_the_end(
    valkey: Valkey, fault_proxy: Callable[[], Awaitable[FaultProxy]]
) -> None:
    proxy = await fault_proxy()
    far = await connect(proxy.url)
    try:
        async with awaiting_done(far, "u1") as done:
            proxy.cut()
            async with asyncio.timeout(30):
                while not done.may_have_missed_it:
                    await done.wait(0.1)
            await say_done(valkey, "u1")
            assert await done.wait(20) and not done.may_have_missed_it
    finally:
        await far.aclose()
