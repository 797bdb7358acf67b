"""Frequent reads of one statement."""

from sqlalchemy import JSON, Boolean, Column, Float, MetaData, Table, Text, bindparam, insert, select, text

from keystead.store import Database, Query, sqlite_reader

TABLES = MetaData()
THINGS = Table(
    "things", TABLES, Column("name", Text, primary_key=True), Column("is_new", Boolean, nullable=False),
    Column("facts", JSON), Column("weight", Float),
)
BY_NAME = Query(select(THINGS.c.name, THINGS.c.is_new, THINGS.c.facts, THINGS.c.weight)
                .where(THINGS.c.name == bindparam("name")))
NEW_ONES = Query(select(THINGS.c.name).order_by(THINGS.c.name).where(
    THINGS.c.is_new, THINGS.c.weight < 10.0, THINGS.c.name > bindparam("after"),
))


async def fill(database: Database) -> None:
    async with database.transaction() as sql:
        await sql.run_sync(TABLES.create_all)
        await sql.execute(insert(THINGS), [
            {"name": name, "is_new": is_new, "facts": {"of": [name]}, "weight": weight}
            for name, is_new, weight in (("a", True, 1.5), ("b", False, 2.0), ("c", True, None), ("d", True, 3.0))
        ])


async def test_columns_are_read_as_their_types_say(database: Database) -> None:
    await fill(database)
    assert list(await database.rows(BY_NAME, name="a")) == [("a", True, {"of": ["a"]}, 1.5)]
    (row,) = await database.rows(BY_NAME, name="b")
    assert row[1] is False
    assert list(await database.rows(BY_NAME, name="nobody")) == []


async def test_values_of_the_statement_itself_are_used(database: Database) -> None:
    await fill(database)
    assert list(await database.rows(NEW_ONES, after="a")) == [("d",)]
    assert list(await database.rows(NEW_ONES, after="")) == [("a",), ("d",)]


async def test_what_was_committed_is_seen_and_nothing_else(database: Database) -> None:
    await fill(database)
    async with database.transaction() as sql:
        await sql.execute(text("DELETE FROM things WHERE name = 'a'"))
        assert len(await database.rows(BY_NAME, name="a")) == 1
    assert list(await database.rows(BY_NAME, name="a")) == []


async def test_one_that_takes_longer_is_run_beside_everything_else(database: Database, monkeypatch) -> None:
    await fill(database)
    assert len(await database.rows(BY_NAME, name="a")) == 1
    monkeypatch.setattr(sqlite_reader, "MOST_SECONDS", -1)
    monkeypatch.setattr(sqlite_reader, "LOOK_EVERY", 1)
    assert list(await database.rows(BY_NAME, name="a")) == [("a", True, {"of": ["a"]}, 1.5)]
