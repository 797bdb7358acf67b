"""Concrete values are told from words, and one kind from another."""

import secrets
import uuid

import pytest

from keystead.inventory.values import recognise, refine


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("1", "integer"), ("-3", "integer"), ("0042", "integer"), ("20413", "integer"), ("1.5", "number"),
        ("1731672000", "unix_time"), ("1731672000123", "unix_ms"),
        ("2024-05-01", "date"), ("20240501", "date"), ("2024/05/01", "date"), ("2024-05", "month"),
        ("2024-W07", "week"),
        ("2024-05-01T10:30:00Z", "time"), ("2024-05-01T10", "time"), ("20240501_1030", "time"),
        ("550e8400-e29b-41d4-a716-446655440000", "uuid"), ("01ARZ3NDEKTSV4RRFFQ69G5FAV", "ulid"),
        ("d41d8cd98f00b204e9800998ecf8427e", "md5"), ("da39a3ee5e6b4b0d3255bfef95601890afd80709", "sha1"),
        ("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "sha256"),
        ("507f1f77bcf86cd799439011", "object_id"), ("9f3c2a", "hex"), ("0xff", "hex"),
        ("ann@example.com", "email"), ("a.b+c@mail.example", "email"), ("203.0.113.7", "ip"), ("2001:db8::7", "ip"),
        ("2001:db8::/64", "ip"), ("+4915112345678", "phone"), ("America/Los_Angeles", "timezone"),
        ("Etc/GMT+3", "timezone"),
        ("true", "boolean"), ("False", "boolean"), ("30day", "duration"), ("7d", "duration"), ("15min", "duration"),
        ("utm_campaign=a&utm_source=b", "query"), ("https://example.com/a", "url"), ("shop.example", "domain"),
        ("V1StGXR8_Z5jdHi6B-myT", "token"), ("sess_9fK2mQ0aLx", "token"), ("SM0123456789abcdefX", "token"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-_1", "jwt"),
    ],
)  # fmt: skip
def test_value_is_recognised(value: str, kind: str) -> None:
    assert recognise(value) == kind


@pytest.mark.parametrize(
    "word",
    ["user", "pending", "daily_active_users", "to-send", "v2", "UserProfile", "userProfileCacheEntry", "utf8", "oauth2",
     "my-first-post", "a", "", "SESSION", "DAILY_TOTALS", "sha256", "base64", "rate_limit_v2", "über", "用户", "ip4",
     "message_attempts", "django.contrib.sessions.cache7x1k2m", "decade", "facade", "added"],
)  # fmt: skip
def test_word_is_not_taken_for_a_value(word: str) -> None:
    assert recognise(word) == ""


def test_random_identifiers_are_recognised_whatever_they_look_like() -> None:
    made = [secrets.token_urlsafe(16) for _ in range(300)] + [f"job_{secrets.token_urlsafe(16)}" for _ in range(300)]
    assert sum(recognise(value) != "" for value in made) >= 594
    assert all(recognise(str(uuid.uuid4())) == "uuid" for _ in range(100))


def test_numbers_of_one_place_may_be_days_or_months() -> None:
    assert refine("integer", ["20412", "20413"]) == "unix_date"
    assert refine("integer", ["670", "671"]) == "unix_month"
    assert refine("integer", ["20413"]) == "integer", "one number proves nothing"
    assert refine("integer", ["3", "20413"]) == "integer"
    assert refine("integer", ["19999999999999999999999", "20412", "20413"]) == "unix_date"
    assert refine("uuid", ["20412", "20413"]) == "uuid"
    assert refine("unix_time", ["1731672000", "1731672060"]) == "unix_time"
    assert refine("unix_time", ["1231672000", "1931672060"]) == "integer"


def test_any_text_is_answered() -> None:
    for odd in ("\x00", "\udcff", " ", "a b", "{}", "%s", "x" * 100_000, "::", "1" * 400):
        assert isinstance(recognise(odd), str)
