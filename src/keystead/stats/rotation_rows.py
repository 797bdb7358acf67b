"""Rows by day on their way into their table, some at a time."""

import hashlib
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from keystead.errors import Corrupt
from keystead.patterns import RowsByDay
from keystead.stats.rotation_days import LATE_STEP, DayRotation, Ground
from keystead.stats.tables import is_count

Fields = Mapping[str, int]
ROWS_STEP: Final = 100


def digest(row: str) -> str:
    """What stands for the name of a row where it must be short."""
    return hashlib.sha256(row.encode()).hexdigest()


class RowsRotation(DayRotation):
    """The days of something that has rows. A day leaves a hundred rows at a time, each added under an id of its own."""

    def __init__(self, rows: RowsByDay, due: int, ground: Ground) -> None:
        super().__init__(rows, due, ground)
        self._rows = rows

    async def _store(self, day: int, rotation_id: str) -> None:
        rows, valkey = self._rows, self._ground.valkey
        while found := await rows.read_aside(valkey, day, rotation_id, ROWS_STEP):
            parts, self._size = {f":{digest(row)}": row for row in found}, len(found)
            async with self._ground.database.transaction() as sql:
                # In order, so that two who write the same ids do not lock each other out.
                new = await self._new(sql, day, rotation_id, sorted(parts))
                await self._add(sql, {(day, row): found[row] for part, row in parts.items() if part in new})
            await rows.finish_rows(valkey, day, rotation_id, list(found))
            if self._ground.stopping():
                return

    async def _read(self, day: int) -> Callable[[AsyncConnection], Awaitable[None]]:
        raise NotImplementedError  # a day may have more rows than are read at once

    async def _late(self) -> bool:
        rows, valkey = self._rows, self._ground.valkey
        while not self._ground.stopping():
            batch = await rows.late(valkey, LATE_STEP, now=self._ground.clock.now())
            done = [one for one in batch if self._has_place(one.change.field)]
            if done:
                async with self._ground.database.transaction() as sql:
                    changes = {one.change.id: one.change for one in done}
                    new = await self._ground.applied.first_time(sql, rows.name, list(changes))
                    sums: dict[tuple[int, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
                    for one in (changes[each] for each in changes if each in new):
                        sums[one.unix_date, one.row][one.field] += one.amount
                    await self._add(sql, sums)
                self.done.late += len(new)
                await rows.finish_late(valkey, done)
            if len(done) < len(batch):
                odd = next(one.change.field for one in batch if one not in done)
                self.done.problems.append(f"late: {odd[:60]!r} is declared no more and has no column; it stays late")
            if len(batch) < LATE_STEP or not done:
                return len(done) == len(batch)
        return False

    async def _add(self, sql: AsyncConnection, found: Mapping[tuple[int, str], Fields]) -> None:
        rows, now = self._rows, self._ground.clock.now()
        digests = f"{rows.row_variable}_digest"
        names = sorted({*rows.fields, *(field for fields in found.values() for field in fields)})
        if unknown := [field for field in names if not self._has_place(field)]:
            raise Corrupt(f"{unknown[0][:60]!r} was counted, which is declared no more and has no column")
        values = [
            {rows.row_variable: row.replace("\0", "\ufffd"), digests: digest(row), "retrieved_for": self.label(day),
             "retrieved_at": now, **{field: fields.get(field, 0) for field in names}}
            for (day, row), fields in found.items()
        ]
        await self._ground.database.add_many(
            sql, self._ground.tables.table(rows.name), values, keys=(digests, "retrieved_for"), add=names
        )

    def _has_place(self, field: str) -> bool:
        """Whether the table has room for a field, though it may be declared no more."""
        return field in self._rows.fields or is_count(self._ground.tables.table(self._rows.name), field)
