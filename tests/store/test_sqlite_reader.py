"""Reads of SQLite: short ones at once, long ones beside everything else."""

import asyncio
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import text

from keystead.errors import Unavailable
from keystead.store import Database, sqlite_reader

from .items import items, make_tables, put

LONG = text("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000) SELECT sum(i) FROM n")
ENDLESS = text("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT sum(i) FROM n")
MANY = text("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000) SELECT i FROM n")


@pytest.fixture
async def database(tmp_path: Path):
    async with Database.open(f"sqlite:///{tmp_path}/a.db") as found:
        await make_tables(found, a=1)
        yield found


@pytest.fixture
def in_threads(monkeypatch) -> list[str]:
    """Grows with each statement that went to a thread."""
    seen: list[str] = []
    plain = sqlite_reader.Reader.in_thread

    async def told(self, work):
        seen.append("thread")
        return await plain(self, work)

    monkeypatch.setattr(sqlite_reader.Reader, "in_thread", told)
    return seen


async def test_short_read_needs_no_thread(database, in_threads, monkeypatch):
    monkeypatch.setattr(sqlite_reader, "MOST_SECONDS", 60)
    assert await items(database) == {"a": 1}
    assert in_threads == []


async def test_short_read_keeps_its_connection_for_no_turn_of_the_loop(database, monkeypatch):
    """When very many read at once a turn is long, and so few connections would let few of them through."""
    monkeypatch.setattr(sqlite_reader, "MOST_SECONDS", 60)
    assert await items(database) == {"a": 1}  # connected
    with pytest.raises(StopIteration):
        items(database).send(None)


async def test_long_read_runs_beside_everything_else(database, in_threads):
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0.001)
            beats += 1

    beating = asyncio.create_task(beat())
    async with database.reading() as sql:
        assert await sql.scalar(LONG) == 300000 * 300001 // 2
    beating.cancel()
    assert in_threads
    assert beats > 0


async def test_long_read_sees_what_the_transaction_saw_before(database, monkeypatch):
    monkeypatch.setattr(sqlite_reader, "MOST_SECONDS", -1)
    monkeypatch.setattr(sqlite_reader, "LOOK_EVERY", 1)
    async with database.reading() as sql:
        count = text("SELECT count(*) FROM items")
        assert await sql.scalar(count) == 1
        async with database.transaction() as other:
            await other.execute(put("b", 2))
        assert await sql.scalar(count) == 1
    assert await items(database) == {"a": 1, "b": 2}


async def test_cancelled_read_has_ended_and_its_connection_can_be_used(database):
    threads = threading.active_count()

    async def read() -> None:
        async with database.reading() as sql:
            await sql.scalar(ENDLESS)

    for _ in range(sqlite_readers() + 1):
        task = asyncio.create_task(read())
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 20)
    assert await items(database) == {"a": 1}
    assert threading.active_count() <= threads + sqlite_readers() + 1


async def test_read_that_is_cancelled_twice_keeps_its_connection_until_its_thread_has_ended(database, monkeypatch):
    """Otherwise the next one would use a connection on which a thread still works, and wait for it on the loop."""
    assert await items(database) == {"a": 1}  # connected
    free, in_hand = threading.Event(), asyncio.Event()
    with ThreadPoolExecutor(1) as executor:
        asyncio.get_running_loop().set_default_executor(executor)
        executor.submit(free.wait, 60)
        monkeypatch.setattr(sqlite_reader, "MOST_SECONDS", -1)
        monkeypatch.setattr(sqlite_reader, "LOOK_EVERY", 1)
        plain = sqlite_reader.Reader.in_thread

        async def told(self, work):
            in_hand.set()
            return await plain(self, work)

        monkeypatch.setattr(sqlite_reader.Reader, "in_thread", told)
        task = asyncio.create_task(items(database))
        await asyncio.wait_for(in_hand.wait(), 20)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0.1)
        is_early = task.done()
        free.set()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 20)
        assert not is_early
        assert await items(database) == {"a": 1}


def sqlite_readers() -> int:
    from keystead.store import sqlite

    return sqlite.READERS


@pytest.mark.parametrize("most_seconds", [60, 0.0005])
async def test_rows_can_be_had_one_after_another(database, monkeypatch, most_seconds):
    monkeypatch.setattr(sqlite_reader, "MOST_SECONDS", most_seconds)
    async with database.reading() as sql:
        rows = await sql.stream(MANY)
        assert (await rows.first())[0] == 1
        rows = await sql.stream(MANY)
        assert [row.i async for row in rows] == list(range(1, 50001))


async def test_read_that_has_to_wait_holds_nobody_up_and_gives_up_in_the_end(tmp_path):
    path = tmp_path / "shared.db"
    async with Database.open(f"sqlite:///{path}", wait_seconds=0.3) as database:
        await make_tables(database, a=1)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN IMMEDIATE")
    other.execute("UPDATE items SET total = 5")
    other.execute("COMMIT")
    with pytest.raises(Unavailable, match="locked by another program"):
        async with Database.open(f"sqlite:///{path}", wait_seconds=0.3):
            pass
    other.close()
    async with Database.open(f"sqlite:///{path}", wait_seconds=0.3) as database:
        assert await items(database) == {"a": 5}


async def test_error_of_a_statement_is_not_taken_for_a_long_one(database, in_threads):
    async with database.reading() as sql:
        with pytest.raises(Exception, match="no such table"):
            await sql.scalar(text("SELECT 1 FROM absent"))
    assert in_threads == []
