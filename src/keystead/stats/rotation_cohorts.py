"""Cohorts on their way into their table: for each day and period, how many came back and how many did not."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from sqlalchemy.ext.asyncio import AsyncConnection

from keystead.ids import new_uid
from keystead.patterns import Cohorts
from keystead.stats.rotation_days import DayRotation, Ground


class CohortsRotation(DayRotation):
    """The cohorts of which nothing can change any more. Only the sizes of sets are read."""

    def __init__(self, cohorts: Cohorts, due: int, ground: Ground) -> None:
        super().__init__(cohorts, due, ground)
        self._cohorts = cohorts

    async def _read(self, day: int) -> Callable[[AsyncConnection], Awaitable[None]]:
        sizes = await self._cohorts.sizes(self._ground.valkey, day)
        self._size = max(sum(each) for each in sizes.values())
        return partial(self._add, day=day, sizes=sizes, late=0)

    async def _store(self, day: int, rotation_id: str) -> None:
        await super()._store(day, rotation_id)
        await self._cohorts.empty_aside(self._ground.valkey, day, rotation_id)

    async def _late(self) -> bool:
        """Who joined a cohort after it was rotated is counted apart, in the row of every period."""
        cohorts, valkey = self._cohorts, self._ground.valkey
        taken = await cohorts.begin_late(valkey, new_uid("late"))
        if taken is None:
            return True
        late_id, late = taken
        async with self._ground.database.transaction() as sql:
            if await self._ground.applied.first_time(sql, cohorts.name, [late_id]):
                for day in sorted(late):
                    await self._add(sql, day=day, sizes=dict.fromkeys(cohorts.periods, (0, 0)), late=late[day])
                    self.done.late += late[day]
        await cohorts.end_late(valkey, late_id)
        return True

    async def _add(self, sql: AsyncConnection, *, day: int, sizes: Mapping[int, tuple[int, int]], late: int) -> None:
        head = {"retrieved_for": self.label(day), "retrieved_at": self._ground.clock.now(), "late": late}
        rows = [{**head, "period_days": period, "retained": retained, "unretained": unretained}
                for period, (retained, unretained) in sizes.items()]
        await self._ground.database.add_many(
            sql, self._ground.tables.table(self._cohorts.name), rows, keys=("period_days", "retrieved_for"),
            add=("retained", "unretained", "late"),
        )
