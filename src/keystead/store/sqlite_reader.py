"""Short reads of SQLite where they are asked for, long ones in a thread.

Most reads take a few dozen microseconds, and handing one to a thread and back takes many times as long: each has
several steps, and a busy event loop lets go of the interpreter only every few milliseconds. So a statement runs right
here, but only for ``MOST_SECONDS``: one that takes longer, or would have to wait for a lock, is stopped and run again
in a thread. Nothing is lost by that, since these connections only read, and a transaction sees the same rows again.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import perf_counter
from typing import Any, Final, Self, TypeVar

MOST_SECONDS: Final = 0.002
LOOK_EVERY: Final = 1000  # instructions of SQLite's machine: some ten microseconds

T = TypeVar("T")


async def open_reader(database: str, *, timeout: float, isolation_level: None, **_: object) -> "Reader":
    """As the driver connects."""
    return Reader(await asyncio.to_thread(
        sqlite3.connect, database, timeout=0, isolation_level=isolation_level, check_same_thread=False
    ), timeout)


class Reader:
    """A connection with the interface of the driver for the event loop. One task uses it at a time."""

    def __init__(self, connection: sqlite3.Connection, wait_seconds: float) -> None:
        self._connection: sqlite3.Connection | None = connection
        self._wait_ms = int(wait_seconds * 1000)
        self._until = 0.0

    @property
    def plain(self) -> sqlite3.Connection:
        if self._connection is None:
            raise ValueError("no active connection")
        return self._connection

    def cursor(self) -> "ReaderCursor":
        return ReaderCursor(self)

    async def rollback(self) -> None:
        self.plain.rollback()

    async def commit(self) -> None:
        self.plain.commit()

    async def create_function(self, *arguments: Any, **options: Any) -> None:
        self.plain.create_function(*arguments, **options)

    async def close(self) -> None:
        self.stop()

    def stop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def begin(self) -> None:
        """Begin a transaction: nothing is locked or read before its first statement, so this cannot take long."""
        self.plain.execute("BEGIN")

    async def run(self, cursor: sqlite3.Cursor, sql: str, parameters: Sequence[Any]) -> list[Any] | None:
        """The rows of a statement, or None if there may be many: they are still in the cursor."""
        done, rows = self.try_here(lambda: cursor.execute(sql, parameters).fetchall())
        if not done:
            await self.in_thread(lambda: cursor.execute(sql, parameters))
        return rows

    def try_here(self, work: Callable[[], T]) -> tuple[bool, T | None]:
        """Run it for as long as it may; whether it came to its end, and what came out."""
        connection = self.plain
        self._until = perf_counter() + MOST_SECONDS
        connection.set_progress_handler(self._is_over, LOOK_EVERY)
        try:
            return True, work()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_BUSY):
                raise
            return False, None
        finally:
            connection.set_progress_handler(None, 0)

    def _is_over(self) -> bool:
        return perf_counter() > self._until

    def leave(self, cursor: sqlite3.Cursor) -> None:
        """Close it."""
        cursor.close()

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run it to its end beside everything else. Whoever is cancelled has ended it when they are told so."""
        connection = self.plain

        def waiting() -> T:
            connection.execute(f"PRAGMA busy_timeout = {self._wait_ms}")
            try:
                return work()
            finally:
                connection.execute("PRAGMA busy_timeout = 0")

        running = asyncio.ensure_future(asyncio.to_thread(waiting))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            while not running.done():
                connection.interrupt()
                # Whoever is cancelled again waits all the same: the connection is the thread's until it ends.
                with suppress(asyncio.CancelledError):
                    await asyncio.wait({running}, timeout=0.05)
            running.exception()
            raise


class ReaderCursor:
    """A cursor with the interface of the driver for the event loop."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._cursor = reader.plain.cursor()
        self._rows: list[Any] | None = []  # None: they are still in the cursor

    async def __aenter__(self) -> Self:
        return self

    @property
    def description(self) -> Any:
        return self._cursor.description

    @property
    def rowcount(self) -> int:
        return self._cursor.rowcount

    @property
    def lastrowid(self) -> int | None:
        return self._cursor.lastrowid

    @property
    def arraysize(self) -> int:
        return self._cursor.arraysize

    @arraysize.setter
    def arraysize(self, value: int) -> None:
        self._cursor.arraysize = value

    async def execute(self, sql: str, parameters: Sequence[Any] = ()) -> Self:
        self._rows = await self._reader.run(self._cursor, sql, parameters)
        return self

    async def executemany(self, sql: str, parameters: Sequence[Any]) -> Self:
        self._rows = []
        await self._reader.in_thread(lambda: self._cursor.executemany(sql, parameters))
        return self

    async def fetchone(self) -> Any:
        rows = await self.fetchmany(1)
        return rows[0] if rows else None

    async def fetchmany(self, size: int | None = None) -> list[Any]:
        most = self._cursor.arraysize if size is None else size
        if self._rows is None:
            return await self._reader.in_thread(lambda: self._cursor.fetchmany(most))
        some, self._rows = self._rows[:most], self._rows[most:]
        return some

    async def fetchall(self) -> list[Any]:
        if self._rows is None:
            return await self._reader.in_thread(self._cursor.fetchall)
        rows, self._rows = self._rows, []
        return rows

    async def close(self) -> None:
        self._reader.leave(self._cursor)
