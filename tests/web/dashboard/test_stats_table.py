"""Days as a table."""

from keystead.web.dashboard.stats_table import head_html, rows_html, sum_html


def test_newest_day_is_first_and_every_digit_is_shown():
    html = rows_html(["2026-03-01", "2026-03-02"], [[1_234_567, 0], [2, 3]], range(2))
    assert html.index("2026-03-02") < html.index("2026-03-01")
    assert "1,234,567" in html and '<td class="num zero">0</td>' in html and "still counting" not in html


def test_live_days_say_so():
    assert "still counting" in rows_html(["2026-03-01"], [[1]], range(1), live=True)


def test_heads_and_sums():
    assert "&lt;a&gt;" in head_html("Day", ["<a>"])
    assert sum_html([[1, 2], [1000, 1]]).endswith('<td class="num">3</td><td class="num">1,001</td></tr>')
