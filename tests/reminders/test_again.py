"""Reminders that are edited after the times of their day were chosen get a new one, once a day all the same."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from sqlalchemy import update

from keystead.engine import Valkey
from keystead.jobs import RetryLater
from keystead.reminders.again import Again
from keystead.reminders.keys import PROGRESS, QUEUED, SENT
from keystead.reminders.models import DueReminder
from keystead.reminders.tables import REMINDERS
from keystead.settings import RemindersSettings
from keystead.store import Database

from .test_assigner import Room, day, instant, on_sqlite

pytestmark = on_sqlite
TODAY = day("2026-03-02")
HOUR = 3600


@pytest_asyncio.fixture
async def room(valkey: Valkey, database: Database) -> AsyncIterator[Room]:
    """At twenty to six, times of the morning have been chosen for two people."""
    found = Room(valkey, database, "2026-03-02T05:40")
    for uid in ("udr_a", "udr_b"):
        await found.remind(uid)
    await found.run()
    assert set(await found.times()) == {("udr_a", TODAY), ("udr_b", TODAY)}
    yield found


async def edit(room: Room, start: int, end: int, **other: object) -> None:
    """As the rows do it: what waits is taken away, and the edited one is told."""
    async with room.database.transaction() as sql:
        await sql.execute(update(REMINDERS).where(REMINDERS.c.uid == "udr_a").values(
            start_time=start, end_time=end, **other))
    await QUEUED.cancel(room.valkey, DueReminder("udr_a", TODAY))
    again = Again(room.valkey, room.database, room.clock, RemindersSettings(), room.assigner)
    for _ in range(2):
        await again.moved(["udr_a", "udr_gone"])


async def test_one_whose_place_was_passed_is_chosen_a_time_in_its_new_window(room: Room) -> None:
    await edit(room, 5 * HOUR, 8 * HOUR)
    times = await room.times()
    assert room.clock.now() <= times["udr_a", TODAY] <= instant("2026-03-02T08:00")
    await room.run()
    assert await room.times() == times, "and by nobody else"


async def test_one_that_is_still_ahead_is_left_to_its_turn(room: Room) -> None:
    await edit(room, 9 * HOUR, 10 * HOUR)
    assert ("udr_a", TODAY) not in await room.times()
    room.clock.advance(3 * HOUR)
    await room.run()
    assert instant("2026-03-02T09:00") <= (await room.times())["udr_a", TODAY] <= instant("2026-03-02T10:00")


async def test_one_that_is_about_to_be_passed_has_its_time_whoever_is_first(room: Room) -> None:
    """A page that was read before the edit may be written after it: then nobody comes by the new place any more."""
    await edit(room, 6 * HOUR + 600, 8 * HOUR)
    times = await room.times()
    assert instant("2026-03-02T06:10") <= times["udr_a", TODAY] <= instant("2026-03-02T08:00")
    await PROGRESS.at("America/Los_Angeles", TODAY).update(room.valkey, start_time=7 * HOUR, uid="udr_z", finished=0)
    await room.run()
    assert await room.times() == times


async def test_one_whose_turn_comes_gets_the_same_time_again(room: Room) -> None:
    await edit(room, 6 * HOUR + 600, 8 * HOUR)
    times = await room.times()
    room.clock.advance(60)
    await room.run()
    assert await room.times() == times


async def test_a_crowd_that_comes_at_once_waits_while_too_many_do(room: Room) -> None:
    again = Again(room.valkey, room.database, room.clock, RemindersSettings(queued_items=0), room.assigner)
    with pytest.raises(RetryLater):
        await again.moved(["udr_a"])


async def test_one_that_was_dealt_with_today_is_not_sent_again(room: Room) -> None:
    await SENT.at(TODAY).add(room.valkey, "udr_a")
    await edit(room, 5 * HOUR, 8 * HOUR)
    assert ("udr_a", TODAY) not in await room.times()


async def test_a_window_that_is_over_and_a_day_that_is_not_wanted_get_no_time(room: Room) -> None:
    await edit(room, 1 * HOUR, 5 * HOUR)
    await edit(room, 5 * HOUR, 8 * HOUR, day_of_week_mask=0b1111101)  # not on Mondays, which this is
    assert ("udr_a", TODAY) not in await room.times()


async def test_another_zone_is_another_day(room: Room) -> None:
    """In Tokyo it is almost eleven at night, and that day's evening is not over."""
    await room.remind("udr_tokyo", (1, 2), zone="Asia/Tokyo")
    await room.run()  # times of that zone are chosen from now on
    await edit(room, 20 * HOUR, 24 * HOUR, timezone="Asia/Tokyo")
    await room.run()
    at = (await room.times())["udr_a", TODAY]
    assert room.clock.now() <= at <= instant("2026-03-03T00:00", "Asia/Tokyo")
