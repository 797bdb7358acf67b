"""Views by the value of a dimension: a chart for each value, and how many of all time."""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from keystead.engine import Pipeline
from keystead.errors import Invalid
from keystead.patterns import DimensionViews
from keystead.patterns.views import AllTimeViews, Views
from keystead.stats.charts_border import Sources
from keystead.stats.charts_calendar import last_of, today_of, zone_name
from keystead.stats.series import csv_text, day_labels

MOST_VALUES: Final = 200
MOST_DAYS: Final = 366
_STEP_DAYS: Final = 31  # what is read in one script


@dataclass(frozen=True, slots=True)
class ValueViews:
    """One value: views and different people by day, and views of all time; people of all time count once a day."""

    value: str
    views: Sequence[int]
    users: Sequence[int]
    total_views: int
    total_users: int | None

    def as_dict(self) -> dict[str, Any]:
        return {"value": self.value, "views": list(self.views), "users": list(self.users),
                "total_views": self.total_views, "total_users": self.total_users}


@dataclass(frozen=True, slots=True)
class ViewsChart:
    """Values by their views of all time, most first. ``left_out`` more values are not among them."""

    name: str
    zone: str
    dimension: str
    start: int
    end: int
    labels: Sequence[str]
    values: Sequence[ValueViews]
    left_out: int
    live_from: int

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name, "zone": self.zone, "dimension": self.dimension, "start_unix_date": self.start,
            "end_unix_date": self.end, "labels": list(self.labels),
            "live": list(self.labels[max(0, self.live_from - self.start) :]),
            "values": [value.as_dict() for value in self.values], "left_out": self.left_out,
        }

    def csv(self) -> str:
        rows = [[label, one.value, one.views[at], one.users[at]]
                for at, label in enumerate(self.labels) for one in self.values]
        return csv_text(["date", self.dimension, "views", "users"], rows)


@dataclass(frozen=True, slots=True)
class _Held:
    days: list[Awaitable[dict[int, dict[str, Views]]]]
    all_time: Awaitable[AllTimeViews]
    late: Awaitable[dict[str, int]]
    late_aside: Awaitable[dict[str, int]]


class ViewsReader:
    """Reads the views of any dimension."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    async def read(self, views: DimensionViews, day: int | None = None, days: int = 30) -> ViewsChart:
        """The ``days`` days up to ``day``, which is today if it lies ahead or is not given, and all time up to then."""
        if not 1 <= days <= MOST_DAYS:
            raise Invalid(f"{views.name}: a chart has 1 to {MOST_DAYS} days, got {days}")
        now = self._sources.clock.now()
        last = last_of(views, now) if day is None else min(day, last_of(views, now))
        start, end = last - days + 1, last + 1
        if start < 0:
            raise Invalid(f"{views.name}: day {day} is too early")

        def read(block: Pipeline, first: int, end: int) -> _Held:
            steps = range(first, end, _STEP_DAYS)
            return _Held(
                [views.read_range(block, step, min(end, step + _STEP_DAYS) - 1) for step in steps],
                views.all_time(block, before=end),
                views.late_key.at().all(block), views.late_aside_key.at().all(block),
            )

        today = today_of(views, now)
        border = await self._sources.border(views, start, end, today - views.held_days, read)
        columns = (views.dimension, "total_users", "total_views")
        applied, rows = await self._sources.stored(views, columns, start, border.sql_end(end), border.ids)
        # Days after the range that were rotated are among the totals of all time; they are taken out again.
        after = await self._sources.sums(views, columns[0], columns[1:], end, border.earliest or 0)
        chart = _Chart(start, end, await border.held.all_time, after)
        for label, value, users, viewed in rows:
            chart.add(label, value, viewed, users)
        for step in border.held.days:
            for unix_date, found in (await step).items():
                if views.table is None or border.from_server(unix_date, applied):
                    for value, one in found.items():
                        chart.add(day_labels(unix_date, unix_date + 1)[0], value, one.views, one.users)
        for came in (await border.held.late, {} if border.late_id in applied else await border.held.late_aside):
            for field, amount in came.items():
                text, _, value = field.partition(":")
                if start <= int(text) < end:
                    chart.add(day_labels(int(text), int(text) + 1)[0], value, amount, 0)
        values = chart.values()
        return ViewsChart(
            views.name, zone_name(views), views.dimension, start, end, chart.labels, values[:MOST_VALUES],
            max(0, len(values) - MOST_VALUES), border.live_from(today - views.held_days + 1),
        )


class _Chart:
    """Views while they come together."""

    def __init__(self, start: int, end: int, all_time: AllTimeViews, after: Mapping[str, tuple[int, ...]]) -> None:
        self.labels = day_labels(start, end)
        self._places = {label: at for at, label in enumerate(self.labels)}
        self._all_time, self._after = all_time, after
        self._days: dict[str, tuple[list[int], list[int]]] = {}

    def add(self, label: str, value: str, views: int, users: int) -> None:
        at, days = self._places[label], self._days.get(value)
        if days is None:
            days = self._days[value] = [0] * len(self.labels), [0] * len(self.labels)
        days[0][at] += views
        days[1][at] += users

    def values(self) -> list[ValueViews]:
        """Every value that was ever viewed, most viewed first."""
        known, none = {*self._all_time.views, *self._days}, [0] * len(self.labels)
        found = []
        for value in known:
            users_after, views_after = self._after.get(value, (0, 0))
            total = max(0, self._all_time.views.get(value, 0) - views_after)
            users = self._all_time.users
            total_users = None if users is None else max(0, users.get(value, 0) - users_after)
            if total or value in self._days:
                found.append(ValueViews(value, *self._days.get(value, (none, none)), total, total_users))
        return sorted(found, key=lambda one: (-one.total_views, one.value))
