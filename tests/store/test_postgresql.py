"""PostgreSQL: connections that break, locks that cross."""

import asyncio
import socket
import traceback
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from sqlalchemy import Text, bindparam, text
from sqlalchemy.exc import DBAPIError

from keystead.errors import ReplyLost, Unavailable
from keystead.store import Database
from keystead.store.address import parse_address
from keystead.store.postgresql import SILENCE

from ..databases import PostgreSQL
from .items import ITEMS, change, items, make_tables, put


@pytest_asyncio.fixture
async def database(postgresql: PostgreSQL) -> AsyncIterator[Database]:
    with postgresql.database() as url:
        async with Database.open(url) as database:
            await make_tables(database, a=1, b=1)
            yield database


async def end_others(database: Database) -> None:
    async with database.transaction() as sql:
        await sql.execute(text(
            "SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ))


async def test_a_connection_lost_in_a_transaction_is_unavailable_and_nothing_is_half_done(database: Database) -> None:
    with pytest.raises(Unavailable, match="PostgreSQL database") as lost:
        async with database.transaction() as sql:
            await sql.execute(put("lost", 1))
            await asyncio.create_task(end_others(database))
            await sql.execute(put("lost too", 1))
    assert not isinstance(lost.value, ReplyLost)
    assert await items(database) == {"a": 1, "b": 1}


async def test_a_lost_connection_that_nobody_minds_is_told_at_the_end(database: Database) -> None:
    with pytest.raises(Unavailable):
        async with database.transaction() as sql:
            await sql.execute(put("lost", 1))
            await asyncio.create_task(end_others(database))
            with pytest.raises(Unavailable):
                await sql.execute(put("lost too", 1))
    assert await items(database) == {"a": 1, "b": 1}


async def test_a_connection_lost_before_the_commit_says_that_its_fate_is_not_known(database: Database) -> None:
    called: list[int] = []
    with pytest.raises(ReplyLost, match="may or may not have happened"):
        async with database.transaction() as sql:
            await sql.execute(put("lost", 1))
            database.after_commit(sql, lambda: called.append(1))
            await asyncio.create_task(end_others(database))
    assert called == []
    assert await items(database) == {"a": 1, "b": 1}


async def test_a_connection_that_cannot_be_given_back_does_not_change_how_the_block_ended(database: Database) -> None:
    """Least of all a cancellation: whoever tries again after Unavailable would otherwise never end."""
    begun = asyncio.Event()

    async def never_ends() -> None:
        async with database.transaction() as sql:
            await sql.execute(put("lost", 1))
            begun.set()
            await asyncio.Event().wait()

    writer = asyncio.create_task(never_ends())
    await begun.wait()
    await end_others(database)
    writer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writer
    with pytest.raises(ZeroDivisionError):
        async with database.transaction() as sql:
            await sql.execute(put("lost", 1))
            await asyncio.create_task(end_others(database))
            raise ZeroDivisionError
    async with database.reading() as sql:
        assert await sql.scalar(text("SELECT 1")) == 1
        await end_others(database)
    assert await items(database) == {"a": 1, "b": 1}
    assert database._spoiled == {}


async def test_values_that_do_not_fit_are_not_quoted_nor_are_rows_in_details(database: Database) -> None:
    rows = [{"name": "c", "total": "s3cret"}, {"name": "s3cret", "total": None}, {"name": "s3cret", "total": 2**70}]
    for row in rows:
        with pytest.raises(DBAPIError) as refused:
            async with database.transaction() as sql:
                await sql.execute(ITEMS.insert().values(**row))
        assert "s3cret" not in "".join(traceback.format_exception(refused.value)).replace('"s3cret"', "")
        assert str(2**70) not in str(refused.value)
    async with database.reading() as sql:
        with pytest.raises(DBAPIError, match=r"does not fit \(22P02\)"):
            await sql.execute(text("SELECT CAST(:given AS integer)").bindparams(bindparam("given", "s3cret", Text)))


async def test_connections_that_broke_while_idle_are_not_handed_out(database: Database) -> None:
    async with database.reading() as one, database.reading() as other:
        await one.execute(text("SELECT 1"))
        await other.execute(text("SELECT 1"))
    await end_others(database)
    await asyncio.gather(*(items(database) for _ in range(5)))


async def test_a_machine_that_is_gone_without_a_word_is_noticed_by_the_system(postgresql: PostgreSQL) -> None:
    """Over TCP, to which the server of the tests does not listen itself."""
    seen: list[asyncio.StreamWriter] = []
    place = parse_address(postgresql.url("postgres")).shown.rpartition(" at ")[2]

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while raw := await reader.read(65536):
            writer.write(raw)
        writer.close()

    async def passed_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there = await asyncio.open_unix_connection(f"{place}/.s.PGSQL.5432")
        seen.append(writer)
        await asyncio.gather(copy(reader, there), copy(there_reader, writer))

    async with await asyncio.start_server(passed_on, "127.0.0.1") as server:
        url = f"postgresql://postgres@127.0.0.1:{server.sockets[0].getsockname()[1]}/postgres?sslmode=disable"
        async with Database.open(url) as database, database.reading() as sql:
            raw = await sql.get_raw_connection()
            wire = raw.driver_connection._transport.get_extra_info("socket")  # type: ignore[union-attr]
            assert wire.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            for name in SILENCE:
                if hasattr(socket, name):
                    assert wire.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) == SILENCE[name]
    assert seen


async def test_a_deadlock_undoes_one_and_says_that_it_may_be_tried_again(database: Database) -> None:
    met = asyncio.Barrier(2)

    async def both(first: str, second: str) -> None:
        async with database.transaction() as sql:
            await sql.execute(change(first, 5))
            await met.wait()
            await sql.execute(change(second, 5))

    ended = await asyncio.gather(both("a", "b"), both("b", "a"), return_exceptions=True)
    assert sorted(type(each).__name__ for each in ended) == ["NoneType", "Unavailable"]
    assert await items(database) == {"a": 5, "b": 5}


async def test_a_row_that_is_locked_for_too_long_is_unavailable(postgresql: PostgreSQL) -> None:
    with postgresql.database() as url:
        async with Database.open(url, wait_seconds=0.2) as database:
            await make_tables(database, a=1)

            async def write() -> None:
                async with database.transaction() as sql:
                    await sql.execute(change("a", 2))

            async with database.transaction() as sql:
                await sql.execute(change("a", 3))
                with pytest.raises(Unavailable, match="locked by another transaction for too long"):
                    await asyncio.create_task(write())
            assert await items(database) == {"a": 3}


async def test_tables_that_change_while_we_run_cost_one_try(database: Database) -> None:
    assert await items(database) == {"a": 1, "b": 1}
    async with database.transaction() as sql:
        await sql.execute(text("ALTER TABLE items ALTER COLUMN total TYPE integer"))
    with pytest.raises(Unavailable, match="tables changed meanwhile"):
        await items(database)
    assert await items(database) == {"a": 1, "b": 1}
