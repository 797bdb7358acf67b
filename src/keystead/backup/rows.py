"""Rows from one database into another: between PostgreSQL and the SQLite file of an archive, either way."""

from collections.abc import Callable, Iterable
from typing import Any, Final

from sqlalchemy import BigInteger, Column, Connection, Integer, Table, delete, inspect, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from keystead.errors import Conflict, Invalid
from keystead.stats import FamilyTables
from keystead.store import METADATA, Database

VERSION_TABLE: Final = "store_migrations"
STEP_ROWS: Final = 1000

Progress = Callable[[str, int], None]


def all_tables(families: FamilyTables) -> list[Table]:
    """Every table of the rooms and of their statistics, those that others refer to first."""
    return [*METADATA.sorted_tables, *families.metadata.sorted_tables]


async def migration_of(sql: AsyncConnection) -> str:
    """How far the tables were brought; empty for a database without tables of ours."""
    if not await sql.run_sync(lambda connection: inspect(connection).has_table(VERSION_TABLE)):
        return ""
    return str((await sql.execute(text(f"SELECT version_num FROM {VERSION_TABLE}"))).scalar() or "")  # noqa: S608


async def foreign_tables(sql: AsyncConnection, families: FamilyTables) -> list[str]:
    """Tables of a database that are not ours."""
    ours = {table.name for table in all_tables(families)} | {VERSION_TABLE}
    found = await sql.run_sync(lambda connection: inspect(connection).get_table_names())
    return sorted(set(found) - ours)


async def learn_columns(sql: AsyncConnection, families: FamilyTables) -> None:
    """Columns of events that are declared no more are there in the source, and have to be in the copy too."""
    await sql.run_sync(_learn, families)


def _learn(connection: Connection, families: FamilyTables) -> None:
    inspector = inspect(connection)
    for table in families.metadata.tables.values():
        for column in inspector.get_columns(table.name) if inspector.has_table(table.name) else ():
            if column["name"] not in table.c and isinstance(column["type"], Integer):
                table.append_column(Column(column["name"], BigInteger, nullable=True))


async def require_empty(sql: AsyncConnection, families: FamilyTables, shown: str) -> None:
    """Refuse a database that has rows of ours."""
    there = set(await sql.run_sync(lambda connection: inspect(connection).get_table_names()))
    for table in all_tables(families):
        if table.name in there and (await sql.execute(select(1).select_from(table).limit(1))).first() is not None:
            raise Conflict(f"{shown} holds rows already ({table.name}); name an empty database with --set "
                           "store.url=..., or replace them with --replace")


async def remove_rows(sql: AsyncConnection, families: FamilyTables) -> None:
    """Remove all rows of ours within the transaction of ``sql``, those that refer to others first."""
    there = set(await sql.run_sync(lambda connection: inspect(connection).get_table_names()))
    for table in reversed(all_tables(families)):
        if table.name in there:
            await sql.execute(delete(table))


async def copy_rows(
    source: AsyncConnection, target: Database, sql: AsyncConnection, tables: Iterable[Table], progress: Progress
) -> dict[str, int]:
    """Copy all rows of the tables that the source has, a thousand at a time, and where each table counts on.

    ``sql`` is the transaction in the target, so that all of it arrives or nothing.
    """
    there = set(await source.run_sync(lambda connection: inspect(connection).get_table_names()))
    copied: dict[str, int] = {}
    for table in tables:
        if table.name not in there:
            continue
        columns = await source.run_sync(_columns, table)
        count = 0
        rows = await source.stream(select(*columns))
        async for some in rows.partitions(STEP_ROWS):
            count += await target.insert_many(sql, table, (dict(row._mapping) for row in some))
            progress(table.name, count)
        copied[table.name] = count
        await _count_on(source, sql, table)
    return copied


def _columns(connection: Connection, table: Table) -> list[Column[Any]]:
    there = {column["name"] for column in inspect(connection).get_columns(table.name)}
    if missing := [column.name for column in table.c if column.name not in there and column.primary_key]:
        raise Invalid(f"table {table.name} has no column {missing[0]}, so it is not one of ours")
    return [column for column in table.c if column.name in there]


async def _count_on(source: AsyncConnection, sql: AsyncConnection, table: Table) -> None:
    """Numbers that were given to rows are not given again, also not those of rows that are gone."""
    number = table.autoincrement_column
    if number is None or len(table.primary_key) != 1:
        return
    last = await _last_number(source, table, number.name)
    if sql.dialect.name == "sqlite":
        if not table.dialect_options["sqlite"].get("autoincrement"):
            return
        await sql.execute(text("DELETE FROM sqlite_sequence WHERE name = :name"), {"name": table.name})
        await sql.execute(
            text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :last)"), {"name": table.name, "last": last}
        )
    elif last:
        sequence = await _sequence(sql, table, number.name)
        if sequence:
            await sql.execute(text("SELECT setval(:sequence, :last)"), {"sequence": sequence, "last": last})


async def _last_number(sql: AsyncConnection, table: Table, column: str) -> int:
    newest = (await sql.execute(select(table.c[column]).order_by(table.c[column].desc()).limit(1))).scalar() or 0
    given = 0
    if sql.dialect.name == "sqlite":
        if table.dialect_options["sqlite"].get("autoincrement"):
            query = text("SELECT seq FROM sqlite_sequence WHERE name = :name")
            given = (await sql.execute(query, {"name": table.name})).scalar() or 0
    elif sequence := await _sequence(sql, table, column):
        last, was_given = (await sql.execute(text(f"SELECT last_value, is_called FROM {sequence}"))).one()  # noqa: S608
        given = last if was_given else 0
    return max(int(newest), int(given))


async def _sequence(sql: AsyncConnection, table: Table, column: str) -> str:
    query = text("SELECT pg_get_serial_sequence(:table, :column)")
    return str((await sql.execute(query, {"table": table.name, "column": column})).scalar() or "")
