"""Statistics at a glance."""

from keystead.stats.series import CANONICAL
from keystead.web.dashboard.stats_look import Card, StatsLook
from keystead.web.dashboard.stats_page import idle_html, summary
from keystead.web.dashboard.stats_range import StatsRange

WEEK = StatsRange(days=7)


def card(name):
    return Card(name, "shop", "a purpose", 17, "17", "events", (1, 2, 14), 1, (("placed", "17"),))


def test_what_counted_nothing_is_listed_shortly():
    html = idle_html(StatsLook((), (), ("quiet_one",), ("never_one",)))
    assert "Nothing on these days" in html and "quiet_<wbr>one" in html and "never_<wbr>one" in html
    assert idle_html(StatsLook((), (card("a"),), (), ())) == ""


def test_summary_says_whose_days_they_are():
    look = StatsLook((), (card("a"),), ("b",), ("c",), ("America/Los_Angeles", CANONICAL))
    assert summary(look, WEEK) == ("1 of 3 families counted something: last 7 days. Days are those of America/Los "
                                   "Angeles, some of each person's own calendar.")
    assert summary(StatsLook((), (), (), ("c", "d")), WEEK) == "2 families are declared, and none has counted anything."
