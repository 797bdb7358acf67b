"""News of messages: rows of the log, and the end of their touch, however often a job runs."""

from keystead.jobs import encode_data_raw
from keystead.messaging.email.models import DeliveryInfo, EmailSuccess, PendingEmail
from keystead.messaging.push.models import PushReceipt, PushSuccess, PushTicket, SentPush, SuccessInfo
from keystead.messaging.sms.keys import SENDING
from keystead.messaging.touches.keys import BY_USER, ERASED, PENDING

from .room import NOON, Room, on_sqlite

pytestmark = on_sqlite
PHONES = ["+15005550001", "+15005550002", "+15005550003"]
TOKEN = "ExponentPushToken[abcdefghij]"


async def sent(room: Room, phones: int = 1) -> str:
    await room.point()
    await room.person("ada", phones=PHONES[:phones])
    uid = await room.send("ada")
    await room.dispatcher.run()
    return uid


async def test_three_destinations_fail_succeed_fail_end_with_one_success(wide_room: Room):
    room = wide_room
    uid = await sent(room, 3)
    first, second, third = await room.texts()
    room.clock.advance(5)
    await room.fail(first)
    await room.succeed(second)
    await room.fail(third)
    assert await room.callbacks() == ["shop.reached"]
    await room.log_job.run()
    (touch,) = await room.touched()
    assert (touch.send_uid, touch.destination, touch.message) == (uid, PHONES[1], {"body": "Hi Ada"})
    assert touch.created_at == NOON + 5
    events = await room.events()
    assert [event["type"] for event in events] == [
        "send_attempt", "send_reachable", "send_unretryable", "send_success", "send_unretryable"]
    rows = {row.uid for row in await room.rows_of_log()}
    assert all(event["parent"] in rows for event in events[1:]), "every parent is there"
    assert events[2]["destination"] == PHONES[0] and events[2]["info"]["identifier"] == "InternalError"


async def test_three_failures_end_with_one_failure(wide_room: Room):
    await sent(wide_room, 3)
    for sms in await wide_room.texts():
        await wide_room.fail(sms)
    assert await wide_room.callbacks() == ["shop.missed"]
    assert not await PENDING.size(wide_room.valkey)


async def test_a_handler_that_runs_again_changes_nothing_more(wide_room: Room):
    room = wide_room
    await sent(room, 2)
    first, second = await room.texts()
    for _ in range(3):
        await room.fail(first)
        await room.succeed(second)
    assert await room.callbacks() == ["shop.reached"]
    await room.log_job.run()
    assert len(await room.touched()) == 1
    assert [event["type"] for event in await room.events()] == [
        "send_attempt", "send_reachable", "send_unretryable", "send_success"]


async def test_a_message_that_can_be_tried_again_leaves_its_touch_waiting(wide_room: Room):
    room = wide_room
    uid = await sent(room)
    (sms,) = await room.texts()
    for _ in range(2):
        await room.fail(sms, retryable=True)
    assert await SENDING.retrying().size(room.valkey) == 1, "however often the job runs"
    assert await PENDING.index.score(room.valkey, uid) is not None and not await room.callbacks()
    room.clock.advance(13 * 3600)
    ((again, _),) = await SENDING.retrying().range(room.valkey)
    await room.fail(again, retryable=True)
    assert await room.callbacks() == ["shop.missed"]
    await room.log_job.run()
    assert [event["type"] for event in await room.events()][2:] == ["send_retry", "send_abandon"]


async def test_what_is_over_is_not_on_its_way_to_the_person_any_more(wide_room: Room):
    """The index of a person who is written to each day would otherwise grow for ever."""
    room = wide_room

    async def on_its_way() -> set[str]:
        return set(await BY_USER.at("ada").members(room.valkey))

    await sent(room, 2)
    first, second = await room.texts()
    before = await on_its_way()
    await room.fail(first, retryable=True)
    assert await on_its_way() == before and len(before) == 3
    await room.fail(first)
    await room.fail(second)
    assert await on_its_way() == set()
    for given in ({"lane": "high"}, {"lane": "high", "success": None, "failure": None}):
        await room.send("ada", **given)
        await room.dispatcher.run()
        third, fourth = (await room.texts("high"))[-2:]
        await room.succeed(third)
        assert await on_its_way() == {fourth.uid}
        await room.succeed(fourth)
        assert await on_its_way() == set()
    await room.send("ada")
    await room.dispatcher.run()
    assert await on_its_way() == set(), "said before, so it ended at once"


async def test_what_fails_for_an_erased_person_is_not_tried_again(room: Room):
    await sent(room)
    (sms,) = await room.texts()
    await ERASED.at("ada").raise_flag(room.valkey)
    await room.fail(sms, retryable=True)
    assert not await SENDING.retrying().size(room.valkey) and await room.callbacks() == ["shop.missed"]


async def test_a_push_message_that_arrived_confirms_its_device(room: Room):
    await room.point()
    await room.person("ada", tokens=[TOKEN])
    await room.send("ada", channel="push")
    await room.dispatcher.run()
    (push,) = await room.pushes()
    ticket, receipt = PushTicket("ok", "t1"), PushReceipt("ok")
    told = PushSuccess(
        SentPush(uid=push.uid, initially_queued_at=NOON, push_token=TOKEN, contents=push.contents),
        SuccessInfo(NOON + 1, ticket, NOON + 900, receipt),
    )
    await room.book.jobs["touch.push_success_handler"](**push.success_job.kwargs, data_raw=encode_data_raw(told))
    await room.log_job.run()
    assert await room.confirmed_at(TOKEN) == NOON + 900 and await room.callbacks() == ["shop.reached"]
    assert (await room.touched())[0].message == {"title": "Hi", "body": "Ada", "channel_id": "default"}


async def test_an_email_that_arrived_is_logged_with_its_subject(room: Room):
    await room.point()
    await room.person("ada", emails=["ada@example.com"])
    await room.send("ada", channel="email")
    await room.dispatcher.run()
    (email,) = await room.emails()
    told = EmailSuccess(PendingEmail.of(email, "m1", NOON + 1), DeliveryInfo(NOON + 2))
    await room.book.jobs["touch.email_success_handler"](**email.success_job.kwargs, data_raw=encode_data_raw(told))
    await room.log_job.run()
    (touch,) = await room.touched()
    assert (touch.destination, touch.message["subject"], touch.created_at) == ("ada@example.com", "Hi Ada", NOON + 2)
