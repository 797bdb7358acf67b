"""Measure how reminders get their times: ``python -m bench.load.reminders_assign --rows 1000000 --url URL``.

A million people in SQLite, one reminder each, in four time zones, all due within the horizon; the limit of waiting
reminders is out of the way. The first tenth gets its times beforehand, by itself: all of them should be given at the
same speed, and in the same memory.
"""

import asyncio
import resource
import tempfile
import time
from datetime import UTC, datetime
from importlib.metadata import version

from bench.load import protocol

ZONES = ("America/Los_Angeles", "America/Denver", "America/Chicago", "America/New_York")
QUICK_ROWS = 30_000
PEOPLE = """
WITH RECURSIVE n(i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM n WHERE i < {last})
INSERT INTO users (sub, created_at) SELECT 'user_' || i, 1.0 FROM n
"""
REMINDERS = """
INSERT INTO user_daily_reminders
  (uid, user_id, channel, start_time, end_time, day_of_week_mask, timezone, created_at)
SELECT 'udr_' || printf('%022d', (id * 7919) % 1000003) || id, id,
       CASE id % 3 WHEN 0 THEN 'email' WHEN 1 THEN 'sms' ELSE 'push' END,
       21600 + (id * 31) % 7200, 72000, 127,
       CASE id % 4 WHEN 0 THEN '{0}' WHEN 1 THEN '{1}' WHEN 2 THEN '{2}' ELSE '{3}' END, 1.0
FROM users WHERE id >= {first}
"""


class Standing:
    """It is a quarter past ten in Los Angeles, and stays so: no run ends because its time is over."""

    def now(self) -> float:
        return datetime(2026, 3, 2, 18, 15, tzinfo=UTC).timestamp()


async def measure(url: str, rows: int) -> dict[str, float]:
    from sqlalchemy import text

    from keystead.engine import connect
    from keystead.reminders.assigner import Assigner
    from keystead.reminders.keys import QUEUED
    from keystead.settings import RemindersSettings
    from keystead.store import Database

    valkey = await connect(url)
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        async with Database.open(f"sqlite:///{directory}/bench.sqlite") as database:
            await database.migrate()

            async def assign(first: int, last: int) -> float:
                """Add people and give them their times; says how long the second took."""
                async with database.transaction() as sql:
                    await sql.execute(text(PEOPLE.format(first=first, last=last)))
                    await sql.execute(text(REMINDERS.format(*ZONES, first=first)))
                await valkey.flushall()
                settings = RemindersSettings(queued_items=10 * rows)
                begin = time.perf_counter()
                await Assigner(valkey, database, Standing(), settings, b"bench").run()
                took = time.perf_counter() - begin
                waiting = await QUEUED.size(valkey)
                if waiting != last:
                    raise SystemExit(f"{waiting} of {last} reminders have a time")
                return took

            await assign(1, rows // 20)  # not counted
            few = rows // 10 / await assign(rows // 20 + 1, rows // 10)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            many = rows / await assign(rows // 10 + 1, rows)
            grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    await valkey.aclose()
    return {"rows_per_second": many, "against_a_tenth": many / few, "resident_growth_mb": grown * 1024 / 1e6}


if __name__ == "__main__":
    flags = protocol.parser()
    flags.add_argument("--rows", type=int, default=1_000_000)
    given = flags.parse_args()
    wanted = min(given.rows, QUICK_ROWS) if given.seconds < 1 else given.rows
    figures = asyncio.run(measure(given.url, wanted))
    protocol.answer(figures, {"library": f"keystead {version('keystead')}", "rows": wanted})
