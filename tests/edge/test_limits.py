"""What a decision says."""

from keystead.edge.limits import API, LOGIN, REGISTER, RESET_PASSWORD, Decision
from keystead.patterns import WhenAway


def test_documented_limits():
    assert [(each.most, each.window_seconds, each.weight) for each in (API, LOGIN, REGISTER, RESET_PASSWORD)] == [
        (600, 60, 1), (10, 900, 2), (5, 3600, 3), (5, 3600, 2),
    ]


def test_window_is_as_long_as_the_key_lives():
    for each in (API, LOGIN, REGISTER, RESET_PASSWORD):
        assert each.window.key.ttl.moment(None, None).milliseconds == each.window_seconds * 1000


def test_doors_that_do_harm_when_open_are_closed_while_the_store_is_away():
    assert [each.when_away for each in (API, REGISTER, RESET_PASSWORD)] == [
        WhenAway.OPEN, WhenAway.CLOSED, WhenAway.CLOSED,
    ]


def test_headers_round_up():
    assert Decision(True, 10, 7, 12.2).headers() == {
        "RateLimit-Limit": "10", "RateLimit-Remaining": "7", "RateLimit-Reset": "13",
    }


def test_refusal_says_when_to_come_back():
    assert Decision(False, 10, 0, 0.2).headers()["Retry-After"] == "1"
