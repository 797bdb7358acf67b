"""SQLite: how the file is set up, and what happens when others use it too."""

import asyncio
import contextlib
import sqlite3
import stat
import sys
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from keystead.errors import Unavailable
from keystead.store import Database

from .items import change, items, make_tables, put


async def test_a_new_file_is_made_for_this_user_alone_with_the_safe_settings(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "what? 100%.db"
    async with Database.open(f"sqlite:///{str(path).replace('%', '%25').replace('?', '%3F')}") as database:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        async with database.transaction() as sql:
            names = ("journal_mode", "synchronous", "foreign_keys")
            assert [await sql.scalar(text(f"PRAGMA {name}")) for name in names] == ["wal", 2, 1]
        async with database.reading() as sql:
            assert await sql.scalar(text("PRAGMA query_only")) == 1


async def test_a_file_locked_by_another_program_for_too_long_is_unavailable(tmp_path: Path) -> None:
    path = tmp_path / "shared.db"
    async with Database.open(f"sqlite:///{path}", wait_seconds=0.2) as database:
        await make_tables(database, a=1)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Unavailable, match=r"shared\.db is locked by another program"):
            async with database.transaction():
                pass
        assert await items(database) == {"a": 1}  # reading goes on
        other.execute("COMMIT")
        other.close()
        async with database.transaction() as sql:
            await sql.execute(put("b", 2))


async def test_a_writer_of_this_process_that_takes_too_long_makes_others_unavailable(tmp_path: Path) -> None:
    async with Database.open(f"sqlite:///{tmp_path}/a.db", wait_seconds=0.2) as database:
        await make_tables(database)

        async def write() -> None:
            async with database.transaction() as sql:
                await sql.execute(put("late", 1))

        async with database.transaction() as sql:
            with pytest.raises(Unavailable, match="too many of this process wait"):
                await asyncio.create_task(write())
            await sql.execute(put("first", 1))
        await write()
        assert await items(database) == {"first": 1, "late": 1}


async def test_two_databases_of_one_file_take_turns(tmp_path: Path) -> None:
    """As two processes do: each has its own queue, and SQLite lets one of them write at a time."""
    url = f"sqlite:///{tmp_path}/a.db"
    async with Database.open(url) as one, Database.open(url) as other:
        await make_tables(one, counter=0)

        async def add(database: Database) -> None:
            async with database.transaction() as sql:
                total = await sql.scalar(text("SELECT total FROM items"))
                await sql.execute(change("counter", total + 1))

        await asyncio.gather(*(add(database) for database in (one, other) * 15))
        assert await items(one) == {"counter": 30}


async def test_a_full_disk_undoes_the_block_whatever_its_writer_makes_of_it(tmp_path: Path) -> None:
    """SQLite then may end the transaction by itself; nothing that comes after may be kept without the rest."""
    async with Database.open(f"sqlite:///{tmp_path}/a.db") as database:
        await make_tables(database, a=1)
        with pytest.raises(Unavailable, match="no room left"):
            async with database.transaction() as sql:
                await sql.execute(put("before", 1))
                await sql.execute(text("PRAGMA max_page_count = 10"))
                with pytest.raises(Unavailable, match="no room left"):
                    await sql.execute(put("x" * 1_000_000, 1))
                with contextlib.suppress(SQLAlchemyError):
                    await sql.execute(put("after", 1))
        async with database.transaction() as sql:
            await sql.execute(put("later", 1))
        assert await items(database) == {"a": 1, "later": 1}


WITHOUT_DRIVERS = """
import asyncio, sys
sys.modules.update({name: None for name in sys.argv[2:]})
from keystead.errors import Invalid
from keystead.store import Database

async def refusal(url):
    try:
        async with Database.open(url) as database:
            await database.migrate()
    except Invalid as refused:
        return str(refused)

print(asyncio.run(refusal(sys.argv[1])))
"""


@pytest.mark.parametrize(
    ("missing", "url", "extra"),
    [
        (("alembic", "aiosqlite", "asyncpg"), "sqlite:///a.db", "sql"),
        (("alembic", "aiosqlite", "asyncpg"), "postgresql://ada@127.0.0.1/shop", "postgres"),
        (("alembic",), "sqlite:///a.db", "sql"),
    ],
)
async def test_packages_that_are_missing_are_named_when_they_are_needed(
    missing: tuple[str, ...], url: str, extra: str, tmp_path: Path
) -> None:
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WITHOUT_DRIVERS, url, *missing, stdout=asyncio.subprocess.PIPE, cwd=tmp_path
    )
    said, _ = await program.communicate()
    assert program.returncode == 0 and f"pip install 'keystead[{extra}]'" in said.decode()
