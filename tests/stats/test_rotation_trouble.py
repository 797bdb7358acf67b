"""Trouble with one thing stops no other, and what was declared yesterday still finds its place."""

from datetime import time
from zoneinfo import ZoneInfo

from keystead.engine import Valkey
from keystead.keys import Keyspace
from keystead.patterns import DailyFamily, RowsByDay
from keystead.stats.rotation_days import last_due
from keystead.store import Database

from .counted import EVENTS, HOOKS, LA, PEOPLE, PLAIN, VISITS
from .test_rotation import DAY, at, rotation, rows


async def test_months_and_days_without_a_table_that_cannot_be_read_stop_no_other(
    valkey: Valkey, database: Database
) -> None:
    await HOOKS.incr(valkey, "received", unix_date=DAY)
    await PEOPLE.increment(valkey, at=at(DAY - 40))
    await PLAIN.incr(valkey, "seen", unix_date=DAY)
    await valkey.set(HOOKS.earliest_key.at().name(valkey.layout), "soon")
    await valkey.delete(PEOPLE.earliest_key.at().name(valkey.layout))
    await valkey.lpush(PEOPLE.earliest_key.at().name(valkey.layout), "soon")
    report = await rotation(valkey, database, at(DAY + 3), HOOKS, PLAIN, PEOPLE).run()
    assert report.by_name["plain"].days == 3
    assert len(report.by_name["hooks"].problems) == len(report.by_name["people:monthly"].problems) == 1
    assert not report.by_name["hooks"].settled


async def test_a_late_count_that_no_table_can_hold_stops_no_other(valkey: Valkey, database: Database) -> None:
    late = PLAIN.late_key.at().name(valkey.layout)
    for strange in ((10**12, 1), (DAY, 2**70)):
        await PLAIN.incr(valkey, "seen", unix_date=DAY)
        await EVENTS.incr(valkey, "tried", unix_date=DAY)
        await valkey.delete(late)
        await valkey.rpush(late, b'{"id":"a:0","unix_date":%d,"event":"seen","amount":%d}' % strange)
        report = await rotation(valkey, database, at(DAY + 3), PLAIN, EVENTS).run()
        assert "late: " in report.by_name["plain"].problems[0] and not report.by_name["plain"].settled
        assert report.by_name["events"].settled


def test_a_day_is_due_when_the_clock_of_who_called_is_a_little_ahead() -> None:
    two = time(2)
    dues = [last_due(at(DAY, 2) + seconds, ZoneInfo(LA), two, 1) for seconds in (-60, -1, 0, 1)]
    assert dues == [DAY - 2, DAY - 1, DAY - 1, DAY - 1]


async def test_a_gauge_that_fails_is_told_and_holds_no_day_back(valkey: Valkey, database: Database) -> None:
    errors = [RuntimeError("it is broken"), OSError(), KeyError("x")]

    async def failing(end: float) -> int:
        raise errors.pop()

    await EVENTS.incr(valkey, "found", unix_date=DAY)
    rotating = rotation(valkey, database, at(DAY + 4), EVENTS, gauges={"events.queue_length": failing})
    report = await rotating.run()
    assert report.days == 3 and [row["queue_length"] for row in await rows(database, EVENTS)] == [None] * 3
    assert len([one for one in report.problems if "queue_length could not be read: " in one]) == 3


async def test_rows_and_columns_of_what_is_declared_no_more_still_find_their_place(
    valkey: Valkey, database: Database
) -> None:
    def declared(*which: int) -> tuple[DailyFamily, RowsByDay]:
        shop = Keyspace("shop", tag="shop")
        changes, fields = ("on:off", "off:on"), ("sold", "returned")
        return DailyFamily(
            shop, "changes", counts=[changes[each] for each in which], columns=("old", "new"), held_days=1, zone=LA,
            table="change_stats", purpose="what was changed",
        ), RowsByDay(
            shop, rows="stats:sales:{unix_date}:articles", counts="stats:sales:{article}:{unix_date}:counts",
            earliest="stats:sales:earliest", fields=[fields[each] for each in which], zone=LA, table="sales_stats",
            purpose="what was sold",
        )

    changes, sales = declared(0, 1)
    await rotation(valkey, database, at(DAY), changes, sales).run()
    await changes.tally().incr("on:off", unix_date=DAY).incr("off:on", amount=2, unix_date=DAY).store(valkey)
    await sales.add(valkey, [("chair", "sold", 3), ("chair", "returned", 1)], day=DAY)
    await changes.incr(valkey, "off:on", unix_date=DAY + 2)
    await sales.add(valkey, [("chair", "returned", 1)], day=DAY + 2)

    report = await rotation(valkey, database, at(DAY + 1), *declared(0)).run()
    assert (report.days, report.problems) == (2, [])
    await changes.incr(valkey, "off:on", amount=4, unix_date=DAY)
    await sales.add(valkey, [("chair", "returned", 5)], day=DAY)
    report = await rotation(valkey, database, at(DAY + 1), *declared(0)).run()
    assert (report.late, report.problems) == (2, [])
    stored = await rows(database, changes)
    assert [(row["old"], row["new"], row["total"]) for row in stored] == [("off", "on", 6), ("on", "off", 1)]
    assert [(row["sold"], row["returned"]) for row in await rows(database, sales)] == [(3, 6)]


async def test_a_row_that_another_program_named_badly_stops_no_other(valkey: Valkey, database: Database) -> None:
    await VISITS.add(valkey, [("utm_source=a", "visits", 1)], day=DAY)
    await PLAIN.incr(valkey, "seen", unix_date=DAY)
    await valkey.sadd(VISITS.rows_key.at(DAY).name(valkey.layout), "two\nlines")
    report = await rotation(valkey, database, at(DAY + 1), VISITS, PLAIN).run()
    assert report.by_name["plain"].days == 1 and len(report.by_name["visitors"].problems) == 1
