"""Views by value."""

from keystead.stats.charts_views import ValueViews, ViewsChart
from keystead.web.dashboard.stats_views import ROWS, as_series, table_html

from .stats_given import LABELS, START


def chart(*values, left_out=0):
    return ViewsChart("views", "UTC", "subcategory", START, START + 4, LABELS, values, left_out, START + 3)


SLEEP = ValueViews("Sleep <3", (4, 0, 2, 1), (3, 0, 2, 1), 1207, 900)


def test_views_and_people_are_series_of_values():
    found = chart(SLEEP, ValueViews("Walk", (1, 1, 1, 1), (1, 1, 1, 1), 4, 4))
    assert as_series(found, "views").counts == {"all": [5, 1, 3, 2]}
    assert as_series(found, "users").breakdowns["all"]["Sleep <3"] == [3, 0, 2, 1]
    assert as_series(chart(), "views").counts == {"all": [0, 0, 0, 0]}


def test_table_has_sums_of_the_days_and_of_all_time():
    html = table_html(chart(SLEEP))
    assert "Sleep &lt;3" in html and ">7<" in html and ">6<" in html and "1,207" in html and "900" in html


def test_column_that_nobody_fills_is_left_out():
    assert "People ever" not in table_html(chart(ValueViews("Walk", (1, 1, 1, 1), (1, 1, 1, 1), 4, None)))


def test_many_values_and_none():
    many = [ValueViews(f"v{number}", (1, 0, 0, 0), (1, 0, 0, 0), 1, None) for number in range(ROWS + 3)]
    assert "and 13 more" in table_html(chart(*many, left_out=10))
    assert "Nothing was viewed" in table_html(chart())
