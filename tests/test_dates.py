"""Days and months as integers, against the calendar itself."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keystead.dates import (
    date_to_unix_date,
    date_to_unix_month,
    day_starts_at,
    unix_date,
    unix_date_to_date,
    unix_month,
    unix_month_to_date,
)

ZONES = ["UTC", "America/Los_Angeles", "America/Sao_Paulo", "Africa/Cairo", "Asia/Kathmandu", "Pacific/Apia"]
zones = st.sampled_from(ZONES).map(ZoneInfo)
days = st.dates(min_value=date(1971, 1, 1), max_value=date(2037, 12, 31))


def test_the_epoch_is_day_and_month_zero() -> None:
    assert unix_date(0, ZoneInfo("UTC")) == 0
    assert unix_month(0, ZoneInfo("UTC")) == 0
    assert unix_date(0, ZoneInfo("America/Los_Angeles")) == -1


@given(days)
def test_days_and_months_round_trip(day: date) -> None:
    assert unix_date_to_date(date_to_unix_date(day)) == day
    assert unix_month_to_date(date_to_unix_month(day)) == day.replace(day=1)


@given(days, zones)
def test_a_day_begins_where_it_begins(day: date, zone: ZoneInfo) -> None:
    number = date_to_unix_date(day)
    start = day_starts_at(number, zone)
    if datetime.fromtimestamp(start, zone).date() == day:  # Samoa skipped a whole day once
        assert unix_date(start, zone) == number
        assert unix_date(start - 1, zone) < number


@pytest.mark.parametrize(
    ("zone", "day", "first_hour"),
    [("America/Sao_Paulo", date(2018, 11, 4), 1), ("America/Los_Angeles", date(2026, 3, 8), 0)],
)
def test_a_skipped_midnight_gives_the_first_instant_that_exists(zone: str, day: date, first_hour: int) -> None:
    start = datetime.fromtimestamp(day_starts_at(date_to_unix_date(day), ZoneInfo(zone)), ZoneInfo(zone))
    assert (start.date(), start.hour) == (day, first_hour)
    before = datetime.fromtimestamp(start.timestamp() - 1, ZoneInfo(zone))
    assert before.date() == day - timedelta(days=1)


def test_months_follow_the_zone_not_utc() -> None:
    new_year_utc = datetime(2026, 1, 1, 3, tzinfo=UTC).timestamp()
    assert unix_month(new_year_utc, ZoneInfo("UTC")) - unix_month(new_year_utc, ZoneInfo("America/Los_Angeles")) == 1
