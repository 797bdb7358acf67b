"""What one person was sent."""

from keystead.ids import UserSub
from keystead.messaging.touches.history import History

from .room import NOON, Room, on_sqlite

pytestmark = on_sqlite
ADA = UserSub("ada")


async def test_the_life_of_each_touch_is_told_newest_first(room: Room):
    history = History(room.valkey, room.database)
    await room.point()
    await room.person("ada", phones=["+15005550001", "+15005550002"])
    arrived = await room.send("ada")
    await room.dispatcher.run()
    room.clock.advance(60)
    dropped = await room.send("ada")
    await room.dispatcher.run()
    room.clock.advance(60)
    queued = await room.send("ada")
    found = {touch.uid: touch for touch in await history.of(ADA)}
    assert {uid: touch.status for uid, touch in found.items()} == {arrived: "on its way", queued: "queued"}
    assert found[arrived].waits, "the log is not written yet, and it is known all the same"
    first, second = await room.texts()
    await room.fail(first)
    await room.succeed(second)
    await room.log_job.run()
    touches = await history.of(ADA)
    assert [touch.uid for touch in touches] == [queued, dropped, arrived]
    told = touches[-1]
    assert (told.event, told.channel, told.status, told.at) == ("hello_there", "sms", "arrived", NOON)
    assert (told.arrived, told.destinations) == (["+15005550002"], ["+15005550001", "+15005550002"])
    assert told.message["body"] == "Hi Ada" and not told.waits
    assert touches[1].reason == "same_content"
    assert [touch.uid for touch in await history.of(ADA, most=1)] == [queued]
    assert [touch.uid for touch in await history.of(ADA, before=NOON + 30)] == [arrived]


async def test_nobody_has_no_history(room: Room):
    assert await History(room.valkey, room.database).of(UserSub("nobody")) == []
