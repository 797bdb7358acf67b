"""Answers that are kept: one process computes, all have it, and none of it is wrong longer than it says."""

import asyncio
import gzip
import json
from contextlib import asynccontextmanager

import pytest
from sqlalchemy import event

from keystead.engine import connect
from keystead.keys import Keyspace
from keystead.patterns import DimensionViews
from keystead.stats.charts import Charts
from keystead.stats.rotation import Rotation
from keystead.stats.tables import FamilyTables, label
from keystead.testing.clock import MovableClock

from .charting import NOW, TODAY
from .counted import ACTIVE, CHANGES, EVENTS, catalogue

END = TODAY - 1  # the server holds two days
PATIENCE_SECONDS = 30
SEEN = DimensionViews(
    Keyspace("seen", tag="seen"), "stats:seen", dimension="shelf", zone="America/Los_Angeles", table="seen_stats",
    channel="ps:seen", purpose="what was looked at",
)


@pytest.fixture
def queries(database):
    """Every statement that is sent from now on."""
    sent: list[str] = []

    def note(connection, cursor, statement, *rest):
        if statement.lstrip().upper().startswith(("SELECT", "WITH")) and "SELECT 1" not in statement:
            sent.append(statement)

    engine = database._reading.sync_engine
    event.listen(engine, "before_cursor_execute", note)
    yield sent
    event.remove(engine, "before_cursor_execute", note)


@asynccontextmanager
async def another_process(valkey_server, database, clock, *declared):
    valkey = await connect(valkey_server.url)
    try:
        async with Charts.open(valkey, database, catalogue(*declared), clock) as charts:
            yield charts
    finally:
        await valkey.aclose()


async def count(valkey, day: int, amount: int) -> None:
    await EVENTS.tally().incr("found", amount=amount, unix_date=day).incr("failed", "busy", unix_date=day).store(valkey)


async def rotate(valkey, database, clock) -> None:
    report = await Rotation(valkey, database, catalogue(EVENTS, ACTIVE, CHANGES), clock).run()
    assert all(one.settled for one in report.by_name.values())


async def test_the_90_days_before_those_the_server_holds_cost_at_most_three_queries(
    valkey, database, charts, clock, queries
):
    for ago in (0, 1, 2, 50, 91, 92):
        await count(valkey, TODAY - ago, ago + 1)
    await rotate(valkey, database, clock)
    queries.clear()
    answer = await charts.historical_answer("events")
    assert 1 <= len(queries) <= 3
    shown = json.loads(gzip.decompress(answer.raw))
    assert shown["labels"] == [label(day) for day in range(END - 90, END)]
    assert {at: n for at, n in enumerate(shown["found"]) if n} == {0: 92, 41: 51, 89: 3}
    assert shown["failed_breakdown"]["busy"][89] == 1 and shown["tried"] == [0] * 90
    midnight = 1_750_057_200  # 2025-06-16 00:00 in Los Angeles
    assert answer.seconds == midnight - NOW
    queries.clear()
    for _ in range(3):
        assert await charts.historical_raw("events") == answer.raw
        assert (await charts.historical("events")).counts["found"] == shown["found"]
    assert not queries


async def test_one_process_computes_and_all_have_it(valkey, valkey_server, database, charts, clock, queries):
    await count(valkey, TODAY - 3, 7)
    await rotate(valkey, database, clock)
    async with another_process(valkey_server, database, clock) as other:
        queries.clear()
        raws = await asyncio.gather(*(each.historical_raw("events") for each in (charts, other) * 20))
        computed = [query for query in queries if "event_stats" in query]
        assert len(set(raws)) == 1 and len(computed) == 1
        async with asyncio.timeout(PATIENCE_SECONDS):
            while any(each._kept.held(EVENTS, END - 90, END) is None for each in (charts, other)):
                await asyncio.sleep(0.02)


async def test_days_that_rotation_has_not_closed_are_right_and_kept_for_a_minute(valkey, database, charts, clock):
    await count(valkey, END - 1, 5)  # overdue, and still open
    first = await charts.historical_answer("events")
    assert first.seconds == 60
    assert json.loads(gzip.decompress(first.raw))["found"][-1] == 5
    assert (await charts.historical("events")).live == [label(END - 1)]
    await count(valkey, END - 1, 1)
    clock.advance(61)
    assert json.loads(gzip.decompress(await charts.historical_raw("events")))["found"][-1] == 6
    await rotate(valkey, database, clock)
    clock.advance(61)
    settled = await charts.historical_answer("events")
    assert json.loads(gzip.decompress(settled.raw))["found"][-1] == 6 and settled.seconds > 3600 and settled.settled
    assert (await charts.historical("events")).live == []


async def test_an_answer_ends_at_midnight_where_its_days_are_counted(valkey, database, charts, clock):
    await count(valkey, END - 1, 5)
    await rotate(valkey, database, clock)
    assert (await charts.historical("events")).end == END
    clock.advance(16 * 3600)  # past midnight, before 02:00: the next day is over and not rotated
    await count(valkey, END, 9)
    shown = await charts.historical("events")
    assert (shown.end, list(shown.counts["found"][-2:]), shown.live) == (END + 1, [5, 9], [label(END)])


async def test_a_family_without_a_channel_is_kept_too(valkey, database, charts, clock, queries):
    await CHANGES.incr(valkey, "on:off", amount=4, unix_date=TODAY - 1)
    await rotate(valkey, database, clock)
    assert (await charts.historical("changes")).counts["on:off"][-1] == 4
    queries.clear()
    await charts.historical_raw("changes")
    assert not queries


async def test_numbers_are_kept_until_midnight_once_they_are_rotated(valkey, database, charts, clock, queries):
    await ACTIVE.add(valkey, "a", "b", day=TODAY - 1)
    assert (await charts.numbers_answer("active")).seconds == 60
    await rotate(valkey, database, clock)
    clock.advance(61)
    answer = await charts.numbers_answer("active")
    shown = json.loads(gzip.decompress(answer.raw))
    assert (len(shown["labels"]), shown["counts"]["total"][-1], shown["live"]) == (182, 2, [])
    queries.clear()
    assert (await charts.numbers_answer("active")) == answer and not queries


async def test_views_reach_all_processes_once_they_are_rotated(valkey, valkey_server, database, clock, queries):
    await FamilyTables(catalogue(SEEN)).ensure(database)
    async with (another_process(valkey_server, database, clock, SEEN) as charts,
                another_process(valkey_server, database, clock, SEEN) as other):
        await check_views(valkey, database, clock, queries, charts, other)


async def check_views(valkey, database, clock, queries, charts, other) -> None:
    await SEEN.viewed(valkey, "sleep", "a", day=TODAY - 1)
    first = await charts.views_answer("seen")
    assert (first.packed, first.seconds) == (True, 60)
    await Rotation(valkey, database, catalogue(SEEN), clock).run()
    await SEEN.viewed(valkey, "sleep", "b", day=TODAY)  # not before today, so not in it
    answers = await asyncio.gather(*(each.views_answer("seen") for each in (charts, other) * 5))
    async with asyncio.timeout(PATIENCE_SECONDS):
        while any(each._kept.held_views(SEEN, TODAY) is None for each in (charts, other)):
            await asyncio.sleep(0.02)
    queries.clear()
    for each in (charts, other):
        answer = await each.views_answer("seen", TODAY + 9)
        assert answer in answers and answer.seconds > 3600 and not answer.packed
        (value,) = json.loads(answer.raw)["values"]
        assert (value["value"], value["views"][-2:], value["total_views"]) == ("sleep", [0, 1], 1)
    assert not queries


async def test_the_same_answer_has_the_same_bytes_in_every_process(valkey, database, clock):
    raws = set()
    for _ in range(2):
        async with Charts.open(valkey, database, catalogue(), MovableClock(now=NOW)) as charts:
            if not raws:
                await count(valkey, END - 1, 5)
                await rotate(valkey, database, clock)
            raws.add(await charts.historical_raw("events"))
    assert len(raws) == 1
