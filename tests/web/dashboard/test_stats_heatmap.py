"""Who came back, as colours and lines."""

import json

from keystead.web.dashboard.stats_heatmap import cells, heatmap_options, height, line_options, overall, period_said

from .stats_given import grid


def test_cells_are_rates_with_what_they_are_made_of():
    found = cells(grid())
    assert [cell["value"] for cell in found] == [[0, 1, 75.0, 30, 40, 2], [1, 1, 25.0, 10, 40, 2]]
    assert found[0]["row"] == "2026-03-08" and found[0]["label"] != found[1]["label"]


def test_periods_that_are_not_over_and_rows_without_people_are_empty():
    assert {cell["value"][1] for cell in cells(grid())} == {1}
    assert [line["data"] for line in line_options(grid())["series"]] == [[None, 75.0, None], [None, 25.0, None]]


def test_rows_say_how_many_joined_and_have_room():
    whole = heatmap_options(grid())
    assert whole["yAxis"]["data"] == ["2026-03-01  (0)", "2026-03-08  (40)", "2026-03-15  (10)"]
    assert whole["xAxis"]["data"] == ["same day", "7 days"]
    assert "in the week of" in whole["tooltip"][":formatter"]
    assert "in the week of" not in heatmap_options(grid(by="day"))["tooltip"][":formatter"]
    assert height(grid()) > 3 * 20
    json.dumps([whole, line_options(grid())])


def test_overall_rate_is_of_those_for_whom_it_is_over():
    assert overall(grid()) == [(0.75, 30, 40), (0.25, 10, 40)]


def test_periods_in_words():
    assert [period_said(days) for days in (0, 1, 30)] == ["same day", "1 day", "30 days"]
