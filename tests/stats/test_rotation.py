"""Days leave Valkey for SQL: once, whole, when they are due, and whatever comes too late."""

import asyncio
import random
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import func, select

from keystead import dates
from keystead.engine import Valkey
from keystead.errors import Invalid, NotFound, Unavailable
from keystead.keys import Keyspace, Layout, Registry
from keystead.patterns import DailyFamily
from keystead.stats.rotation import Rotation
from keystead.stats.rotation_days import last_due
from keystead.stats.tables import FamilyTables
from keystead.store import Database
from keystead.testing.checks import check_no_undeclared_keys
from keystead.testing.clock import MovableClock
from keystead.testing.server import LocalServer

from . import counted
from .counted import ACTIVE, ACTIVE_MONTHS, CHANGES, EVENTS, HOOKS, JOINED, PEOPLE, PLAIN, RETENTION, VIEWS, VISITS
from .event_log import EventLog, stored

LA = ZoneInfo(counted.LA)
DAY = dates.date_to_unix_date(datetime(2026, 3, 5).date())


def at(day: int, hour: int = 12, minute: int = 0) -> float:
    date = dates.unix_date_to_date(dates.UnixDate(day))
    return datetime(date.year, date.month, date.day, hour, minute, tzinfo=LA).timestamp()


def rotation(valkey: Valkey, database: Database, now: float, *declared: object, **more) -> Rotation:
    return Rotation(valkey, database, counted.catalogue(*declared), MovableClock(now=now), **more)


async def rows(database: Database, declared, **where) -> list[dict[str, object]]:
    """The rows of a table in order of their days, without id and time."""
    table = FamilyTables(counted.catalogue(declared)).table(declared.name)
    async with database.reading() as sql:
        found = await sql.execute(table.select().order_by(table.c.retrieved_for, table.c.id))
        told = [row._asdict() for row in found]
    return [{name: value for name, value in row.items() if name not in ("id", "retrieved_at")} for row in told]


async def test_days_with_and_without_counts_become_rows(valkey: Valkey, database: Database) -> None:
    await EVENTS.tally().incr("tried", amount=3, unix_date=DAY).incr("failed", "b", 2, unix_date=DAY).incr(
        "failed", "a", unix_date=DAY).incr("tried", unix_date=DAY + 3).store(valkey)

    async def length(end: float) -> int:
        assert end == at(DAY + 1, 0) or end in (at(DAY + 2, 0), at(DAY + 3, 0))
        return 17

    rotating = rotation(valkey, database, at(DAY + 4), EVENTS, gauges={"events.queue_length": length})
    report = await rotating.run()

    none = {"tried": 0, "found": 0, "failed": 0, "lost": 0, "failed_breakdown": "{}", "lost_breakdown": "{}"}
    assert await rows(database, EVENTS) == [
        {"retrieved_for": "2026-03-05", **none, "tried": 3, "failed": 3, "failed_breakdown": '{"a":1,"b":2}',
         "queue_length": 17},
        {"retrieved_for": "2026-03-06", **none, "queue_length": 17},
        {"retrieved_for": "2026-03-07", **none, "queue_length": 17},
    ]
    done = report.by_name["events"]
    assert (done.days, done.late, done.problems, report.stopped) == (3, 0, [], False)
    assert await EVENTS.earliest(valkey) == DAY + 3
    assert (await rotating.run()).days == 0


async def test_every_kind_leaves_as_its_table_says(valkey: Valkey, database: Database) -> None:
    month = dates.date_to_unix_month(datetime(2026, 2, 1).date())
    await CHANGES.incr(valkey, "on:off", amount=2, unix_date=DAY)
    await ACTIVE.add(valkey, "u1", "u2", day=DAY)
    await ACTIVE_MONTHS.add(valkey, "u1", "u2", "u3", day=month)
    await JOINED.increment(valkey, 5, day=DAY)
    for member in ("m1", "m2"):
        await RETENTION.join(valkey, member, day=DAY - 20)
    await RETENTION.active(valkey, "m1", joined_day=DAY - 20, day=DAY - 18)
    for member in ("u1", "u1", "u2"):
        await VIEWS.viewed(valkey, "sleep", member, day=DAY)
    long = "utm_source=" + "".join(random.Random(1).choices("abcdefghijklmnop%0123456789", k=9000))
    await VISITS.add(valkey, [(long, "visits", 2), ("utm_source=b", "any_click_signups", -1)], day=DAY)
    await PEOPLE.increment(valkey, at=at(DAY - 40))
    await PEOPLE.increment(valkey, at=at(DAY))

    report = await rotation(valkey, database, at(DAY + 1)).run()

    assert await rows(database, CHANGES) == [{"retrieved_for": "2026-03-05", "old": "on", "new": "off", "total": 2}]
    assert await rows(database, ACTIVE) == [{"retrieved_for": "2026-03-05", "total": 2, "late": 0}]
    assert await rows(database, ACTIVE_MONTHS) == [{"retrieved_for": "2026-02", "total": 3, "late": 0}]
    assert await rows(database, JOINED) == [{"retrieved_for": "2026-03-05", "total": 5, "late": 0}]
    found = await rows(database, RETENTION)
    assert len(found) == 11 * 3  # days without anybody have rows too: a rate of nobody is a fact
    assert [(row["period_days"], row["retained"], row["unretained"]) for row in found[:3]] == [
        (0, 1, 1), (1, 1, 1), (7, 0, 2)]
    assert await rows(database, VIEWS) == [
        {"subcategory": "sleep", "retrieved_for": "2026-03-05", "total_users": 2, "total_views": 3, "late": 0}]
    visits = {row["utm"]: row for row in await rows(database, VISITS)}
    assert (visits[long]["visits"], visits["utm_source=b"]["any_click_signups"]) == (2, -1)
    assert (await VIEWS.all_time(valkey, before=DAY + 1)).views == {"sleep": 3}
    assert report.by_name["people:monthly"].days == 1
    assert (await PEOPLE.read(valkey, month - 1)).month == 0 and (await PEOPLE.read(valkey, month + 1)).month == 1
    assert not report.problems


async def test_what_comes_late_is_added_once(valkey: Valkey, database: Database) -> None:
    await EVENTS.incr(valkey, "failed", "a", 2, unix_date=DAY)
    await ACTIVE.add(valkey, "u1", day=DAY)
    await JOINED.increment(valkey, 5, day=DAY)
    await RETENTION.join(valkey, "m1", day=DAY - 20)
    await VIEWS.viewed(valkey, "sleep", "u1", day=DAY)
    await VISITS.add(valkey, [("utm_source=b", "visits", 2)], day=DAY)
    rotating = rotation(valkey, database, at(DAY + 2))
    await rotating.run()

    for _ in range(2):  # the second time there is nothing left to add
        await EVENTS.tally().incr("failed", "c", unix_date=DAY).incr("tried", unix_date=DAY - 9).store(valkey)
        await ACTIVE.add(valkey, "u1", day=DAY)
        await JOINED.increment(valkey, 3, day=DAY)
        await RETENTION.join(valkey, "m2", day=DAY - 20)
        await VIEWS.viewed(valkey, "sleep", "u1", day=DAY)
        await VISITS.add(valkey, [("utm_source=b", "visits", -1)], day=DAY)
        report = await rotating.run()
        assert (report.days, report.late) == (0, 2 + 1 + 3 + 1 + 1 + 1)
        assert (await rotating.run()).late == 0

    assert [row["failed_breakdown"] for row in await rows(database, EVENTS)] == ["{}", '{"a":2,"c":2}']
    assert [(row["retrieved_for"], row["tried"], row["failed"]) for row in await rows(database, EVENTS)] == [
        ("2026-02-24", 2, 0), ("2026-03-05", 0, 4)]
    assert (await rows(database, ACTIVE))[0] == {"retrieved_for": "2026-03-05", "total": 1, "late": 2}
    assert (await rows(database, JOINED))[0] == {"retrieved_for": "2026-03-05", "total": 11, "late": 0}
    assert [(row["unretained"], row["late"]) for row in await rows(database, RETENTION)][:3] == [(1, 2)] * 3
    assert (await rows(database, VIEWS))[0] == {
        "subcategory": "sleep", "retrieved_for": "2026-03-05", "total_users": 1, "total_views": 3, "late": 2}
    assert (await rows(database, VISITS))[0]["visits"] == 0


async def test_a_day_waits_for_its_hour_and_for_no_other_day(valkey: Valkey, database: Database) -> None:
    for day in (DAY, DAY + 1):
        await EVENTS.incr(valkey, "tried", unix_date=day)
        await PLAIN.incr(valkey, "seen", unix_date=day)
    report = await rotation(valkey, database, at(DAY + 1, 0, 14)).run()
    assert report.days == 0
    report = await rotation(valkey, database, at(DAY + 2, 0, 20)).run()  # 00:15 has passed, 02:00 has not
    assert (report.by_name["plain"].days, report.by_name["events"].days) == (2, 0)
    report = await rotation(valkey, database, at(DAY + 2, 2)).run(["events", "plain", "people:monthly"])
    assert (report.by_name["plain"].days, report.by_name["events"].days) == (0, 1)
    with pytest.raises(NotFound, match="did you mean events"):
        await rotation(valkey, database, at(DAY + 2, 2)).run(["event"])


@pytest.mark.parametrize(
    ("local", "held", "due"),
    [
        ((2026, 3, 8, 1, 59), 1, (2026, 3, 6)),
        ((2026, 3, 8, 3, 0), 1, (2026, 3, 7)),  # there is no 02:00 on this day
        ((2026, 11, 1, 1, 59), 2, (2026, 10, 29)),
        ((2026, 11, 1, 2, 0), 2, (2026, 10, 30)),
    ],
)
def test_days_are_due_when_clocks_change(local, held, due) -> None:
    now = datetime(*local, tzinfo=LA).timestamp()
    wanted = dates.date_to_unix_date(datetime(*due).date())
    assert last_due(now, LA, datetime(2026, 1, 1, 2).time(), held) == wanted


def test_months_are_due_on_their_first_day() -> None:
    two = datetime(2026, 1, 1, 2).time()
    march = dates.date_to_unix_month(datetime(2026, 3, 1).date())
    nows = [datetime(2026, 3, day, hour, tzinfo=LA).timestamp() for day, hour in ((1, 1), (1, 2), (2, 0))]
    assert [last_due(now, LA, two, 1, monthly=True) for now in nows] == [march - 2, march - 1, march - 1]


async def test_a_clock_that_jumps_neither_loses_nor_doubles(valkey: Valkey, database: Database) -> None:
    await PLAIN.incr(valkey, "seen", amount=2, unix_date=DAY)
    assert (await rotation(valkey, database, at(DAY + 3), PLAIN).run()).days == 3  # too early, by a clock ahead
    for day in (DAY, DAY + 1, DAY + 2):
        assert (await PLAIN.incr(valkey, "seen", unix_date=day)).late == 1
    report = await rotation(valkey, database, at(DAY), PLAIN).run()
    assert (report.days, report.late, report.problems) == (0, 3, [])
    assert await PLAIN.begin_rotation(valkey, DAY + 3, "begun")  # by someone whose clock was ahead, and who died
    report = await rotation(valkey, database, at(DAY), PLAIN).run()
    assert report.days == 1
    assert [row["seen"] for row in await rows(database, PLAIN)] == [3, 1, 1, 0]


async def test_broken_sums_are_told_and_stop_nothing(valkey: Valkey, database: Database) -> None:
    await EVENTS.tally().incr("tried", amount=9, unix_date=DAY).incr("failed", "a", unix_date=DAY).store(valkey)
    await valkey.hincrby(EVENTS.day_keys[0].at(DAY).name(Layout.PLAIN), "failed", 4)
    report = await rotation(valkey, database, at(DAY + 2), EVENTS).run()
    assert report.problems == [
        "events: 2026-03-05: failed is 5, and its breakdown adds up to 1",
        "events: 2026-03-05: found + failed + lost = tried: 5 is not 9",
    ]
    [row] = await rows(database, EVENTS)
    assert (row["failed"], row["failed_breakdown"]) == (5, '{"a":1}')


async def test_what_cannot_be_read_stays_and_the_others_go_on(valkey: Valkey, database: Database) -> None:
    for day in (DAY, DAY + 1):
        await EVENTS.incr(valkey, "tried", unix_date=day)
        await PLAIN.incr(valkey, "seen", unix_date=day)
        await JOINED.increment(valkey, day=day)
    await valkey.hset(EVENTS.day_keys[0].at(DAY).name(Layout.PLAIN), "found", "many")
    await valkey.set(JOINED.day_key.at(DAY).name(Layout.PLAIN), "many")
    rotating = rotation(valkey, database, at(DAY + 2))
    for _ in range(2):
        report = await rotating.run()
        assert [problem.split(":")[0] for problem in report.problems] == ["events", "joined"]
        assert "2026-03-05" in report.problems[0] and "nothing of it was removed" in report.problems[0]
    assert report.by_name["plain"].days == 0 and len(await rows(database, PLAIN)) == 2
    assert await rows(database, EVENTS) == await rows(database, JOINED) == []
    await valkey.hset(EVENTS.day_keys[1].at(DAY).name(Layout.PLAIN), "found", "7")
    report = await rotating.run()
    assert [row["found"] for row in await rows(database, EVENTS)] == [7]


async def test_an_event_declared_no_more_still_reaches_its_column(valkey: Valkey, database: Database) -> None:
    def family(*events: str) -> DailyFamily:
        return DailyFamily(Keyspace("room", tag="room"), "grown", counts=events, held_days=1, zone="UTC",
                           table="grown_stats", purpose="what grew")

    old, new = family("old", "kept"), family("kept")
    await FamilyTables(counted.catalogue(old)).ensure(database)
    await old.tally().incr("old", amount=2, unix_date=DAY).incr("kept", unix_date=DAY).store(valkey)
    rotating = rotation(valkey, database, at(DAY + 2), new)
    assert not (await rotating.run()).problems
    await old.incr(valkey, "old", unix_date=DAY)
    await valkey.hset(new.day_keys[0].at(DAY + 2).name(Layout.PLAIN), "never", 1)
    assert not (await rotating.run()).problems
    [first, _] = await rows(database, old)
    assert (first["old"], first["kept"]) == (3, 1)
    report = await rotation(valkey, database, at(DAY + 3), new).run()
    assert report.problems == ["grown: 2026-03-07: 'never' was counted, which is declared no more and has no column; "
                               "nothing of it was removed"]


async def test_a_day_that_came_back_is_not_added_again(valkey: Valkey, database: Database) -> None:
    await JOINED.increment(valkey, 5, day=DAY)
    await VISITS.add(valkey, [("utm_source=b", "visits", 2), ("utm_source=c", "visits", 2)], day=DAY)
    names = [key async for key in valkey.scan_iter()]
    before = {name: await valkey.dump(name) for name in names}
    await rotation(valkey, database, at(DAY + 1), JOINED, VISITS).run()
    await valkey.flushall()
    for name, dump in before.items():  # an older copy of the server is brought back
        await valkey.restore(name, 0, dump)
    report = await rotation(valkey, database, at(DAY + 1), JOINED, VISITS).run()
    assert report.problems == [
        f"{name}: 2026-03-05: it was rotated before and came back; the table stands, {size} that came with it were "
        "left out" for name, size in (("joined", 5), ("visitors", 2))
    ]
    assert [row["total"] for row in await rows(database, JOINED)] == [5]
    assert [row["visits"] for row in await rows(database, VISITS)] == [2, 2]


async def test_days_without_a_table_expire(valkey: Valkey, database: Database) -> None:
    for day in (DAY, DAY + 1, DAY + 2):
        await HOOKS.incr(valkey, "refused", "late", unix_date=day)
    report = await rotation(valkey, database, at(DAY + 3), HOOKS).run()
    assert report.days == 2 and await HOOKS.earliest(valkey) == DAY + 2
    left = [await valkey.ttl(HOOKS.day_keys[0].at(day).name(Layout.PLAIN)) for day in (DAY, DAY + 1, DAY + 2)]
    assert left[0] > 600_000 and left[1] > 600_000 and left[2] == -1


async def test_it_stops_between_days_and_goes_on_later(valkey: Valkey, database: Database) -> None:
    await PLAIN.incr(valkey, "seen", unix_date=DAY)
    asked = iter((False, False, False, False, True, True, True, True))
    report = await rotation(valkey, database, at(DAY + 9), PLAIN, EVENTS, stopping=lambda: next(asked)).run()
    assert report.stopped and 0 < report.days < 9
    rest = await rotation(valkey, database, at(DAY + 9), PLAIN).run()
    assert report.days + rest.days == 9 and not rest.stopped


async def test_ids_are_forgotten_when_nothing_can_need_them(valkey: Valkey, database: Database) -> None:
    async def ids() -> int:
        applied = FamilyTables(counted.catalogue()).applied
        async with database.reading() as sql:
            return (await sql.execute(select(func.count()).select_from(applied))).scalar_one()

    await PLAIN.incr(valkey, "seen", unix_date=DAY)
    await EVENTS.incr(valkey, "tried", unix_date=DAY)
    await rotation(valkey, database, at(DAY + 2)).run()
    for _ in range(1500):
        await PLAIN.incr(valkey, "seen", unix_date=DAY)
    await rotation(valkey, database, at(DAY + 2)).run()
    before = await ids()
    assert before >= 1504
    await valkey.hset(EVENTS.day_keys[0].at(DAY + 1).name(Layout.PLAIN), "tried", "many")  # its ids may be needed yet
    await rotation(valkey, database, at(DAY + 17)).run()
    assert await ids() == 15 * 2 + 2 and (await rows(database, PLAIN))[0]["seen"] == 1501


async def test_several_who_rotate_at_once_add_each_count_once(
    valkey: Valkey, database: Database, valkey_server: LocalServer
) -> None:
    """Four at once, while counting goes on; then the sums are those of the log and no day is left behind."""
    log = EventLog(counted.catalogue(), rng := random.Random(7))
    month = dates.date_to_unix_month(datetime(2026, 2, 1).date())
    for _ in range(300):
        await log.count(valkey, DAY - rng.randrange(16), month)

    async def rotate() -> None:
        try:
            await rotation(valkey, database, at(DAY + 1)).run()
        except Unavailable as error:  # PostgreSQL may undo one of two; the next run does it
            assert "for the sake of another" in str(error)

    async def count() -> None:
        for _ in range(200):
            await log.count(valkey, DAY + 1 - rng.randrange(16), month)

    async with asyncio.timeout(120):
        await asyncio.gather(count(), *(rotate() for _ in range(4)))
    assert await stored(valkey, database, counted.catalogue(), DAY + 1) == log.expected()
    report = await rotation(valkey, database, at(DAY + 1)).run()
    assert await stored(valkey, database, counted.catalogue(), DAY + 1) == log.expected()
    assert report.problems == [problem for problem in report.problems if "is not" in problem]
    check_no_undeclared_keys(Registry([counted.ROOM]), valkey_server)


async def test_a_table_of_another_kind_stops_it_before_anything_is_moved(valkey: Valkey, database: Database) -> None:
    await PLAIN.incr(valkey, "seen", unix_date=DAY)
    async with database.transaction() as sql:
        await sql.exec_driver_sql("CREATE TABLE plain_stats (id INTEGER, retrieved_for TEXT UNIQUE, retrieved_at TEXT)")
    with pytest.raises(Invalid, match="plain_stats: its column retrieved_at holds text"):
        await rotation(valkey, database, at(DAY + 2), PLAIN).run()
    assert (await PLAIN.read(valkey, DAY)).counts == {"seen": 1} and not await PLAIN.rotation_state(valkey)


@pytest.mark.cluster
async def test_it_rotates_on_a_cluster(cluster: Valkey, tmp_path) -> None:
    log = EventLog(counted.catalogue(), rng := random.Random(3))
    month = dates.date_to_unix_month(datetime(2026, 2, 1).date())
    async with Database.open(f"sqlite:///{tmp_path}/days.db") as database:
        for late in (False, True):
            for _ in range(150):
                await log.count(cluster, DAY - rng.randrange(16), month)
            report = await rotation(cluster, database, at(DAY + 1)).run()
            assert (report.days == 0, report.late > 0) == (late, late)
            assert await stored(cluster, database, counted.catalogue(), DAY + 1) == log.expected()
