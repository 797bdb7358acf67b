"""Who came back: rates over the days on which people joined, and the grid of a heat map."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from keystead.engine import Pipeline
from keystead.errors import Invalid
from keystead.patterns import Cohorts
from keystead.stats.charts_border import Sources
from keystead.stats.charts_calendar import check_range, today_of, zone_name
from keystead.stats.series import csv_text, day_labels

_STEP_DAYS: Final = 366
_MONDAY: Final = 4  # the first one since the epoch

Sizes = dict[int, tuple[int, int]]  # period: came back, did not


@dataclass(frozen=True, slots=True)
class RetentionSeries:
    """Of those who joined on each day, how many were active at least ``period_days`` later. Rates are 0 to 1."""

    name: str
    zone: str
    period_days: int
    start: int
    end: int
    labels: Sequence[str]
    retained: Sequence[int]
    unretained: Sequence[int]
    rates: Sequence[float]
    live_from: int

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name, "zone": self.zone, "period_days": self.period_days, "start_unix_date": self.start,
            "end_unix_date": self.end, "labels": list(self.labels), "retained": list(self.retained),
            "unretained": list(self.unretained), "retention_rate": list(self.rates),
            "live": list(self.labels[max(0, self.live_from - self.start) :]),
        }

    def csv(self) -> str:
        rows = zip(self.labels, self.retained, self.unretained, self.rates, strict=True)
        return csv_text(["joined", "retained", "unretained", "retention_rate"], list(rows))


@dataclass(frozen=True, slots=True)
class CohortGrid:
    """A row for everyone who joined on a day, or in a week from Monday on; a column for each period.

    ``retained[row][column]`` is None while the period is not over for all of the row. ``sizes`` are how many joined;
    ``late`` of them were told after their cohort was stored, and are in no other number.
    """

    name: str
    zone: str
    by: Literal["day", "week"]
    start: int
    end: int
    labels: Sequence[str]
    periods: Sequence[int]
    sizes: Sequence[int]
    retained: Sequence[Sequence[int | None]]
    late: Sequence[int]
    live_from: int

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name, "zone": self.zone, "by": self.by, "start_unix_date": self.start,
            "end_unix_date": self.end, "labels": list(self.labels), "periods": list(self.periods),
            "sizes": list(self.sizes), "retained": [list(row) for row in self.retained], "late": list(self.late),
        }

    def csv(self) -> str:
        head = ["joined", "size", *(f"after {period} days" for period in self.periods), "late"]
        rows = zip(self.labels, self.sizes, self.retained, self.late, strict=True)
        return csv_text(head, [[label, size, *cells, late] for label, size, cells, late in rows])


@dataclass(frozen=True, slots=True)
class _Held:
    days: list[Awaitable[dict[int, Sizes]]]
    late: Awaitable[dict[str, int]]
    late_aside: Awaitable[dict[str, int]]


@dataclass(slots=True)
class _Found:
    """Sizes by day."""

    days: dict[int, Sizes]
    late: dict[int, int]
    live_from: int


class CohortReader:
    """Reads cohorts of any range."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    async def retention(self, cohorts: Cohorts, period_days: int) -> RetentionSeries:
        """Everyone who joined since the window began, as far as the period has passed for them."""
        if period_days not in cohorts.periods:
            known = ", ".join(map(str, cohorts.periods))
            raise Invalid(f"{cohorts.name} has no period of {period_days} days; it has {known}")
        today = today_of(cohorts, self._sources.clock.now())
        start, end = today - cohorts.window_days, today - period_days
        found = await self._read(cohorts, start, end)
        pairs = [found.days[day][period_days] for day in range(start, end)]
        rates = [retained / (retained + others) if retained + others else 0.0 for retained, others in pairs]
        return RetentionSeries(
            cohorts.name, zone_name(cohorts), period_days, start, end, day_labels(start, end),
            [pair[0] for pair in pairs], [pair[1] for pair in pairs], rates, found.live_from,
        )

    async def grid(self, cohorts: Cohorts, start: int, end: int, by: Literal["day", "week"] = "day") -> CohortGrid:
        """The cohorts of the days from ``start`` to before ``end``. The weeks at both ends may be parts of one."""
        now = self._sources.clock.now()
        check_range(cohorts, start, end, now)
        today = today_of(cohorts, now)
        found = await self._read(cohorts, start, end)
        rows: dict[int, list[int]] = {}
        for day in range(start, end):
            rows.setdefault(day if by == "day" else max(start, day - (day - _MONDAY) % 7), []).append(day)
        first = cohorts.periods[0]
        return CohortGrid(
            cohorts.name, zone_name(cohorts), by, start, end, [day_labels(row, row + 1)[0] for row in rows],
            cohorts.periods,
            [sum(sum(found.days[day][first]) for day in days) for days in rows.values()],
            [[sum(found.days[day][period][0] for day in days) if days[-1] + period < today else None
              for period in cohorts.periods] for days in rows.values()],
            [sum(found.late.get(day, 0) for day in days) for days in rows.values()], found.live_from,
        )

    async def _read(self, cohorts: Cohorts, start: int, end: int) -> _Found:
        """Every period of the days; one round trip (a second one when rotation is behind), at most two queries."""

        def read(block: Pipeline, first: int, end: int) -> _Held:
            steps = range(first, end, _STEP_DAYS)
            return _Held(
                [cohorts.sizes_range(block, step, min(end, step + _STEP_DAYS) - 1) for step in steps],
                cohorts.late_key.at().all(block), cohorts.late_aside_key.at().all(block),
            )

        today = today_of(cohorts, self._sources.clock.now())
        border = await self._sources.border(cohorts, start, end, today - cohorts.held_days, read)
        columns = ("period_days", "retained", "unretained", "late")
        applied, rows = await self._sources.stored(cohorts, columns, start, border.sql_end(end), border.ids)
        places = dict(zip(day_labels(start, end), range(start, end), strict=True))
        days: dict[int, Sizes] = {day: dict.fromkeys(cohorts.periods, (0, 0)) for day in range(start, end)}
        late: dict[int, int] = {}

        def add(day: int, period: int, retained: int, unretained: int) -> None:
            if period in days[day]:
                known = days[day][period]
                days[day][period] = known[0] + retained, known[1] + unretained

        for label, period, retained, unretained, came_late in rows:
            add(places[label], period, retained, unretained)
            # The same in the row of every period, but for a period that was declared after the cohort was stored.
            late[places[label]] = max(came_late, late.get(places[label], 0))
        for step in border.held.days:
            for day, sizes in (await step).items():
                if cohorts.table is None or border.from_server(day, applied):
                    for period, pair in sizes.items():
                        add(day, period, *pair)
        for came in (await border.held.late, {} if border.late_id in applied else await border.held.late_aside):
            for text, amount in came.items():
                late[int(text)] = late.get(int(text), 0) + amount
        return _Found(days, late, border.live_from(today - cohorts.held_days + 1))
