"""The database on SQLite and PostgreSQL: transactions, reading, bulk statements."""

import asyncio

import pytest
import pytest_asyncio
from sqlalchemy import insert, select, text
from sqlalchemy.exc import IntegrityError

from keystead.errors import Invalid
from keystead.store import Database

from .items import ITEMS, PARTS, change, items, make_tables, put


@pytest_asyncio.fixture(autouse=True)
async def tables(database: Database) -> None:
    await make_tables(database)


async def test_a_block_that_ends_is_kept_and_one_that_raises_is_not(database: Database) -> None:
    async with database.transaction() as sql:
        await sql.execute(put("kept", 1))
    with pytest.raises(ZeroDivisionError):
        async with database.transaction() as sql:
            await sql.execute(put("lost", 1))
            await sql.execute(change("kept", 9))
            raise ZeroDivisionError
    assert await items(database) == {"kept": 1}


async def test_a_cancelled_block_is_undone_and_the_next_one_can_write(database: Database) -> None:
    begun = asyncio.Event()

    async def never_ends() -> None:
        async with database.transaction() as sql:
            await sql.execute(put("lost", 1))
            begun.set()
            await asyncio.Event().wait()

    writer = asyncio.create_task(never_ends())
    await begun.wait()
    writer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writer
    async with database.transaction() as sql:
        await sql.execute(put("kept", 1))
    assert await items(database) == {"kept": 1}


async def test_blocks_cancelled_anywhere_leave_all_or_nothing(database: Database) -> None:
    """Each writes two rows; wherever it is cut off, both are there or none, and the database goes on."""

    async def both(number: int) -> None:
        async with database.transaction() as sql:
            await sql.execute(put(f"{number} first", number))
            await sql.execute(put(f"{number} second", number))

    for number in range(25):
        writer = asyncio.create_task(both(number))
        for _ in range(number):
            await asyncio.sleep(0)
        writer.cancel()
        await asyncio.wait([writer])
    await both(99)
    names = {name.split()[0]: 0 for name in await items(database)}
    for name in await items(database):
        names[name.split()[0]] += 1
    assert set(names.values()) == {2} and "99" in names


async def test_writers_that_read_first_lose_nothing(database: Database) -> None:
    """Read, then write what was read plus one: many at once, on SQLite without a deadlock and without a lost one."""
    await make_tables(database, counter=0)

    async def add_one() -> None:
        async with database.transaction() as sql:
            if database.dialect == "sqlite":
                total = await sql.scalar(select(ITEMS.c.total).where(ITEMS.c.name == "counter"))
            else:  # read committed: who reads in order to write says so
                total = await sql.scalar(select(ITEMS.c.total).where(ITEMS.c.name == "counter").with_for_update())
            await sql.execute(change("counter", total + 1))

    await asyncio.gather(*(add_one() for _ in range(40)))
    assert await items(database) == {"counter": 40}


async def test_a_reader_sees_one_moment_and_waits_for_no_writer(database: Database) -> None:
    await make_tables(database, a=1)
    async with database.transaction() as sql:
        await sql.execute(change("a", 2))
        async with asyncio.timeout(20):
            assert await items(database) == {"a": 1}
    async with database.reading() as reading:
        assert await reading.scalar(select(ITEMS.c.total)) == 2
        async with database.transaction() as sql:
            await sql.execute(change("a", 3))
        assert await reading.scalar(select(ITEMS.c.total)) == 2
    assert await items(database) == {"a": 3}


async def test_a_reader_cannot_write(database: Database) -> None:
    async with database.reading() as sql:
        with pytest.raises(Invalid, match=r"write in a block of database\.transaction"):
            await sql.execute(put("a", 1))
    assert await items(database) == {}


async def test_a_transaction_in_a_transaction_is_refused_at_once(database: Database) -> None:
    async with database.transaction():
        with pytest.raises(Invalid, match="hand its connection on"):
            async with database.transaction():
                pass
    async with database.transaction() as sql:
        await sql.execute(put("a", 1))


async def test_errors_of_a_statement_stay_those_of_the_library_and_hide_its_values(database: Database) -> None:
    await make_tables(database, ada=1)
    with pytest.raises(IntegrityError) as refused:
        async with database.transaction() as sql:
            await sql.execute(put("ada", 77001))
    assert "77001" not in str(refused.value) and "ada" not in str(refused.value).replace("database", "")
    with pytest.raises(IntegrityError):
        async with database.transaction() as sql:
            await sql.execute(insert(PARTS).values(item="nobody"))


async def test_a_statement_that_failed_spoils_the_block_even_if_nobody_minds(database: Database) -> None:
    await make_tables(database, ada=1)
    called: list[int] = []
    with pytest.raises(Invalid, match=r"failed \(\w+Error\), so none of it is kept.*begin_nested"):
        async with database.transaction() as sql:
            await sql.execute(put("before", 1))
            database.after_commit(sql, lambda: called.append(1))
            with pytest.raises(IntegrityError):
                await sql.execute(put("ada", 2))
    assert await items(database) == {"ada": 1} and not called


async def test_a_statement_that_may_fail_is_undone_alone_in_a_nested_block(database: Database) -> None:
    await make_tables(database, ada=1)
    async with database.transaction() as sql:
        await sql.execute(put("before", 1))
        with pytest.raises(IntegrityError):
            async with sql.begin_nested():
                await sql.execute(put("lost", 1))
                await sql.execute(put("ada", 2))
        await sql.execute(put("after", 1))
    assert await items(database) == {"ada": 1, "before": 1, "after": 1}


async def test_a_commit_that_is_refused_leaves_nothing_open(database: Database) -> None:
    async with database.transaction() as sql:
        await sql.execute(text("CREATE TABLE homes (id INTEGER PRIMARY KEY)"))
        await sql.execute(text("CREATE TABLE guests (id INTEGER PRIMARY KEY, home INTEGER REFERENCES homes (id) "
                               "DEFERRABLE INITIALLY DEFERRED)"))
    with pytest.raises(IntegrityError):
        async with database.transaction() as sql:
            await sql.execute(text("INSERT INTO guests VALUES (1, 7)"))
    async with database.transaction() as sql:
        await sql.execute(text("INSERT INTO guests VALUES (2, NULL)"))
    async with database.reading() as sql:
        assert list(await sql.scalars(text("SELECT id FROM guests"))) == [2]


async def test_what_follows_a_commit_follows_only_a_commit(database: Database) -> None:
    called: list[str] = []
    async with database.transaction() as sql:
        database.after_commit(sql, lambda: called.append("kept"))
        assert called == []
    with pytest.raises(ZeroDivisionError):
        async with database.transaction() as sql:
            database.after_commit(sql, lambda: called.append("lost"))
            raise ZeroDivisionError
    assert called == ["kept"]
    async with database.reading() as sql:
        with pytest.raises(Invalid, match="in no transaction"):
            database.after_commit(sql, lambda: None)


async def test_many_rows_are_inserted_in_steps_and_conflicts_left_out(database: Database) -> None:
    async with database.transaction() as sql:
        rows = ({"name": str(number), "total": number} for number in range(2500))
        assert await database.insert_many(sql, ITEMS, rows) == 2500
        overlapping = [{"name": str(number), "total": -1} for number in range(1500, 4100)]
        assert await database.insert_many(sql, ITEMS, overlapping, ignore_conflicts=True) == 1600
        assert await database.insert_many(sql, ITEMS, []) == 0
    found = await items(database)
    assert found == {**{str(number): -1 for number in range(4100)}, **{str(number): number for number in range(2500)}}


async def test_rows_that_are_not_alike_are_refused_by_name(database: Database) -> None:
    async with database.transaction() as sql:
        with pytest.raises(Invalid, match="items has no column tottal"):
            await database.insert_many(sql, ITEMS, [{"name": "a", "tottal": 1}])
        with pytest.raises(Invalid, match="not all have total"):
            await database.insert_many(sql, ITEMS, [{"name": "a", "total": 1}, {"name": "b"}])
    assert await items(database) == {}


async def test_adding_sums_with_what_is_there_and_within_the_rows(database: Database) -> None:
    await make_tables(database, a=1)
    rows = [{"name": "b", "total": 2}, {"name": "a", "total": 10}, {"name": "b", "total": 3}]
    async with database.transaction() as sql:
        await database.add_many(sql, ITEMS, rows, keys=["name"], add=["total"])
    assert await items(database) == {"a": 11, "b": 5}


async def test_those_who_add_to_the_same_rows_in_any_order_do_not_lock_each_other_out(database: Database) -> None:
    async def add(order: int) -> None:
        rows = [{"name": f"{number:03}", "total": 1} for number in range(200)][::order]
        async with database.transaction() as sql:
            await database.add_many(sql, ITEMS, rows, keys=["name"], add=["total"])

    await asyncio.gather(*(add(order) for order in (1, -1) * 6))
    assert await items(database) == {f"{number:03}": 12 for number in range(200)}
