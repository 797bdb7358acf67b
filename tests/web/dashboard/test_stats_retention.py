"""The page on who came back."""

from dataclasses import replace

from keystead.web.dashboard.stats_range import StatsRange
from keystead.web.dashboard.stats_retention import since_the_first, step_of, steps_html, summary, tile_texts

from .stats_given import grid


def test_rows_are_weeks_where_days_would_be_too_many():
    assert step_of("", StatsRange(days=30)) == "day" and step_of("", StatsRange(days=90)) == "week"
    assert step_of("day", StatsRange(days=182)) == "day" and step_of("month", StatsRange(days=7)) == "day"


def test_tiles_and_words():
    assert tile_texts(grid()) == [("75.0 %", "30 of 40"), ("25.0 %", "10 of 40")]
    assert summary(grid()).startswith("50 joined, 2026-03-01 to 2026-03-15; 2 told too late to be followed.")


def test_rows_begin_with_the_first_who_joined():
    shown = since_the_first(grid())
    assert list(shown.labels) == ["2026-03-08", "2026-03-15"] and shown.sizes == (40, 10) and shown.late == (2, 0)
    assert tile_texts(shown) == tile_texts(grid())
    nobody = since_the_first(replace(grid(), sizes=(0, 0, 0), late=(0, 0, 0)))
    assert list(nobody.labels) == ["2026-03-15"]


def test_step_keeps_the_days():
    html = steps_html("/stats/back", StatsRange(days=90), "week")
    assert html.count("days=90") == 2 and 'by=week" aria-current' in html
