"""Statistics at a glance."""

from keystead.stats.series import CANONICAL
from keystead.web.dashboard.stats_look import Card, StatsLook, Tile
from keystead.web.dashboard.stats_page import cards_html, idle_html, summary, tile_texts, tiles_html
from keystead.web.dashboard.stats_range import StatsRange

WEEK = StatsRange(days=7)
LABELS = ("2026-03-01", "2026-03-02", "2026-03-03")


def card(name, room="shop", **facts):
    return Card(name, room, "a <purpose>", 17, "17", "events", (1, 2, 14), 1, (("placed", "17"),), **facts)


def test_totals_say_how_many_came_this_month():
    assert tile_texts(Tile("users", "", 1234, 5), WEEK) == ("1,234", "5 this month")
    assert tile_texts(Tile("users", "", 1234), WEEK) == ("1,234", "ever")


def test_people_of_several_days_are_not_added_up():
    active = Tile("active", "", days=(10, 20, 3), labels=LABELS, live=1, distinct=True)
    assert tile_texts(active, WEEK) == ("20", "on 2026-03-02, 3 today so far")
    assert tile_texts(Tile("active", "", days=(3,), labels=LABELS[:1], live=1, distinct=True), WEEK) == \
        ("3", "today so far")
    months = Tile("active", "", days=(10, 20), labels=("2026-02", "2026-03"), live=1, distinct=True, monthly=True)
    assert tile_texts(months, WEEK) == ("10", "in 2026-02, 20 this month so far")
    over = Tile("active", "", days=(10, 20), labels=LABELS[:2], distinct=True)
    assert tile_texts(over, WEEK) == ("20", "on 2026-03-02")


def test_numbers_are():
    assert tile_texts(Tile("new", "", days=(1, 2, 3), labels=LABELS, live=1), WEEK) == \
        ("6", "last 7 days, 3 today so far")


def test_only_what_has_a_page_leads_somewhere():
    html = tiles_html([Tile("users", "", 1), Tile("active", "", days=(1,), labels=LABELS[:1])], WEEK)
    assert html.count("<a ") == 1 and 'href="/stats/active?days=7"' in html and "Users" in html


def test_cards_stand_by_room_and_are_as_wide_as_they_are_many():
    html = cards_html([card("a", "one"), *(card(f"b{number}", "two") for number in range(5))], WEEK)
    assert html.count("<section") == 2 and 'class="n1" aria-label="one"' in html
    assert 'class="n3" aria-label="two"' in html and "a &lt;purpose&gt;" in html and html.count("<svg") == 6


def test_what_counted_nothing_is_listed_shortly():
    html = idle_html(StatsLook((), (), ("quiet_one",), ("never_one",)))
    assert "Nothing on these days" in html and "quiet_<wbr>one" in html and "never_<wbr>one" in html
    assert idle_html(StatsLook((), (card("a"),), (), ())) == ""


def test_summary_says_whose_days_they_are():
    look = StatsLook((), (card("a"),), ("b",), ("c",), ("America/Los_Angeles", CANONICAL))
    assert summary(look, WEEK) == ("1 of 3 families counted something: last 7 days. Days are those of America/Los "
                                   "Angeles, some of each person's own calendar.")
    assert summary(StatsLook((), (), (), ("c", "d")), WEEK) == "2 families are declared, and none has counted anything."
