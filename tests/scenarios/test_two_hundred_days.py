"""Two hundred days of counting, with both nights on which clocks change, late counts, and a rotation often late itself.

What SQL and Valkey hold together is compared with a plain account that knows nothing of rotation.
"""

import random
from datetime import date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from keystead import dates
from keystead.engine import Valkey
from keystead.keys import Registry
from keystead.patterns import DailyFamily
from keystead.stats.catalogue import Catalogue
from keystead.stats.rotation import Rotation
from keystead.stats.tables import FamilyTables
from keystead.store import Database
from keystead.testing.clock import MovableClock
from keystead.testing.server import LocalServer
from tests.stats import counted
from tests.stats.event_log import EventLog, stored

FIRST = date(2026, 10, 20)
DAYS = 200  # to the beginning of May: clocks are put back on November 1st and forward on March 14th
LA = ZoneInfo(counted.LA)
SUBJECTS = [one for one in counted.ALL if one not in (counted.PLAIN, counted.CHANGES)]  # the others are like these
EDGES = (0.1, 1.5 * 3600, 12 * 3600.0, -0.1)  # seconds from the beginning of a day, or back from that of the next


def beginning(day: date) -> float:
    return datetime(day.year, day.month, day.day, tzinfo=LA).timestamp()


async def count_at(valkey: Valkey, log: EventLog, at: float) -> None:
    """Count by the instant. The account asks only the calendar which day that is."""
    day = datetime.fromtimestamp(at, LA).date().isoformat()
    await counted.EVENTS.incr(valkey, "found", at=at)
    await counted.JOINED.increment(valkey, at=at)
    await counted.PEOPLE.increment(valkey, at=at)
    await counted.HOOKS.incr(valkey, "received", at=at)
    log.account["events", day, "found"] += 1
    log.account["joined", day, "total"] += 1


def leaks(server: LocalServer, catalogue: Catalogue, earliest: dict[str, int]) -> list[str]:
    """Keys of days before the earliest that would stay for ever, and keys that nobody declared."""
    registry, found, cursor = Registry([counted.ROOM]), [], b"0"
    owners = {one.days if isinstance(one, DailyFamily) else f"stats:{one.name}": one.name for one in catalogue}
    while True:
        cursor, names = server.call("SCAN", cursor, "COUNT", 1000)
        for name in names:
            match = registry.resolve(name)
            if match is None:
                found.append(f"{name!r} is declared nowhere")
                continue
            number = match.arguments.get("unix_date") or match.arguments.get("unix_month")
            owner = next((owners[head] for head in owners if match.declaration.pattern.startswith(f"{head}:")), None)
            old = number is not None and owner is not None and int(number) < earliest[owner]
            if old and server.call("TTL", name) < 0:
                found.append(f"{name!r} lies before {earliest[owner]}")
        if cursor == b"0":
            return found


async def test_two_hundred_days(valkey: Valkey, valkey_server: LocalServer, tmp_path: Path) -> None:
    rng, catalogue = random.Random(11), counted.catalogue(*SUBJECTS)
    log, tables = EventLog(catalogue, rng), FamilyTables(catalogue)
    clock = MovableClock([valkey_server], now=beginning(FIRST))
    rotated, late, delay = 0, 0, 0
    async with Database.open(f"sqlite:///{tmp_path / 'days.db'}") as database:
        await tables.ensure(database)
        rotation = Rotation(valkey, database, catalogue, clock, tables=tables)
        for number in range(DAYS):
            today, tomorrow = FIRST + timedelta(days=number), FIRST + timedelta(days=number + 1)
            day, month = dates.date_to_unix_date(today), dates.date_to_unix_month(today)
            clock.advance(beginning(today) - clock.now())
            for seconds in EDGES:
                await count_at(valkey, log, beginning(today if seconds > 0 else tomorrow) + seconds)
            for _ in range(8):
                back = rng.choice((0, 0, 0, 1, 1, 2, 5, 15))
                await log.count(valkey, day - back, month - (back > 5))
            delay -= 1
            if delay < 0:
                delay = rng.choice((0, 0, 0, 1, 5))
                clock.advance(rng.choice((1, 2, 4, 20)) * 3600.0)
                report = await rotation.run()
                rotated, late = rotated + report.days, late + report.late
                assert [problem for problem in report.problems if " is not " not in problem] == []
            if number % 5 == 4:
                assert (today, await stored(valkey, database, catalogue, day + 1, tables)) == (today, log.expected())
        clock.advance(beginning(tomorrow) + 3 * 3600 - clock.now())
        await rotation.run()
        assert await stored(valkey, database, catalogue, day + 1, tables) == log.expected()
        async with database.reading() as sql:
            labels = [row.retrieved_for for row in await sql.execute(tables.table("joined").select())]

    assert rotated > DAYS * 6 and late > 100
    assert sorted(labels) == [(FIRST + timedelta(days=n - 15)).isoformat() for n in range(DAYS + 15)][-len(labels):]
    assert len(labels) >= DAYS and len(set(labels)) == len(labels)
    earliest = {one.name: first for one in catalogue if (first := await one.earliest(valkey)) is not None}
    assert earliest["events"] == day and earliest["joined"] == day + 1 and earliest["retention"] == day + 1 - 10
    assert leaks(valkey_server, catalogue, earliest) == []
    assert await counted.PEOPLE.earliest(valkey) == month
    views = {key[2]: 0 for key in log.expected() if key[0] == "sessions"}
    for key, amount in log.expected().items():
        if key[0] == "sessions" and key[3] == "total_views":
            views[key[2]] += amount
    assert (await counted.VIEWS.all_time(valkey, before=day + 1)).views == views
