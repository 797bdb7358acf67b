"""Queueing: what cannot be sent is refused in words; what can is queued once, and counted."""

from typing import Any

import pytest

from keystead.errors import Invalid, LimitReached
from keystead.jobs import ROOMS_QUEUE, JobRef
from keystead.messaging.email.keys import SENDING
from keystead.messaging.email.stats import SENDS
from keystead.messaging.sending import traced
from keystead.patterns import Writes, once

from .room import ADA, Room, on_sqlite

pytestmark = on_sqlite


async def test_an_email_is_queued_once_for_its_uid(room: Room) -> None:
    for _ in range(2):
        assert await room.queue(uid="em_mine", user_sub="user_1") == "em_mine"
    (item,) = await SENDING.waiting().range(room.valkey)
    assert (item.uid, item.email, item.retry, item.user_sub) == ("em_mine", ADA, 0, "user_1")
    assert item.initially_queued_at == item.last_queued_at == room.clock.now()
    assert await room.counted(SENDS) == {"queued": 1}
    assert [entry.what for entry in await traced(room.valkey, "em_mine")] == ["queued"]


async def test_without_callbacks_the_rooms_own_jobs_follow(room: Room) -> None:
    await room.email.queue(ADA, "s", "code", {"code": 1})
    (item,) = await SENDING.waiting().range(room.valkey)
    assert item.success_job == JobRef("email.succeeded", queue=ROOMS_QUEUE)
    assert item.failure_job == JobRef("email.failed", queue=ROOMS_QUEUE)


async def test_lanes_are_lists_of_their_own_and_full_ones_refuse(room: Room) -> None:
    for lane in ("high", "normal", "low"):
        await room.queue(lane=lane, limit=1)
        assert await SENDING.waiting(lane).length(room.valkey) == 1
        with pytest.raises(LimitReached):
            await room.queue(lane=lane, limit=1)
    assert await room.counted(SENDS) == {"queued": 3}


@pytest.mark.parametrize(("changed", "says"), [
    ({"to": "not an address"}, "no email address"), ({"to": "a@b@example.com"}, "no email address"),
    ({"to": "a" * 400 + "@example.com"}, "too long"), ({"subject": ""}, "one line"),
    ({"subject": "a\r\nBcc: everybody@example.com"}, "one line"), ({"subject": "x" * 999}, "one line"),
    ({"subject": "two\u2028lines"}, "one line"), ({"subject": "two\x85lines"}, "one line"),
    ({"template": "../secret"}, "a template is named"), ({"uid": "a b"}, "uid"),
    ({"parameters": {"x": object()}}, "JSON"),
    ({"parameters": {"x": "y" * 70_000}}, "bytes"), ({"success": JobRef("x", {"data_raw": 1})}, "data_raw"),
])
async def test_what_cannot_be_sent_is_refused_in_words_and_not_queued(
    room: Room, changed: dict[str, Any], says: str
) -> None:
    given: dict[str, Any] = {"to": ADA, "subject": "s", "template": "code", "parameters": {"code": 1}, **changed}
    with pytest.raises(Invalid, match=says) as refused:
        await room.email.queue(given.pop("to"), given.pop("subject"), given.pop("template"), given.pop("parameters"),
                               **given)
    assert ADA not in str(refused.value)
    assert await SENDING.waiting().length(room.valkey) == 0


async def test_an_email_can_be_part_of_somebody_elses_step(room: Room) -> None:
    item = room.email.outgoing(ADA, "s", "code", {"code": 1}, uid="em_touch", lane="low")
    for _ in range(2):
        writes = Writes(room.valkey.layout)
        room.email.email_writes(writes, item)
        await once(room.valkey, SENDING.queued_key.at("em_touch"), writes)
    assert await SENDING.waiting("low").range(room.valkey) == [item]
    assert await room.counted(SENDS) == {"queued": 1}
