"""The numbered line of migrations: one after the other, once, whoever starts them."""

import asyncio
import importlib
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, inspect, text

from keystead.errors import Invalid
from keystead.store import Database
from keystead.store.migration import DIRECTORY, VERSION_TABLE, line
from keystead.store.tables import METADATA

from ..databases import PostgreSQL
from ..faults.programs import programs


def test_the_line_has_one_head_and_no_gap() -> None:
    numbers = [step.revision for step in line()]
    assert numbers == [f"{number:04}" for number in range(1, len(numbers) + 1)]
    assert [step.down_revision for step in line()] == [None, *numbers[:-1]]
    files = sorted(path.name for path in (DIRECTORY / "versions").glob("[!_]*.py"))
    assert [name[:5] for name in files] == [f"{number}_" for number in numbers]


async def test_migrated_tables_are_those_that_the_rooms_describe(database: Database) -> None:
    """What the steps made and what each ``tables.py`` says differ in nothing: columns, types, indexes."""
    source = DIRECTORY.parents[1]
    for path in sorted(source.rglob("*tables.py")):
        importlib.import_module(".".join(("keystead", *path.relative_to(source).with_suffix("").parts)))

    def differences(connection: Connection) -> list[object]:
        made = set(inspect(connection).get_table_names()) - {VERSION_TABLE}
        assert "store_outbox" in made and made <= set(METADATA.tables)
        options = {"compare_type": True, "include_object": lambda item, name, kind, *_: kind != "table" or name in made}
        return list(compare_metadata(MigrationContext.configure(connection, opts=options), METADATA))

    async with database.transaction() as sql:
        assert await sql.run_sync(differences) == []


async def test_migrating_again_changes_nothing(database: Database) -> None:
    await database.migrate()
    async with database.reading() as sql:
        assert (await sql.execute(text(f"SELECT version_num FROM {VERSION_TABLE}"))).all() == [(line()[-1].revision,)]


async def test_a_database_of_a_newer_version_is_refused(database: Database) -> None:
    async with database.transaction() as sql:
        await sql.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9000'"))
    with pytest.raises(Invalid, match="9000 by a newer Keystead, and this one knows them up to"):
        await database.migrate()


async def processes_start_at_once(url: str) -> None:
    async with programs("tests.store.migrating") as start:
        started = [await start(url) for _ in range(3)]
        await asyncio.gather(*(program.hears("ready") for program in started))
        for program in started:
            program.process.send_signal(10)  # SIGUSR1: go
        await asyncio.gather(*(program.hears("migrated") for program in started))


async def test_processes_that_start_at_once_migrate_a_new_file_once(tmp_path: Path) -> None:
    await processes_start_at_once(f"sqlite:///{tmp_path}/new/keystead.db")


async def test_processes_that_start_at_once_migrate_a_new_database_once(postgresql: PostgreSQL) -> None:
    with postgresql.database() as url:
        await processes_start_at_once(url)


async def test_missing_steps_are_counted_and_none_is_missing_after_all_were_taken(tmp_path):
    async with Database.open(f"sqlite:///{tmp_path}/new.sqlite") as database:
        assert await database.missing_steps() == len(line())
        await database.migrate()
        assert await database.missing_steps() == 0
        async with database.transaction() as sql:
            await sql.exec_driver_sql(f"UPDATE {VERSION_TABLE} SET version_num = '{line()[-3].revision}'")
        assert await database.missing_steps() == 2
        async with database.transaction() as sql:
            await sql.exec_driver_sql(f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
        assert await database.missing_steps() == 0, "a newer version was here"
