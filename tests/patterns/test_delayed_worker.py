"""Members as a worker of a delayed set sees them; what it does with them is in ``test_delayed``."""

import asyncio

import pytest

from keystead.engine import Valkey
from keystead.errors import DeclarationError
from keystead.keys import INTEGER, Keyspace
from keystead.patterns.delayed import DelayedSet
from keystead.patterns.delayed_worker import due_items

SET = DelayedSet(Keyspace("tests", tag="d"), "soon", int, member="n", alive_seconds=3.0, purpose="a test")


def test_undecodable_members_are_told_apart():
    items, spoiled = due_items(INTEGER, [b"1", b"2.5", b"x", b"3"])
    assert [(item.value, item.due_at, item.raw) for item in items] == [(1, 2.5, b"1")]
    assert [each.raw for each in spoiled] == [b"x"]


async def test_worker_in_a_pipeline_names_what_is_spoiled_and_leaves_it_in_purgatory(server: Valkey) -> None:
    await server.run(("ZADD", SET.due.name(server.layout), 1, b"x"), int)
    worker = SET.worker("w")
    async with server.pipeline(transaction=False) as pipeline:
        taking = worker.take(pipeline, 5, now=2)
        await pipeline.execute()
    taken = await taking
    assert not taken.items
    assert await worker.bury(server, taken.spoiled, error="", now=2) == 1
    assert await worker.bury(server, taken.spoiled, error="", now=2) == 0


async def test_worker_is_alive_within_its_block(server: Valkey) -> None:
    await SET.schedule(server, 1, 1)
    worker = SET.worker("w")
    async with worker.alive(server):
        await worker.beat(server)
        await worker.take(server, 1, now=2)
        assert (await SET.adopt(server, now=2)).workers == 0
    async with asyncio.timeout(20):
        while (adopted := await SET.adopt(server, now=2)).workers == 0:
            await asyncio.sleep(0.02)
    assert adopted.items == 1
    assert not await worker.leave(server)
    with pytest.raises(DeclarationError, match="give the worker a name"):
        await SET.worker().leave(server)
