"""Cron text means what cron means by it, or is refused."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keystead.errors import DeclarationError
from keystead.jobs.calendar import AnyOf, Calendar
from keystead.jobs.cron import cron

ZONE = "Europe/Berlin"
DAILY = {"hours": (0,), "minutes": (0,), "seconds": (0,)}


@pytest.mark.parametrize(("text", "filters"), [
    ("0 2 * * *", {"hours": (2,), "minutes": (0,), "seconds": (0,)}),
    ("* * * * *", {"seconds": (0,)}),
    ("*/20 * * * *", {"minutes": (0, 20, 40), "seconds": (0,)}),
    ("10-50/20,5 * * * *", {"minutes": (5, 10, 30, 50), "seconds": (0,)}),
    ("*/30 * * * * *", {"seconds": (0, 30)}),
    ("15 0 2 * * *", {"hours": (2,), "minutes": (0,), "seconds": (15,)}),
    ("0 0 1 * *", {"days_of_month": (1,), **DAILY}),
    ("0 0 ? jan-MAR,12 *", {"months": (1, 2, 3, 12), **DAILY}),
    ("0 0 * * mon-fri", {"days_of_week": ("mon", "tue", "wed", "thu", "fri"), **DAILY}),
    ("0 0 * * 0", {"days_of_week": ("sun",), **DAILY}),
    ("0 0 * * 7", {"days_of_week": ("sun",), **DAILY}),
    ("0 0 * * 5-7", {"days_of_week": ("fri", "sat", "sun"), **DAILY}),
    ("0 0 * * sat-sun", {"days_of_week": ("sat", "sun"), **DAILY}),
    ("0 0 * * */2", {"days_of_week": ("tue", "thu", "sat", "sun"), **DAILY}),
    ("0 * * * 1", {"days_of_week": ("mon",), "hours": tuple(range(24)), "minutes": (0,), "seconds": (0,)}),
    ("0 0 31 2 5", {"days_of_week": ("fri",), "months": (2,), **DAILY}),
    ("@hourly", {"minutes": (0,), "seconds": (0,)}),
    ("@daily", DAILY), ("@midnight", DAILY), (" @Daily ", DAILY),
    ("@weekly", {"days_of_week": ("sun",), **DAILY}),
    ("@monthly", {"days_of_month": (1,), **DAILY}),
    ("@yearly", {"months": (1,), "days_of_month": (1,), **DAILY}),
    ("@annually", {"months": (1,), "days_of_month": (1,), **DAILY}),
])  # fmt: skip
def test_text_is_the_calendar_that_one_would_write_by_hand(text: str, filters: dict[str, object]) -> None:
    assert cron(text, ZONE) == Calendar(ZONE, **filters)  # type: ignore[arg-type]


def test_day_of_month_and_day_of_week_are_joined_as_cron_joins_them() -> None:
    assert cron("0 0 13 * fri", ZONE) == AnyOf((
        Calendar(ZONE, days_of_month=(13,), **DAILY), Calendar(ZONE, days_of_week=("fri",), **DAILY),
    ))  # fmt: skip


@pytest.mark.parametrize(("text", "told"), [
    ("", "five fields"), ("* * * *", "it has 4"), ("* * * * * * *", "it has 7"),
    ("60 * * * *", "'60' is no minute; it must be a number from 0 to 59"),
    ("* 24 * * *", "no hour"), ("* * 0 * *", "no day of month"), ("* * * 13 *", "no month"),
    ("* * * foo *", "jan to dec"), ("* * * * 8", "no day of week"), ("* * * * monday", "sun to sat"),
    ("30-10 * * * *", "smaller to the larger"), ("*/0 * * * *", "steps of 1 or more"),
    ("5/15 * * * *", "a step needs a range, such as 5-59/15"), ("1,,2 * * * *", "must read like"),
    ("-5 * * * *", "must read like"), ("1.5 * * * *", "must read like"), ("٣ * * * *", "must read like"),
    ("0 0 L * *", "no day of month"), ("0 0 15W * *", "no day of month"), ("0 0 * * 5#3", "must read like"),
    ("0 0 */2 * 1", "both day columns"), ("0 0 1 * */2", "both day columns"),
    ("0 0 30 2 *", "would never run"), ("@reboot", "no such name"),
])  # fmt: skip
def test_text_that_cannot_be_meant_is_refused_with_the_reason(text: str, told: str) -> None:
    with pytest.raises(DeclarationError, match="cron") as refused:
        cron(text, ZONE)
    assert told in str(refused.value)


def test_zone_is_checked_too() -> None:
    with pytest.raises(DeclarationError, match="IANA"):
        cron("0 0 * * *", "Berlin")


def column(least: int, most: int) -> st.SearchStrategy[tuple[str, frozenset[int]]]:
    """A column as text, and the numbers that cron takes it for."""
    one = st.integers(least, most).map(lambda number: (str(number), {number}))
    bounds = st.tuples(st.integers(least, most), st.integers(least, most)).map(sorted)
    ranges = st.tuples(bounds, st.integers(1, 9)).map(
        lambda given: (f"{given[0][0]}-{given[0][1]}/{given[1]}", set(range(given[0][0], given[0][1] + 1, given[1])))
    )
    lists = st.lists(st.one_of(one, ranges), min_size=1, max_size=3).map(
        lambda parts: (",".join(part for part, _ in parts), frozenset().union(*(numbers for _, numbers in parts)))
    )
    return st.one_of(st.just(("*", frozenset(range(least, most + 1)))), lists)


@settings(max_examples=100, deadline=None)
@given(
    minute=column(0, 59), hour=column(0, 23), day=column(1, 28), month=column(1, 12), week=column(0, 6),
    start=st.datetimes(datetime(2026, 1, 1), datetime(2028, 1, 1)),
)
def test_runs_are_the_minutes_that_the_columns_name(
    minute: tuple[str, frozenset[int]], hour: tuple[str, frozenset[int]], day: tuple[str, frozenset[int]],
    month: tuple[str, frozenset[int]], week: tuple[str, frozenset[int]], start: datetime,
) -> None:
    """Beside the rule of cron in its own words, minute by minute, in a zone without changes of the clock."""
    when = cron(" ".join(text for text, _ in (minute, hour, day, month, week)), "UTC")

    def on_day(shown: datetime) -> bool:
        by_day = day[0] == "*" or shown.day in day[1]  # the numbers of the column end at 28
        by_week = (shown.weekday() + 1) % 7 in week[1]
        both_given = day[0] != "*" and week[0] != "*"
        return shown.month in month[1] and (by_day or by_week if both_given else by_day and by_week)

    found = datetime.fromtimestamp(when.next_after(start.replace(tzinfo=ZoneInfo("UTC")).timestamp()), ZoneInfo("UTC"))
    shown = found.replace(tzinfo=None)
    assert shown.second == 0 and shown.minute in minute[1] and shown.hour in hour[1] and on_day(shown)
    between = start.replace(second=0, microsecond=0) + timedelta(minutes=1)
    while between < shown:
        if not on_day(between):
            between = between.replace(hour=0, minute=0) + timedelta(days=1)
            continue
        assert between.hour not in hour[1] or between.minute not in minute[1], f"{between} was passed over"
        between += timedelta(minutes=1)
