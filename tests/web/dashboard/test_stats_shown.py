"""Names and addresses."""

from urllib.parse import parse_qs, urlsplit

from keystead.web.dashboard.stats_range import StatsRange
from keystead.web.dashboard.stats_shown import broken_up, csv_address, room_of, stats_address, titled, zone_said

from .stats_given import ACTIVE, BACK, CLICKS, MONTHLY, ORDERS, OWN_DAYS, START, VIEWS


def test_room_of_every_kind():
    assert {room_of(one) for one in (ORDERS, ACTIVE, BACK, VIEWS, CLICKS)} == {"shop"}


def test_names_as_words_and_where_they_may_break():
    assert titled("daily_active_users") == "Daily active users"
    assert broken_up("a_b:<c>") == "a_<wbr>b:<wbr>&lt;c&gt;"


def test_whose_days_they_are():
    assert zone_said(ORDERS) == "days in Europe/Berlin"
    assert zone_said(MONTHLY) == "months in Europe/Berlin"
    assert zone_said(OWN_DAYS) == "days of each person's own calendar"


def test_address_is_safe_whatever_the_name():
    assert stats_address("sign_in:check", StatsRange(days=7)) == "/stats/sign_in:check?days=7"
    assert stats_address("a/b?c", StatsRange(days=7)) == "/stats/a%2Fb%3Fc?days=7"


def asked(address):
    parts = urlsplit(address)
    return parts.path, {name: value[0] for name, value in parse_qs(parts.query).items()}


def test_spreadsheet_has_the_same_days():
    days = {"from": "2026-03-01", "to": "2026-03-04", "format": "csv"}
    assert asked(csv_address(ORDERS, (START, START + 4))) == ("/api/1/stats/orders", days)
    assert asked(csv_address(ACTIVE, (START, START + 4))) == ("/api/1/stats/numbers/active", days)
    months = {"from": "2026-02-01", "to": "2026-03-01", "format": "csv"}
    assert asked(csv_address(MONTHLY, (673, 675))) == ("/api/1/stats/numbers/active_monthly", months)
    assert asked(csv_address(BACK, (START, START + 4), by="day")) == (
        "/api/1/stats/cohorts/back", {"by": "day", "format": "csv"})
    last = {"day": "2026-03-04", "format": "csv"}
    assert asked(csv_address(VIEWS, (START, START + 4))) == ("/api/1/stats/views/views", last)
    assert asked(csv_address(CLICKS, (START + 3, START + 4))) == ("/api/1/stats/rows/clicks", last)
