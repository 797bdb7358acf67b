"""Devices get a name, and what they do is queued."""

import pytest
from sqlalchemy import select

from keystead.engine import Valkey
from keystead.members import Source, Utm, Visitors
from keystead.members.keys import CLICK_REPEATED, CLICKS, LINK_REPEATED, LINKS, VISITOR_UID
from keystead.members.models import VisitorClick, VisitorLink
from keystead.members.tables import VISITORS
from keystead.members.visitors import MOST_QUEUED, QUEUE

from .room import NOON, Room, on_sqlite

NEWS = Utm.of("news", utm_term="a b")


async def test_a_new_device_has_a_signed_name_of_the_documented_shape(room: Room) -> None:
    uid = await room.visitors.create(Source.IOS)
    assert VISITOR_UID.accepts(uid) and room.visitors.is_signed(uid)
    for made_up in (uid[:-1] + ("A" if uid[-1] != "A" else "B"), "v_" + "A" * 26, "v_é", "", "v_\ud800"):
        assert not room.visitors.is_signed(made_up)
    assert not Visitors(room.valkey, room.database, room.clock, b"another").is_signed(uid)
    async with room.database.reading() as sql:
        assert (await sql.execute(select(VISITORS.c.uid, VISITORS.c.source, VISITORS.c.version))).all() == [
            (uid, "ios", 0)]
    with pytest.raises(ValueError):
        await room.visitors.create("toaster")  # type: ignore[arg-type]


@on_sqlite
async def test_what_a_device_does_is_queued_once_a_minute(wide_room: Room) -> None:
    room = wide_room
    uid = await room.visitors.clicked(None, NEWS, source=Source.BROWSER, sub="user_x")  # type: ignore[arg-type]
    assert await room.visitors.clicked(uid, NEWS, source=Source.BROWSER) == uid
    assert await room.visitors.seen(uid, "user_x", source=Source.BROWSER) == uid  # type: ignore[arg-type]
    assert await CLICKS.queue.range(room.valkey) == [VisitorClick(uid, "news", NOON, utm_term="a b")]
    assert await LINKS.queue.range(room.valkey) == [VisitorLink(uid, "user_x", NOON)]
    for mark in (CLICK_REPEATED.at(uid), LINK_REPEATED.at("user_x")):
        assert 0 < await room.valkey.pttl(mark.name(room.valkey.layout)) <= 60_000
        await room.valkey.delete(mark.name(room.valkey.layout))
    await room.visitors.clicked(uid, NEWS, source=Source.BROWSER)
    assert (await CLICKS.length(room.valkey), await LINKS.length(room.valkey)) == (2, 1)


async def test_a_name_that_cannot_be_one_becomes_a_new_device(room: Room) -> None:
    for wrong in (None, "", "v_abc", "x_abcdef", "v_" + "a" * 31, "v_abc:def", "v_abcdé"):
        uid = await room.visitors.seen(wrong, "user_x", source=Source.ANDROID)  # type: ignore[arg-type]
        assert uid != wrong and room.visitors.is_signed(uid)
    assert await room.visitors.seen("v_abcdef", "user_y", source=Source.ANDROID) == "v_abcdef"  # type: ignore[arg-type]


async def test_a_full_queue_leaves_no_mark_behind(server: Valkey) -> None:
    mark = CLICK_REPEATED.at("v_abcdef")

    async def queue(limit: int) -> int:
        return await QUEUE(server, keys=[CLICKS.queue, mark], args=[limit, 60_000, b"{}"])

    assert [await queue(limit) for limit in (2, 2)] == [1, 0]
    await server.delete(mark.name(server.layout))
    assert [await queue(limit) for limit in (1, 1, 2, 3)] == [-1, -1, 1, 0]
    assert MOST_QUEUED == 5000 and await CLICKS.length(server) == 2
