"""SQLite as we use it: one file in WAL mode, one writer at a time, readers beside it."""

import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast

from sqlalchemy import URL, Connection, event
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from keystead.errors import Invalid
from keystead.store.sqlite_reader import Reader, open_reader
from keystead.store.sqlite_writer import open_writer

READERS: Final = 8
KEPT_LOG_BYTES: Final = 64 * 1024 * 1024

# FULL: the log is on the disk before a commit returns, so that a power failure takes nothing that was accepted.
_WRITER = ("PRAGMA synchronous = FULL", "PRAGMA foreign_keys = ON", f"PRAGMA journal_size_limit = {KEPT_LOG_BYTES}")
_READER = ("PRAGMA query_only = ON",)


def prepare(path: Path, wait_seconds: float) -> None:
    """Make the file and its directory if need be, readable for this user alone, and switch it to WAL mode.

    May be called by several processes at once. Raises what sqlite3 and the file system raise.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    deadline = time.monotonic() + wait_seconds
    while True:
        connection = sqlite3.connect(path, timeout=wait_seconds)
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            break
        except sqlite3.OperationalError as error:
            # Two that switch a new file at once do not wait for each other: SQLite refuses one of them at once.
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        finally:
            connection.close()
    if mode != "wal":
        raise Invalid(f"SQLite file {path} lies where SQLite cannot keep its log (a network disk?); name a local file")


async def open_quick(path: Path) -> Reader:
    """For reads that take but a moment, each by itself."""
    reader = await open_reader(str(path), timeout=0, isolation_level=None)
    for pragma in _READER:
        reader.plain.execute(pragma)
    return reader


def engines(path: Path, wait_seconds: float) -> tuple[AsyncEngine, AsyncEngine]:
    """One for writing, with one connection, and one for reading."""
    return (
        _engine(path, wait_seconds, 1, _begin_writing, _WRITER, async_creator_fn=open_writer),
        _engine(path, wait_seconds, READERS, _begin_reading, _READER, async_creator_fn=open_reader),
    )


def _begin_writing(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _begin_reading(connection: Connection) -> None:
    # Not as a statement of SQLAlchemy's, which would cost more than the read that follows.
    reader: Reader = cast(Reader, connection.connection.driver_connection)
    reader.begin()


def _engine(
    path: Path, wait_seconds: float, size: int, begin: Callable[[Connection], None], pragmas: tuple[str, ...],
    **connecting: Any,
) -> AsyncEngine:
    engine = create_async_engine(
        URL.create("sqlite+aiosqlite", database=str(path)), hide_parameters=True,
        pool_size=size, max_overflow=0, pool_timeout=wait_seconds,
        # The driver would begin a transaction where it thinks fit; here it does so where we say.
        connect_args={"timeout": wait_seconds, "isolation_level": None, **connecting},
    )

    @event.listens_for(engine.sync_engine, "connect")
    def set_up(connection: sqlite3.Connection, record: object) -> None:
        cursor = connection.cursor()
        for pragma in pragmas:
            cursor.execute(pragma)
        cursor.close()

    event.listen(engine.sync_engine, "begin", begin)
    return engine
