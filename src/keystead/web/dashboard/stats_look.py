"""The statistics at a glance, read for all who look at the same days."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.engine.failures import ErrorReply
from keystead.errors import KeysteadError, Unavailable
from keystead.patterns import Cohorts, DailyFamily, DayNumber, DaySet, DimensionViews, RowsByDay
from keystead.stats import Charted, Charts, Series
from keystead.stats.charts_calendar import today_of, zone_name
from keystead.stats.charts_cohorts import CohortGrid
from keystead.stats.charts_rows import DayRows
from keystead.stats.charts_views import MOST_DAYS, ViewsChart
from keystead.stats.lanes import ever_counted
from keystead.web.dashboard.shown import shown_count, shown_share
from keystead.web.dashboard.stats_heatmap import overall, period_said
from keystead.web.dashboard.stats_range import StatsRange
from keystead.web.dashboard.stats_shown import room_of
from keystead.web.stats_watch import LiveSeries

# Queries that may run at once: the pages shall not take the database from those who work.
AT_ONCE: Final = 6
SHOWN_EVENTS: Final = 3
# What has no cheap way to be read again is read more rarely.
SLOW_SECONDS: Final = 20.0


@dataclass(frozen=True, slots=True)
class Card:
    """One thing over the days: a number and what it is, its line by day, and its biggest parts.

    ``live`` of the last days are not over. Without ``total`` there was nothing on these days.
    """

    name: str
    room: str
    purpose: str
    total: int
    number: str
    unit: str
    days: tuple[int, ...]
    live: int
    parts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Tile:
    """A headline number: a ``total`` of all time, or something kept by day or month over the days that are shown.

    ``distinct`` ones cannot be added up over days. ``live`` of the last days are not over.
    """

    name: str
    purpose: str
    total: int | None = None
    month: int | None = None
    days: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()
    live: int = 0
    distinct: bool = False
    monthly: bool = False


@dataclass(frozen=True, slots=True)
class StatsLook:
    """``silent`` counted something once, but not on these days; ``never`` has counted nothing at all."""

    tiles: tuple[Tile, ...]
    cards: tuple[Card, ...]
    silent: tuple[str, ...]
    never: tuple[str, ...]
    zones: tuple[str, ...] = ()

    @property
    def is_bare(self) -> bool:
        return not (self.tiles or self.cards or self.silent)


class StatsReader:
    """Reads the look at one range. What never counted anything costs one small read, all of them together."""

    def __init__(self, charts: Charts, valkey: Valkey, clock: Clock, shown: StatsRange) -> None:
        self._charts, self._valkey, self._clock, self._shown = charts, valkey, clock, shown
        self._readers: dict[str, LiveSeries] = {}
        self._known: dict[str, Series] = {}
        self._slow: dict[str, tuple[float, Card]] = {}
        self._few = asyncio.Semaphore(AT_ONCE)

    async def __call__(self, before: StatsLook | None) -> StatsLook:
        every = list(self._charts.catalogue)
        found = await asyncio.gather(*(self._try(one) for one in every))
        tiles = [*await self._totals(), *(one for one in found if isinstance(one, Tile))]
        cards = [one for one in found if isinstance(one, Card)]
        some = sorted((card for card in cards if card.total), key=lambda card: (card.room, card.name))
        pairs = list(zip(every, found, strict=True))
        return StatsLook(
            tuple(tiles), tuple(some), tuple(sorted(card.name for card in cards if not card.total)),
            tuple(sorted(one.name for one, shown in pairs if shown is None)),
            tuple(sorted({zone_name(one) for one, shown in pairs if shown is not None})),
        )

    async def _try(self, one: Charted) -> Card | Tile | None:
        """None for what never counted anything. Trouble with one thing does not hide the others."""
        try:
            return await self._read(one) if await ever_counted(self._valkey, one) else None
        except Unavailable:
            raise
        except (KeysteadError, ErrorReply) as error:
            return Card(one.name, room_of(one), str(error), 1, "cannot be read", "", (), 0, ())

    async def _read(self, one: Charted) -> Card | Tile:
        if isinstance(one, DailyFamily):
            return family_card(one, await self._series(one))
        if isinstance(one, DaySet | DayNumber):
            return number_tile(one, await self._series(one))
        loop = asyncio.get_running_loop()
        until, card = self._slow.get(one.name, (0.0, None))
        if card is None or until < loop.time():
            async with self._few:
                card = await self._slow_card(one)
            self._slow[one.name] = loop.time() + SLOW_SECONDS, card
        return card

    async def _series(self, one: DailyFamily | DaySet | DayNumber) -> Series:
        reader = self._readers.get(one.name)
        if reader is None:
            reader = self._readers[one.name] = LiveSeries(
                self._charts, one.name, lambda: self._shown.bounds(one, self._clock.now()),
                numbers=not isinstance(one, DailyFamily),
            )
        async with self._few:
            self._known[one.name] = await reader(self._known.get(one.name))
        return self._known[one.name]

    async def _slow_card(self, one: Cohorts | DimensionViews | RowsByDay) -> Card:
        now = self._clock.now()
        start, end = self._shown.bounds(one, now)
        if isinstance(one, Cohorts):
            return cohorts_card(one, await self._charts.cohorts(one.name, start, end, "week"))
        if isinstance(one, DimensionViews):
            return views_card(one, await self._charts.views(one.name, end - 1, min(end - start, MOST_DAYS)))
        return rows_card(one, await self._charts.rows(one.name, min(end - 1, today_of(one, now))))

    async def _totals(self) -> list[Tile]:
        catalogue = self._charts.catalogue.totals
        return [Tile(name, catalogue[name].purpose, counted.total, counted.month)
                for name, counted in (await self._charts.totals()).items() if counted.total]


def _biggest(parts: Iterable[tuple[str, int]]) -> tuple[tuple[str, str], ...]:
    found = sorted((part for part in parts if part[1]), key=lambda part: -part[1])
    return tuple((name, shown_count(amount)) for name, amount in found[:SHOWN_EVENTS])


def family_card(family: DailyFamily, series: Series) -> Card:
    days = tuple(sum(day) for day in zip(*series.counts.values(), strict=True))
    return Card(family.name, room_of(family), family.purpose, sum(days), shown_count(sum(days)), "events", days,
                len(series.live), _biggest((event, sum(counts)) for event, counts in series.counts.items()))


def number_tile(one: DaySet | DayNumber, series: Series) -> Tile:
    return Tile(one.name, one.purpose, days=tuple(series.counts["total"]), labels=tuple(series.labels),
                live=len(series.live), distinct=isinstance(one, DaySet), monthly=one.monthly)


def cohorts_card(one: Cohorts, grid: CohortGrid) -> Card:
    """The rate of the period in the middle, and those of some others."""
    rates = {period: rate for period, (rate, _, _) in zip(grid.periods, overall(grid), strict=True) if rate is not None}
    middle = grid.periods[len(grid.periods) // 2]
    parts = tuple((f"after {period_said(period)}" if period else period_said(period), shown_share(rate))
                  for period, rate in rates.items() if period != middle)
    return Card(one.name, room_of(one), one.purpose, sum(grid.sizes), shown_share(rates.get(middle)),
                f"after {period_said(middle)}", tuple(grid.sizes), 1, parts[:SHOWN_EVENTS])


def views_card(one: DimensionViews, chart: ViewsChart) -> Card:
    days = tuple(sum(day) for day in zip(*(value.views for value in chart.values), strict=True))
    live = max(0, chart.end - max(chart.start, chart.live_from))
    return Card(one.name, room_of(one), one.purpose, sum(days), shown_count(sum(days)), "views", days, live,
                _biggest((value.value, sum(value.views)) for value in chart.values))


def rows_card(one: RowsByDay, day: DayRows) -> Card:
    """Only the last of the days: the others are read one by one."""
    first = day.fields[0]
    total = sum(counts[first] for _, counts in day.rows)
    return Card(one.name, room_of(one), one.purpose, max(total, len(day.rows)), shown_count(total),
                f"{first} on {day.label}", (), 0, _biggest((row, counts[first]) for row, counts in day.rows))
