"""Views by value on their way into their table: for each day and value, how many and by how many people."""

from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from sqlalchemy.ext.asyncio import AsyncConnection

from keystead.ids import new_uid
from keystead.patterns import DimensionViews
from keystead.stats.rotation_days import DayRotation, Ground

Seen = tuple[int, str, int, int, int]  # day, value, users, views, and how many of the views were late


class ViewsRotation(DayRotation):
    """The days of a dimension; only values that were viewed have a row. Of the people only their number is read."""

    def __init__(self, views: DimensionViews, due: int, ground: Ground) -> None:
        super().__init__(views, due, ground)
        self._views = views

    async def _read(self, day: int) -> Callable[[AsyncConnection], Awaitable[None]]:
        found = await self._views.read(self._ground.valkey, day)
        self._size = sum(one.views for one in found.values())
        return partial(self._add, seen=[(day, value, one.users, one.views, 0) for value, one in found.items()])

    async def _late(self) -> bool:
        """Late views are added to the views of their day; by whom they were is not known any more."""
        views, valkey = self._views, self._ground.valkey
        taken = await views.begin_late(valkey, new_uid("late"))
        if taken is None:
            return True
        late_id, late = taken
        async with self._ground.database.transaction() as sql:
            if await self._ground.applied.first_time(sql, views.name, [late_id]):
                await self._add(sql, seen=[(day, value, 0, amount, amount) for (day, value), amount in late.items()])
                self.done.late += sum(late.values())
        await views.end_late(valkey, late_id)
        return True

    async def _add(self, sql: AsyncConnection, *, seen: Iterable[Seen]) -> None:
        views, now = self._views, self._ground.clock.now()
        rows = [
            {views.dimension: value.replace("\0", "\ufffd"), "retrieved_for": self.label(day), "retrieved_at": now,
             "total_users": users, "total_views": total, "late": late} for day, value, users, total, late in seen
        ]
        await self._ground.database.add_many(
            sql, self._ground.tables.table(views.name), rows, keys=(views.dimension, "retrieved_for"),
            add=("total_users", "total_views", "late"),
        )
