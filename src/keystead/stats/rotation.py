"""Rotation: days that are over leave Valkey for their tables, each count once, whatever dies or comes twice."""

import time
from collections.abc import Callable, Collection, Mapping

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.patterns import Cohorts, DailyFamily, DimensionViews, MonthlyCounter, RowsByDay
from keystead.stats.applied import Applied
from keystead.stats.catalogue import Catalogue, Charted
from keystead.stats.lanes import lanes_of
from keystead.stats.rotation_cohorts import CohortsRotation
from keystead.stats.rotation_counts import CountsRotation, Gauge
from keystead.stats.rotation_days import DayRotation, Ground, last_due
from keystead.stats.rotation_numbers import NumbersRotation
from keystead.stats.rotation_report import TROUBLE, Rotated, RotationReport
from keystead.stats.rotation_rows import RowsRotation
from keystead.stats.rotation_views import ViewsRotation
from keystead.stats.tables import FamilyTables
from keystead.store import Database

MONTHLY = ":monthly"


class Rotation:
    """Rotates what a catalogue holds. Any number may run at once, on any host.

    ``gauges`` are the further columns that families declare, by ``family.column``: a function that is given the instant
    at which the day ended. ``stopping`` is asked between days; when it says yes, the next run goes on.
    ``tables`` that are in the database already may be handed over; otherwise the first run makes them.
    """

    def __init__(
        self, valkey: Valkey, database: Database, catalogue: Catalogue, clock: Clock, *,
        gauges: Mapping[str, Gauge] | None = None, stopping: Callable[[], bool] = lambda: False,
        tables: FamilyTables | None = None,
    ) -> None:
        self._catalogue, self._clock, self._stopping = catalogue, clock, stopping
        self._gauges, self._ensured = dict(gauges or {}), tables is not None
        tables = FamilyTables(catalogue) if tables is None else tables
        self._ground = Ground(valkey, database, tables, Applied(database, tables, clock), clock, stopping)

    async def run(self, names: Collection[str] | None = None) -> RotationReport:
        """Rotate what is due: of everything, or of these ``names``; the months of a counter are ``<name>:monthly``.

        A day is due ``held_days`` after, at ``rotates_at`` in its zone, and any time later. Trouble with one thing is a
        problem in the report and does not stop the others; nothing of it is removed. When Valkey or the database cannot
        be reached, ``Unavailable``: the next run goes on where this one ended.
        """
        if not self._ensured:
            await self._ground.tables.ensure(self._ground.database)
            self._ensured = True
        done: dict[str, Rotated] = {}
        for name in self._chosen(names):
            if self._stopping():
                break
            started = time.perf_counter()
            done[name] = await self._rotate(name)
            done[name].seconds = time.perf_counter() - started
        await self._ground.applied.forget([name for name, one in done.items() if one.settled])
        return RotationReport(done, stopped=self._stopping())

    def _chosen(self, names: Collection[str] | None) -> list[str]:
        months = [f"{name}{MONTHLY}" for name in self._catalogue.monthly]
        if names is None:
            return [*(one.name for one in self._catalogue if self._leaves(one)), *months]
        return [name if name in months else self._catalogue.find(name).name for name in names]

    def _leaves(self, one: Charted) -> bool:
        return one.table is not None or (isinstance(one, DailyFamily) and one.kept_seconds is not None)

    async def _rotate(self, name: str) -> Rotated:
        counter = self._catalogue.monthly.get(name.removesuffix(MONTHLY)) if name.endswith(MONTHLY) else None
        if counter is not None:
            return await self._drop_months(name, counter)
        one = self._catalogue.find(name)
        if one.table is None:
            return await self._end_days(one) if isinstance(one, DailyFamily) else Rotated(name)
        return await self._of(one).run()

    def _of(self, one: Charted) -> DayRotation:
        due, ground = self._last_due(one), self._ground
        if isinstance(one, DailyFamily):
            gauges = {name: self._gauges[key] for name in one.gauges if (key := f"{one.name}.{name}") in self._gauges}
            return CountsRotation(one, due, ground, gauges)
        if isinstance(one, Cohorts):
            return CohortsRotation(one, due, ground)
        if isinstance(one, DimensionViews):
            return ViewsRotation(one, due, ground)
        if isinstance(one, RowsByDay):
            return RowsRotation(one, due, ground)
        return NumbersRotation(one, due, ground)

    def _last_due(self, one: Charted) -> int:
        monthly = not isinstance(one, DailyFamily) and one.monthly
        return last_due(self._clock.now(), one.home, one.rotates_at, one.held_days, monthly=monthly)

    async def _drop_months(self, name: str, counter: MonthlyCounter) -> Rotated:
        done, month = Rotated(name), counter.month_of(self._clock.now())
        try:
            done.days = int(await counter.drop_before(self._ground.valkey, month))
            done.settled = True
        except TROUBLE as error:
            done.note(error)
        return done

    async def _end_days(self, family: DailyFamily) -> Rotated:
        """Days of a family without a table expire by themselves once they are due."""
        done, valkey = Rotated(family.name), self._ground.valkey
        if family.kept_seconds is None:
            return done
        due = self._last_due(family)
        try:
            for lane in lanes_of(valkey, family):
                while not self._stopping() and (day := await family.earliest(lane)) is not None and day <= due:
                    done.days += await family.end_day(lane, day)
        except TROUBLE as error:
            done.note(error)
        return done
