"""Sets and numbers by day."""

from keystead.stats import Series
from keystead.web.dashboard.stats_numbers import summary

from .stats_given import LABELS, START


def numbers(*total, late=0, live=1):
    end = START + len(total)
    return Series("active", "UTC", START, end, LABELS[: len(total)],
                  {"total": list(total), "late": [late, *[0] * (len(total) - 1)]}, {}, end - live)


def test_numbers_are_added_up():
    assert summary(numbers(1, 2, 3), distinct=False) == "6 in all, 2026-03-01 to 2026-03-03"


def test_people_are_averaged_over_days_that_are_over():
    assert summary(numbers(10, 20, 3), distinct=True) == "15 a day on average over days that are over"
    assert summary(numbers(3), distinct=True) == "3 so far"
    assert summary(numbers(10, 3, late=4), distinct=True).endswith("; 4 told too late to know whether they were in")
