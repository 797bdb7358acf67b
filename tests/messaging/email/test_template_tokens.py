"""Tokens for templates are JSON Web Tokens that fit one template for a short time."""

import base64
import hmac
import json

import pytest

from keystead.edge import TicketExpired, TicketTampered
from keystead.messaging.email.template_tokens import TemplateTokens
from keystead.testing.clock import MovableClock

SECRET = b"s" * 32


def claims(token: str) -> tuple[dict[str, object], dict[str, object]]:
    head, body, _ = (base64.urlsafe_b64decode(part + "==") for part in token.split("."))
    return json.loads(head), json.loads(body)


def test_a_token_says_what_the_documentation_says() -> None:
    clock = MovableClock(now=1_000_000.0)
    token = TemplateTokens(SECRET, clock).issue("daily_reminder")
    head, said = claims(token)
    assert head == {"alg": "HS256", "typ": "JWT"}
    assert (said["sub"], said["iat"], said["exp"]) == ("daily_reminder", 999_999.0, 1_000_060.0)
    assert said["iss"] and said["aud"] and said["jti"] != claims(TemplateTokens(SECRET, clock).issue("x"))[1]["jti"]
    key = hmac.digest(SECRET, b"keystead email templates 1", "sha256")
    body, _, signature = token.rpartition(".")
    assert base64.urlsafe_b64decode(signature + "==") == hmac.digest(key, body.encode(), "sha256")


def test_a_token_fits_its_template_until_it_expires() -> None:
    clock = MovableClock(now=1_000_000.0)
    tokens = TemplateTokens(SECRET, clock)
    token = tokens.issue("code", lasts_seconds=1800)
    tokens.check("code", token)
    with pytest.raises(TicketTampered):
        tokens.check("other", token)
    clock.advance(1801)
    with pytest.raises(TicketExpired):
        tokens.check("code", token)


def test_whatever_was_not_issued_here_is_refused() -> None:
    clock = MovableClock(now=1_000_000.0)
    tokens = TemplateTokens(SECRET, clock)
    good = tokens.issue("code")
    none = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode() + "." + good.split(".")[1] + "."
    other = TemplateTokens(b"t" * 32, clock).issue("code")
    for bad in ("", ".", "a.b.c", none, other, good + "x", good[:-2], "é.é.é", good.upper(), "x" * 5000):
        with pytest.raises(TicketTampered):
            tokens.check("code", bad)
