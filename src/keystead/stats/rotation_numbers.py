"""Day sets and day numbers on their way into their tables: one number for each day or month."""

from collections.abc import Awaitable, Callable
from functools import partial

from sqlalchemy.ext.asyncio import AsyncConnection

from keystead.ids import new_uid
from keystead.patterns import DayNumber, DaySet
from keystead.stats.rotation_days import DayRotation, Ground


class NumbersRotation(DayRotation):
    """The days of a set or a number. Of a set only its size is read, however many members it has."""

    def __init__(self, days: DaySet | DayNumber, due: int, ground: Ground) -> None:
        super().__init__(days, due, ground)
        self._numbers, self.monthly = days, days.monthly

    async def _read(self, day: int) -> Callable[[AsyncConnection], Awaitable[None]]:
        self._size = await self._numbers.read(self._ground.valkey, day)
        return partial(self._add, day=day, total=self._size, late=0)

    async def _store(self, day: int, rotation_id: str) -> None:
        await super()._store(day, rotation_id)
        if isinstance(self._numbers, DaySet):
            await self._numbers.empty_aside(self._ground.valkey, day, rotation_id)

    async def _late(self) -> bool:
        """A number may still be added to. Nobody knows whether a late member was in its set: it is counted apart."""
        numbers, valkey = self._numbers, self._ground.valkey
        taken = await numbers.begin_late(valkey, new_uid("late"))
        if taken is None:
            return True
        late_id, late = taken
        async with self._ground.database.transaction() as sql:
            if await self._ground.applied.first_time(sql, numbers.name, [late_id]):
                for day in sorted(late):
                    apart = isinstance(numbers, DaySet)
                    await self._add(sql, day=day, total=0 if apart else late[day], late=late[day] if apart else 0)
                    self.done.late += late[day]
        await numbers.end_late(valkey, late_id)
        return True

    async def _add(self, sql: AsyncConnection, *, day: int, total: int, late: int) -> None:
        row = {"retrieved_for": self.label(day), "retrieved_at": self._ground.clock.now(), "total": total, "late": late}
        table = self._ground.tables.table(self._numbers.name)
        await self._ground.database.add_many(sql, table, [row], keys=("retrieved_for",), add=("total", "late"))
