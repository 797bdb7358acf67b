"""When people are reminded, by their own hours."""

import pytest
from sqlalchemy import insert, text

from keystead.engine import Valkey
from keystead.messaging.touches.tables import TOUCH_POINTS, USER_TOUCHES
from keystead.reminders.heat import by_local_hour, happened, spread, wished
from keystead.store import Database

from .test_assigner import MORNING, Room

MONDAY, WEDNESDAY, SATURDAY = 1, 3, 6


def window(first, last, day, count):
    share = count / (last - first + 1)
    return [(first, 1 << day, share), (last + 1, 1 << day, -share)]


def test_a_window_is_spread_evenly_over_its_hours():
    grid = spread(window(6 * 4, 11 * 4 - 1, MONDAY, 10))
    assert grid[MONDAY][5:12] == (0, 2, 2, 2, 2, 2, 0)
    assert sum(map(sum, grid)) == 10


def test_parts_of_hours_weigh_as_much_as_they_are():
    assert spread(window(31, 36, MONDAY, 6))[MONDAY][7:10] == (1, 4, 1), "from a quarter to eight to a quarter past 9"


def test_what_lies_after_midnight_belongs_to_the_next_day():
    grid = spread(window(23 * 4, 25 * 4 - 1, SATURDAY, 4))
    assert (grid[SATURDAY][23], grid[0][0]) == (2, 2)


@pytest.mark.parametrize(("zone", "weekday", "hour"), [
    ("UTC", WEDNESDAY, 0), ("Asia/Kolkata", WEDNESDAY, 5), ("America/New_York", 2, 19), (None, 2, 16),
    ("no such zone", 2, 16),
])
def test_hours_are_those_of_the_reader(zone, weekday, hour):
    at = 1_700_006_400 // 900  # a Wednesday at midnight, UTC
    assert by_local_hour([(zone, at, 3)])[weekday][hour] == 3


async def test_the_database_adds_up_windows(valkey: Valkey, database: Database) -> None:
    empty = await wished(database)
    assert (empty.channels, empty.zones, sum(map(sum, empty.grid))) == ({}, {}, 0)
    room = Room(valkey, database, "2026-03-02 05:00")
    for number in range(6):
        await room.remind(f"udr_{number}", MORNING, zone=("Asia/Tokyo", "UTC", "UTC")[number % 3])
    found = await wished(database)
    assert sum(found.channels.values()) == 6 and found.zones == {"UTC": 4, "Asia/Tokyo": 2}
    assert round(sum(found.grid[MONDAY])) == 6 and found.grid[MONDAY][4] == 0
    before = found.grid[MONDAY][12]
    await room.remind("udr_moment", (12 * 3600, 12 * 3600), zone="UTC")
    assert (await wished(database)).grid[MONDAY][12] == before + 1, "a moment is a window too"


async def test_reminders_that_arrived_are_counted_by_the_hour_of_their_reader(database: Database) -> None:
    async with database.transaction() as sql:
        await sql.execute(text(
            "INSERT INTO users (sub, timezone, created_at) VALUES ('ada', 'Asia/Kolkata', 1), ('ben', NULL, 1)"))
        for slug in ("daily_reminder", "other"):
            await sql.execute(insert(TOUCH_POINTS).values(
                uid=slug, event_slug=slug, event_schema={}, selection_strategy="fixed", messages="", created_at=1.0))
        for number, (user, point, at) in enumerate([(1, 1, 0), (1, 1, 60), (2, 1, 0), (1, 2, 0), (2, 1, -90_000)]):
            await sql.execute(insert(USER_TOUCHES).values(
                uid=str(number), send_uid=str(number), user_id=user, channel="sms", touch_point_id=point,
                destination="", message={}, created_at=1_700_006_400.0 + at))
    grid = await happened(database, 1_700_000_000.0)
    assert (grid[WEDNESDAY][5], grid[2][16], sum(map(sum, grid))) == (2, 1, 3)
