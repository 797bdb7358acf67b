"""What one person was sent."""

import pytest

from keystead.edge import PageRequest, make_cursor
from keystead.errors import Invalid
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
    assert await paged(history, 1) == [[queued], [dropped], [arrived]]
    assert await paged(history, 2) == [[queued, dropped], [arrived]]


async def paged(history: History, limit: int) -> list[list[str]]:
    found, cursor = [], None
    while True:
        page = await history.page(ADA, PageRequest(limit, cursor))
        found.append([touch.uid for touch in page.items])
        if (cursor := page.next_cursor) is None:
            return found


async def test_touches_of_one_moment_come_once_each_logged_or_not_whole(room: Room):
    history = History(room.valkey, room.database)
    await room.point()
    await room.person("ada")
    logged = [await room.send("ada") for _ in range(5)]
    await room.dispatcher.run()
    await room.log_job.run()
    waiting = [await room.send("ada") for _ in range(3)]
    for limit in (1, 2, 3, 8):
        pages = await paged(history, limit)
        seen = [uid for page in pages for uid in page]
        assert sorted(seen) == sorted(logged + waiting) and all(len(page) == limit for page in pages[:-1])
        assert set(seen[:3]) == set(waiting), "they come last and are told first"
    assert {touch.status for touch in (await history.page(ADA, PageRequest(8))).items} > {"queued"}


async def test_page_is_not_asked_for_with_what_is_no_place(room: Room):
    history = History(room.valkey, room.database)
    for wrong in (7, ["x", 1, "a"], [1.0, -1, "a"], [1.0, 2**63, "a"]):
        with pytest.raises(Invalid):
            await history.page(ADA, PageRequest(5, make_cursor(wrong)))


async def test_nobody_has_no_history(room: Room):
    assert await History(room.valkey, room.database).of(UserSub("nobody")) == []
