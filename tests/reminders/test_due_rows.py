"""Reading what is due, page by page."""

from keystead.engine import Valkey
from keystead.reminders.due_rows import DueRows
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
