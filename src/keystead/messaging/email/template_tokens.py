"""Tokens for the template door: JSON Web Tokens signed with HS256, each for one template and a short time."""

import binascii
import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

import msgspec

from keystead.clock import Clock
from keystead.edge import TicketExpired, TicketTampered

ISSUER: Final = "keystead"
AUDIENCE: Final = "keystead-email-templates"
SECONDS: Final = 60
ADMIN_SECONDS: Final = 1800
LEEWAY_SECONDS: Final = 5
MOST_CHARACTERS: Final = 2048


class _Header(msgspec.Struct, frozen=True):
    alg: str
    typ: str = "JWT"


class _Claims(msgspec.Struct, frozen=True):
    sub: str
    iss: str
    aud: str
    iat: float
    exp: float
    jti: str


class TemplateTokens:
    """Issues and checks tokens under a key made from the installation's secret, so that no other token fits."""

    def __init__(self, secret: bytes, clock: Clock) -> None:
        self._key = hmac.digest(secret, b"keystead email templates 1", "sha256")
        self._clock = clock

    def issue(self, slug: str, *, lasts_seconds: float = SECONDS) -> str:
        """A token that renders ``slug`` until then. Remembers nothing."""
        now = self._clock.now()
        claims = _Claims(slug, ISSUER, AUDIENCE, now - 1, now + lasts_seconds, secrets.token_urlsafe(16))
        body = f"{_text(msgspec.json.encode(_Header('HS256')))}.{_text(msgspec.json.encode(claims))}"
        return f"{body}.{_text(self._signature(body))}"

    def check(self, slug: str, token: str) -> None:
        """Refuse a token that is not ours, is for another template, or whose time is over."""
        body, dot, signature = token.rpartition(".")
        head, _, claimed = body.partition(".")
        try:
            if not dot or len(token) > MOST_CHARACTERS:
                raise ValueError
            if not hmac.compare_digest(self._signature(body), _raw(signature)):
                raise ValueError
            if msgspec.json.decode(_raw(head), type=_Header).alg != "HS256":
                raise ValueError
            claims = msgspec.json.decode(_raw(claimed), type=_Claims)
        except (ValueError, binascii.Error, msgspec.DecodeError):
            raise TicketTampered("this token was not issued here") from None
        if (claims.sub, claims.iss, claims.aud) != (slug, ISSUER, AUDIENCE):
            raise TicketTampered("this token is for something else")
        now = self._clock.now()
        if claims.exp <= now or claims.iat > now + LEEWAY_SECONDS:
            raise TicketExpired("this token has expired, or has not begun")

    def _signature(self, body: str) -> bytes:
        return hmac.digest(self._key, body.encode("utf-8", "surrogatepass"), "sha256")


def _text(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def _raw(text: str) -> bytes:
    return urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
