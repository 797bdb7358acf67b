"""Which time zone a person lives by."""

import pytest
from sqlalchemy import select

from keystead.errors import Invalid, NotFound
from keystead.members import checked_zone
from keystead.members.contact_tables import USER_TIMEZONE_LOG
from keystead.members.keys import TIMEZONE_SAID
from keystead.members.timezones import zone_of

from .room import Room


def test_a_zone_that_does_not_exist_is_refused_with_a_near_name() -> None:
    assert checked_zone("Asia/Kolkata") == "Asia/Kolkata"
    for wrong in ("Asia/Kolkatta", "", "Mars/Olympus", "../../etc/passwd", "America", "x" * 500):
        with pytest.raises(Invalid, match="there is no time zone"):
            checked_zone(wrong)
    with pytest.raises(Invalid, match="did you mean Asia/Kolkata"):
        checked_zone("Asia/Kolkatta")


def test_a_name_this_machine_has_forgotten_stops_nobody() -> None:
    assert [zone_of(name).key for name in (None, "Old/Zone", "UTC")] == [
        "America/Los_Angeles", "America/Los_Angeles", "UTC"]


async def test_a_person_lives_by_the_zone_they_said_last(room: Room) -> None:
    timezones = room.timezones
    sub = (await room.users.ensure("google", "g-1")).sub
    assert (await timezones.of(sub)).key == "America/Los_Angeles"
    assert [await timezones.set(sub, "Asia/Tokyo") for _ in range(2)] == [True, False]
    assert (await room.users.get(sub)).timezone == "Asia/Tokyo"
    for wrong in ("Asia/Tokio", "asia/tokyo"):
        with pytest.raises(Invalid, match="Asia/Tokyo"):
            await timezones.set(sub, wrong)
    with pytest.raises(NotFound):
        await timezones.set("user_nobody", "UTC")  # type: ignore[arg-type]
    assert await room.heard() == [(sub, "Asia/Tokyo")]
    found = await timezones.of_many([sub, "user_nobody", sub])  # type: ignore[list-item]
    assert {who: zone.key for who, zone in found.items()} == {sub: "Asia/Tokyo", "user_nobody": "America/Los_Angeles"}


async def test_a_zone_that_is_said_again_reaches_no_database(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    sub = (await room.users.ensure("google", "g-1")).sub
    assert await room.timezones.set(sub, "Asia/Tokyo", "browser")
    async with room.database.reading() as sql:
        logged = (await sql.execute(select(USER_TIMEZONE_LOG.c.timezone, USER_TIMEZONE_LOG.c.technique))).all()
    assert logged == [("Asia/Tokyo", "browser")]
    assert await TIMEZONE_SAID.at(sub).get(room.valkey) == "Asia/Tokyo"
    monkeypatch.setattr(room.timezones, "_database", None)
    assert not await room.timezones.set(sub, "Asia/Tokyo")
    with pytest.raises(AttributeError):
        await room.timezones.set(sub, "Asia/Seoul")
