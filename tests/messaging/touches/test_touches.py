"""A touch is accepted once, counted with it, and refused when too many wait."""

import asyncio

import pytest

from keystead.errors import Invalid, LimitReached
from keystead.jobs import JobRef
from keystead.messaging.sending import traced
from keystead.messaging.touches.keys import BY_USER, TO_SEND
from keystead.messaging.touches.models import Touch
from keystead.messaging.touches.touches import MOST_BYTES, MOST_CALLBACK_BYTES, Touches
from keystead.patterns import Once

from .room import NOON, ON_FAILURE, Room, on_sqlite

pytestmark = on_sqlite


async def test_a_touch_is_queued_with_its_count_and_found_by_person(wide_room: Room):
    room = wide_room
    uid = await room.touches.send("ada", "hello_there", channel="sms", parameters={"name": "A"}, failure=ON_FAILURE)
    assert await TO_SEND.queue.range(room.valkey) == [
        Touch(uid, "ada", "hello_there", "sms", {"name": "A"}, None, ON_FAILURE, NOON)]
    assert await room.counted() == {"queued": 1}
    assert await BY_USER.at("ada").members(room.valkey) == [uid]
    (step,) = await traced(room.valkey, uid)
    assert step.what == "queued" and step.facts == {"event": "hello_there", "channel": "sms", "lane": "normal"}


async def test_the_same_uid_is_queued_once_in_a_day(wide_room: Room):
    for _ in range(3):
        assert await wide_room.touches.send("ada", "hello_there", channel="sms", uid="mine") == "mine"
    assert await wide_room.touches.waiting() == 1 and await wide_room.counted() == {"queued": 1}


async def test_too_many_are_refused_and_a_repeat_is_not(wide_room: Room):
    touches = Touches(wide_room.valkey, wide_room.clock, most_queued=2)
    for uid in ("a", "b"):
        await touches.send("ada", "hello_there", channel="sms", uid=uid)
    assert not await touches.has_room()
    with pytest.raises(LimitReached):
        await touches.send("ada", "hello_there", channel="sms", uid="c")
    await touches.send("ada", "hello_there", channel="sms", uid="a")
    assert await wide_room.counted() == {"queued": 2}, "what was refused is not counted"


async def test_however_many_ask_at_once_the_limit_holds(wide_room: Room):
    touches = Touches(wide_room.valkey, wide_room.clock, most_queued=10)
    asked = await asyncio.gather(
        *(touches.send("ada", "hello_there", channel="sms") for _ in range(25)), return_exceptions=True)
    assert sum(isinstance(one, LimitReached) for one in asked) == 15 and await touches.waiting() == 10


async def test_many_are_queued_in_one_round_trip_each_with_its_answer(wide_room: Room):
    touches = Touches(wide_room.valkey, wide_room.clock, most_queued=3)
    made = [touches.make("ada", "hello_there", channel="sms", uid=uid) for uid in "aabcd"]
    assert await touches.queue_many(made) == [Once.DONE, Once.SEEN, Once.DONE, Once.DONE, Once.FULL]


@pytest.mark.parametrize("given", [
    {"slug": "no spaces"}, {"channel": "pigeon"}, {"uid": "a:b"}, {"uid": ""}, {"uid": "x" * 121}, {"user_sub": ""},
    {"user_sub": "a\nb"}, {"parameters": {"x": "y" * MOST_BYTES}}, {"parameters": {"x": object()}},
    {"lane": "fast"}, {"success": JobRef("a", {"x": "y" * MOST_CALLBACK_BYTES})},
    {"failure": JobRef("a", {"x": object()})}, {"failure": JobRef("a", {}, "our:own")},
    {"success": JobRef("a", {}, "{own}")}, {"success": JobRef("", {})},
])
async def test_what_cannot_be_sent_is_refused_at_once(room: Room, given):
    facts = {"user_sub": "ada", "slug": "hello_there", "channel": "sms", **given}
    with pytest.raises(Invalid):
        await room.touches.send(facts.pop("user_sub"), facts.pop("slug"), **facts)
    assert not await room.touches.waiting()
