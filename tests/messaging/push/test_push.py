"""Push messages: queued once, and only what can be sent."""

import pytest

from keystead.errors import Invalid, LimitReached
from keystead.messaging.push.keys import SENDING
from keystead.messaging.push.stats import TICKETS
from keystead.messaging.sending import traced
from keystead.patterns import Writes

from .room import NOON, TOKEN, Room


async def test_a_message_is_queued_and_counted_once(server):
    room = Room(server)
    for _ in range(3):
        assert await room.queue(uid="pma_1", lane="high", user_sub="u1") == "pma_1"
    (push,) = await SENDING.waiting("high").range(server)
    assert (push.uid, push.push_token, push.retry, push.initially_queued_at) == ("pma_1", TOKEN, 0, NOON)
    assert (push.last_queued_at, push.user_sub, push.contents.channel_id) == (NOON, "u1", "default")
    assert await room.counted(TICKETS) == {"queued": 1}
    await room.check_all()


async def test_a_message_is_queued_among_the_writes_of_someone_else(valkey):
    room = Room(valkey)
    push = room.push.outgoing(TOKEN, title="Hello", body="World")
    writes = Writes(valkey.layout)
    room.push.push_writes(writes, push)
    assert await room.push.waiting() == 0
    await SENDING.queue(valkey, room.push.outgoing(TOKEN, title="Another", body=""), writes=writes, now=NOON)
    assert await room.push.waiting() == 2
    assert await room.counted(TICKETS) == {"queued": 1}
    assert [entry.what for entry in await traced(valkey, push.uid)] == ["queued"]
    assert push.uid.startswith("pma_")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"token": "abc"}, "push token"),
        ({"token": "ExponentPushToken[]"}, "push token"),
        ({"title": " ", "body": ""}, "title or words"),
        ({"body": "x" * 5000}, "at most 4096 bytes"),
        ({"uid": "a:b"}, "uid"),
        ({"lane": "express"}, "lane"),
    ],
)
async def test_what_cannot_be_sent_is_refused_with_a_reason(valkey, wrong, says):
    given = {"token": TOKEN, "title": "Hello", "body": "World", **wrong}
    with pytest.raises(Invalid, match=says):
        await Room(valkey).push.queue(given.pop("token"), **given)


async def test_a_full_lane_is_said(valkey):
    room = Room(valkey)
    await room.queue(limit=1)
    with pytest.raises(LimitReached):
        await room.queue(limit=1)
    await room.check_all()
