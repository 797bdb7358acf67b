"""Tables that follow from declarations."""

import asyncio

import pytest
from sqlalchemy import inspect, text

from keystead.errors import DeclarationError, Invalid, NotFound
from keystead.keys import Keyspace
from keystead.patterns import DailyFamily
from keystead.stats.tables import FamilyTables, label
from keystead.store import Database

from . import counted


async def columns_of(database: Database, table: str) -> dict[str, tuple[str, bool]]:
    """Name → type and whether it takes NULL."""
    async with database.reading() as sql:
        found = await sql.run_sync(lambda connection: inspect(connection).get_columns(table))
    return {column["name"]: (str(column["type"]), column["nullable"]) for column in found}


async def unique_of(database: Database, table: str) -> list[list[str | None]]:
    async with database.reading() as sql:
        found = await sql.run_sync(lambda connection: inspect(connection).get_unique_constraints(table))
    return [constraint["column_names"] for constraint in found]


def family(counts: tuple[str, ...], breakdowns: dict[str, str] | None = None) -> DailyFamily:
    return DailyFamily(
        Keyspace("room", tag="room"), "grown", counts=counts, breakdowns=breakdowns, held_days=1, zone="UTC",
        table="grown_stats", purpose="what grew",
    )


async def test_tables_hold_what_was_declared(database: Database) -> None:
    tables = FamilyTables(counted.catalogue())
    await tables.ensure(database)

    expected = {
        "event_stats":
            "retrieved_for retrieved_at tried found failed lost failed_breakdown lost_breakdown queue_length",
        "plain_stats": "retrieved_for retrieved_at seen",
        "change_stats": "retrieved_for retrieved_at old new total",
        "reminded_stats": "retrieved_for retrieved_at sent",
        "active_stats": "retrieved_for retrieved_at total late",
        "active_month_stats": "retrieved_for retrieved_at total late",
        "joined_stats": "retrieved_for retrieved_at total late",
        "retention_stats": "period_days retrieved_for retrieved_at retained unretained late",
        "view_stats": "subcategory retrieved_for retrieved_at total_users total_views late",
        "utm_stats": "utm utm_digest retrieved_for retrieved_at " + " ".join(counted.VISITS.fields),
    }
    for name, columns in expected.items():
        assert list(await columns_of(database, name)) == ["id", *columns.split()], name
    found = await columns_of(database, "event_stats")
    assert found["tried"] == ("BIGINT", False)
    assert found["failed_breakdown"] == ("TEXT", False)
    assert found["queue_length"] == ("BIGINT", True)
    assert await unique_of(database, "event_stats") == [["retrieved_for"]]
    assert await unique_of(database, "change_stats") == [["retrieved_for", "old", "new"]]
    assert await unique_of(database, "retention_stats") == [["period_days", "retrieved_for"]]
    assert await unique_of(database, "view_stats") == [["subcategory", "retrieved_for"]]
    assert await unique_of(database, "utm_stats") == [["utm_digest", "retrieved_for"]]
    assert list(await columns_of(database, "stats_applied")) == ["id", "family", "applied_at"]

    async with database.transaction() as sql:  # a row of which only the day is known is a row of zeros
        await sql.execute(database.insert(tables.table("events")).values(retrieved_for="2026-03-08", retrieved_at=1.0))
        row = (await sql.execute(tables.table("events").select())).one()
    assert row._asdict() == {
        "id": 1, "retrieved_for": "2026-03-08", "retrieved_at": 1.0, "tried": 0, "found": 0, "failed": 0, "lost": 0,
        "failed_breakdown": "{}", "lost_breakdown": "{}", "queue_length": None,
    }


async def test_new_events_become_columns_and_nothing_is_dropped(database: Database) -> None:
    tables = FamilyTables(counted.catalogue(family(("old",))))
    await tables.ensure(database)
    async with database.transaction() as sql:
        row = database.insert(tables.table("grown")).values(retrieved_for="2026-01-01", retrieved_at=1.0, old=7)
        await sql.execute(row)

    grown = FamilyTables(counted.catalogue(family(("new",), {"broken": "part"})))
    await asyncio.gather(grown.ensure(database), FamilyTables(counted.catalogue(family(("new",)))).ensure(database))
    await grown.ensure(database)

    async with database.reading() as sql:
        [row] = (await sql.execute(grown.table("grown").select())).all()
    assert row._asdict() == {
        "id": 1, "retrieved_for": "2026-01-01", "retrieved_at": 1.0, "old": 7, "new": 0, "broken": 0,
        "broken_breakdown": "{}",
    }


async def test_processes_that_start_at_once_make_the_tables_together(database_url: str) -> None:
    async def start() -> None:
        async with Database.open(database_url) as opened:
            await FamilyTables(counted.catalogue()).ensure(opened)

    async with asyncio.timeout(60):
        await asyncio.gather(*(start() for _ in range(4)))
    async with Database.open(database_url) as database:
        assert "tried" in await columns_of(database, "event_stats")


@pytest.mark.parametrize(
    ("made", "says"),
    [
        ("retrieved_for TEXT UNIQUE, retrieved_at DOUBLE PRECISION, seen TEXT", "column seen holds text"),
        ("retrieved_for BIGINT UNIQUE, retrieved_at DOUBLE PRECISION", "its column retrieved_for holds whole numbers"),
        ("retrieved_at DOUBLE PRECISION, seen BIGINT", "plain_stats is there and has no column retrieved_for"),
        ("retrieved_for TEXT, retrieved_at DOUBLE PRECISION, seen BIGINT", r"unique index on \(retrieved_for\)"),
    ],
)
async def test_a_table_of_another_kind_is_refused_by_name(database: Database, made: str, says: str) -> None:
    async with database.transaction() as sql:
        await sql.execute(text(f"CREATE TABLE plain_stats (id INTEGER PRIMARY KEY, {made})"))
    before = await columns_of(database, "plain_stats")
    with pytest.raises(Invalid, match=says):
        await FamilyTables(counted.catalogue(counted.PLAIN)).ensure(database)
    assert await columns_of(database, "plain_stats") == before
    async with database.reading() as sql:
        assert not await sql.run_sync(lambda connection: inspect(connection).has_table("stats_applied"))


def test_what_has_no_table_says_so() -> None:
    tables = FamilyTables(counted.catalogue(counted.PLAIN, counted.HOOKS))
    assert tables.table("plain").name == "plain_stats"
    with pytest.raises(NotFound, match="hooks has no table; those that have one: plain"):
        tables.table("hooks")


def test_days_and_months_are_labelled() -> None:
    assert label(19331) == "2022-12-05"
    assert label(635, monthly=True) == "2022-12"


@pytest.mark.parametrize(("counts", "breakdowns", "says"), [
    (("id",), {}, "column id twice"), (("Found", "found"), {}, "twice"), ((), {"x" * 60: "status"}, "too long"),
    (("ü" * 40,), {}, "too long"),
])
def test_names_that_a_database_would_mix_up_are_refused(counts, breakdowns, says) -> None:
    with pytest.raises(DeclarationError, match=says):
        FamilyTables(counted.catalogue(family(counts, breakdowns)))
