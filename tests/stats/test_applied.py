"""What was added once is not added again."""

import asyncio

from keystead.stats.applied import KEPT_SECONDS, Applied
from keystead.stats.tables import FamilyTables
from keystead.store import Database
from keystead.testing.clock import MovableClock

from . import counted


async def opened(database: Database, clock: MovableClock) -> Applied:
    tables = FamilyTables(counted.catalogue())
    await tables.ensure(database)
    return Applied(database, tables, clock)


async def test_an_id_is_new_once_for_each_family(database: Database) -> None:
    applied = await opened(database, MovableClock(now=1e9))
    async with database.transaction() as sql:
        assert await applied.first_time(sql, "events", ["a", "b"]) == {"a", "b"}
        assert await applied.first_time(sql, "plain", ["a"]) == {"a"}
        assert await applied.first_time(sql, "plain", []) == set()
    async with database.transaction() as sql:
        assert await applied.first_time(sql, "events", ["c", "b"]) == {"c"}


async def test_an_id_whose_transaction_failed_is_still_new(database: Database) -> None:
    applied = await opened(database, MovableClock(now=1e9))
    try:
        async with database.transaction() as sql:
            await applied.first_time(sql, "events", ["a"])
            raise KeyError
    except KeyError:
        pass
    async with database.transaction() as sql:
        assert await applied.first_time(sql, "events", ["a"]) == {"a"}


async def test_of_several_at_once_one_finds_an_id_new(database: Database) -> None:
    applied = await opened(database, MovableClock(now=1e9))

    async def claim() -> int:
        async with database.transaction() as sql:
            return len(await applied.first_time(sql, "events", [str(number) for number in range(100)]))

    async with asyncio.timeout(60):
        assert sorted(await asyncio.gather(*(claim() for _ in range(5)))) == [0, 0, 0, 0, 100]


async def test_old_ids_of_a_family_are_forgotten_in_steps(database: Database) -> None:
    clock = MovableClock(now=1e9)
    applied = await opened(database, clock)
    async with database.transaction() as sql:
        await applied.first_time(sql, "events", [str(number) for number in range(2100)])
        await applied.first_time(sql, "plain", ["a"])
    clock.advance(KEPT_SECONDS)
    async with database.transaction() as sql:
        await applied.first_time(sql, "events", ["later"])
    assert await applied.forget(["events"]) == 0 and await applied.forget([]) == 0
    clock.advance(1)
    assert await applied.forget(["events"]) == 2100
    async with database.transaction() as sql:
        assert await applied.first_time(sql, "events", ["later", "5"]) == {"5"}
        assert await applied.first_time(sql, "plain", ["a"]) == set()
