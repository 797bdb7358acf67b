"""Lines as small as a word."""

import re

from keystead.web.dashboard.stats_spark import HEIGHT, MOST_POINTS, WIDTH, sparkline


def points(path):
    return [tuple(map(float, pair)) for pair in re.findall(r"([\d.]+) ([\d.]+)", path)]


def paths(svg):
    return {classes: points(d) for classes, d in re.findall(r'<path class="([^"]+)" d="([^"]+)"', svg)}


def test_line_goes_from_edge_to_edge_and_stays_inside():
    found = paths(sparkline([0, 5, 10]))
    assert [x for x, _ in found["line"]] == [0, WIDTH / 2, WIDTH]
    heights = [y for _, y in found["line"]]
    assert heights == sorted(heights, reverse=True) and 0 < heights[-1] < heights[0] < HEIGHT
    assert "line live" not in found


def test_days_that_go_on_are_dashed_and_join_the_others():
    found = paths(sparkline([3, 5, 4, 2], live=2))
    assert found["line"][-1] == found["line live"][0] and len(found["line live"]) == 3


def test_nothing_one_day_and_zeros_are_lines_too():
    assert sparkline([]) == ""
    assert len(paths(sparkline([7]))["line"]) == 2
    assert {y for _, y in paths(sparkline([0, 0, 0]))["line"]} == {HEIGHT - 3}
    assert len(paths(sparkline([1, 2], live=5))["line live"]) == 2


def test_years_are_thinned_and_the_last_point_is_the_newest_days():
    days = [0] * 3000 + [50] * 25
    found = paths(sparkline(days, live=1))
    assert len(found["line"]) + len(found["line live"]) <= MOST_POINTS + 2
    assert found["line live"][-1][1] < HEIGHT / 2
