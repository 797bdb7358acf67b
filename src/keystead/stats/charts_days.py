"""Days of a family, from the server and from SQL, as one series."""

import math
from collections import Counter
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import Row, select

from keystead.clock import Clock
from keystead.engine import Pipeline, Valkey
from keystead.keys import Undecodable
from keystead.patterns import DailyFamily, Day, LateCount
from keystead.patterns.daily import OTHER
from keystead.stats.charts_border import Border, border_of, known_ids
from keystead.stats.charts_calendar import today_of, zone_name
from keystead.stats.series import Series, day_labels
from keystead.stats.tables import FamilyTables, label
from keystead.store import Database

MOST_VALUES: Final = 1000  # of one event in one series; the smallest are shown as other
MOST_LATE: Final = 1000
_STEP_DAYS: Final = 366

Fields = Mapping[str, int]


class FamilyDays:
    """Reads any range of any family."""

    def __init__(self, valkey: Valkey, database: Database, tables: FamilyTables, clock: Clock) -> None:
        self._valkey, self._database, self._tables, self._clock = valkey, database, tables, clock
        self._earliest: dict[str, int] = {}  # what was found last; where the next reading begins

    async def read(self, family: DailyFamily, start: int, end: int) -> Series:
        """The days from ``start`` to before ``end``, a range that was checked; counted to the moment.

        One round trip to the server (a second one when rotation is behind) and at most two queries. A rotation that
        runs meanwhile, or died, changes nothing. The 1,000 oldest late counts are in; more of them show once they are
        rotated.
        """
        border, late = await self._border(family, start, end)
        gathered = Gathered(family, start, end)
        days: Sequence[Day] = [day for step in border.held for day in await step]
        under_way = border.rotation_id
        applied: set[str] = set()
        if family.table is not None:
            applied = await self._from_sql(family, border, late, gathered)
        for day in days:
            in_sql = family.table is not None and border.earliest is not None and day.unix_date < border.earliest
            stored = under_way is not None and day.unix_date == border.earliest and under_way in applied
            if not in_sql and not stored:
                gathered.add(day.unix_date, day.counts, day.breakdowns)
        for count in late:
            if count.id not in applied:
                gathered.add_late(count)
        return gathered.series(self._live_from(family, border))

    async def _border(
        self, family: DailyFamily, start: int, end: int
    ) -> tuple[Border[list[Awaitable[list[Day]]]], list[LateCount]]:
        today = today_of(family, self._clock.now())
        guess = self._earliest.get(family.name, today - family.held_days)
        late: Awaitable[list[LateCount]] | None = None

        def read(block: Pipeline, first: int, end: int) -> list[Awaitable[list[Day]]]:
            nonlocal late
            late = block.run(("LRANGE", family.late_key.at().name(block.layout), 0, MOST_LATE - 1), self._late(family))
            steps = range(first, end, _STEP_DAYS)
            return [family.read_range(block, step, min(end, step + _STEP_DAYS) - 1) for step in steps]

        if family.kept_seconds is not None:  # its days stay for a while after they are no longer the earliest
            guess = today - family.held_days - math.ceil(family.kept_seconds / 86400) - 1
        border = await border_of(self._valkey, family, start, end, guess, read)
        if border.earliest is not None:
            self._earliest[family.name] = border.earliest
        assert late is not None
        return border, [count for count in await late if start <= count.unix_date < end]

    @staticmethod
    def _late(family: DailyFamily) -> Any:
        def decoded(raws: Sequence[bytes]) -> list[LateCount]:
            counts = []
            for raw in raws:
                try:
                    counts.append(family.late_key.codec.decode(raw))
                except Undecodable:  # rotation makes it a dead letter
                    continue
            return counts

        return decoded

    def _live_from(self, family: DailyFamily, border: Border[Any]) -> int:
        usual = today_of(family, self._clock.now()) - family.held_days + 1
        if family.table is None or border.open_from is None:
            return usual
        return min(usual, border.open_from)

    # -- SQL --------------------------------------------------------------------------------------------------------

    async def _from_sql(
        self, family: DailyFamily, border: Border[Any], late: Sequence[LateCount], gathered: "Gathered"
    ) -> set[str]:
        """Add what the table has of the days before the border; the ids in question that it has added."""
        start, end = gathered.start, border.sql_end(gathered.end)
        ids = [count.id for count in late]
        if border.rotation_id is not None and border.earliest is not None and start <= border.earliest < gathered.end:
            ids.append(border.rotation_id)
        if start >= end and not ids:
            return set()
        table = self._tables.table(family.name)
        breakdowns = [f"{event}_breakdown" for event in family.breakdowns]
        names = [*family.columns, "total"] if family.columns else [*family.events, *breakdowns]
        query = select(table.c.retrieved_for, *(table.c[name] for name in names)).where(
            table.c.retrieved_for >= label(start), table.c.retrieved_for < label(max(start, end))
        )
        async with self._database.reading() as sql:
            applied = await known_ids(sql, self._tables.applied, ids)
            rows = (await sql.execute(query)).all() if start < end else []
        places = {day: at for at, day in enumerate(day_labels(start, end), start)}
        for row in rows:
            if row[0] in places:
                self._add_row(family, places[row[0]], row, gathered)
        return applied

    @staticmethod
    def _add_row(family: DailyFamily, day: int, row: Row[Any], gathered: "Gathered") -> None:
        if family.columns:
            gathered.add(day, {":".join(row[1:-1]): row[-1]}, {})
            return
        plain = len(family.events) + 1
        counts = dict(zip(family.events, row[1:plain], strict=True))
        broken = {event: msgspec.json.decode(text, type=dict[str, int])
                  for event, text in zip(family.breakdowns, row[plain:], strict=True) if text != "{}"}
        gathered.add(day, counts, broken)


class Gathered:
    """Counts of a range while they come together."""

    def __init__(self, family: DailyFamily, start: int, end: int) -> None:
        self.family, self.start, self.end = family, start, end
        self._counts = {event: [0] * (end - start) for event in family.events}
        self._parts: dict[str, list[tuple[int, Fields]]] = {event: [] for event in family.breakdowns}

    def add(self, day: int, counts: Fields, breakdowns: Mapping[str, Fields]) -> None:
        """Add to a day. Events that are no longer declared are left out."""
        at = day - self.start
        for event, amount in counts.items():
            if event in self._counts:
                self._counts[event][at] += amount
        for event, fields in breakdowns.items():
            if fields and event in self._parts:
                self._parts[event].append((at, fields))

    def add_late(self, count: LateCount) -> None:
        broken = {} if count.breakdown is None else {count.event: {count.breakdown: count.amount}}
        self.add(count.unix_date, {count.event: count.amount}, broken)

    def series(self, live_from: int) -> Series:
        family = self.family
        return Series(
            family.name, zone_name(family), self.start, self.end, day_labels(self.start, self.end), self._counts,
            {event: self._values(parts) for event, parts in self._parts.items()}, live_from,
        )

    def _values(self, parts: Sequence[tuple[int, Fields]]) -> dict[str, list[int]]:
        """Lists by value, biggest first. What is too much is found before lists are made: there may be any number."""
        totals: Counter[str] = Counter()
        for _, fields in parts:
            totals.update(fields)
        biggest = sorted(totals, key=lambda value: (-totals[value], value))
        shown = biggest[:MOST_VALUES]
        if len(biggest) > MOST_VALUES and OTHER not in shown:
            shown[-1] = OTHER
        values = {value: [0] * (self.end - self.start) for value in shown}
        for at, fields in parts:
            for value, amount in fields.items():
                values[value if value in values else OTHER][at] += amount
        return values
