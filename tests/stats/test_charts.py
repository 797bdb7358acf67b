"""Charts: every count once, wherever its day is just then."""

import json
from contextlib import asynccontextmanager

import pytest

from keystead.errors import Invalid, NotFound
from keystead.stats.charts import Charts
from keystead.stats.rotation import Rotation
from keystead.stats.tables import FamilyTables, label

from .charting import NOW, TODAY
from .counted import ACTIVE, EVENTS, HOOKS, PEOPLE, REMINDED, RETENTION, VIEWS, VISITS, catalogue

STEPS = ("counted", "begun", "stored", "ended")


@pytest.fixture
def tables() -> FamilyTables:
    return FamilyTables(catalogue())


async def count(valkey, day: int, **amounts: int) -> None:
    tally = EVENTS.tally()
    for event, amount in amounts.items():
        if event in EVENTS.breakdowns:
            tally.incr(event, "busy", amount, unix_date=day)
        else:
            tally.incr(event, amount=amount, unix_date=day)
    await tally.store(valkey)


async def begin(valkey, day: int, rotation_id: str) -> None:
    assert await EVENTS.begin_rotation(valkey, day, rotation_id) == rotation_id


async def add_row(database, tables, day: int, applied_id: str, counts: dict[str, int], failed: dict[str, int]) -> None:
    """What a rotation does to SQL: the row and its id, together."""
    async with database.transaction() as sql:
        await sql.execute(tables.applied.insert().values(id=f"events:{applied_id}", family="events", applied_at=NOW))
        table = tables.table("events")
        await sql.execute(table.insert().values(
            retrieved_for=label(day), retrieved_at=NOW, failed_breakdown=json.dumps(failed), **counts
        ))


async def rotated_up_to(step: str, valkey, database, tables, day: int) -> None:
    """Rotate a day on which 3 were found and 2 failed, and die after ``step``."""
    rotation_id = f"rotation-{day}"
    if step != "counted":
        await begin(valkey, day, rotation_id)
    if step in ("stored", "ended"):
        await add_row(database, tables, day, rotation_id, {"found": 3, "failed": 2}, {"busy": 2})
    if step == "ended":
        assert await EVENTS.end_rotation(valkey, day, rotation_id)


# -- one day in one place ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", STEPS)
async def test_a_day_counts_once_wherever_its_rotation_died(valkey, database, tables, charts, step):
    day = TODAY - 2
    await count(valkey, day, found=3, failed=2)
    await count(valkey, TODAY, found=5)
    await rotated_up_to(step, valkey, database, tables, day)
    shown = await charts.series("events", TODAY - 3, TODAY + 1)
    assert shown.labels == [label(each) for each in range(TODAY - 3, TODAY + 1)]
    assert shown.counts == {"tried": [0] * 4, "found": [0, 3, 0, 5], "failed": [0, 2, 0, 0], "lost": [0] * 4}
    assert shown.breakdowns == {"failed": {"busy": [0, 2, 0, 0]}, "lost": {}}
    assert shown.zone == "America/Los_Angeles"
    # Until it is put aside the day that is overdue still takes counts.
    assert shown.live_from == (day if step == "counted" else TODAY - 1)


@pytest.mark.parametrize("step", STEPS)
async def test_late_counts_are_in_whether_or_not_they_were_stored(valkey, database, tables, charts, step):
    day = TODAY - 2
    await count(valkey, day, found=3, failed=2)
    await rotated_up_to("begun" if step == "counted" else step, valkey, database, tables, day)
    await count(valkey, day, found=10, failed=1)
    assert (await charts.series("events", day, day + 1)).counts["found"] == [13]
    late = await EVENTS.late(valkey, now=NOW)
    assert len(late) == 2
    for each in late:  # stored, and not yet removed from the list
        async with database.transaction() as sql:
            known = {"id": f"events:{each.count.id}", "family": "events", "applied_at": NOW}
            await sql.execute(tables.applied.insert().values(known))
    table = tables.table("events")
    async with database.transaction() as sql:
        if step in ("stored", "ended"):
            await sql.execute(table.update().values(
                found=table.c.found + 10, failed=table.c.failed + 1, failed_breakdown='{"busy":3}'
            ))
        else:
            await sql.execute(table.insert().values(
                retrieved_for=label(day), retrieved_at=NOW, found=10, failed=1, failed_breakdown='{"busy":1}'
            ))
    for _ in range(2):
        shown = await charts.series("events", day, day + 1)
        assert (shown.counts["found"], shown.breakdowns["failed"]) == ([13], {"busy": [3]})
        await EVENTS.finish_late(valkey, late)


@pytest.mark.parametrize("step", STEPS)
async def test_a_rotation_that_ends_between_the_two_reads_changes_nothing(
    valkey, database, tables, clock, monkeypatch, step
):
    """The server is read, then all of the rotation that is left happens, and then SQL is read."""
    await tables.ensure(database)
    day = TODAY - 2
    await count(valkey, day, found=3, failed=2)
    await count(valkey, day + 1, found=7)
    await rotated_up_to(step, valkey, database, tables, day)
    left = STEPS[STEPS.index(step) + 1 :]
    reading = database.reading

    @asynccontextmanager
    async def after_the_rest():
        if "begun" in left:
            await begin(valkey, day, f"rotation-{day}")
        if "stored" in left:
            await add_row(database, tables, day, f"rotation-{day}", {"found": 3, "failed": 2}, {"busy": 2})
        if "ended" in left:
            assert await EVENTS.end_rotation(valkey, day, f"rotation-{day}")
        await begin(valkey, day + 1, "the next")
        await add_row(database, tables, day + 1, "the next", {"found": 7}, {})
        assert await EVENTS.end_rotation(valkey, day + 1, "the next")
        monkeypatch.setattr(database, "reading", reading)
        async with reading() as sql:
            yield sql

    async with Charts.open(valkey, database, catalogue(), clock) as charts:
        monkeypatch.setattr(database, "reading", after_the_rest)
        for _ in range(2):
            shown = await charts.series("events", TODAY - 5, TODAY + 1)
            assert shown.counts["found"] == [0, 0, 0, 3, 7, 0]
            assert shown.breakdowns["failed"] == {"busy": [0, 0, 0, 2, 0, 0]}


async def test_what_was_rotated_stands_when_another_program_counts_on_it(valkey, database, tables, charts):
    """It knows only ``earliest`` and the hash of a day, writes both, and the rotation has begun with that."""
    day = TODAY - 3
    await count(valkey, day, found=3, failed=2)
    await count(valkey, day + 1, found=7)
    await rotated_up_to("ended", valkey, database, tables, day)
    await begin(valkey, day + 1, "the next")
    await add_row(database, tables, day + 1, "the next", {"found": 7}, {})
    assert await EVENTS.end_rotation(valkey, day + 1, "the next")
    await valkey.hset(EVENTS.day_keys[0].at(day).logical, "found", 100)
    await valkey.set(EVENTS.earliest_key.at().logical, day)
    for _ in range(2):
        shown = await charts.series("events", day - 1, TODAY + 1)
        assert shown.counts["found"] == [0, 3, 7, 0, 0] and shown.live_from == TODAY - 1
        async with database.transaction() as sql:  # as every rotation leaves it
            known = {"id": f"events:{label(day)}", "family": "events", "applied_at": NOW}
            await sql.execute(tables.applied.delete().where(tables.applied.c.id == known["id"]))
            await sql.execute(tables.applied.insert().values(known))
        await EVENTS.begin_rotation(valkey, day, "again")


# -- ranges ------------------------------------------------------------------------------------------------------------


async def test_what_cannot_be_asked_for_is_refused_by_name(charts):
    with pytest.raises(NotFound, match=r"'event'; did you mean events\?"):
        await charts.series("event", TODAY, TODAY + 1)
    with pytest.raises(Invalid, match="active is a DaySet, and this is asked of a DailyFamily"):
        await charts.series("active", TODAY, TODAY + 1)
    with pytest.raises(Invalid, match=r"2025-06-15 is the newest of days that can be asked for"):
        await charts.series("events", TODAY, TODAY + 2)
    with pytest.raises(Invalid, match="at most 3660 days, got 3661"):
        await charts.series("events", TODAY - 3660, TODAY + 1)
    for start, end in ((TODAY, TODAY), (TODAY, TODAY - 1), (-1, 5)):
        with pytest.raises(Invalid, match="ends after it starts"):
            await charts.series("events", start, end)
    assert len((await charts.series("events", TODAY - 3659, TODAY + 1)).labels) == 3660


async def test_days_that_rotation_left_behind_are_found_on_the_server(valkey, charts):
    for ago in (0, 40, 400):
        await count(valkey, TODAY - ago, found=ago + 1)
    shown = await charts.series("events", TODAY - 500, TODAY + 1)
    assert {at: amount for at, amount in enumerate(shown.counts["found"]) if amount} == {100: 401, 460: 41, 500: 1}


async def test_days_of_a_family_without_a_table_are_shown_while_they_last(valkey, charts):
    await HOOKS.incr(valkey, "received", unix_date=TODAY - 3)
    await HOOKS.incr(valkey, "refused", "size", unix_date=TODAY)
    assert await HOOKS.end_day(valkey, TODAY - 3)
    shown = await charts.recent("hooks", 5)
    assert shown.counts == {"received": [0, 1, 0, 0, 0], "refused": [0, 0, 0, 0, 1]}
    assert shown.live == [label(TODAY - 1), label(TODAY)]


async def test_a_canonical_day_that_has_begun_somewhere_can_be_asked_for(valkey, charts, clock):
    clock.advance(6 * 3600)  # 14:06 in Los Angeles is tomorrow in the east
    await REMINDED.incr(valkey, "sent", unix_date=TODAY + 1)
    shown = await charts.partial("reminded")
    assert shown.zone == "canonical"
    assert (shown.labels[0], shown.labels[-1]) == (label(TODAY - 2), label(TODAY + 1))
    assert shown.counts["sent"] == [0, 0, 0, 1]
    with pytest.raises(Invalid):
        await charts.series("reminded", TODAY, TODAY + 3)


async def test_partial_is_what_the_server_holds_by_rule(valkey, charts):
    for ago in range(4):
        await count(valkey, TODAY - ago, found=10**ago)
    shown = await charts.partial("events")
    assert (list(shown.labels), shown.counts["found"]) == ([label(TODAY - 1), label(TODAY)], [10, 1])


# -- a cluster ---------------------------------------------------------------------------------------------------------


@pytest.mark.cluster
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_charts_of_every_kind_are_read_from_a_cluster(cluster, database, tables, clock):
    await tables.ensure(database)
    await count(cluster, TODAY - 2, found=3, failed=2)
    await ACTIVE.add(cluster, "a", "b", day=TODAY - 1)
    await RETENTION.join(cluster, "a", day=TODAY - 5)
    await VIEWS.viewed(cluster, "sleep", "a", day=TODAY - 1)
    await VISITS.add(cluster, [("utm_source=a", "visits", 4)], day=TODAY - 1)
    await PEOPLE.increment(cluster, 6, at=NOW)
    async with Charts.open(cluster, database, catalogue(), clock) as charts:
        for _ in range(2):
            assert (await charts.recent("events", 4)).counts["found"] == [0, 3, 0, 0]
            assert (await charts.historical("events")).counts["failed"][-1] == 2
            assert (await charts.numbers("active", TODAY - 2, TODAY)).counts["total"] == [0, 2]
            assert (await charts.cohorts("retention", TODAY - 5, TODAY)).sizes == [1, 0, 0, 0, 0]
            assert [one.total_views for one in (await charts.views("sessions")).values] == [1]
            assert [counts["visits"] for _, counts in (await charts.rows("visitors", TODAY - 1)).rows] == [4]
            assert (await charts.totals())["people"].total == 6
            await Rotation(cluster, database, catalogue(), clock).run()
