"""Reading what is due, page by page."""

import pytest
from sqlalchemy import text

from keystead.engine import Valkey
from keystead.reminders.due_rows import DueRows, page_query
from keystead.store import Database
from tests.reminders.test_assigner import MORNING, Room


async def test_pages_follow_each_other_without_gap_or_overlap(valkey: Valkey, database: Database) -> None:
    room = Room(valkey, database, "2026-03-02 05:00")
    for number in range(23):
        await room.remind(f"udr_{number % 7}_{number:02}", (MORNING[0] + number % 3, MORNING[1]))
    rows, cursor, seen = DueRows(database), (-1, ""), []
    while page := await rows.page(
        "America/Los_Angeles", cursor, weekday=1, up_to=MORNING[1], joined_before=1.0, most=5
    ):
        seen += [(row.start_time, row.uid) for row in page]
        cursor = seen[-1]
    assert len(seen) == 23 and seen == sorted(set(seen))


async def test_every_zone_is_found_once(valkey: Valkey, database: Database) -> None:
    room = Room(valkey, database, "2026-03-02 05:00")
    assert await DueRows(database).zones() == []
    for number in range(6):
        await room.remind(f"udr_{number}", zone=("Asia/Tokyo", "Europe/Berlin", "UTC")[number % 3])
    assert await DueRows(database).zones() == ["Asia/Tokyo", "Europe/Berlin", "UTC"]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_page_begins_at_its_place_in_the_index(database: Database) -> None:
    """Many people have the same start: whoever is before the cursor is not looked at again."""
    query = page_query("UTC", (MORNING[0], "udr_5"), weekday=1, up_to=MORNING[1], joined_before=1.0, most=5)
    async with database.reading() as sql:
        shown = query.compile(dialect=sql.dialect, compile_kwargs={"literal_binds": True})
        plan = " ".join(row[3] for row in await sql.execute(text(f"EXPLAIN QUERY PLAN {shown}")))
    assert "user_daily_reminders_due (timezone=? AND (start_time,uid)>(?,?)" in plan
    assert "SCAN" not in plan and "TEMP B-TREE" not in plan
