"""Which days are shown."""

from datetime import date

import pytest

from keystead import dates
from keystead.web.dashboard.stats_range import USUAL_DAYS, StatsRange, picker

from .stats_given import MONTHLY, ORDERS, OWN_DAYS

NOON = dates.day_starts_at(dates.date_to_unix_date(date(2026, 3, 4)), ORDERS.home) + 12 * 3600
TODAY = dates.date_to_unix_date(date(2026, 3, 4))


def test_last_days_include_today():
    assert StatsRange.parse(days="7").bounds(ORDERS, NOON) == (TODAY - 6, TODAY + 1)
    assert StatsRange.parse().days == USUAL_DAYS


def test_two_days_are_both_included():
    shown = StatsRange.parse(first="2026-02-01", last="2026-02-28")
    start = dates.date_to_unix_date(date(2026, 2, 1))
    assert shown.bounds(ORDERS, NOON) == (start, start + 28) and shown.days == 28
    assert shown.query == "from=2026-02-01&to=2026-02-28" and shown.said == "2026-02-01 to 2026-02-28"


def test_days_to_come_are_left_out():
    assert StatsRange.parse(first="2026-03-03", last="2027-01-01").bounds(ORDERS, NOON) == (TODAY - 1, TODAY + 1)
    assert StatsRange.parse(first="2027-01-01", last="2027-02-01").bounds(ORDERS, NOON) == (TODAY, TODAY + 1)


def test_canonical_day_has_begun_somewhere():
    assert StatsRange(days=1).bounds(OWN_DAYS, NOON)[1] == TODAY + 2


def test_what_is_kept_by_month_is_asked_for_months():
    month = dates.date_to_unix_month(date(2026, 3, 1))
    assert StatsRange.parse(days="7").bounds(MONTHLY, NOON) == (month - 5, month + 1)
    assert StatsRange.parse(days="400").bounds(MONTHLY, NOON) == (month - 14, month + 1)
    assert StatsRange.parse(first="2026-01-20", last="2026-02-03").bounds(MONTHLY, NOON) == (month - 2, month)


@pytest.mark.parametrize("asked", [
    {"days": "0"}, {"days": "-3"}, {"days": "3661"}, {"days": "many"}, {"days": "9" * 40}, {"days": "٣"},
    {"first": "2026-03-01"}, {"last": "2026-03-01"}, {"first": "2026-03-02", "last": "2026-03-01"},
    {"first": "yesterday", "last": "today"}, {"first": "1969-12-31", "last": "1970-01-02"},
    {"first": "1990-01-01", "last": "2026-01-01"}, {"first": "2026-02-30", "last": "2026-03-01"},
])
def test_nonsense_is_the_usual_range_and_says_why(asked):
    shown = StatsRange.parse(**asked)
    assert shown.problem and shown.bounds(ORDERS, NOON) == (TODAY - USUAL_DAYS + 1, TODAY + 1)


def test_picker_marks_what_is_shown_and_keeps_the_rest_of_the_address():
    html = picker("/stats/orders", StatsRange(days=90), date(2026, 3, 4), {"by": 'we"ek'})
    assert html.count("aria-current") == 1 and "days=90&amp;by=we%22ek\" aria-current" in html
    assert 'name="by" value="we&quot;ek"' in html and 'value="2025-12-05"' in html and 'value="2026-03-04"' in html
    custom = picker("/stats", StatsRange.parse(first="2026-02-01", last="2026-02-02"), date(2026, 3, 4))
    assert "aria-current" not in custom and 'value="2026-02-01"' in custom
