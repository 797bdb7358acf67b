"""Daily families on their way into their tables: counts with their breakdowns."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

import msgspec
from sqlalchemy import Table, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from keystead import dates
from keystead.dates import UnixDate
from keystead.engine import Valkey
from keystead.errors import Corrupt
from keystead.patterns import DailyFamily, Day, LateCount
from keystead.stats.lanes import lanes_of, part_of
from keystead.stats.rotation_days import LATE_STEP, DayRotation, Ground
from keystead.stats.tables import is_count

Gauge = Callable[[float], Awaitable[int | None]]
Breakdowns = Mapping[str, Mapping[str, int]]
_OTHER = "other"


class CountsRotation(DayRotation):
    """The days of a daily family. ``gauges`` are asked, by column, what was true when the day ended."""

    def __init__(self, family: DailyFamily, due: int, ground: Ground, gauges: Mapping[str, Gauge]) -> None:
        super().__init__(family, due, ground)
        self._family, self._gauges = family, gauges
        self._table: Table = ground.tables.table(family.name)
        self._lanes = lanes_of(ground.valkey, family)

    async def _store_all(self, day: int, aside: Sequence[tuple[Valkey, str]]) -> None:
        """Add the day of these lanes to its row, each lane once."""
        found = [await self._family.read(lane, day) for lane, _ in aside]
        self._check(day, _sum(found))
        gauges = {name: await self._gauge(name, day) for name in self._family.gauges}
        async with self._ground.database.transaction() as sql:
            new = []
            for (lane, rotation_id), one in zip(aside, found, strict=True):
                self._size = sum(one.counts.values())
                if await self._new(sql, day, rotation_id, [part_of(lane)]):
                    new.append(one)
            if new:
                whole = _sum(new)
                await self._add(sql, day=day, counts=whole.counts, breakdowns=whole.breakdowns, gauges=gauges)

    async def _read(self, day: int) -> Callable[[AsyncConnection], Awaitable[None]]:
        raise NotImplementedError("the lanes of a day are read together")

    def _check(self, day: int, found: Day) -> None:
        unknown = [event for event in found.counts if not self._has_place(event)]
        if unknown:
            raise Corrupt(f"{unknown[0][:60]!r} was counted, which is declared no more and has no column")
        problems = self.done.problems
        problems += [
            f"{self.label(day)}: {event} is {found.counts[event]:,}, and its breakdown adds up to "
            f"{sum(found.breakdowns[event].values()):,}" for event in found.inconsistencies()
        ]
        broken = filter(None, (identity.check(found.counts) for identity in self._family.identities))
        problems += [f"{self.label(day)}: {one}" for one in broken]

    def _has_place(self, event: str) -> bool:
        """Whether the table has room for an event, though it may be declared no more."""
        family = self._family
        if event in family.events:
            return True
        return event.count(":") == len(family.columns) - 1 if family.columns else is_count(self._table, event)

    async def _gauge(self, name: str, day: int) -> int | None:
        read = self._gauges.get(name)
        if read is None:
            return None
        try:
            return await read(dates.day_starts_at(UnixDate(day + 1), self._family.home))
        except Exception as error:  # it was written by whoever handed it over; the counts must not wait for it
            said = str(error).splitlines()
            reason = said[0] if said else type(error).__name__
            self.done.problems.append(f"{self.label(day)}: {name} could not be read: {reason}")
            return None

    async def _late(self) -> bool:
        return all([await self._late_of(lane) for lane in self._lanes])

    async def _late_of(self, valkey: Valkey) -> bool:
        family = self._family
        while not self._ground.stopping():
            batch = await family.late(valkey, LATE_STEP, now=self._ground.clock.now())
            done = [one for one in batch if self._has_place(one.count.event)]
            if done:
                async with self._ground.database.transaction() as sql:
                    counts = {one.count.id: one.count for one in done}
                    new = await self._ground.applied.first_time(sql, family.name, list(counts))
                    await self._add_late(sql, [counts[each] for each in counts if each in new])
                self.done.late += len(new)
                await family.finish_late(valkey, done)
            if len(done) < len(batch):
                odd = next(one.count.event for one in batch if one not in done)
                self.done.problems.append(f"late: {odd[:60]!r} is declared no more and has no column; it stays late")
            if len(batch) < LATE_STEP or not done:
                return len(done) == len(batch)
        return False

    async def _add_late(self, sql: AsyncConnection, late: Iterable[LateCount]) -> None:
        by_day: dict[int, list[LateCount]] = defaultdict(list)
        for one in late:
            by_day[one.unix_date].append(one)
        for day in sorted(by_day):  # in order, so that two who add to the same days do not lock each other out
            counts: dict[str, int] = dict.fromkeys(self._family.events, 0)
            breakdowns: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
            for one in by_day[day]:
                counts[one.event] = counts.get(one.event, 0) + one.amount
                if one.breakdown is not None and one.event in self._family.breakdowns:
                    breakdowns[one.event][one.breakdown] += one.amount
            await self._add(sql, day=day, counts=counts, breakdowns=breakdowns, gauges={})

    # -- SQL --------------------------------------------------------------------------------------------------------

    async def _add(
        self, sql: AsyncConnection, *, day: int, counts: Mapping[str, int], breakdowns: Breakdowns,
        gauges: Mapping[str, int | None],
    ) -> None:
        table, database, family = self._table, self._ground.database, self._family
        head = {"retrieved_for": self.label(day), "retrieved_at": self._ground.clock.now()}
        if family.columns:
            rows = [{**head, **dict(zip(family.columns, event.split(":"), strict=True)), "total": amount}
                    for event, amount in counts.items() if amount]
            await database.add_many(sql, table, rows, keys=("retrieved_for", *family.columns), add=("total",))
            return
        row = database.insert(table).values({**head, **counts, **gauges})
        # A column that was a gauge before it was an event may hold nothing.
        sums = {event: func.coalesce(table.c[event], 0) + row.excluded[event] for event in counts}
        kept = {name: row.excluded[name] for name in gauges}
        await sql.execute(row.on_conflict_do_update(index_elements=["retrieved_for"], set_={**sums, **kept}))
        # The row is ours until the transaction ends, so that nobody changes a breakdown between reading and writing.
        added = {event: fields for event, fields in breakdowns.items() if fields}
        if added:
            this = table.c.retrieved_for == self.label(day)
            stored = (await sql.execute(select(*(table.c[f"{event}_breakdown"] for event in added)).where(this))).one()
            merged = [self._merged(text, fields) for text, fields in zip(stored, added.values(), strict=True)]
            values = {f"{event}_breakdown": text for event, text in zip(added, merged, strict=True)}
            await sql.execute(update(table).where(this).values(values))

    def _merged(self, text: str, added: Mapping[str, int]) -> str:
        try:
            fields = msgspec.json.decode(text, type=dict[str, int])
        except msgspec.DecodeError as error:
            raise Corrupt(f"table {self._table.name} holds a breakdown that cannot be read: {error}") from None
        for value, amount in added.items():
            kept = value if value in fields or len(fields) <= self._family.most_breakdown_fields else _OTHER
            fields[kept] = fields.get(kept, 0) + amount
        return msgspec.json.encode(fields, order="sorted").decode()


def _sum(days: Sequence[Day]) -> Day:
    """One day of several lanes as a whole."""
    if len(days) == 1:
        return days[0]
    counts, breakdowns = dict(days[0].counts), {event: dict(each) for event, each in days[0].breakdowns.items()}
    for day in days[1:]:
        for event, amount in day.counts.items():
            counts[event] = counts.get(event, 0) + amount
        for event, each in day.breakdowns.items():
            for value, amount in each.items():
                breakdowns[event][value] = breakdowns[event].get(value, 0) + amount
    return Day(days[0].unix_date, counts, breakdowns, rotating=True)
