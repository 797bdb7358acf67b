"""Touches become messages: each for itself, once, with everything that follows from it in one step."""

import asyncio
from collections import Counter
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace
from sqlalchemy import update

from keystead.errors import Unavailable
from keystead.jobs import Crew, JobRef, StopReason
from keystead.messaging.sms.keys import SENDING
from keystead.messaging.sms.stats import SENDS as SMS_SENDS
from keystead.messaging.touches.dispatcher import Dispatcher
from keystead.messaging.touches.keys import BY_USER, DAY_COUNT, PENDING, REMAINING, TO_LOG, TO_SEND
from keystead.messaging.touches.messages import Messages, SmsMessage
from keystead.messaging.touches.stats import DROPS, SEND_RUN
from keystead.messaging.touches.tables import TOUCH_POINTS
from keystead.messaging.touches.touches import Touches
from keystead.patterns import Once
from keystead.settings import MessagingSettings

from .room import HELLO, NOON, Room, on_sqlite

pytestmark = on_sqlite
PHONES = ["+15005550001", "+15005550002", "+15005550003"]


async def run(room: Room):
    ended = await room.dispatcher.run()
    assert ended is not None
    return ended


async def test_a_reachable_touch_becomes_a_message_for_each_address(wide_room: Room):
    room, point = wide_room, await wide_room.point()
    await room.person("ada", phones=PHONES[:2])
    uid = await room.send("ada")
    ended = await run(room)
    texts = await room.texts()
    assert [(sms.phone_number, sms.body, sms.user_sub) for sms in texts] == [
        (one, "Hi Ada", "ada") for one in PHONES[:2]]
    attempt = texts[0].success_job.kwargs["attempt_uid"]
    told = {"attempt_uid": attempt, "touch_uid": uid, "user_sub": "ada"}
    assert texts[0].failure_job.name == "touch.sms_failure_handler" and texts[0].failure_job.kwargs == told
    assert texts[0].success_job.kwargs == {**told, "touch_point_uid": point.uid}
    assert await PENDING.index.score(room.valkey, uid) == NOON
    assert set(await REMAINING.at(uid).members(room.valkey)) == {sms.uid for sms in texts}
    assert set(await BY_USER.at("ada").members(room.valkey)) == {uid, *(sms.uid for sms in texts)}
    assert await room.counted() == {"queued": 1, "attempted": 1, "reachable": 1}
    day = await SMS_SENDS.read(room.valkey, SMS_SENDS.day_of(NOON))
    assert day.counts["queued"] == 2
    assert ended.stop_reason is StopReason.LIST_EXHAUSTED
    kept = await SEND_RUN.at().get(room.valkey)
    assert (kept.attempted, kept.attempted_sms, kept.reachable_sms, kept.touch_points) == (1, 1, 1, 1)
    assert not await TO_SEND.length(room.valkey) and not await room.callbacks()
    await room.log_job.run()
    first, second = await room.events()
    assert first == {"type": "send_attempt", "queued_at": NOON, "channel": "sms", "event": "hello_there",
                     "event_parameters": {"name": "Ada"}}
    assert second == {"type": "send_reachable", "parent": attempt, "destinations": PHONES[:2],
                      "message": {"uid": "tpsms_a", "body": "Hi Ada"}}


async def test_email_goes_by_its_own_channel(wide_room: Room):
    await wide_room.point()
    await wide_room.person("ada", emails=["ada@example.com"])
    await wide_room.send("ada", channel="email")
    await run(wide_room)
    (email,) = await wide_room.emails()
    assert (email.email, email.subject, email.template, email.template_parameters) == (
        "ada@example.com", "Hi Ada", "notice", {"title": "Hi"})
    assert email.success_job.name == "touch.email_success_handler"


async def test_push_goes_by_its_own_channel(wide_room: Room):
    await wide_room.point()
    await wide_room.person("ada", tokens=["ExponentPushToken[abcdefghij]"])
    await wide_room.send("ada", channel="push")
    await run(wide_room)
    (push,) = await wide_room.pushes()
    assert (push.push_token, push.contents.title, push.contents.body) == ("ExponentPushToken[abcdefghij]", "Hi", "Ada")
    assert push.failure_job.name == "touch.push_failure_handler"


async def test_a_touch_without_callbacks_never_waits(room: Room):
    await room.point()
    await room.person("ada", phones=PHONES[:1])
    await room.send("ada", success=None, failure=None)
    await run(room)
    assert len(await room.texts()) == 1 and not await PENDING.size(room.valkey)


async def test_one_bad_touch_among_four_hundred_affects_only_itself(room: Room):
    """Unknown event, wrong parameters, a message that cannot be rendered, no message for the channel."""
    await room.point()
    await room.point("no_email", messages=Messages(sms=HELLO.sms))
    await room.point("too_long", messages=Messages(sms=[SmsMessage(
        priority=1, uid="long", body_format="{name}" * 400, body_parameters=["name"])]))
    await room.person("ada", phones=PHONES[:1], emails=["ada@example.com"])
    touches = [room.touch(sub) for sub in await room.people(396)]
    touches[100:100] = [
        room.touch("ada", "nobody_knows"), room.touch("ada", parameters={"name": 3}),
        room.touch("ada", "no_email", "email"), room.touch("ada", "too_long", parameters={"name": "x" * 9}),
    ]
    await room.touches.queue_many(touches)
    await run(room)
    assert await room.counted() == {"queued": 400, "attempted": 400, "improper": 4, "reachable": 396}
    assert len(await room.texts()) == 396 and await PENDING.size(room.valkey) == 396
    assert await room.callbacks() == ["shop.missed"] * 4
    while await TO_LOG.length(room.valkey):
        await room.log_job.run()
    kinds = Counter(event["type"] for event in await room.events())
    assert kinds == {"send_attempt": 397 + 3, "send_reachable": 396, "send_event_improper": 4}


async def test_a_touch_point_that_cannot_be_read_stops_only_its_own_touches(room: Room):
    await room.point()
    broken = await room.point("broken_one")
    async with room.database.transaction() as sql:
        await sql.execute(update(TOUCH_POINTS).where(TOUCH_POINTS.c.uid == broken.uid).values(messages="nonsense"))
    await room.person("ada", phones=PHONES[:1])
    await room.send("ada", "broken_one")
    await room.send("ada")
    await run(room)
    assert await room.counted() == {"queued": 2, "attempted": 2, "improper": 1, "reachable": 1}


async def test_a_callback_that_cannot_be_queued_stops_no_other_touch(room: Room):
    await room.point()
    await room.person("ada", phones=PHONES[:1])
    await TO_SEND.push(room.valkey, replace(room.touch("nobody"), failure_callback=JobRef("shop.missed", {}, "a:b")))
    await room.send("nobody")
    await room.send("ada")
    assert (await run(room)).failed == 0
    assert await room.callbacks() == ["shop.missed"] and len(await room.texts()) == 1
    assert (await room.counted())["attempted"] == 3 and not await TO_SEND.dead.length(room.valkey)


async def test_a_touch_that_waited_for_eight_hours_is_stale(room: Room):
    await room.point()
    await room.person("ada", phones=PHONES[:1])
    await room.send("ada")
    room.clock.advance(8 * 3600 + 1)
    await run(room)
    assert not await room.texts() and await room.callbacks() == ["shop.missed"]
    assert (await SEND_RUN.at().get(room.valkey)).stale == 1
    await room.log_job.run()
    assert [event["type"] for event in await room.events()] == ["send_attempt", "send_stale"]


async def test_who_has_no_address_is_unreachable(room: Room):
    await room.point()
    await room.person("ada", phones=PHONES[:1])
    await room.suppression.suppress_phone(PHONES[0], "Stop")
    for sub in ("ada", "nobody"):
        await room.send(sub)
    await run(room)
    assert await room.counted() == {"queued": 2, "attempted": 2, "unreachable": 2}
    assert await room.callbacks() == ["shop.missed"] * 2


# -- selection within a batch ----------------------------------------------------------------------------------------

THREE = Messages(sms=[SmsMessage(priority=number, uid=f"m{number}", body_format=f"{number}") for number in range(3)])


async def test_two_touches_of_one_person_in_a_batch_follow_one_another(room: Room):
    await room.point(strategy="ordered_resettable", messages=THREE)
    await room.person("ada", phones=PHONES[:1])
    for _ in range(4):
        await room.send("ada")
    await run(room)
    assert [sms.body for sms in await room.texts()] == ["0", "1", "2"], "the fourth would repeat the first"
    await room.log_job.run()
    (state,) = await room.states()
    assert state.version == 3 and state.state["last_priority"] == 2
    room.clock.advance(3600)
    await room.send("ada")
    await run(room)
    assert (await room.texts())[-1].body == "0"


async def test_an_event_can_start_an_ordered_sequence_over(room: Room):
    await room.point(strategy="ordered_resettable", messages=THREE)
    await room.person("ada", phones=PHONES[:1])
    for reset in (False, True, False):
        await room.send("ada", parameters={"name": "Ada", "ss_reset": reset}, lane="high")
    await run(room)
    assert [sms.body for sms in await room.texts("high")] == ["0", "0", "1"]


# -- what people are spared ------------------------------------------------------------------------------------------


async def drops(room: Room) -> dict[str, int]:
    day = await DROPS.read(room.valkey, DROPS.day_of(room.clock.now()))
    return {name: amount for name, amount in day.counts.items() if amount}


async def several(room: Room, amount: int, **given) -> None:
    await room.point(messages=Messages(sms=[SmsMessage(
        priority=1, uid="a", body_format="{name}", body_parameters=["name"])]))
    for number in range(amount):
        await room.send("ada", parameters={"name": f"{number}"}, **given)


async def test_nobody_gets_more_messages_in_a_day_than_the_cap(wide_room: Room):
    room = Room(wide_room.valkey, wide_room.database, settings=MessagingSettings(person_day_messages=2))
    await room.person("ada", phones=PHONES[:1])
    await several(room, 4)
    await run(room)
    assert len(await room.texts()) == 2 and await drops(room) == {"daily_cap": 2}
    assert await room.counted() == {"queued": 4, "attempted": 4, "reachable": 2, "unreachable": 2}
    assert await room.callbacks() == ["shop.missed"] * 2
    await room.send("ada", parameters={"name": "again"})
    await run(room)
    assert len(await room.texts()) == 2, "counted over batches"
    room.clock.advance(24 * 3600)
    await room.send("ada", parameters={"name": "tomorrow"})
    await run(room)
    assert len(await room.texts()) == 3
    assert await DAY_COUNT.at("ada", "sms", 20514).get(room.valkey) == 2


async def test_people_are_left_alone_at_night_by_their_own_clock(room: Room):
    berlin = datetime(2026, 3, 2, 23, 30, tzinfo=ZoneInfo("Europe/Berlin")).timestamp()
    room = Room(room.valkey, room.database, now=berlin)
    await room.point()
    await room.person("ada", phones=PHONES[:1], zone="Europe/Berlin")
    await room.person("ben", phones=PHONES[1:2], zone="America/New_York")
    await room.person("cleo", phones=PHONES[2:], zone="Not/AZone")
    for sub in ("ada", "ben", "cleo"):
        await room.send(sub)
    await run(room)
    assert [sms.user_sub for sms in await room.texts()] == ["ben", "cleo"]
    assert await drops(room) == {"quiet_hours": 1}
    room.clock.advance(6.5 * 3600)
    await room.send("ada")
    await run(room)
    assert [sms.user_sub for sms in await room.texts()] == ["ben", "cleo", "ada"]


async def test_who_chose_the_time_is_written_to_at_night(room: Room):
    room = Room(room.valkey, room.database, now=NOON + 11 * 3600)
    await room.point()
    await room.person("ada", phones=PHONES[:1])
    for any_hour in (False, True):
        await room.send("ada", any_hour=any_hour)
    await run(room)
    assert len(await room.texts()) == 1 and await drops(room) == {"quiet_hours": 1}


async def test_the_same_words_are_not_said_twice_within_the_window(room: Room):
    await room.point()
    await room.person("ada", phones=PHONES[:1])
    await room.person("ben", phones=PHONES[1:2])
    for _ in range(2):
        await room.send("ada")
    await room.send("ben")
    await run(room)
    await room.send("ada")
    await run(room)
    assert [sms.user_sub for sms in await room.texts()] == ["ada", "ben"]
    assert await drops(room) == {"same_content": 2}
    room.clock.advance(room.settings.same_content_seconds + 1)
    await room.send("ada")
    await run(room)
    assert len(await room.texts()) == 3


async def test_what_is_urgent_is_not_held_back(room: Room):
    room = Room(room.valkey, room.database, now=NOON + 11 * 3600, settings=MessagingSettings(person_day_messages=1))
    await room.point()
    await room.person("ada", phones=PHONES[:1])
    for _ in range(3):
        await room.send("ada", lane="high")
    await run(room)
    assert len(await room.texts("high")) == 3 and not await drops(room)


# -- congestion, crashes, several at once ----------------------------------------------------------------------------


async def test_a_channel_with_too_much_waiting_stops_the_job_and_loses_nothing(room: Room):
    await room.point()
    await room.person("ada", phones=PHONES[:1])
    await room.send("ada", lane="high")
    await room.send("ada", lane="high")
    room.dispatcher = Dispatcher(room.valkey, room.clock, room.planner, room.outlets, most_waiting=2)
    blocked = [room.sms.outgoing(PHONES[2], "x") for _ in range(3)]
    await SENDING.waiting().push_right(room.valkey, *blocked)
    ended = await run(room)
    assert ended.stop_reason is StopReason.BACKPRESSURE and await TO_SEND.length(room.valkey) == 2
    await SENDING.waiting().delete(room.valkey)
    assert (await run(room)).stop_reason is StopReason.LIST_EXHAUSTED
    assert len(await room.texts("high")) == 2


@pytest.mark.parametrize("lane", ["high", "low"])
async def test_a_lane_with_too_much_waiting_stops_the_job_as_well(room: Room, lane: str):
    await room.point()
    await room.person("ada", phones=PHONES[:1])
    room.dispatcher = Dispatcher(room.valkey, room.clock, room.planner, room.outlets, most_waiting=1)
    await SENDING.waiting(lane).push_right(room.valkey, *(room.sms.outgoing(PHONES[2], "x") for _ in range(2)))
    await room.send("ada", lane=lane)
    assert (await run(room)).stop_reason is StopReason.BACKPRESSURE and await TO_SEND.length(room.valkey) == 1


async def test_a_blocked_provider_holds_back_the_whole_chain_and_loses_nothing(room: Room):
    """Few texts wait, then few touches, then whoever sends is refused; unblocked, all of it arrives."""
    room.touches = Touches(room.valkey, room.clock, room.settings, most_queued=1000)
    room.dispatcher = Dispatcher(room.valkey, room.clock, room.planner, room.outlets, most_waiting=300)
    await room.point()
    subs = await room.people(1500)
    accepted = []
    for turn in range(2):
        answers = await room.touches.queue_many([room.touch(sub) for sub in subs[750 * turn:750 * turn + 750]])
        accepted += [answer is Once.DONE for answer in answers]
        await run(room)
    refused = accepted.count(False)
    assert refused > 0 and 300 < len(await room.texts()) <= 300 + 400
    arrived = 0
    while texts := await room.texts():
        arrived += len(texts)
        await SENDING.waiting().delete(room.valkey)
        await run(room)
    assert arrived == accepted.count(True) == 1500 - refused and not await room.touches.waiting()
    assert (await room.counted())["reachable"] == arrived


async def test_a_database_that_is_away_costs_no_touch(room: Room):
    await room.point()
    await room.person("ada", phones=PHONES[:1])
    await room.send("ada")
    working = room.outlets["sms"].addresses

    async def away(subs):
        room.dispatcher.budget_seconds = 0.0  # no second try in this run
        raise Unavailable("the database is away")

    room.outlets["sms"].addresses = away
    await run(room)
    assert await TO_SEND.length(room.valkey) == 1 and not await room.callbacks()
    room.outlets["sms"].addresses = working
    room.dispatcher = Dispatcher(room.valkey, room.clock, room.planner, room.outlets)
    await run(room)
    assert len(await room.texts()) == 1


async def test_dispatchers_at_once_send_each_touch_once(wide_room: Room):
    room = wide_room
    await room.point()
    await room.person("ada", phones=PHONES[:1])
    uids = [await room.send("ada", lane="high") for _ in range(60)]
    stop = asyncio.Event()
    crew = Crew(*(Dispatcher(room.valkey, room.clock, room.planner, room.outlets) for _ in range(3)))
    async with asyncio.timeout(60):
        working = asyncio.create_task(crew.work(stop))
        while len(await room.texts("high")) < 60:
            await asyncio.sleep(0.05)
        stop.set()
        await working
    texts = await room.texts("high")
    assert sorted(sms.success_job.kwargs["touch_uid"] for sms in texts) == sorted(uids)
    assert await room.counted() == {"queued": 60, "attempted": 60, "reachable": 60}


async def test_what_a_dead_dispatcher_held_is_sent_once(room: Room):
    """It died after it had taken the touches; another that was taken for dead by mistake then writes nothing."""
    await room.point()
    await room.person("ada", phones=PHONES[:1])
    await room.send("ada", lane="high")
    slow = TO_SEND.worker("slow")
    (item,) = (await slow.take(room.valkey, 1, now=NOON)).items
    (plan,) = await room.planner.plan([item.value])
    await slow.leave(room.valkey)
    room.clock.advance(60)
    await room.valkey.delete("touch:send_purgatory:slow:alive")
    await TO_SEND.adopt(room.valkey, now=room.clock.now())
    await run(room)
    assert not await slow.settle(room.valkey, item, plan.writes)
    assert len(await room.texts("high")) == 1
    assert await room.counted() == {"queued": 1, "attempted": 1, "reachable": 1}


