"""A touch that becomes a dead letter ends all the same: once, with its callback, and can still be tried again."""

import asyncio

from keystead.messaging.sending import traced
from keystead.messaging.touches.given_up import GivenUp
from keystead.messaging.touches.keys import TO_SEND, TRIES
from keystead.patterns.worklist_items import DeadLetter

from .room import NOON, Room, on_sqlite

pytestmark = on_sqlite


async def buried(room: Room, sub: str = "ada") -> str:
    """A touch that a dispatcher gave up."""
    uid = await room.send(sub)
    worker = TO_SEND.worker("test")
    (item,) = (await worker.take(room.valkey, 1, now=NOON)).items
    await worker.bury(room.valkey, [item], error="Oops: nobody foresaw it", now=NOON)
    await worker.leave(room.valkey)
    return uid


async def test_a_touch_that_is_a_dead_letter_ends_with_its_failure_callback(wide_room: Room):
    room = wide_room
    await room.point()
    await room.person("ada", phones=["+15005550001"])
    uid = await buried(room)
    await room.stale_job.run()
    assert await room.callbacks() == ["shop.missed"]
    assert await room.counted() == {"queued": 1, "attempted": 1, "improper": 1}
    assert (await traced(room.valkey, uid))[-1].facts["callback"] == "queued"
    (letter,) = await TO_SEND.dead_letters(room.valkey)
    assert letter.error == "Oops: nobody foresaw it" and letter.dead_at == NOON, "it can be seen as before"
    await room.log_job.run()
    attempt, improper = await room.rows_of_log()
    assert improper.event["type"] == "send_event_improper" and improper.event["parent"] == attempt.uid


async def test_it_ends_once_however_often_and_by_however_many_it_is_looked_for(wide_room: Room):
    room = wide_room
    for _ in range(20):
        await buried(room)
    lookers = [GivenUp(room.valkey, room.planner) for _ in range(4)]
    assert sum(await asyncio.gather(*(one.end_all() for one in lookers))) == 20
    for one in lookers * 2:
        assert await one.end_all() == 0
    assert await room.callbacks() == ["shop.missed"] * 20 and await TO_SEND.dead.length(room.valkey) == 20


async def test_a_letter_that_comes_later_is_found(room: Room):
    looker = GivenUp(room.valkey, room.planner)
    for _ in range(3):
        await buried(room)
        assert await looker.end_all() == 1
        assert await looker.end_all() == 0
    assert await room.callbacks() == ["shop.missed"] * 3


async def test_tried_again_by_hand_it_is_sent_and_nobody_hears_twice(room: Room):
    await room.point()
    await room.person("ada", phones=["+15005550001"])
    await buried(room)
    await room.stale_job.run()
    assert await TO_SEND.replay(room.valkey, 10) == 1
    await room.dispatcher.run()
    (sms,) = await room.texts()
    await room.succeed(sms)
    assert await room.callbacks() == ["shop.missed"]


async def test_tried_again_before_it_was_looked_for_it_ends_as_any_other(room: Room):
    await room.point()
    await room.person("ada", phones=["+15005550001"])
    await buried(room)
    await TO_SEND.replay(room.valkey, 10)
    await room.stale_job.run()
    await room.dispatcher.run()
    (sms,) = await room.texts()
    await room.succeed(sms)
    assert await room.callbacks() == ["shop.reached"]


async def test_letters_that_cannot_be_read_stop_no_other(room: Room):
    await TO_SEND.dead.push_right(room.valkey, DeadLetter(b"{", "does not decode", NOON))
    await room.valkey.run(("RPUSH", TO_SEND.dead.name(room.valkey.layout), b"nonsense"), int)
    await buried(room)
    await room.stale_job.run()
    assert await room.callbacks() == ["shop.missed"] and await TO_SEND.dead.length(room.valkey) == 3


async def test_what_the_server_refuses_to_write_ends_as_well(room: Room):
    """A touch whose step is refused is taken up again and again; the others of its batch are sent at once."""
    await room.point()
    for number, sub in enumerate(("ada", "ben")):
        await room.person(sub, phones=[f"+1500555000{number}"])
        await room.send(sub, uid=f"for_{sub}")
    await room.valkey.set("touch:pending:for_ada:remaining", "no set")
    for _ in range(TRIES + 1):
        await room.dispatcher.run()
    assert [sms.user_sub for sms in await room.texts()] == ["ben"]
    assert await TO_SEND.dead.length(room.valkey) == 1
    await room.stale_job.run()
    assert await room.callbacks() == ["shop.missed"]
    assert await room.counted() == {"queued": 2, "attempted": 2, "reachable": 1, "improper": 1}


async def test_a_letter_whose_end_is_refused_stops_nothing_and_is_tried_again(room: Room):
    uid = await buried(room)
    await buried(room, "ben")
    await room.valkey.set(f"msg:trace:{uid}", "no trace")
    for _ in range(2):
        await room.stale_job.run()
        assert await room.callbacks() == ["shop.missed"]
    await room.valkey.delete(f"msg:trace:{uid}")
    await room.stale_job.run()
    assert await room.callbacks() == ["shop.missed"] * 2
