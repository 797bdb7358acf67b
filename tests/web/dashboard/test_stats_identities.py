"""Sums that must agree."""

from keystead.web.dashboard.stats_identities import BrokenDay, broken_days, identity_html

from .stats_given import ORDERS, orders

TEXT = "paid + failed = placed"


def test_days_that_do_not_agree_have_both_sides_newest_first():
    assert broken_days(ORDERS, orders(failed=(1, 3, 0, 0))) == [
        BrokenDay(TEXT, "2026-03-04", 1, 2, True), BrokenDay(TEXT, "2026-03-02", 9, 6, False)
    ]
    assert broken_days(ORDERS, orders(paid=(4, 6, 7, 2))) == []


def test_only_days_that_are_over_are_called_broken():
    live, over = BrokenDay(TEXT, "2026-03-04", 1, 2, True), BrokenDay(TEXT, "2026-03-02", 9, 6, False)
    assert "holds" in identity_html([TEXT], [])
    assert "not settled yet" in identity_html([TEXT], [live])
    html = identity_html([TEXT], [live, over])
    assert "broken on 1 day<" in html and "+3" in html and "-1" in html
