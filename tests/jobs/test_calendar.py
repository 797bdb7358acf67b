"""Calendars beside brute force: every second of the days around both changes of the clock, and filters at random."""

import calendar as months_of
from bisect import bisect_right
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import islice, product
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keystead.errors import DeclarationError
from keystead.jobs.calendar import DAYS_OF_WEEK, AnyOf, Calendar, newest_runs, preview, runs_after

from .brute_force import accepted, runs_between

PACIFIC = "America/Los_Angeles"
BERLIN = "Europe/Berlin"
# Days on which a clock was changed: by an hour forth and back, by half an hour, at midnight, by a whole day, and a day
# on which nothing happens.
DAYS = [
    (PACIFIC, date(2026, 3, 8)), (PACIFIC, date(2026, 11, 1)), (BERLIN, date(2027, 3, 28)),
    (BERLIN, date(2027, 10, 31)),
    ("Australia/Lord_Howe", date(2026, 4, 5)), ("Australia/Lord_Howe", date(2026, 10, 4)),
    ("Africa/Cairo", date(2026, 4, 24)), ("Africa/Cairo", date(2026, 10, 30)), ("America/Havana", date(2026, 11, 1)),
    ("Pacific/Apia", date(2011, 12, 30)), ("Asia/Kathmandu", date(2026, 12, 31)),
]  # fmt: skip
AROUND_SECONDS = 6 * 3600


def at(zone: str, *local: int, fold: int = 0) -> int:
    return round(datetime(*local, tzinfo=ZoneInfo(zone), fold=fold).timestamp())


@cache
def change_near(zone: str, day: date) -> int:
    """The unix time at which the clock is changed on that day; the day's noon where nothing is changed."""
    place = ZoneInfo(zone)
    noon = round(datetime(day.year, day.month, day.day, 12, tzinfo=UTC).timestamp())
    steps = range(noon - 36 * 3600, noon + 36 * 3600, 900)
    offsets = [datetime.fromtimestamp(second, place).utcoffset() for second in steps]
    return next((steps[place] for place in range(1, len(steps)) if offsets[place] != offsets[place - 1]), noon)


@cache
def seconds_around(zone: str, day: date) -> list[tuple[int, int, int, datetime, int]]:
    """Each second for hours before and after a change of the clock: its second and minute on the clock, its unix time,
    all of the clock, and 1 if the clock shows this for the second time."""
    place, change, found = ZoneInfo(zone), change_near(zone, day), []
    for second in range(change - AROUND_SECONDS, change + AROUND_SECONDS):
        shown = datetime.fromtimestamp(second, place)
        found.append((shown.second, shown.minute, second, shown.replace(tzinfo=None, fold=0), shown.fold))
    return found


def all_runs(when: Calendar, zone: str, day: date) -> list[int]:
    """Look at every second but the first, and keep those that are runs."""
    every_hour = when.hours is None or len(when.hours) == 24
    some_seconds, some_minutes = when.seconds or range(60), when.minutes or range(60)
    seconds = seconds_around(zone, day)
    found, before = [], seconds[0][3]
    for of_minute, of_hour, second, shown, fold in islice(seconds, 1, None):
        jump, before = shown - before, shown
        if of_minute in some_seconds and of_hour in some_minutes and accepted(when, shown) and (not fold or every_hour):
            found.append(second)
        elif jump > timedelta(seconds=1):
            skipped = (shown - timedelta(seconds=ahead) for ahead in range(1, round(jump.total_seconds())))
            if any(accepted(when, local) for local in skipped):
                found.append(second)
    return found


def some(least: int, most: int) -> st.SearchStrategy[tuple[int, ...]]:
    few = st.sets(st.integers(least, most), min_size=1, max_size=4)
    step = st.integers(1, 20).map(lambda size: set(range(least, most + 1, size)))
    return st.one_of(few, step).map(lambda values: tuple(sorted(values)))


@st.composite
def calendars(draw: st.DrawFn, zone: str, day: date | None = None) -> Calendar:
    """Any calendar that is allowed. With a day, it often has runs on that day in the hours when clocks are changed."""
    depth = draw(st.integers(0, 5))
    filters: dict[str, tuple[Any, ...]] = {"seconds": draw(some(0, 59))}
    if depth > 0:
        filters["minutes"] = draw(some(0, 59))
    if depth > 1:
        early = st.sampled_from([(0,), (1,), (2,), (3,), (0, 1, 2), (1, 2, 3), (0, 23)])
        filters["hours"] = draw(st.one_of(some(0, 23), early, early) if day else some(0, 23))
    days = draw(st.sampled_from(["none", "month", "week"])) if depth > 2 else "none"
    if days == "month":
        filters["days_of_month"] = draw(some(1, 31))
    if days == "week":
        chosen = draw(st.sets(st.sampled_from(DAYS_OF_WEEK), min_size=1))
        filters["days_of_week"] = tuple(sorted(chosen, key=DAYS_OF_WEEK.index))
    if depth > 4:
        filters["months"] = draw(some(1, 12))
    if day and draw(st.integers(0, 3)):
        fits = {"days_of_month": day.day, "days_of_week": DAYS_OF_WEEK[day.weekday()], "months": day.month}
        order = {"days_of_week": DAYS_OF_WEEK.index}
        for name in fits.keys() & filters.keys():
            filters[name] = tuple(sorted({*filters[name], fits[name]}, key=order.get(name)))  # type: ignore[arg-type]
    try:
        return Calendar(zone, **filters)
    except DeclarationError:  # a day that none of the months has
        return Calendar(zone, **(filters | {"days_of_month": (1,)}))


@settings(max_examples=40, deadline=None)
@given(data=st.data(), where=st.sampled_from(DAYS))
def test_next_run_is_what_looking_at_every_second_finds(data: st.DataObject, where: tuple[str, date]) -> None:
    zone, day = where
    when = data.draw(calendars(zone, day))
    runs = all_runs(when, zone, day)
    change = change_near(zone, day)
    first, last = change - AROUND_SECONDS, change + AROUND_SECONDS - 1
    starts = data.draw(st.lists(st.floats(first, last), min_size=10, max_size=10))
    near = range(change - 2 * 3600, change + 2 * 3600, 299)
    for start in (*starts, *near, *runs[:200], *(run - 0.25 for run in runs[-200:])):
        found, place = when.next_after(start), bisect_right(runs, start)
        if place < len(runs):
            assert found == runs[place], f"{when} after {start}: {datetime.fromtimestamp(found, ZoneInfo(zone))}"
        else:
            assert found > last


@pytest.mark.parametrize(("zone", "day"), DAYS, ids=lambda value: str(value))
def test_every_hour_of_the_day_is_right_around_a_change(zone: str, day: date) -> None:
    """Each hour alone, with its neighbours, and all of them; asked at every quarter of an hour of five days."""
    change = change_near(zone, day)
    first, last = change - 2 * 86400, change + 3 * 86400
    for hours in [*((hour,) for hour in range(24)), (0, 1), (1, 2), (2, 3), (0, 23), tuple(range(24)), None]:
        when = Calendar(zone, hours=hours, minutes=(0, 15, 45), seconds=(0,))
        runs = runs_between(when, first, last, 900)
        for start in range(change - 43200, change + 43200, 900):
            assert when.next_after(start) == runs[bisect_right(runs, start)], f"{when} after {start}"


@settings(max_examples=150, deadline=None)
@given(data=st.data(), start=st.dates(date(1995, 1, 1), date(2035, 1, 1)))
def test_next_run_over_months_and_years_is_what_trying_every_day_finds(data: st.DataObject, start: date) -> None:
    """In UTC, so that only days, months and leap years matter."""
    when = data.draw(calendars("UTC").filter(lambda found: found.hours is not None))
    assert when.hours and when.minutes and when.seconds
    second = data.draw(st.integers(0, 86399))
    local = datetime(start.year, start.month, start.day) + timedelta(seconds=second)
    day, expected = start, None
    while expected is None:
        if accepted(when, datetime(day.year, day.month, day.day, when.hours[0], when.minutes[0], when.seconds[0])):
            times = (datetime(day.year, day.month, day.day, *time)
                     for time in product(when.hours, when.minutes, when.seconds))
            expected = min((time for time in times if time > local), default=None)
        day += timedelta(days=1)
    assert when.next_after(local.replace(tzinfo=UTC).timestamp()) == expected.replace(tzinfo=UTC).timestamp()


def test_finer_fields_start_anew_when_a_coarser_one_moves() -> None:
    when = Calendar(BERLIN, hours=(22,), minutes=(0, 15, 30, 45), seconds=(0,))
    assert when.next_after(at(BERLIN, 2026, 6, 1, 6, 20)) == at(BERLIN, 2026, 6, 1, 22, 0)
    monthly = Calendar(BERLIN, months=(3,), days_of_month=(1, 20), hours=(2,), minutes=(0,), seconds=(0,))
    assert monthly.next_after(at(BERLIN, 2026, 1, 25, 12)) == at(BERLIN, 2026, 3, 1, 2)


def test_day_31_passes_over_shorter_months() -> None:
    when = Calendar(BERLIN, days_of_month=(31,), hours=(0,), minutes=(0,), seconds=(0,))
    found = [(shown.month, shown.day) for shown in preview(when, at(BERLIN, 2026, 1, 1), 7)]
    assert found == [(month, 31) for month in (1, 3, 5, 7, 8, 10, 12)]


def test_leap_day_is_found_over_eight_years() -> None:
    when = Calendar("UTC", months=(2,), days_of_month=(29,), hours=(0,), minutes=(0,), seconds=(0,))
    assert [shown.year for shown in preview(when, at("UTC", 2095, 1, 1), 3)] == [2096, 2104, 2108]
    assert months_of.isleap(2096) and not months_of.isleap(2100)


def test_skipped_time_runs_at_the_first_second_that_exists() -> None:
    when = Calendar(PACIFIC, hours=(2,), minutes=(0, 15, 30), seconds=(0,))
    found = [shown.strftime("%d %H:%M %z") for shown in preview(when, at(PACIFIC, 2026, 3, 7, 12), 4)]
    assert found == ["08 03:00 -0700", "09 02:00 -0700", "09 02:15 -0700", "09 02:30 -0700"]


def test_repeated_time_of_day_runs_once_the_first_time() -> None:
    when = Calendar(PACIFIC, hours=(1, 2), minutes=(30,), seconds=(0,))
    found = [shown.strftime("%d %H:%M %z") for shown in preview(when, at(PACIFIC, 2026, 10, 31, 12), 3)]
    assert found == ["01 01:30 -0700", "01 02:30 -0800", "02 01:30 -0800"]
    assert when.next_after(at(PACIFIC, 2026, 11, 1, 1, 10, fold=1)) == at(PACIFIC, 2026, 11, 1, 2, 30)


@pytest.mark.parametrize("hours", [None, tuple(range(24))])
def test_a_rhythm_without_a_time_of_day_goes_on_when_the_clock_is_put_back(hours: tuple[int, ...] | None) -> None:
    when = Calendar(PACIFIC, hours=hours, minutes=(0, 20, 40), seconds=(30,))
    start = at(PACIFIC, 2026, 11, 1, 0, 0, 30)
    assert list(islice(runs_after(when, start), 12)) == [start + 1200 * number for number in range(1, 13)]


def test_any_of_several_calendars_runs_when_one_does() -> None:
    first = Calendar(BERLIN, days_of_month=(1, 15), hours=(6,), minutes=(0,), seconds=(0,))
    fridays = Calendar(BERLIN, days_of_week=("fri",), hours=(6,), minutes=(0,), seconds=(0,))
    both = AnyOf((first, fridays))
    found = [shown.day for shown in preview(both, at(BERLIN, 2026, 5, 1), 6)]
    assert found == [1, 8, 15, 22, 29, 1], "the 1st and the 15th were Fridays and come once"
    with pytest.raises(DeclarationError, match="same zone"):
        AnyOf((first, Calendar(PACIFIC, seconds=(0,))))


@settings(max_examples=150, deadline=None)
@given(data=st.data(), most=st.integers(1, 30), where=st.sampled_from(DAYS[:4]))
def test_newest_runs_are_the_last_of_all(data: st.DataObject, most: int, where: tuple[str, date]) -> None:
    zone, day = where
    when = data.draw(calendars(zone))
    after = seconds_around(zone, day)[0][2] + data.draw(st.integers(0, 86400))
    until = after + data.draw(st.integers(0, 20_000)) + 0.5
    every = []
    for run in runs_after(when, after):
        if run > until:
            break
        every.append(run)
    assert newest_runs(when, after, until, most) == every[-most:]


def test_ten_years_of_a_run_each_second_are_no_burden() -> None:
    when = Calendar(BERLIN, seconds=tuple(range(60)))
    until = at(BERLIN, 2026, 6, 1)
    assert newest_runs(when, until - 10 * 365 * 86400, until, 3) == [until - 2, until - 1, until]


@pytest.mark.parametrize(("filters", "told"), [
    ({}, "at least one filter"),
    ({"seconds": ()}, "at least one value"),
    ({"seconds": [0]}, "must be a tuple"),
    ({"seconds": (60,)}, "from 0 to 59"),
    ({"seconds": (True,)}, "whole numbers"),
    ({"seconds": (30, 0)}, "sorted"),
    ({"seconds": (0, 0)}, "each value once"),
    ({"minutes": (0,)}, "minutes needs seconds"),
    ({"hours": (0,), "seconds": (0,)}, "hours needs minutes too"),
    ({"hours": (0,)}, "hours needs minutes and seconds"),
    ({"months": (1,), "minutes": (0,), "seconds": (0,)}, "months needs hours"),
    ({"days_of_week": ("mon",)}, "days_of_week needs hours and minutes and seconds"),
    ({"days_of_week": ("monday",), "hours": (0,), "minutes": (0,), "seconds": (0,)}, "mon, tue"),
    ({"days_of_week": ("sun", "mon"), "hours": (0,), "minutes": (0,), "seconds": (0,)}, "sorted"),
    ({"days_of_month": (0,), "hours": (0,), "minutes": (0,), "seconds": (0,)}, "from 1 to 31"),
    ({"days_of_month": (1,), "days_of_week": ("mon",), "hours": (0,), "minutes": (0,), "seconds": (0,)}, "exclude"),
    ({"months": (2, 4), "days_of_month": (31,), "hours": (0,), "minutes": (0,), "seconds": (0,)}, "never run"),
])  # fmt: skip
def test_a_calendar_that_cannot_be_meant_is_refused_where_it_is_written(filters: dict[str, object], told: str) -> None:
    with pytest.raises(DeclarationError, match=told):
        Calendar(BERLIN, **filters)  # type: ignore[arg-type]


@pytest.mark.parametrize("zone", ["", "Berlin", "Europe/Atlantis", "../etc/passwd", "localtime", 3])
def test_a_zone_must_be_one_that_every_machine_knows(zone: str) -> None:
    with pytest.raises(DeclarationError, match="IANA"):
        Calendar(zone, seconds=(0,))


def test_a_calendar_reads_as_text() -> None:
    when = Calendar(BERLIN, months=(1, 2), hours=tuple(range(9, 18)), minutes=(0, 15, 30, 45), seconds=(0,))
    assert str(when) == "months 1,2; hours 9-17; minutes 0-45/15; seconds 0 in Europe/Berlin"
