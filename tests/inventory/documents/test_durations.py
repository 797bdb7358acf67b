import pytest

from keystead.inventory.documents.durations import duration, durations, expiry, says
from keystead.inventory.models import Certainty, Rule

LENGTHS = {
    "30 days": 2592000,
    "24h": 86400,
    "86400 s": 86400,
    "PT15M": 900,
    "1h30m": 5400,
    "1 day 12 hours": 129600,
    "60 * 60": 3600,
    "24 * time.Hour": 86400,
    "Duration.ofMinutes(5)": 300,
    "timedelta(hours=1)": 3600,
    "7 TimeUnit.DAYS": 604800,
    "5.minutes": 300,
    "half an hour": 1800,
    "500 ms": 0.5,
    "5 分钟": 300,
    "24小时": 86400,
    "30분": 1800,
    "2시간": 7200,
    "90日間": 7776000,
    "10 Minuten": 600,
    "2 Tage": 172800,
    "15 minutos": 900,
    "2 días": 172800,
    "3 heures": 10800,
    "1,800 seconds": 1800,
    "1.5 h": 5400,
    "一小时": 3600,
}


@pytest.mark.parametrize("text", LENGTHS)
def test_lengths_of_time(text):
    assert duration(text) == LENGTHS[text]


@pytest.mark.parametrize("text", ["no length", "10,000 entries", "v2", "12:30", "5 items"])
def test_what_is_no_length_of_time(text):
    assert duration(text) is None


@pytest.mark.parametrize(
    ("text", "rule", "seconds"),
    [
        ("30 days", Rule.EXACTLY, 2592000),
        ("3600", Rule.EXACTLY, 3600),
        ("15 min sliding", Rule.SLIDING, 900),
        ("30 Minuten, gleitend", Rule.SLIDING, 1800),
        ("24 hours after last use", Rule.SLIDING, 86400),
        ("up to 1 h", Rule.AT_MOST, 3600),
        ("5-10 min", Rule.AT_MOST, 600),
        ("30 s / 5 min", Rule.AT_MOST, 300),
        ("24h (86400s)", Rule.EXACTLY, 86400),
        ("6 minutes (see `X_TTL`)", Rule.EXACTLY, 360),
        ("none", Rule.NONE, None),
        ("None (persistent)", Rule.NONE, None),
        ("永久", Rule.NONE, None),
        ("없음", Rule.NONE, None),
        ("なし", Rule.NONE, None),
        ("keine", Rule.NONE, None),
        ("nunca", Rule.NONE, None),
        ("no explicit TTL", Rule.NONE, None),
        ("until midnight", Rule.UNTIL, None),
        ("refresh token expiry", Rule.UNTIL, None),
        ("1m after the JWT expires", Rule.UNTIL, None),
        ("configurable", Rule.SOME, None),
        ("cacheTTL", Rule.SOME, None),
    ],
)
def test_expiries(text, rule, seconds):
    said = expiry(text)
    assert said is not None and (said[0].rule, said[0].seconds) == (rule, seconds)


@pytest.mark.parametrize("text", ["", "?", "n/a", "unknown", "same as above"])
def test_what_says_nothing(text):
    assert expiry(text) is None


def test_a_dash_is_a_guess_and_a_bare_number_follows_from_its_unit():
    assert expiry("—")[1] is Certainty.GUESSED
    assert expiry("300")[1] is Certainty.IMPLIED
    assert expiry("5", 60)[0].seconds == 300 and expiry("5", None)[0].rule is Rule.SOME


def test_places_and_phrases():
    assert [each[0] for each in durations("after 5 min or 2 h")] == [300, 7200]
    assert says("set at most once", ("at most",)) and not says("format", ("at",))
