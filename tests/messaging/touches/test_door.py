"""One object to write to people with."""

import pytest

from keystead.errors import Invalid, LimitReached, NotFound
from keystead.messaging import Messaging
from keystead.messaging.touches.keys import TO_SEND
from keystead.messaging.touches.messages import Messages
from keystead.messaging.touches.points import TouchPoints
from keystead.messaging.touches.touches import Touches

from .room import HELLO, ON_FAILURE, ON_SUCCESS, Room, on_sqlite

pytestmark = on_sqlite
TOKEN = "ExponentPushToken[abcdefghij]"


def door(room: Room) -> Messaging:
    return Messaging(room.touches, room.points, room.outlets, room.sms, room.email, room.push)


async def test_a_touch_on_one_channel(room: Room):
    await room.point()
    (uid,) = await door(room).touch("ada", "hello_there", channel="sms", parameters={"name": "Ada"}, uid="mine",
                                    on_success=ON_SUCCESS, on_failure=ON_FAILURE, lane="high")
    (touch,) = await TO_SEND.queue.range(room.valkey)
    assert (uid, touch.channel, touch.lane, touch.success_callback, touch.failure_callback) == (
        "mine", "sms", "high", ON_SUCCESS, ON_FAILURE)


async def test_without_a_channel_every_one_that_reaches_the_person_is_used(room: Room):
    await room.point()
    await room.person("ada", phones=["+15005550001"], emails=["ada@example.com"])
    for _ in range(2):
        uids = await door(room).touch("ada", "hello_there", parameters={"name": "Ada"}, uid="mine")
        assert uids == ("mine_sms", "mine_email")
    assert await TO_SEND.length(room.valkey) == 2, "asked again, nothing is queued again"


async def test_who_is_refused_for_too_many_may_ask_again_and_nobody_is_told_twice(room: Room):
    """Refused with one channel queued already, asking again would have queued that one twice."""
    await room.point()
    await room.person("ada", phones=["+15005550001"], emails=["ada@example.com"])
    room.touches = Touches(room.valkey, room.clock, room.settings, most_queued=2)
    await room.send("ben")
    assert len(await door(room).touch("ada", "hello_there", parameters={"name": "Ada"})) == 2
    with pytest.raises(LimitReached):
        await door(room).touch("ada", "hello_there", parameters={"name": "Ada"})
    assert await TO_SEND.length(room.valkey) == 3


async def test_who_cannot_be_reached_still_leads_to_a_callback(room: Room):
    await room.point(messages=Messages(email=HELLO.email))
    (uid,) = await door(room).touch("ada", "hello_there", parameters={"name": "Ada"}, on_failure=ON_FAILURE)
    assert uid.endswith("_email")
    await room.dispatcher.run()
    assert await room.callbacks() == ["shop.missed"]


async def test_what_cannot_be_said_is_refused_at_the_door(room: Room):
    messaging = door(room)
    with pytest.raises(NotFound, match="no touch point"):
        await messaging.touch("ada", "nobody_knows", channel="sms")
    await room.point()
    with pytest.raises(Invalid, match="does not fit"):
        await messaging.touch("ada", "hello_there", channel="sms", parameters={})
    await room.point("silent_one", messages=Messages())
    with pytest.raises(Invalid, match="no messages"):
        await messaging.touch("ada", "silent_one", parameters={"name": "Ada"})
    assert not await TO_SEND.length(room.valkey)


async def test_a_refusal_is_never_older_than_the_event(room: Room):
    """This process knows the event of a second ago; what another one changed since then may make the touch right."""
    point = await room.point()
    messaging, elsewhere = door(room), TouchPoints(room.valkey, room.database, room.clock)
    await messaging.touch("ada", "hello_there", channel="sms", parameters={"name": "Ada"})
    schema = {**point.event_schema, "properties": {**point.event_schema["properties"],
                                                   "name": {"type": "integer", "example": 7}}}
    await elsewhere.change(point.uid, schema={**schema, "example": {**schema["example"], "name": 7}})
    await messaging.touch("ada", "hello_there", channel="sms", parameters={"name": 7})
    with pytest.raises(Invalid, match="does not fit"):
        await messaging.touch("ada", "hello_there", channel="sms", parameters={"name": "Ada"})
    assert await TO_SEND.length(room.valkey) == 2


async def test_the_built_in_reminder_can_be_sent(room: Room):
    await room.points.ensure_built_in()
    await room.person("ada", phones=["+15005550001"], emails=["ada@example.com"], tokens=[TOKEN])
    uids = await door(room).touch("ada", "daily_reminder", parameters={"name": "Ada", "url": "https://example.com/l/a"})
    await room.dispatcher.run()
    assert len(uids) == 3 and await room.counted() == {"queued": 3, "attempted": 3, "reachable": 3}


async def test_words_can_be_sent_to_an_address_directly(room: Room):
    messaging = door(room)
    for _ in range(2):
        assert await messaging.text("+15005550001", "Your code is 1", uid="t", lane="high", user="ada") == "t"
        assert await messaging.email("ada@example.com", "Code", "notice", {"title": "x"}, uid="e") == "e"
        assert await messaging.push(TOKEN, "Code", "1", uid="p") == "p"
    assert [sms.user_sub for sms in await room.texts("high")] == ["ada"]
    assert len(await room.emails()) == len(await room.pushes()) == 1
