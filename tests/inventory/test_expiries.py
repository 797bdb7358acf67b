# ruff: noqa: RUF001 - the words of several languages
"""When keys end: what people write is understood, what we write is read back exactly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keystead.inventory import Expiry, Rule
from keystead.inventory.expiries import judge_expiry, parse_expiry, spell_expiry

H, D = 3600, 86400
NONE, EXACTLY, AT_MOST, SLIDING, UNTIL, SOME = Rule


@pytest.mark.parametrize(("text", "rule", "seconds"), [
    ("30 min", EXACTLY, 1800), ("30min", EXACTLY, 1800), ("30 minutes", EXACTLY, 1800), ("1h", EXACTLY, H),
    ("1 hour", EXACTLY, H), ("an hour", EXACTLY, H), ("half an hour", EXACTLY, 1800), ("3600", EXACTLY, H),
    ("3600s", EXACTLY, H), ("TTL: 3600", EXACTLY, H), ("86400 (1 day)", EXACTLY, D), ("7 days", EXACTLY, 7 * D),
    ("86,400 seconds", EXACTLY, D), ("1h30m", EXACTLY, 5400), ("1 day and 2 hours", EXACTLY, 26 * H),
    ("60 * 60 * 24", EXACTLY, D), ("24 * time.Hour", EXACTLY, D), ("time.Minute * 5", EXACTLY, 300),
    ("timedelta(hours=2)", EXACTLY, 2 * H), ("PT15M", EXACTLY, 900), ("P1D", EXACTLY, D), ("EX 3600", EXACTLY, H),
    ("PX 60000", EXACTLY, 60), ("SETEX 120", EXACTLY, 120), ("500ms", EXACTLY, 0.5), ("two weeks", EXACTLY, 14 * D),
    ("30 分钟", EXACTLY, 1800), ("24小时", EXACTLY, D), ("7天", EXACTLY, 7 * D), ("30분", EXACTLY, 1800),
    ("24시간", EXACTLY, D), ("一小时", EXACTLY, H), ("30分間", EXACTLY, 1800), ("15-minute", EXACTLY, 900),
    ("`5m`", EXACTLY, 300), ("expires after 10 minutes", EXACTLY, 600), ("1 месяц", EXACTLY, 30 * D),
    ("30 Tage", EXACTLY, 30 * D), ("daily", EXACTLY, D),
    ("up to 1 h", AT_MOST, H), ("max 5 min", AT_MOST, 300), ("<= 1 day", AT_MOST, D), ("最多 10 分钟", AT_MOST, 600),
    ("5-10 minutes", AT_MOST, 600), ("1h to 2h", AT_MOST, 2 * H), ("5 min + jitter", AT_MOST, 300),
    ("1 h for guests, 24 h for members", AT_MOST, D), ("최대 1시간", AT_MOST, H),
    ("15 min sliding", SLIDING, 900), ("sliding 15m", SLIDING, 900), ("30 min, refreshed on access", SLIDING, 1800),
    ("20 minutes after last activity", SLIDING, 1200), ("30天，滑动", SLIDING, 30 * D),
    ("none", NONE, None), ("None", NONE, None), ("no TTL", NONE, None), ("no expiry", NONE, None), ("-1", NONE, None),
    ("never", NONE, None), ("never expires", NONE, None), ("does not expire", NONE, None), ("0", NONE, None),
    ("Permanent", NONE, None), ("persistent", NONE, None), ("永久", NONE, None), ("无", NONE, None),
    ("없음", NONE, None), ("永不过期", NONE, None), ("doesn't expire", NONE, None), ("∞", NONE, None),
    ("no TTL, deleted after 1 day by a job", NONE, None), ("1 h for guests, none for members: no expiry", NONE, H),
    ("until midnight", UNTIL, None), ("midnight UTC", UNTIL, None), ("end of day", UNTIL, None),
    ("until the token expires, at most 1 h", UNTIL, H), ("same as the session", UNTIL, None),
    ("直到当天结束", UNTIL, None),
    ("configurable", SOME, None), ("SESSION_TTL", SOME, None), ("${CACHE_TTL}", SOME, None), ("yes", SOME, None),
    ("config.session.ttl", SOME, None), ("at least 1 h", SOME, None), ("varies", SOME, None),
    ("", None, None), ("-", None, None), ("—", None, None), ("stores the user's name", None, None), ("?", None, None),
    ("string", None, None), ("42 users", None, None),
])
def test_what_people_write(text: str, rule: Rule | None, seconds: float | None) -> None:
    found = parse_expiry(text)

    assert (None if found is None else found.rule) is rule, found
    if found is not None:
        assert found.seconds == seconds


def test_words_are_kept_where_the_rule_needs_them() -> None:
    assert parse_expiry("until the end of the day, at most 24 h") == Expiry(UNTIL, D, "the end of the day")
    assert parse_expiry("set by SESSION_TTL") == Expiry(SOME, None, "set by SESSION_TTL")
    assert parse_expiry("some (the cache's setting)") == Expiry(SOME, None, "the cache's setting")


@pytest.mark.parametrize(("expiry", "text"), [
    (Expiry(NONE), "none"), (Expiry(EXACTLY, 1800), "30 min"), (Expiry(AT_MOST, H), "at most 1 h"),
    (Expiry(SLIDING, 900), "15 min sliding"), (Expiry(UNTIL, H, "the token ends"), "until the token ends, at most 1 h"),
    (Expiry(NONE, 600, "until contested"), "none, or at most 10 min (until contested)"), (Expiry(SOME), "some"),
    (Expiry(EXACTLY, 0.25), "250 ms"), (Expiry(EXACTLY, 90.5), "90.5 s"),
])
def test_what_we_write(expiry: Expiry, text: str) -> None:
    assert spell_expiry(expiry) == text
    assert parse_expiry(text) == expiry


@given(st.sampled_from([NONE, EXACTLY, AT_MOST, SLIDING]), st.integers(1, 10**9) | st.floats(0.001, 1e9))
def test_every_length_is_read_back(rule: Rule, seconds: float) -> None:
    expiry = Expiry(rule, seconds)

    assert parse_expiry(spell_expiry(expiry)) == expiry


@given(st.text(max_size=60))
def test_no_text_makes_it_fail(text: str) -> None:
    parse_expiry(text)


@pytest.mark.parametrize(("expiry", "seconds", "begins"), [
    (Expiry(NONE), None, None), (Expiry(NONE), 5, "expires"), (Expiry(NONE, 600), 500, None),
    (Expiry(NONE, 600), None, None),
    (Expiry(NONE, 600), 900, "too long"), (Expiry(EXACTLY, 60), 61, None), (Expiry(EXACTLY, 60), 70, "too long"),
    (Expiry(EXACTLY, 60), None, "no expiry"), (Expiry(SOME), 10**9, None), (Expiry(SOME), None, "no expiry"),
    (Expiry(UNTIL, None, "midnight"), 10**6, None), (Expiry(SLIDING, 60), None, "no expiry"),
])
def test_judgement(expiry: Expiry, seconds: float | None, begins: str | None) -> None:
    says = judge_expiry(expiry, seconds)

    assert says is None if begins is None else says is not None and says.startswith(begins)
