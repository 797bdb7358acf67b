"""Queueing texts, taking the provider's calls, and looking where a text is."""

import pytest

from keystead.engine import Valkey
from keystead.errors import Invalid, LimitReached
from keystead.jobs import JobRef
from keystead.messaging.sms import Sms
from keystead.messaging.sms.keys import NEWS, SENDING
from keystead.messaging.sms.sms import FAILED, SUCCEEDED
from keystead.messaging.sms.stats import SENDS, WEBHOOKS
from keystead.patterns import Writes, once

from .room import NOON, NUMBER, Room


async def test_a_text_is_queued_once_with_its_count(server: Valkey) -> None:
    room = Room(server)
    uid = await room.sms.queue("+1 (415) 555-0100", "Hello", uid="sms_mine", user_sub="u1")
    assert uid == "sms_mine" and await room.sms.queue(NUMBER, "Hello again", uid="sms_mine") == "sms_mine"
    (sms,) = await SENDING.waiting().range(server)
    assert (sms.phone_number, sms.body, sms.retry, sms.initially_queued_at, sms.last_queued_at) == (
        NUMBER, "Hello", 0, NOON, NOON
    )
    assert (sms.success_job, sms.failure_job, sms.user_sub) == (SUCCEEDED, FAILED, "u1")
    assert await room.counted(SENDS) == {"queued": 1}
    assert [step.what for step in (await room.sms.state(uid)).steps] == ["queued"]


async def test_lanes_have_their_own_queues_and_limits(server: Valkey) -> None:
    room = Room(server)
    for lane in ("high", "normal", "low"):
        await room.queue(lane=lane, limit=1)
    with pytest.raises(LimitReached):
        await room.queue(lane="low", limit=1)
    assert [await SENDING.waiting(lane).length(server) for lane in ("high", "normal", "low")] == [1, 1, 1]
    assert await room.sms.waiting() == 3 and await room.counted(SENDS) == {"queued": 3}


async def test_a_text_can_be_among_the_writes_of_someone_else(server: Valkey) -> None:
    room = Room(server)
    sms, writes = room.sms.outgoing(NUMBER, "Hello", lane="high"), Writes(server.layout)
    room.sms.sms_writes(writes, sms)
    assert await SENDING.waiting("high").length(server) == 0
    for _ in range(2):
        await once(server, SENDING.queued_key.at("whatever"), writes)
    assert await SENDING.waiting("high").range(server) == [sms] and await room.counted(SENDS) == {"queued": 1}


@pytest.mark.parametrize(("number", "body", "more", "says"), [
    ("415 555 0100", "Hello", {}, "phone number"),
    ("+1415", "Hello", {}, "phone number"),
    ("+999415555010", "Hello", {}, "phone number"),
    ("+1" * 30, "Hello", {}, "phone number"),
    ("not a number", "Hello", {}, "phone number"),
    (NUMBER, "", {}, "words"),
    (NUMBER, " \n", {}, "words"),
    (NUMBER, "x" * 1601, {}, "at most 1600 characters, this has 1601"),
    (NUMBER, "Hello", {"uid": "a b"}, "uid"),
    (NUMBER, "Hello", {"lane": "express"}, "lane"),
    (NUMBER, "Hello", {"success": JobRef("x", {"data_raw": 1})}, "data_raw"),
])
async def test_what_cannot_be_sent_is_refused_in_one_clear_line(
    valkey: Valkey, number: str, body: str, more: dict[str, object], says: str
) -> None:
    with pytest.raises(Invalid, match=says) as refused:
        await Sms(valkey, Room(valkey).clock).queue(number, body, **more)  # type: ignore[arg-type]
    assert "\n" not in str(refused.value) and NUMBER not in str(refused.value)
    assert await valkey.dbsize() == 0


async def test_the_longest_text_is_taken(valkey: Valkey) -> None:
    await Room(valkey).queue("ü" * 1600)
    assert await SENDING.waiting().length(valkey) == 1


async def test_calls_are_kept_and_counted_in_one_step(server: Valkey) -> None:
    room = Room(server)
    assert await room.sms.take_call("SM1", "sent", "", "sms_1")
    assert await room.sms.take_call("SM1", "undelivered", "30003")
    for sid, status, code in (
        ("", "sent", ""), ("SM1", "", ""), ("SM1", "lost", ""), ("SM 1", "sent", ""), ("SM1", "sent", "x y"),
    ):
        assert not await room.sms.take_call(sid, status, code)
    await room.sms.refuse_call("signature_missing")
    first, second = await NEWS.queue.range(server)
    assert (first.sid, first.status, first.error_code, first.uid) == ("SM1", "sent", None, "sms_1")
    assert (first.received_via, first.information_received_at) == ("webhook", NOON)
    assert (second.error_code, second.date_updated) == ("30003", None)
    assert await room.counted(WEBHOOKS) == {
        "received": 8, "verified": 7, "accepted": 2, "unprocessable": 5, "signature_missing": 1
    }


async def test_it_can_be_seen_where_a_text_is(server: Valkey) -> None:
    room = Room(server)
    uid = await room.queue()
    await room.send()
    state = await room.sms.state(uid)
    assert state.pending is not None and (state.pending.uid, state.pending.message_resource.sid) == (uid, "SM0")
    assert not state.in_flight and await room.sms.knows("SM0") and not await room.sms.knows("SM1")
    await room.tell("SM0", "delivered")
    await room.reconcile()
    state = await room.sms.state(uid)
    assert state.pending is None and "news" in [step.what for step in state.steps]
    assert not any(NUMBER in str(step) or "Hello" in str(step) for step in state.steps)
