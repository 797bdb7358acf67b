"""Nothing waits for a person who was erased, and nothing is sent to them again."""

from keystead.ids import UserSub
from keystead.messaging.sms.keys import SENDING
from keystead.messaging.sms.stats import SENDS as SMS_SENDS
from keystead.messaging.touches.keys import BY_USER, PENDING
from keystead.messaging.touches.stats import DROPS

from .room import NOON, Room, on_sqlite

pytestmark = on_sqlite


async def test_what_is_on_its_way_to_a_person_is_taken_out(wide_room: Room):
    room = wide_room
    await room.point()
    await room.person("ada", phones=["+15005550001", "+15005550002"])
    await room.person("ben", phones=["+15005550003"])
    for sub in ("ada", "ben"):
        await room.send(sub)
    await room.dispatcher.run()
    first, _, other = await room.texts()
    await room.fail(first, retryable=True)
    await SENDING.waiting().push_right(room.valkey, room.sms.outgoing("+15005550009", "x", user_sub="ada", lane="high"))
    taken = await room.erasure.erase("ada")
    assert (taken.messages, taken.touches) == (4, 1), "both texts, the one to be tried again, the direct one"
    assert [sms.uid for sms in await room.texts()] == [other.uid]
    assert not await SENDING.retrying().size(room.valkey)
    assert await room.callbacks() == ["shop.missed"] and await PENDING.size(room.valkey) == 1
    assert not await BY_USER.at("ada").exists(room.valkey)
    day = await SMS_SENDS.read(room.valkey, SMS_SENDS.day_of(NOON))
    assert day.counts["abandoned"] == 4
    again = await room.erasure.erase("ada")
    assert (again.messages, again.touches) == (0, 0)


async def test_touches_that_still_wait_are_dropped(room: Room):
    await room.point()
    await room.person("ada", phones=["+15005550001"])
    await room.send("ada", lane="high")
    await room.book.jobs["members.erased"](user_sub="ada")
    await room.dispatcher.run()
    assert not await room.texts("high") and await room.callbacks() == ["shop.missed"]
    day = await DROPS.read(room.valkey, DROPS.day_of(NOON))
    assert day.counts["erased"] == 1


async def test_rows_of_an_erased_person_are_gone_and_none_are_written_later(room: Room):
    await room.point()
    await room.person("ada", phones=["+15005550001"])
    await room.send("ada", lane="high")
    await room.dispatcher.run()
    await room.log_job.run()
    await room.send("ada", lane="high")
    await room.dispatcher.run()
    await room.contacts.erase(UserSub("ada"))
    await room.erasure.erase("ada")
    await room.log_job.run()
    assert not await room.events() and not await room.touched()
