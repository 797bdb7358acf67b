"""Any key becomes tokens that, joined, are its pattern."""

import pytest

from keystead.inventory.learning.tokens import MARK, MOST_TOKENS, ends_in_value, is_value, is_word, tokens_of


def shown(raw_key: bytes) -> str:
    return "".join(MARK.sub(r"{\1}", token) for token in tokens_of(raw_key).tokens)


@pytest.mark.parametrize(
    ("key", "pattern"),
    [
        ("user:42:cart", "user:{integer}:cart"), ("user/42/cart", "user/{integer}/cart"),
        ("app.user.42", "app.user.{integer}"), ("lock|order|7", "lock|order|{integer}"), ("user_42", "user_{integer}"),
        ("user-42-posts", "user-{integer}-posts"), ("user1234", "user{integer}"), ("user12", "user12"),
        ("sess-550e8400-e29b-41d4-a716-446655440000", "sess-{uuid}"), ("{user:7}:cart", "{user:{integer}}:cart"),
        ("rate:2001:db8::7:login", "rate:{ip}:login"), ("rate:203.0.113.7", "rate:{ip}"),
        ("net.10.0.0.7.cpu", "net.{ip}.cpu"),
        ("mail:a.b@example.com:sent", "mail:{email}:sent"), ("tz:America/Los_Angeles:5", "tz:{timezone}:{integer}"),
        ("d:2024-05-01T10:30:00Z:x", "d:{time}:x"), ("d/2024/05/01/x", "d/{date}/x"),
        ("ses:0100018f0a-550e8400-e29b-41d4-a716-446655440000-000000", "ses:{token}"),
        ("report-2024-05-01", "report-{date}"),
        ("io#/#6MhSI6z_LrwbueCdsgmF#", "io#/#{token}#"),
        (":1:django.contrib.sessions.cachex81kq2m0z7", ":{integer}:django.contrib.sessions.{token}"),
        ("cache::users", "cache::users"), ("a::b", "a::b"), ("", ""), (":", ":"), ("plain", "plain"),
    ],
)  # fmt: skip
def test_pattern_of_a_key(key: str, pattern: str) -> None:
    assert shown(key.encode()) == pattern


def test_values_are_those_of_the_key() -> None:
    tokens, values = tokens_of(b"user:7:fair_12:ann@example.com")
    assert values == ((), ("7",), ("12",), ("ann@example.com",))
    assert [is_word(token) for token in tokens] == [True, False, False, False]
    assert [is_value(token) for token in tokens] == [False, True, False, True]
    assert [ends_in_value(token) for token in tokens] == [False, True, True, True]


@pytest.mark.parametrize(
    "raw", [b"\xff\xfe", b"user:\xff\x00:x", b"a\nb", b"\x00integer\x01:1", b":" * 500, b"x" * 10**6])
def test_any_bytes_are_answered(raw: bytes) -> None:
    tokens, values = tokens_of(raw)
    assert len(tokens) == len(values) <= MOST_TOKENS + 1
    assert shown(raw).isprintable()


def test_what_is_not_text_is_one_value() -> None:
    assert shown(b"blob:\xff\xfe\x00:part") == "blob:{binary}:part"
