"""What was counted, kept twice: in Valkey, and in a plain account that knows nothing of days that leave.

An account is a ``Counter`` by name, label of the day and what was counted. ``EventLog`` keeps the one that is right,
``stored`` reads the one that lies in SQL and Valkey together: a day that was put aside counts as long as its id is not
among those that were applied, and so do late counts.
"""

import json
import random
from collections import Counter

from sqlalchemy import select

from keystead.engine import Valkey
from keystead.patterns import Cohorts, DailyFamily, DayNumber, DaySet, DimensionViews, RowsByDay
from keystead.patterns.by_day import LATE
from keystead.stats.catalogue import Catalogue, Charted
from keystead.stats.rotation_rows import digest
from keystead.stats.tables import FamilyTables, label
from keystead.store import Database

Account = Counter[tuple[object, ...]]


class EventLog:
    """Counts at random, in Valkey and in its own account."""

    def __init__(self, catalogue: Catalogue, rng: random.Random) -> None:
        self.account: Account = Counter()
        self.late = 0
        self._subjects = [one for one in catalogue if one.table is not None]
        self._rng = rng
        self._joined: dict[str, tuple[str, int, set[int]]] = {}

    async def count(self, valkey: Valkey, day: int, month: int) -> None:
        """Something on the day, or in the month for what is kept by month."""
        await self.count_on(valkey, self._rng.choice(self._subjects), day, month)

    async def count_on(self, valkey: Valkey, one: Charted, day: int, month: int) -> None:
        rng, amount = self._rng, self._rng.randint(1, 3)
        if isinstance(one, DailyFamily):
            event = rng.choice(one.events)
            value = rng.choice("xyz") if event in one.breakdowns else None
            stored = await one.incr(valkey, event, value, amount, unix_date=day)
            self._add(one, day, (event,), amount)
            if value is not None:
                self._add(one, day, (event, value), amount)
            self.late += stored.late
        elif isinstance(one, DaySet):
            day, member = month if one.monthly else day, f"u{rng.randrange(9)}"
            new = await one.add(valkey, member, day=day)
            self._add(one, day, ("late",) if new == LATE else ("total",), 1 if new == LATE else new)
        elif isinstance(one, DayNumber):
            await one.increment(valkey, amount, day=day)
            self._add(one, day, ("total",), amount)
        elif isinstance(one, DimensionViews):
            viewed = await one.viewed(valkey, rng.choice("abc"), f"u{rng.randrange(9)}", day=day)
            self._add(one, day, (viewed.value, "total_views"), 1)
            self._add(one, day, (viewed.value, "total_users"), int(viewed.new))
            self._add(one, day, (viewed.value, "late"), int(viewed.late))
        elif isinstance(one, RowsByDay):
            row, field, change = rng.choice(("utm_source=a", "utm_source=b")), rng.choice(one.fields), amount - 2
            await one.add(valkey, [(row, field, change)], day=day)
            self._add(one, day, (row, field), change)
        else:
            await self._retention(valkey, one, day)

    async def _retention(self, valkey: Valkey, one: Cohorts, day: int) -> None:
        if self._joined and self._rng.random() < 0.5:
            member = self._rng.choice(list(self._joined))
            name, joined, back = self._joined[member]
            moved = await one.active(valkey, member, joined_day=joined, day=day)
            passed = {period for period in one.periods if period <= day - joined} - back
            assert name == one.name and moved in (0, LATE, len(passed))
            for period in passed if moved > 0 else ():
                self._add(one, joined, (period, "unretained"), -1)
                self._add(one, joined, (period, "retained"), 1)
                back.add(period)
            return
        member = f"m{len(self._joined)}"
        new = await one.join(valkey, member, day=day)
        self._joined[member] = one.name, day, set()
        for period in one.periods:
            self._add(one, day, (period, "late" if new == LATE else "unretained"), 1)

    def _add(self, one: Charted, day: int, what: tuple[object, ...], amount: int) -> None:
        self.account[one.name, label_of(one, day), *what] += amount

    def expected(self) -> Account:
        return without_zeros(self.account)


def label_of(one: Charted, day: int) -> str:
    return label(day, monthly=not isinstance(one, DailyFamily) and one.monthly)


def without_zeros(account: Account) -> Account:
    return Counter({key: amount for key, amount in account.items() if amount})


async def stored(
    valkey: Valkey, database: Database, catalogue: Catalogue, last: int, tables: FamilyTables | None = None
) -> Account:
    """What is in SQL and in Valkey together, where days are looked for from the earliest to ``last``."""
    account: Account = Counter()
    tables = FamilyTables(catalogue) if tables is None else tables
    async with database.reading() as sql:
        ids = set((await sql.execute(select(tables.applied.c.id))).scalars())
        for one in catalogue:
            if one.table is not None:
                for row in await sql.execute(tables.table(one.name).select()):
                    _add_row(account, one, row._asdict())
    for one in catalogue:
        if one.table is not None:
            await _add_live(account, valkey, one, ids, last)
    return without_zeros(account)


def _add_row(account: Account, one: Charted, row: dict[str, object]) -> None:
    def add(*what: object, amount: object) -> None:
        assert isinstance(amount, int)
        account[one.name, row["retrieved_for"], *what] += amount

    if isinstance(one, DailyFamily) and one.columns:
        add(":".join(str(row[column]) for column in one.columns), amount=row["total"])
    elif isinstance(one, DailyFamily):
        for event in one.events:
            add(event, amount=row[event])
        for event in one.breakdowns:
            text = str(row[f"{event}_breakdown"])
            fields = json.loads(text)
            assert list(fields) == sorted(fields)
            for value, amount in fields.items():
                add(event, value, amount=amount)
    elif isinstance(one, Cohorts):
        for column in ("retained", "unretained", "late"):
            add(row["period_days"], column, amount=row[column])
    elif isinstance(one, DimensionViews):
        for column in ("total_users", "total_views", "late"):
            add(row[one.dimension], column, amount=row[column])
    elif isinstance(one, RowsByDay):
        for field in one.fields:
            add(row[one.row_variable], field, amount=row[field])
    else:
        for column in ("total", "late"):
            add(column, amount=row[column])


async def _add_live(account: Account, valkey: Valkey, one: Charted, ids: set[str], last: int) -> None:
    def add(day: int, *what: object, amount: int) -> None:
        account[one.name, label_of(one, day), *what] += amount

    def is_stored(which: str | None) -> bool:
        return which is not None and f"{one.name}:{which}" in ids

    first = await one.earliest(valkey)
    if first is None:
        return
    state = await one.rotation_state(valkey)
    under_way = state.unix_date if state is not None and is_stored(state.id) else None
    late_stored = state is not None and is_stored(state.late_id)
    if isinstance(one, DailyFamily):
        for late in await one.late(valkey, 1_000_000, now=0.0):
            if not is_stored(late.count.id):
                add(late.count.unix_date, late.count.event, amount=late.count.amount)
                if late.count.breakdown is not None:
                    add(late.count.unix_date, late.count.event, late.count.breakdown, amount=late.count.amount)
        for day in await one.read_range(valkey, first, last) if first <= last else ():
            if day.unix_date != under_way:
                for event, amount in day.counts.items():
                    add(day.unix_date, event, amount=amount)
                for event, fields in day.breakdowns.items():
                    for value, amount in fields.items():
                        add(day.unix_date, event, value, amount=amount)
    elif isinstance(one, RowsByDay):
        for change in await one.late(valkey, 1_000_000, now=0.0):
            if not is_stored(change.change.id):
                add(change.change.unix_date, change.change.row, change.change.field, amount=change.change.amount)
        for number in range(first, last + 1):
            for row, fields in (await one.read(valkey, number)).items():
                if state is None or state.unix_date != number or not is_stored(f"{state.id}:{digest(row)}"):
                    for field, amount in fields.items():
                        add(number, row, field, amount=amount)
    elif isinstance(one, DimensionViews):
        for late_key, done in ((one.late_key, False), (one.late_aside_key, late_stored)):
            for field, amount in (await late_key.at().all(valkey)).items():
                day_text, _, value = field.partition(":")
                if not done:
                    add(int(day_text), value, "total_views", amount=amount)
                    add(int(day_text), value, "late", amount=amount)
        for number in range(first, last + 1):
            if number != under_way:
                for value, views in (await one.read(valkey, number)).items():
                    add(number, value, "total_views", amount=views.views)
                    add(number, value, "total_users", amount=views.users)
    else:
        for late_key, done in ((one.late_key, False), (one.late_aside_key, late_stored)):
            for day_text, amount in (await late_key.at().all(valkey)).items():
                for what in [(period, "late") for period in one.periods] if isinstance(one, Cohorts) else [
                    ("late",) if isinstance(one, DaySet) else ("total",)
                ]:
                    if not done:
                        add(int(day_text), *what, amount=amount)
        if isinstance(one, Cohorts):
            for number, sizes in (await one.sizes_range(valkey, first, last)).items() if first <= last else ():
                for period, (retained, unretained) in sizes.items():
                    if number != under_way:
                        add(number, period, "retained", amount=retained)
                        add(number, period, "unretained", amount=unretained)
        else:
            last = last // 30 + 1 if one.monthly else last
            for number, size in (await one.read_range(valkey, first, last)).items() if first <= last else ():
                if number != under_way:
                    add(number, "total", amount=size)
