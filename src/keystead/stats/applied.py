"""What has been added to the tables already, by id: whoever adds something asks here first, in the same transaction.

A rotation, or a late count, may be found again after a crash, or by two who rotate at once. Its id is written with what
it adds, so that it is added once.
"""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from keystead.clock import Clock
from keystead.stats.tables import FamilyTables
from keystead.store import Database

KEPT_SECONDS: Final = 14 * 86400.0
_STEP_ROWS = 1000


class Applied:
    """The ids of what is in the tables, kept for fourteen days after all that was under way with them was ended."""

    def __init__(self, database: Database, tables: FamilyTables, clock: Clock) -> None:
        self._database, self._table, self._clock = database, tables.applied, clock

    async def first_time(self, sql: AsyncConnection, family: str, ids: Sequence[str]) -> set[str]:
        """Write these ids down; those that were not there before. Another who writes one of them waits until we end."""
        now = self._clock.now()
        statement = self._database.insert(self._table).on_conflict_do_nothing().returning(self._table.c.id)
        rows = [{"id": f"{family}:{each}", "family": family, "applied_at": now} for each in ids]
        found = {name for (name,) in await sql.execute(statement, rows)} if rows else set()
        return {each for each in ids if f"{family}:{each}" in found}

    async def forget(self, families: Sequence[str]) -> int:
        """Remove old ids of families of which nothing is under way, some at a time; says how many."""
        table, before, gone = self._table, self._clock.now() - KEPT_SECONDS, 0
        old = select(table.c.id).where(table.c.family.in_(families), table.c.applied_at < before)
        async with self._database.reading() as sql:  # most often there is none, and a reader disturbs nobody
            if not families or (await sql.execute(old.limit(1))).first() is None:
                return 0
        while True:
            async with self._database.transaction() as sql:
                removed = (await sql.execute(delete(table).where(table.c.id.in_(old.limit(_STEP_ROWS))))).rowcount
            gone += removed
            if removed < _STEP_ROWS:
                return gone
