"""Calls of Amazon SNS: whether they are what they say.

A notification is believed when its topic is one of ours, its certificate comes from SNS itself, and its signature fits.
"""

import asyncio
import base64
import binascii
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import msgspec

from keystead.clock import Clock
from keystead.messaging.sending import read_body
from keystead.messaging.signatures import SNS_SIGNED, SNS_VERSIONS, is_signed_by_sns, sns_key

if TYPE_CHECKING:
    import aiohttp
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

TYPE_HEADER: Final = "x-amz-sns-message-type"
TOPIC_HEADER: Final = "x-amz-sns-topic-arn"
ID_HEADER: Final = "x-amz-sns-message-id"
CONFIRMATION: Final = "SubscriptionConfirmation"

MOST_BYTES: Final = 1024 * 1024
MOST_CERTIFICATE_BYTES: Final = 65_536
MOST_CERTIFICATES: Final = 32
SHORTEST_SECONDS, USUAL_SECONDS, LONGEST_SECONDS = 5.0, 600.0, 7 * 86400.0
REMEMBERED_SECONDS: Final = 86_400
_HOST: Final = re.compile(r"sns\.[a-z]{2,}(?:-[a-z]+)+-\d{1,2}\.amazonaws\.com(?:\.cn)?")
_MAX_AGE: Final = re.compile(r"(?:^|[\s,])max-age\s*=\s*\"?(\d{1,12})", re.IGNORECASE)
MESSAGE_ID: Final = re.compile(r"[A-Za-z0-9_.-]{1,200}")

Fetch = Callable[[str], Awaitable["Fetched | None"]]


@dataclass(frozen=True, slots=True)
class Fetched:
    """What an address of SNS answered with status 200."""

    raw: bytes
    cache_control: str = ""


@dataclass(frozen=True, slots=True)
class Trust:
    """Whom we believe: ``topics`` by ARN; with ``certificate_url``, only a certificate of exactly that address.

    The latter is for a sandbox, which signs with a certificate of its own.
    """

    topics: frozenset[str]
    certificate_url: str = ""

    def is_certificate(self, url: str) -> bool:
        if self.certificate_url:
            return url == self.certificate_url
        return _is_of_sns(url) and urlsplit(url).path.endswith(".pem") and not {"?", "#"} & set(url)

    def is_confirmation(self, url: str) -> bool:
        if self.certificate_url:
            wanted, given = urlsplit(self.certificate_url), urlsplit(url)
            return (given.scheme, given.netloc) == (wanted.scheme, wanted.netloc)
        return _is_of_sns(url)


@dataclass(frozen=True, slots=True)
class Disbelieved:
    """Why a call is refused: the status to answer, what it is counted as, and words for whoever configured it."""

    status: int
    counted: str
    reason: str


@dataclass(frozen=True, slots=True)
class Believed:
    """A message that SNS sent to one of our topics."""

    kind: str
    message_id: str
    fields: Mapping[str, Any]


class Verifier:
    """Checks signatures. Certificates are kept as long as whoever serves them allows."""

    def __init__(self, trust: Trust, clock: Clock, fetch: Fetch) -> None:
        self._trust, self._clock, self._fetch = trust, clock, fetch
        self._keys: dict[str, tuple[RSAPublicKey, float]] = {}
        self._fetching = asyncio.Lock()

    def headers_believed(self, headers: Mapping[str, str]) -> Disbelieved | None:
        """What can be refused before the body is read."""
        kind, topic, message_id = (headers.get(name, "") for name in (TYPE_HEADER, TOPIC_HEADER, ID_HEADER))
        if kind not in SNS_SIGNED or not topic or not message_id:
            return Disbelieved(400, "signature_missing", "this is not a call of SNS: its headers are missing")
        if topic not in self._trust.topics:
            return Disbelieved(403, "signature_invalid", "this topic is not one of ours; email.topics lists them")
        return None

    async def verify(self, headers: Mapping[str, str], body: bytes) -> Believed | Disbelieved:
        """Every step up to the signature. What was refused may be counted and forgotten."""
        refused = self.headers_believed(headers)
        if refused is not None:
            return refused
        if len(body) > MOST_BYTES:
            return Disbelieved(400, "body_max_size_exceeded", f"the body has more than {MOST_BYTES:,} bytes")
        try:
            fields = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            fields = None
        if not isinstance(fields, dict):
            return Disbelieved(400, "body_parse_error", "the body is not a JSON object")
        if fields.get("TopicArn") != headers[TOPIC_HEADER] or fields.get("Type") != headers[TYPE_HEADER]:
            return Disbelieved(403, "signature_invalid", "headers and body speak of different topics or types")
        return self._malformed(fields) or await self._checked(fields)

    def _malformed(self, fields: Mapping[str, Any]) -> Disbelieved | None:
        if fields.get("SignatureVersion") not in SNS_VERSIONS:
            return Disbelieved(400, "body_parse_error", "SignatureVersion must be 1 or 2")
        signature = fields.get("Signature")
        if not isinstance(signature, str) or not signature:
            return Disbelieved(401, "body_parse_error", "there is no Signature")
        try:
            base64.b64decode(signature, validate=True)
        except (binascii.Error, ValueError):
            return Disbelieved(400, "body_parse_error", "Signature is not base64")
        url = fields.get("SigningCertURL")
        if not isinstance(url, str) or not self._trust.is_certificate(url):
            return Disbelieved(403, "body_parse_error", "SigningCertURL is not an address of SNS")
        if not isinstance(fields.get("MessageId"), str) or MESSAGE_ID.fullmatch(fields["MessageId"]) is None:
            return Disbelieved(400, "body_parse_error", "there is no MessageId")
        return None

    async def _checked(self, fields: Mapping[str, Any]) -> Believed | Disbelieved:
        key = await self._key(str(fields["SigningCertURL"]))
        if key is None:
            return Disbelieved(403, "signature_invalid", "the certificate cannot be had")
        if not is_signed_by_sns(key, fields):
            return Disbelieved(403, "signature_invalid", "the signature does not fit")
        # Repeats are known by their id for a day: what is older than that could be played back.
        age = self._clock.now() - _instant(fields.get("Timestamp"))
        if not -REMEMBERED_SECONDS < age < REMEMBERED_SECONDS - 60:
            return Disbelieved(403, "signature_invalid", "this was signed more than a day ago")
        return Believed(str(fields["Type"]), str(fields["MessageId"]), fields)

    async def confirm(self, message: Believed) -> bool:
        """Say yes to a subscription of one of our topics; says whether SNS took it."""
        url = message.fields.get("SubscribeURL")
        return isinstance(url, str) and self._trust.is_confirmation(url) and await self._fetch(url) is not None

    async def _key(self, url: str) -> "RSAPublicKey | None":
        if (kept := self._kept(url)) is not None:
            return kept
        async with self._fetching:  # many calls at once ask for the same certificate
            if (kept := self._kept(url)) is not None:
                return kept
            fetched = await self._fetch(url)
            if fetched is None:
                return None
            try:
                key = sns_key(fetched.raw)
            except ValueError:
                return None
            while len(self._keys) >= MOST_CERTIFICATES:
                self._keys.pop(next(iter(self._keys)))
            self._keys[url] = key, self._clock.now() + kept_seconds(fetched.cache_control)
            return key

    def _kept(self, url: str) -> "RSAPublicKey | None":
        key, until = self._keys.get(url, (None, 0.0))
        return key if self._clock.now() < until else None


def kept_seconds(cache_control: str) -> float:
    """How long a certificate is kept: what its server says, from 5 seconds to a week; otherwise ten minutes."""
    found = _MAX_AGE.search(cache_control)
    return min(max(float(found[1]), SHORTEST_SECONDS), LONGEST_SECONDS) if found else USUAL_SECONDS


def fetching(session: "aiohttp.ClientSession") -> Fetch:
    """GET of an address that was checked. Whoever answers cannot send us elsewhere: redirects are not followed."""
    import aiohttp

    async def fetch(url: str) -> Fetched | None:
        try:
            async with session.get(url, allow_redirects=False) as got:
                raw = await read_body(got.content, MOST_CERTIFICATE_BYTES)
                return Fetched(raw, got.headers.get("Cache-Control", "")) if got.status == 200 else None
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
            return None

    return fetch


def _is_of_sns(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return (parts.scheme == "https" and parts.netloc == (parts.hostname or "")
                and _HOST.fullmatch(parts.hostname or "") is not None)
    except ValueError:
        return False


def _instant(text: object) -> float:
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return 0.0
