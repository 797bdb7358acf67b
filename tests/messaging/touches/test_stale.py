"""A touch that nothing was heard of for a day and a half ends as failed, and somebody is told."""

import pytest

from keystead.messaging.touches.keys import PENDING, REMAINING
from keystead.messaging.touches.stale import STALE_SECONDS
from keystead.messaging.touches.stats import DETECTION_RUN, STALE

from .room import Room, on_sqlite

pytestmark = on_sqlite


async def waiting(room: Room, amount: int) -> None:
    await room.point()
    await room.person("ada", phones=["+15005550001"])
    for _ in range(amount):
        await room.send("ada", lane="high")
    await room.dispatcher.run()


async def test_touches_without_news_end_with_their_failure_callback(wide_room: Room):
    room = wide_room
    await waiting(room, 15)
    room.clock.advance(STALE_SECONDS - 1)
    await room.send("ada", lane="high")
    await room.dispatcher.run()
    await room.stale_job.run()
    assert await PENDING.size(room.valkey) == 16 and not await room.callbacks()
    room.clock.advance(2)
    ended = await room.stale_job.run()
    assert ended.counts["stale"] == 15 and (await DETECTION_RUN.at().get(room.valkey)).stale == 15
    assert await room.callbacks() == ["shop.missed"] * 15
    assert await PENDING.size(room.valkey) == 1
    day = await STALE.read(room.valkey, STALE.day_of(room.clock.now()))
    assert day.counts["stale"] == 15
    await room.stale_job.run()
    assert len(await room.callbacks()) == 15


async def test_news_that_comes_after_all_change_nothing(room: Room):
    await waiting(room, 1)
    (sms,) = await room.texts("high")
    room.clock.advance(STALE_SECONDS + 1)
    await room.stale_job.run()
    await room.succeed(sms)
    assert await room.callbacks() == ["shop.missed"]


async def test_what_is_left_of_a_broken_touch_goes_without_a_callback(room: Room):
    await waiting(room, 1)
    ((uid, _),) = await PENDING.index.range(room.valkey)
    await REMAINING.at(uid).delete(room.valkey)
    room.clock.advance(STALE_SECONDS + 1)
    ended = await room.stale_job.run()
    assert not await PENDING.size(room.valkey) and not await PENDING.record(uid).exists(room.valkey)
    assert not await room.callbacks() and ended.counts["stale"] == 1


@pytest.mark.parametrize("text", ["{", "[]", '{"name":"shop.missed","kwargs":{},"queue":"our:own"}'])
async def test_a_callback_that_cannot_be_queued_stops_no_other_touch(room: Room, text: str):
    await waiting(room, 3)
    ((uid, _), *_) = await PENDING.index.range(room.valkey)
    await PENDING.record(uid).update(room.valkey, failure_callback=text)
    room.clock.advance(STALE_SECONDS + 1)
    ended = await room.stale_job.run()
    assert not await PENDING.size(room.valkey) and ended.counts["stale"] == 3
    assert await room.callbacks() == ["shop.missed"] * 2


async def test_a_record_that_is_none_stops_no_other_touch(room: Room):
    await waiting(room, 3)
    ((uid, _), *_) = await PENDING.index.range(room.valkey)
    await room.valkey.set(f"touch:pending:{uid}", "no record")
    room.clock.advance(STALE_SECONDS + 1)
    ended = await room.stale_job.run()
    assert not await PENDING.size(room.valkey) and ended.counts["stale"] == 3
    assert await room.callbacks() == ["shop.missed"] * 2
