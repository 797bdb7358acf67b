"""Counts by day as a chart."""

import json

from keystead.web.dashboard.stats_chart import LIVE_OPACITY, MOST_BARS, STILL, moved, options, something

from .stats_given import LABELS, START, orders


def test_every_line_is_a_stack_of_bars_over_all_days():
    series = orders()
    whole = options(series, series.counts)
    assert whole["xAxis"]["data"] == LABELS
    assert [one["name"] for one in whole["series"]] == ["placed", "paid", "failed", STILL]
    assert {(one["type"], one["stack"]) for one in whole["series"]} == {("bar", "all")}
    json.dumps(whole)


def test_live_days_are_lighter_and_on_a_ground_that_says_so():
    series = orders(live=2)
    placed, *_, still = options(series, series.counts)["series"]
    assert placed["data"] == [5, 6, {"value": 7, "itemStyle": {"opacity": LIVE_OPACITY}},
                              {"value": 2, "itemStyle": {"opacity": LIVE_OPACITY}}]
    assert still["markArea"]["data"] == [[{"xAxis": "2026-03-03"}, {"xAxis": "2026-03-04"}]]
    over = options(orders(live=0), {"placed": [1, 2, 3, 4]})["series"]
    assert over[0]["data"] == [1, 2, 3, 4] and over[-1]["markArea"]["data"] == []


def test_range_that_begins_live_is_light_from_its_first_day():
    placed = options(orders(live=9), {"placed": [1, 2, 3, 4]})["series"][0]
    assert all(isinstance(day, dict) for day in placed["data"])


def test_lines_are_neither_stacked_nor_filled():
    series = orders()
    placed = options(series, series.counts, stacked=False)["series"][0]
    assert placed["type"] == "line" and "stack" not in placed and "areaStyle" not in placed


def test_very_many_days_are_areas():
    days = [1] * (MOST_BARS + 1)
    series = orders()
    long = type(series)("orders", "UTC", START, START + len(days), [str(day) for day in days], {"placed": days}, {},
                        START + len(days))
    placed = options(long, long.counts)["series"][0]
    assert placed["type"] == "line" and placed["stack"] == "all" and placed["areaStyle"]


def test_what_moves_fits_the_whole_chart():
    series = orders()
    later = orders(placed=(5, 6, 7, 3))
    whole, moving = options(series, series.counts), moved(later, later.counts)
    assert [one["id"] for one in moving["series"]] == [one["id"] for one in whole["series"]]
    assert moving["series"][0]["data"][-1]["value"] == 3


def test_lines_without_a_count_are_left_out():
    assert something({"a": (0, 0), "b": (0, 1)}) == {"b": [0, 1]}
