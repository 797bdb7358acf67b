"""Where the server ends and SQL begins, at one moment, so that no day is missed or counted twice.

Rotation may run meanwhile, or may have died at any point. So the server is asked first, in one atomic step: the days it
holds, the earliest of them, and which rotation is under way. Whatever it did not hold then is in SQL now, because a day
leaves the server only after SQL has it. The day that is under way may be in both; SQL knows the ids that it has added.
What is counted in several lanes has a border in each, and a row of SQL may hold a day of some of them: it knows which.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from keystead.clock import Clock
from keystead.engine import Pipeline, Valkey
from keystead.patterns.rotation import RotationState
from keystead.stats.catalogue import Charted
from keystead.stats.charts_calendar import is_monthly
from keystead.stats.lanes import lanes_of, part_of
from keystead.stats.tables import FamilyTables, label
from keystead.store import Database

T = TypeVar("T")

_STEP_IDS: Final = 1000


@dataclass(frozen=True, slots=True)
class Border(Generic[T]):
    """What the server held at one moment."""

    earliest: int | None
    state: RotationState | None
    held: T
    monthly: bool = False
    part: str = ""  # of a lane

    @property
    def open_from(self) -> int | None:
        """The first day that no rotation has closed; None if nothing was ever counted.

        Days before it are in SQL, except that the one which is under way may not be there yet. A program that knows no
        rotation may have lowered ``earliest``: what was closed stays so.
        """
        rotated_to = 0 if self.state is None else self.state.rotated_to
        return None if self.earliest is None else max(self.earliest, rotated_to)

    @property
    def late_id(self) -> str | None:
        """Of late counts that are put aside, where they are put aside as a whole."""
        return None if self.state is None else self.state.late_id

    @property
    def ids(self) -> list[str]:
        """What may be in SQL already although the server held it."""
        return [each for each in (*self._day_ids, self.late_id) if each is not None]

    def open_ids(self, end: int) -> list[str]:
        """Under which days before ``end`` that nothing had closed may be in SQL meanwhile, if SQL is asked for them."""
        days = () if self.open_from is None else range(self.open_from, end)
        return [f"{label(day, monthly=self.monthly)}{self.part}" for day in days]

    @property
    def _day_ids(self) -> tuple[str, ...]:
        """Under which the day that is under way may be in SQL: its rotation's, or, if it came back, its own."""
        state = self.state
        if state is None or state.id is None or state.unix_date is None:
            return ()
        return f"{state.id}{self.part}", f"{label(state.unix_date, monthly=self.monthly)}{self.part}"

    def from_server(self, day: int, applied: Collection[str]) -> bool:
        """Whether what the server held of a day counts; if not, SQL has all of it."""
        if self.open_from is None or day >= self.open_from:
            return f"{label(day, monthly=self.monthly)}{self.part}" not in applied
        is_under_way = self.state is not None and day == self.state.unix_date
        return is_under_way and not any(each in applied for each in self._day_ids)

    def live_from(self, usual: int) -> int:
        """The first day that may still change by ordinary counting: ``usual``, if rotation is on time."""
        return usual if self.open_from is None else min(usual, self.open_from)

    def sql_end(self, end: int) -> int:
        """SQL is asked for the days before this one, of a range that ends before ``end``."""
        return end if self.open_from is None else min(end, self.open_from)


class Sources:
    """The server and SQL, asked in this order."""

    def __init__(self, valkey: Valkey, database: Database, tables: FamilyTables, clock: Clock) -> None:
        self.valkey, self.clock = valkey, clock
        self._database, self._tables = database, tables

    async def border(
        self, of: Charted, start: int, end: int, guess: int, read: Callable[[Pipeline, int, int], T],
        lane: Valkey | None = None,
    ) -> Border[T]:
        """Read the days of a range that the server holds, and where they begin, in one atomic step.

        ``read`` queues the reading of the days from its second to before its third argument, which may be none.
        ``guess`` is where they probably begin: if it is right there is one round trip, else a second one. ``lane``: of
        what is counted by lane, the one to be read.
        """
        first, valkey = min(max(start, guess), end), lane or self.valkey
        while True:
            async with valkey.pipeline(transaction=True) as block:
                earliest, state = of.earliest(block), of.rotation_state(block)
                held = read(block, first, end)
                await block.execute()
            found = await earliest
            if found is None or found >= first or first == start:
                return Border(found, await state, held, is_monthly(of), part_of(valkey))
            first = max(start, found)

    async def settled(self, of: Charted, end: int) -> bool:
        """Whether all days before ``end``, which the server does not hold by rule, were closed by their rotation."""
        for lane in lanes_of(self.valkey, of):
            border = await self.border(of, end, end, end, lambda block, first, last: None, lane)
            if border.live_from(end) < end:
                return False
        return True

    async def stored(
        self, of: Charted, columns: Sequence[str], start: int, end: int, ids: Collection[str] = ()
    ) -> tuple[set[str], list[tuple[Any, ...]]]:
        """Those of ``ids`` that SQL has added, and the rows of the days from ``start`` to before ``end`` just then.

        A row is the day as a label, then the columns. One query each; none for what is empty.
        """
        if of.table is None or (start >= end and not ids):
            return set(), []
        table, monthly = self._tables.table(of.name), is_monthly(of)
        day = table.c.retrieved_for
        async with self._database.reading() as sql:
            applied = await self._known(sql, of, ids)
            if start >= end:
                return applied, []
            within = day >= label(start, monthly=monthly), day < label(end, monthly=monthly)
            query = select(day, *(table.c[name] for name in columns)).where(*within)
            return applied, [tuple(row) for row in await sql.execute(query)]

    async def sums(
        self, of: Charted, by: str, columns: Sequence[str], start: int, end: int
    ) -> dict[str, tuple[int, ...]]:
        """Of the rows of the days from ``start`` to before ``end``, the sums of the columns by one of them."""
        if of.table is None or start >= end:
            return {}
        table = self._tables.table(of.name)
        within = table.c.retrieved_for >= label(start), table.c.retrieved_for < label(end)
        totals = (func.sum(table.c[name]) for name in columns)
        async with self._database.reading() as sql:
            rows = await sql.execute(select(table.c[by], *totals).where(*within).group_by(table.c[by]))
            return {row[0]: tuple(map(int, row[1:])) for row in rows}

    async def _known(self, sql: AsyncConnection, of: Charted, ids: Collection[str]) -> set[str]:
        applied, head, known = self._tables.applied, f"{of.name}:", set[str]()
        wanted = [f"{head}{each}" for each in dict.fromkeys(ids)]
        for at in range(0, len(wanted), _STEP_IDS):
            some = applied.c.id.in_(wanted[at : at + _STEP_IDS])
            known.update(await sql.scalars(select(applied.c.id).where(some)))
        return {each.removeprefix(head) for each in known}
