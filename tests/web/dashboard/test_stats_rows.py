"""The rows of one day."""

import pytest

from keystead.stats.charts_rows import DayRows
from keystead.web.dashboard.stats_rows import SHOWN_ROWS, chosen_day, day_picker, rows_html

from .stats_given import START


def rows(*found):
    return DayRows("clicks", "UTC", START, "2026-03-01", "utm", ("visits", "signups"), found, live=False)


def test_rows_and_their_sum():
    html = rows_html(rows(("utm_source=a&utm_medium=<b>", {"visits": 1200, "signups": -1}),
                          ("utm_source=c", {"visits": 3, "signups": 1})))
    assert "utm_source=a&amp;<wbr>utm_medium=&lt;b&gt;" in html
    assert "All 2" in html and "1,203" in html and ">-1<" in html and 'zero">0' not in html.split("</tr>")[2]


def test_empty_day_and_very_many_rows():
    assert "Nothing was counted" in rows_html(rows())
    many = rows_html(rows(*((f"utm_{n}", {"visits": 1, "signups": 0}) for n in range(SHOWN_ROWS + 5))))
    assert "and 5 more" in many and many.count("<tr>") == SHOWN_ROWS + 1


@pytest.mark.parametrize("said", ["tomorrow", "2026-13-01", "2026-03-09", "1969-01-01"])
def test_day_that_makes_no_sense_is_today(said):
    day, why = chosen_day(said, START + 3)
    assert day == START + 3 and why


def test_day_of_the_address():
    assert chosen_day("2026-03-02", START + 3) == (START + 1, "")
    assert chosen_day("", START + 3) == (START + 3, "")


def test_picker_leads_to_the_days_beside_but_not_into_the_future():
    html = day_picker("/stats/clicks", START + 1, START + 3)
    assert "?day=2026-03-01" in html and "?day=2026-03-03" in html
    assert "2026-03-05" not in day_picker("/stats/clicks", START + 3, START + 3)
