"""When a recurring job runs: filters over the wall clock of a named zone, and the exact next run.

Seconds of the wall clock that all filters accept are runs. Where the clock is put forward, runs that fall into the
skipped time happen at the first second that exists after it, together as one. Where it is put back, a time of day that
comes twice is a run the first time only, unless the filters accept every hour: such a job has a rhythm and no time of
day, and it keeps its rhythm.
"""

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from datetime import date, datetime, time, timedelta
from functools import cached_property
from itertools import islice, pairwise, takewhile
from typing import Any
from zoneinfo import ZoneInfo

from keystead.errors import DeclarationError

DAYS_OF_WEEK = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
PREVIEW_RUNS = 10

_RANGES = {"months": (1, 12), "days_of_month": (1, 31), "hours": (0, 23), "minutes": (0, 59), "seconds": (0, 59)}
_LONGEST_MONTH = {2: 29, 4: 30, 6: 30, 9: 30, 11: 30}
_EPOCH = datetime(1970, 1, 1)
_SECOND = timedelta(seconds=1)
# Names that the zone database may hold and that mean another place on every machine.
_NO_PLACE = ("localtime", "posixrules", "Factory")


@dataclass(frozen=True)
class Calendar:
    """Every second of the wall clock in ``zone`` that all given filters accept.

    Each filter is a sorted tuple; days of the week are ``mon`` to ``sun``. ``days_of_month`` and ``days_of_week``
    exclude one another. A coarse filter needs all finer ones: days and months need hours, hours need minutes, minutes
    need seconds. A mistake is refused here, where it was written.
    """

    zone: str
    months: tuple[int, ...] | None = field(default=None, kw_only=True)
    days_of_month: tuple[int, ...] | None = field(default=None, kw_only=True)
    days_of_week: tuple[str, ...] | None = field(default=None, kw_only=True)
    hours: tuple[int, ...] | None = field(default=None, kw_only=True)
    minutes: tuple[int, ...] | None = field(default=None, kw_only=True)
    seconds: tuple[int, ...] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        _ = self.place
        given = {one.name: values for one in fields(self)[1:] if (values := getattr(self, one.name)) is not None}
        if not given:
            raise DeclarationError("a calendar needs at least one filter, for example seconds=(0,) for every minute")
        for name, values in given.items():
            _check_filter(name, values)
        if "days_of_month" in given and "days_of_week" in given:
            raise DeclarationError("days_of_month and days_of_week exclude one another; AnyOf joins two calendars")
        finer = ("seconds", "minutes", "hours")
        for place, name in enumerate((*finer[1:], "months", "days_of_month", "days_of_week"), 1):
            missing = [one for one in finer[:place] if one not in given]
            if name in given and missing:
                raise DeclarationError(
                    f"{name} needs {' and '.join(reversed(missing))} too, for example {missing[0]}=(0,)"
                )
        if self.months and self.days_of_month and not any(
            self.days_of_month[0] <= _LONGEST_MONTH.get(month, 31) for month in self.months
        ):
            raise DeclarationError(f"no month of {self.months} has a day {self.days_of_month[0]}: it would never run")

    def __str__(self) -> str:
        shown = [
            f"{one.name.replace('_', ' ')} {_shown(values)}" for one in fields(self)[1:]
            if (values := getattr(self, one.name)) is not None
        ]
        return f"{'; '.join(shown)} in {self.zone}"

    @cached_property
    def place(self) -> ZoneInfo:
        """The zone with its rules."""
        try:
            if self.zone not in _NO_PLACE:
                return ZoneInfo(self.zone)
        except (KeyError, ValueError, OSError, TypeError):
            pass
        raise DeclarationError(f"{self.zone!r} is not a zone of the IANA database; it must read like Europe/Berlin")

    def spelling(self) -> list[Any]:
        """The whole calendar as plain values, the same on every machine: what identity is made of."""
        return [getattr(self, one.name) for one in fields(self)]

    def next_after(self, at: float) -> int:
        """The first run strictly later than unix time ``at``, in whole unix seconds."""
        here = math.floor(at)
        shown = datetime.fromtimestamp(here, self.place)
        local = shown.replace(tzinfo=None, fold=0)
        found = self._first_from(local + _SECOND)
        before, after = self._offsets(local)
        if before <= after:  # the clock shows this time once
            return self._instant(found)
        back_at = self._change(local - before, local - after)  # here the clock is put back, from until to since
        until, since = _local(back_at, before), _local(back_at, after)
        if shown.fold == 0 and found < until:
            return self._instant(found)
        if not self._every_hour:
            return self._instant(self._first_from(max(found, until)))
        if shown.fold == 0:
            found = self._first_from(since)
        return _unix(found - after) if found < until else self._instant(found)

    # -- the wall clock ---------------------------------------------------------------------------------------------

    @cached_property
    def _every_hour(self) -> bool:
        return self.hours is None or len(self.hours) == 24

    @cached_property
    def _times(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        return (
            self.hours or tuple(range(24)), self.minutes or tuple(range(60)), self.seconds or tuple(range(60)),
        )  # fmt: skip

    @cached_property
    def _week(self) -> frozenset[int]:
        return frozenset(map(DAYS_OF_WEEK.index, self.days_of_week or DAYS_OF_WEEK))

    def _first_from(self, local: datetime) -> datetime:
        """The first time from ``local`` on that the filters accept, whether the clock ever shows it or not."""
        day, since = local.date(), local.time()
        while True:
            if self.months is not None and day.month not in self.months:
                day, since = _next_month(day), time()
            elif self._accepts(day) and (found := self._time_from(since)) is not None:
                return datetime.combine(day, found)
            else:
                day, since = day + timedelta(days=1), time()

    def _accepts(self, day: date) -> bool:
        if self.days_of_month is not None:
            return day.day in self.days_of_month
        return day.weekday() in self._week

    def _time_from(self, since: time) -> time | None:
        hours, minutes, seconds = self._times
        for hour in hours[bisect_left(hours, since.hour):]:
            if hour > since.hour:
                return time(hour, minutes[0], seconds[0])
            for minute in minutes[bisect_left(minutes, since.minute):]:
                if minute > since.minute:
                    return time(hour, minute, seconds[0])
                for second in seconds[bisect_left(seconds, since.second):]:
                    return time(hour, minute, second)
        return None

    # -- from the wall clock to unix time ---------------------------------------------------------------------------

    def _offsets(self, local: datetime) -> tuple[timedelta, timedelta]:
        """What the zone adds to UTC at this local time: by the rule before a change of the clock, and after it."""
        there = local.replace(tzinfo=self.place)
        before, after = there.utcoffset(), there.replace(fold=1).utcoffset()
        assert before is not None and after is not None
        return before, after

    def _instant(self, local: datetime) -> int:
        """When the clock first shows this time; if it is skipped, the first second after the skip."""
        before, after = self._offsets(local)
        if before >= after:
            return _unix(local - before)
        return self._change(local - after, local - before)

    def _change(self, early: datetime, late: datetime) -> int:
        """The second of the one change of the clock between two instants, in unix time."""
        low, high = _unix(early), _unix(late)
        old = datetime.fromtimestamp(low, self.place).utcoffset()
        while high - low > 1:
            middle = (low + high) // 2
            if datetime.fromtimestamp(middle, self.place).utcoffset() == old:
                low = middle
            else:
                high = middle
        return high


@dataclass(frozen=True)
class AnyOf:
    """Runs whenever one of several calendars of one zone does."""

    calendars: tuple[Calendar, ...]

    def __post_init__(self) -> None:
        if not self.calendars or len({calendar.zone for calendar in self.calendars}) > 1:
            raise DeclarationError("AnyOf joins one or more calendars of the same zone")

    def __str__(self) -> str:
        return ", or ".join(map(str, self.calendars))

    @property
    def zone(self) -> str:
        return self.calendars[0].zone

    @property
    def place(self) -> ZoneInfo:
        return self.calendars[0].place

    def spelling(self) -> list[Any]:
        return [calendar.spelling() for calendar in self.calendars]

    def next_after(self, at: float) -> int:
        return min(calendar.next_after(at) for calendar in self.calendars)


When = Calendar | AnyOf


def runs_after(when: When, at: float) -> Iterator[int]:
    """Every run later than ``at``, in order, without end."""
    while True:
        at = run = when.next_after(at)
        yield run


def newest_runs(when: When, after: float, until: float, most: int) -> list[int]:
    """The last ``most`` runs that are later than ``after`` and not later than ``until``, oldest first.

    Cost grows with ``most`` and hardly with the time between, so that a long pause of a quick job is no burden.
    """

    def some_from(start: float, count: int) -> list[int]:
        return list(islice(takewhile(lambda run: run <= until, runs_after(when, start)), count))

    found = some_from(after, most + 1)
    if len(found) <= most:
        return found
    low, high = math.floor(after), math.floor(until)  # from low on there are enough, from high on there are not
    while high - low > 1:
        middle = (low + high) // 2
        if len(some_from(middle, most)) == most:
            low = middle
        else:
            high = middle
    return some_from(low, most)


def preview(when: When, now: float, runs: int = PREVIEW_RUNS) -> list[datetime]:
    """The next runs as the wall clock of the zone will show them."""
    return [datetime.fromtimestamp(run, when.place) for run in islice(runs_after(when, now), runs)]


def _check_filter(name: str, values: Any) -> None:
    if not isinstance(values, tuple) or not values:
        raise DeclarationError(f"{name} must be a tuple with at least one value, such as (0,); got {values!r}")
    if name == "days_of_week":
        if not all(isinstance(value, str) and value in DAYS_OF_WEEK for value in values):
            raise DeclarationError(f"days_of_week are {', '.join(DAYS_OF_WEEK)}; got {values!r}")
        numbers = tuple(map(DAYS_OF_WEEK.index, values))
    else:
        least, most = _RANGES[name]
        if not all(type(value) is int and least <= value <= most for value in values):
            raise DeclarationError(f"{name} are whole numbers from {least} to {most}; got {values!r}")
        numbers = values
    if any(first >= second for first, second in pairwise(numbers)):
        raise DeclarationError(f"{name} must be sorted, each value once; got {values!r}")


def _shown(values: tuple[int | str, ...]) -> str:
    """The values, with runs of neighbours and even steps drawn together."""
    if len(values) > 3 and all(isinstance(value, int) for value in values):
        step = int(values[1]) - int(values[0])
        if all(int(second) - int(first) == step for first, second in pairwise(values)):
            return f"{values[0]}-{values[-1]}" + (f"/{step}" if step > 1 else "")
    return ",".join(map(str, values))


def _next_month(day: date) -> date:
    return date(day.year + day.month // 12, day.month % 12 + 1, 1)


def _unix(utc: datetime) -> int:
    return (utc - _EPOCH) // _SECOND


def _local(at: int, offset: timedelta) -> datetime:
    return _EPOCH + timedelta(seconds=at) + offset
