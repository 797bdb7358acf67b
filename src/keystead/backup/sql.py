"""The database at one moment, brought into one SQLite file whatever it is kept in."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Protocol

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from keystead.backup.rows import (
    VERSION_TABLE,
    Progress,
    all_tables,
    copy_rows,
    foreign_tables,
    learn_columns,
    migration_of,
)
from keystead.backup.threads import Stop, in_thread
from keystead.errors import Invalid, Unavailable
from keystead.stats import FamilyTables
from keystead.store import Database
from keystead.store.address import Address, parse_address
from keystead.store.migration import line

PAGES = 1000  # that are copied between two looks at the progress


class SqlMoment(Protocol):
    """A database. ``fix`` chooses the moment and waits for nobody; ``write_to`` gives what was there then."""

    dialect: str

    async def fix(self) -> None:
        """Choose the moment. It may be chosen anew."""

    async def migration(self) -> str:
        """How far the tables were brought then."""

    async def write_to(self, path: Path, progress: Progress, stop: Stop) -> list[str]:
        """Write the SQLite file; says what is not in it. ``stop`` is told to who copies when this is cancelled."""


@asynccontextmanager
async def open_moment(url: str, families: FamilyTables) -> AsyncIterator[SqlMoment]:
    """The database by its URL. ``Invalid`` for a SQLite file that is not there."""
    address = parse_address(url)
    if address.dialect == "sqlite":
        async with _sqlite(address) as moment:
            yield moment
        return
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(Database.open(url))
        sql = await stack.enter_async_context(database.reading())
        yield _Rows(sql, families, database.shown)


@asynccontextmanager
async def _sqlite(address: Address) -> AsyncIterator["_File"]:
    if not address.path.is_file():
        raise Invalid(f"there is no {address.shown}; was this installation ever started?")
    with closing(sqlite3.connect(address.path, timeout=30, isolation_level=None, check_same_thread=False)) as file:
        yield _File(file, address.shown)


class _File:
    """SQLite. A reader that began sees the file as it was, however much is written beside it."""

    dialect = "sqlite"

    def __init__(self, file: sqlite3.Connection, shown: str) -> None:
        self._file, self._shown = file, shown

    async def fix(self) -> None:
        await in_thread(self._fix)

    def _fix(self) -> None:
        try:
            if self._file.in_transaction:  # an earlier moment that came to nothing
                self._file.execute("ROLLBACK")
            self._file.execute("BEGIN")
            self._file.execute("SELECT 1 FROM sqlite_master").fetchone()  # the first read takes the snapshot
        except sqlite3.Error as error:
            raise Unavailable(f"{self._shown} cannot be read: {error}") from error

    async def migration(self) -> str:
        return await in_thread(self._migration)

    def _migration(self) -> str:
        try:
            found = self._file.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchone()  # noqa: S608
        except sqlite3.Error:
            return ""
        return str(found[0]) if found else ""

    async def write_to(self, path: Path, progress: Progress, stop: Stop) -> list[str]:
        await in_thread(self._copy, path, progress, stop=stop)
        return []

    def _copy(self, path: Path, progress: Progress) -> None:
        def told(status: int, remaining: int, total: int) -> None:
            progress("pages", total - remaining)

        try:
            with closing(sqlite3.connect(path, isolation_level=None)) as copy:
                self._file.backup(copy, pages=PAGES, progress=told)
                # One file, without a log beside it.
                copy.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.Error as error:
            raise Unavailable(f"{self._shown} cannot be copied: {error}") from error


class _Rows:
    """PostgreSQL: one snapshot for the whole of the transaction."""

    dialect = "postgresql"

    def __init__(self, sql: AsyncConnection, families: FamilyTables, shown: str) -> None:
        self._sql, self._families, self._shown = sql, families, shown

    async def fix(self) -> None:
        await self._sql.rollback()  # an earlier moment that came to nothing
        await self._sql.execute(text("SELECT 1"))  # the snapshot is taken by the first statement

    async def migration(self) -> str:
        return await migration_of(self._sql)

    async def write_to(self, path: Path, progress: Progress, stop: Stop) -> list[str]:
        found, newest = await self.migration(), line()[-1].revision
        if found != newest:
            raise Invalid(f"the tables of {self._shown} are at {found or 'no version'} and this Keystead has {newest}; "
                          "take the backup with the version that runs")
        await learn_columns(self._sql, self._families)
        async with Database.open(f"sqlite:///{path}") as copy:
            await copy.migrate()
            await self._families.ensure(copy)
            async with copy.transaction() as sql:
                await copy_rows(self._sql, copy, sql, all_tables(self._families), progress)
        with closing(sqlite3.connect(path, isolation_level=None)) as file:
            file.execute("PRAGMA journal_mode = DELETE")
        left_out = await foreign_tables(self._sql, self._families)
        if not left_out:
            return []
        return [f"{len(left_out)} tables of the database are not Keystead's and are not in the backup: "
                f"{', '.join(left_out[:5])}"]
