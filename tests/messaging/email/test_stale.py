"""Email without news is given up after a day, and no crash loses its failure job."""

import contextlib
from dataclasses import replace

import pytest
import pytest_asyncio

from keystead.engine import Valkey
from keystead.messaging.email.keys import RECEIPT_PENDING
from keystead.messaging.email.stats import STALE_RUN
from keystead.store import Database
from tests.messaging.sending.mortal import Died, lives

from .room import Room, on_sqlite

pytestmark = on_sqlite


@pytest_asyncio.fixture
async def room(server: Valkey, database: Database) -> Room:
    """On one server, and on the cluster."""
    return Room(server, database)


DAY = 86_400.0


async def test_an_email_without_news_for_a_day_fails_once(room: Room) -> None:
    await room.queue()
    await room.queue("grace@example.com")
    await room.send()
    room.later(DAY - 1)
    assert await room.sweep() == 0 and len(await room.pending()) == 2
    room.later(1)
    assert await room.sweep() == 2 and await room.pending() == {}
    assert await room.run_jobs() == ["test.bad", "test.bad"]
    assert {(failure.info.step, failure.info.error_identifier, failure.info.retryable)
            for failure, _ in room.failed} == {("receipt", "ReceiptTimeout", False)}
    assert await room.sweep() == 0
    run = await STALE_RUN.at().get(room.valkey)
    assert run is not None and run.stop_reason == "list_exhausted"


async def test_more_than_one_step_full_is_given_up_in_one_run(room: Room) -> None:
    for number in range(205):
        await room.queue(uid=f"em_{number}")
    await room.send()
    room.later(DAY + 1)
    assert await room.sweep() == 205
    assert len(await room.run_jobs()) == 205


async def test_a_broken_record_does_not_hide_the_others(room: Room) -> None:
    await room.queue()
    await room.send()
    await RECEIPT_PENDING.index.add(room.valkey, "half", 1.0)
    await RECEIPT_PENDING.index.add(room.valkey, "bad", 2.0)
    await room.valkey.run(("HSET", RECEIPT_PENDING.record("bad").name(room.valkey.layout), "aud", "?"), int)
    room.later(DAY + 1)
    assert await room.sweep() == 1
    assert await room.pending() == {}


@pytest.mark.parametrize("count", [3])
async def test_a_sweep_that_dies_at_any_point_loses_no_callback(room: Room, count: int) -> None:
    async for mortal in lives(room.valkey):
        for node in await room.valkey.nodes():
            await node.call(("FLUSHALL",))
        room.provider.sent.clear()
        for _ in range(count):
            await room.queue()
        await room.send()
        room.later(DAY + 1)
        dying = replace(room.workers, valkey=mortal).stale(hostname="dying")  # type: ignore[arg-type]
        with contextlib.suppress(Died):
            await dying._swept(lambda: False)
        await room.sweep()
        assert await room.run_jobs() == ["test.bad"] * count
        if not mortal.dead:
            return
