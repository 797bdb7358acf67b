"""Writes of SQLite: few steps to a thread, and whole, whoever stops waiting for them."""

import asyncio
import sqlite3
import threading
import weakref
from pathlib import Path

import pytest

from keystead.store import Database, sqlite_writer

from .items import items, make_tables, put


def writing_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == sqlite_writer.THREAD_NAME}


@pytest.fixture
def steps(monkeypatch) -> list[str]:
    """Grows with each step to the thread."""
    seen: list[str] = []
    plain = sqlite_writer.Writer._ask

    def told(self, work, settle):
        seen.append("step")
        plain(self, work, settle)

    monkeypatch.setattr(sqlite_writer.Writer, "_ask", told)
    return seen


async def test_each_statement_takes_one_step(tmp_path: Path, steps: list[str]) -> None:
    async with Database.open(f"sqlite:///{tmp_path}/a.db") as database:
        await make_tables(database)
        steps.clear()
        async with database.transaction() as sql:
            await sql.execute(put("a", 1))
            await sql.execute(put("b", 2))
        assert len(steps) == 4  # it begins, two statements, it is committed
        assert await items(database) == {"a": 1, "b": 2}


async def test_whoever_is_cancelled_while_it_begins_leaves_no_transaction_behind(tmp_path: Path) -> None:
    """It may begin after the cancellation: in the thread, once the other program lets go of the file."""
    path = tmp_path / "shared.db"
    async with Database.open(f"sqlite:///{path}") as database:
        await make_tables(database, a=1)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")

        async def write() -> None:
            async with database.transaction() as sql:
                await sql.execute(put("late", 1))

        for _ in range(3):
            writer = asyncio.create_task(write())
            await asyncio.sleep(0.1)  # long enough to begin, most of the time; it holds at any moment
            writer.cancel()
        other.execute("COMMIT")
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(writer, 40)
        other.execute("BEGIN IMMEDIATE")  # nothing of ours holds the file
        other.execute("COMMIT")
        other.close()
        await asyncio.wait_for(write(), 40)
        assert await items(database) == {"a": 1, "late": 1}


async def test_thread_ends_with_the_database(tmp_path: Path) -> None:
    before = writing_threads()
    async with Database.open(f"sqlite:///{tmp_path}/a.db") as database:
        await make_tables(database)
        (thread,) = writing_threads() - before
    await asyncio.to_thread(thread.join, 40)
    assert not thread.is_alive()


async def test_thread_holds_nothing_of_what_it_did(tmp_path: Path) -> None:
    """Rows may be many, and the next one to write may come tomorrow."""

    class Rows:
        pass

    writer = await sqlite_writer.open_writer(str(tmp_path / "a.db"), timeout=1, isolation_level=None)
    held = weakref.ref(await writer.in_thread(Rows))
    deadline = asyncio.get_running_loop().time() + 20
    while held() is not None and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.01)
    assert held() is None
    await writer.close()


async def test_whoever_closed_it_finds_everything_in_the_one_file(tmp_path: Path) -> None:
    """Whoever copies the file then copies all of it."""
    for number in range(20):
        path = tmp_path / f"{number}.db"
        async with Database.open(f"sqlite:///{path}") as database:
            await make_tables(database, a=number)
            assert await items(database) == {"a": number}
        assert [each.name for each in tmp_path.glob(f"{number}.db*")] == [path.name]


async def test_error_of_a_statement_comes_to_whoever_asked(tmp_path: Path) -> None:
    async with Database.open(f"sqlite:///{tmp_path}/a.db") as database:
        await make_tables(database, a=1)
        with pytest.raises(Exception, match="UNIQUE"):
            async with database.transaction() as sql:
                await sql.execute(put("a", 2))
        assert await items(database) == {"a": 1}
