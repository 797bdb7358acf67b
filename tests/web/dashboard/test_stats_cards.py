"""Headline numbers and cards."""

from keystead.web.dashboard.stats_cards import card_texts, tile_texts
from keystead.web.dashboard.stats_look import Card, Tile
from keystead.web.dashboard.stats_range import StatsRange

WEEK = StatsRange(days=7)
LABELS = ("2026-03-01", "2026-03-02", "2026-03-03")


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
    first = Tile("active", "", days=(0, 0, 3), labels=LABELS, live=1, distinct=True)
    assert tile_texts(first, WEEK) == ("3", "today so far")
    over = Tile("active", "", days=(10, 20), labels=LABELS[:2], distinct=True)
    assert tile_texts(over, WEEK) == ("20", "on 2026-03-02")


def test_numbers_are():
    assert tile_texts(Tile("new", "", days=(1, 2, 3), labels=LABELS, live=1), WEEK) == \
        ("6", "last 7 days, 3 today so far")


def test_card_escapes_what_was_counted():
    number, says, line, parts = card_texts(Card("a", "shop", "<p>", 17, "17", "<b>", (1, 2, 14), 1, (("<i>", "17"),)))
    assert number == "17 <small>&lt;b&gt;</small>" and says == "&lt;p&gt;" and "<svg" in line and "&lt;i&gt;" in parts
