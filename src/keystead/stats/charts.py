"""What was counted, as charts need it: any range of days, live ones included, and answers that are kept."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, Literal, Self, TypeVar

import msgspec

from keystead import dates
from keystead.clock import Clock
from keystead.dates import UnixDate
from keystead.engine import Valkey
from keystead.errors import Invalid
from keystead.patterns import Cohorts, DailyFamily, DayNumber, DaySet, DimensionViews, RowsByDay
from keystead.stats.catalogue import Catalogue
from keystead.stats.charts_border import Sources
from keystead.stats.charts_calendar import check_range, last_of, today_of
from keystead.stats.charts_cohorts import CohortGrid, CohortReader, RetentionSeries
from keystead.stats.charts_days import FamilyDays, flat, from_flat
from keystead.stats.charts_kept import Answer, KeptAnswers, pack, unpack
from keystead.stats.charts_live import LiveReader, RunView, Total
from keystead.stats.charts_numbers import DayNumbers
from keystead.stats.charts_rows import DayRows, RowsReader
from keystead.stats.charts_views import ViewsChart, ViewsReader
from keystead.stats.series import Series, day_labels
from keystead.stats.tables import FamilyTables
from keystead.store import Database

T = TypeVar("T")

HISTORICAL_DAYS: Final = 90
NUMBERS_DAYS: Final = 182
VIEWS_DAYS: Final = 30
MOST_VIEWS_AT_ONCE: Final = 5

Label = Literal["month", "day"]
Step = Literal["day", "week"]


class Charts:
    """Reads everything in a catalogue. Made by ``open``.

    A name that is not known is ``NotFound``; a range that is empty, too long or in the future, or something of another
    kind than was asked for, is ``Invalid``. What ends in ``_answer`` is computed once for all processes and kept, see
    ``KeptAnswers``; everything else is as of now, and costs one round trip (two when rotation is behind) and at most
    two queries.
    """

    def __init__(
        self, valkey: Valkey, database: Database, catalogue: Catalogue, clock: Clock, kept: KeptAnswers
    ) -> None:
        self.catalogue, self.clock = catalogue, clock
        self._kept = kept
        sources = self._sources = Sources(valkey, database, FamilyTables(catalogue), clock)
        self._days, self._numbers = FamilyDays(sources), DayNumbers(sources)
        self._cohorts, self._views, self._rows = CohortReader(sources), ViewsReader(sources), RowsReader(sources)
        self._live = LiveReader(valkey, catalogue, clock)
        self._few = asyncio.Semaphore(MOST_VIEWS_AT_ONCE)

    @classmethod
    @asynccontextmanager
    async def open(
        cls, valkey: Valkey, database: Database, catalogue: Catalogue, clock: Clock
    ) -> AsyncIterator[Self]:
        """For as long as the block runs; in it the channels that carry answers to all processes are heard."""
        async with KeptAnswers.open(valkey, catalogue, clock) as kept:
            yield cls(valkey, database, catalogue, clock, kept)

    # -- families ---------------------------------------------------------------------------------------------------

    async def series(self, name: str, start: int, end: int) -> Series:
        """The days from ``start`` to before ``end``, at most 3,660; live ones and late counts are in."""
        family = self._find(name, DailyFamily)
        check_range(family, start, end, self.clock.now())
        return await self._days.read(family, start, end)

    async def recent(self, name: str, days: int) -> Series:
        """The last ``days`` days, today included."""
        end = last_of(self._find(name, DailyFamily), self.clock.now()) + 1
        return await self.series(name, end - days, end)

    async def partial(self, name: str) -> Series:
        """The days that the server holds by rule: today and ``held_days - 1`` before."""
        family, now = self._find(name, DailyFamily), self.clock.now()
        return await self.series(name, today_of(family, now) - family.held_days + 1, last_of(family, now) + 1)

    async def historical(self, name: str) -> Series:
        """The 90 days before those of ``partial``, from what is kept."""
        family, start, end = self._historical(name)
        answer = await self._historical_answer(family, start, end)
        if not answer.settled:
            return await self._days.read(family, start, end)
        return from_flat(family, unpack(answer.raw), start, end)

    async def historical_raw(self, name: str) -> bytes:
        """The same as gzip over JSON: ``labels``, a list for each event, and ``<event>_breakdown`` by value."""
        return (await self.historical_answer(name)).raw

    async def historical_answer(self, name: str) -> Answer:
        """The same, with how long it may be kept."""
        return await self._historical_answer(*self._historical(name))

    async def _historical_answer(self, family: DailyFamily, start: int, end: int) -> Answer:
        held = self._kept.held(family, start, end)
        if held is not None:
            return held

        async def compute() -> bytes:
            return pack(flat(family, await self._days.read(family, start, end)))

        return await self._kept.days(family, start, end, await self._sources.settled(family, end), compute)

    def _historical(self, name: str) -> tuple[DailyFamily, int, int]:
        family = self._find(name, DailyFamily)
        end = today_of(family, self.clock.now()) - family.held_days + 1
        return family, end - HISTORICAL_DAYS, end

    # -- sets and numbers -------------------------------------------------------------------------------------------

    async def numbers(self, name: str, start: int, end: int) -> Series:
        """``total`` and ``late`` of a set or number; ``start`` and ``end`` are months for what is kept by month."""
        of = self._numbers_of(name)
        check_range(of, start, end, self.clock.now())
        return await self._numbers.read(of, start, end)

    async def numbers_answer(self, name: str) -> Answer:
        """The 182 days before today."""
        of = self._numbers_of(name)
        if of.monthly:
            raise Invalid(f"{name} is kept by month; ask for its months")
        today = today_of(of, self.clock.now())
        return await self._answer(of, "numbers", today, lambda: self.numbers(name, today - NUMBERS_DAYS, today),
                                  lambda found: found.live_from >= today)

    async def months(self, name: str, label: Label = "month") -> Series:
        """From the month of 182 days ago to the last one; with ``day`` the number of its month for each day."""
        of = self._numbers_of(name)
        if not of.monthly:
            raise Invalid(f"{name} is kept by day; ask for its days")
        now = self.clock.now()
        this_month, first_day = today_of(of, now), dates.unix_date(now, of.home) - NUMBERS_DAYS
        first = dates.date_to_unix_month(dates.unix_date_to_date(UnixDate(first_day)))
        found = await self._numbers.read(of, first, this_month)
        return found if label == "month" else _by_day(found, first_day)

    async def months_answer(self, name: str, label: Label = "month") -> Answer:
        """``months``, kept."""
        of = self._numbers_of(name)
        today = dates.unix_date(self.clock.now(), of.home)
        return await self._answer(of, f"by_{label}", today, lambda: self.months(name, label),
                                  lambda found: found.live_from >= found.end)

    def _numbers_of(self, name: str) -> DaySet | DayNumber:
        found = self.catalogue.find(name)
        if not isinstance(found, DaySet | DayNumber):
            raise Invalid(f"{name} is no set or number by day but a {type(found).__name__}")
        return found

    # -- people who come back ---------------------------------------------------------------------------------------

    async def retention(self, name: str, period_days: int) -> RetentionSeries:
        """Of those who joined on each day, the part that was active at least ``period_days`` later."""
        return await self._cohorts.retention(self._find(name, Cohorts), period_days)

    async def retention_answer(self, name: str, period_days: int) -> Answer:
        """``retention``, kept: whoever comes back today shows tomorrow."""
        of = self._find(name, Cohorts)
        return await self._answer(of, f"period_{period_days}", today_of(of, self.clock.now()),
                                  lambda: self.retention(name, period_days))

    async def cohorts(self, name: str, start: int, end: int, by: Step = "day") -> CohortGrid:
        """Cohorts of the days from ``start`` to before ``end``, or of their weeks: sizes, and who came back when."""
        return await self._cohorts.grid(self._find(name, Cohorts), start, end, by)

    async def recent_cohorts(self, name: str, by: Step = "week") -> CohortGrid:
        """The cohorts of the window before today."""
        of = self._find(name, Cohorts)
        today = today_of(of, self.clock.now())
        return await self._cohorts.grid(of, today - of.window_days, today, by)

    async def cohorts_answer(self, name: str, by: Step = "week") -> Answer:
        """``recent_cohorts``, kept."""
        of = self._find(name, Cohorts)
        today = today_of(of, self.clock.now())
        return await self._answer(of, f"grid_{by}", today, lambda: self.recent_cohorts(name, by))

    # -- views and rows ---------------------------------------------------------------------------------------------

    async def views(self, name: str, day: int | None = None, days: int = VIEWS_DAYS) -> ViewsChart:
        """Views by value over the days up to ``day`` (today), and of all time. At most five are computed at once."""
        async with self._few:
            return await self._views.read(self._find(name, DimensionViews), day, days)

    async def views_answer(self, name: str, day: int | None = None) -> Answer:
        """The 30 days before ``day``, which is today if it lies ahead or is not given, and all time before it; kept."""
        of = self._find(name, DimensionViews)
        today = today_of(of, self.clock.now())
        end = today if day is None else min(day, today)
        if end == today:
            held = self._kept.held_views(of, end)
            if held is not None:
                return held
            if await self._sources.settled(of, end):
                async def compute() -> bytes:
                    return msgspec.json.encode((await self.views(name, end - 1)).as_dict())

                answer = await self._kept.views(of, end, compute)
                if answer is not None:
                    return answer
        return await self._answer(of, "views", end, lambda: self.views(name, end - 1),
                                  lambda found: found.live_from >= end)

    async def rows(self, name: str, day: int) -> DayRows:
        """The rows of one day."""
        return await self._rows.read(self._find(name, RowsByDay), day)

    async def rows_answer(self, name: str, day: int) -> Answer:
        """``rows``, kept."""
        of = self._find(name, RowsByDay)
        return await self._answer(of, "rows", day, lambda: self.rows(name, day), lambda found: not found.live)

    # -- now --------------------------------------------------------------------------------------------------------

    async def totals(self) -> dict[str, Total]:
        """Totals of all time. One round trip."""
        return await self._live.totals()

    async def runs(self) -> list[RunView]:
        """The last run of every job, the latest first. One round trip."""
        return await self._live.runs()

    # -- inside -----------------------------------------------------------------------------------------------------

    def _find(self, name: str, kind: type[T]) -> T:
        found = self.catalogue.find(name)
        if not isinstance(found, kind):
            raise Invalid(f"{name} is a {type(found).__name__}, and this is asked of a {kind.__name__}")
        return found

    async def _answer(
        self, of: Any, kind: str, unix_date: int, read: Callable[[], Awaitable[Any]],
        settled: Callable[[Any], bool] = lambda _: True,
    ) -> Answer:
        async def compute() -> tuple[bytes, bool]:
            found = await read()
            return pack(found.as_dict()), settled(found)

        return await self._kept.answer(of, kind, unix_date, compute)


def _by_day(months: Series, first_day: int) -> Series:
    """The number of its month for each day, from ``first_day`` on."""
    end = dates.date_to_unix_date(dates.unix_month_to_date(dates.UnixMonth(months.end)))
    live_from = dates.date_to_unix_date(dates.unix_month_to_date(dates.UnixMonth(months.live_from)))
    labels = day_labels(first_day, end)
    places = {month: at for at, month in enumerate(months.labels)}
    counts = {name: [numbers[places[label[:7]]] for label in labels] for name, numbers in months.counts.items()}
    return Series(months.name, months.zone, first_day, end, labels, counts, {}, live_from)
