"""The provider of texts: Twilio's messages over HTTP. Whatever goes wrong there is an answer, not an exception."""

import base64
import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, Protocol
from urllib.parse import quote, urlencode

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.messaging.sending.http import AnswerLost, Connections, NotConnected
from keystead.messaging.sms.keys import TWILIO_LOCK
from keystead.messaging.sms.models import FailureInfo, Identifier, MessageResource
from keystead.messaging.sms.statuses import Category, told_status
from keystead.settings import SmsSettings

TWILIO_URL: Final = "https://api.twilio.com"
TIMEOUT_SECONDS: Final = 10.0
MOST_ANSWER_BYTES: Final = 4 * 1024 * 1024
SEARCHED_MESSAGES: Final = 100
NOT_CONNECTED: Final = "not connected"  # so the provider has heard nothing
WITHOUT_CODE: Final = "failure_status_without_error_code"
RATELIMIT_CODES: Final = frozenset({"14107", "30022", "31206", "45010", "51002", "54009", "63017"})
_RETRYABLE: Final = frozenset({Identifier.NETWORK, Identifier.SERVER, Identifier.CLIENT_429, Identifier.RATELIMIT})
_LONGEST_EXTRA: Final = 500
_FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back over HTTP. ``status`` 0: nothing did, and ``error`` says why."""

    status: int
    body: bytes = b""
    retry_after_seconds: float = 0.0
    error: str = ""


@dataclass(frozen=True, slots=True)
class Read:
    """What the provider knows of a message: the resource, or why not (``status`` as of ``Answer``)."""

    status: int
    resource: MessageResource | None = None
    error_message: str | None = None
    retry_after_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Found:
    """A message that a search found."""

    resource: MessageResource
    body: str
    created_at: float


class Gateway(Protocol):
    """What the room asks of a provider."""

    async def create(self, to: str, body: str, callback_url: str) -> MessageResource | FailureInfo:
        """Send a text. The provider calls ``callback_url`` with news of it; without one it has to be asked."""
        ...

    async def read(self, sid: str) -> Read:
        """Ask what became of a message."""
        ...

    async def search(self, to: str) -> list[Found] | None:
        """The newest messages to a number, newest first; None if the provider cannot be asked now."""
        ...


class TwilioGateway:
    """Twilio's API, version 2010-04-01. One per process; ``async with TwilioGateway.open(settings)``."""

    def __init__(self, connections: Connections, settings: SmsSettings) -> None:
        self._connections = connections
        self._service = settings.service_sid
        self._messages = f"/2010-04-01/Accounts/{settings.account_sid}/Messages"

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: SmsSettings, url: str = "") -> AsyncIterator["TwilioGateway"]:
        """``url``: where the API is, unless the settings say; without either it is the real one."""
        log_in = base64.b64encode(f"{settings.account_sid}:{settings.auth_token}".encode()).decode()
        async with Connections.open(
            settings.url or url or TWILIO_URL, headers={"Authorization": f"Basic {log_in}"}, seconds=TIMEOUT_SECONDS,
            most_bytes=MOST_ANSWER_BYTES,
        ) as connections:
            yield cls(connections, settings)

    async def create(self, to: str, body: str, callback_url: str) -> MessageResource | FailureInfo:
        form = {"MessagingServiceSid": self._service, "To": to, "Body": body}
        if callback_url:
            form["StatusCallback"] = callback_url
        return classified(await self._ask("POST", f"{self._messages}.json", urlencode(form).encode(), _FORM))

    async def read(self, sid: str) -> Read:
        answer = await self._ask("GET", f"{self._messages}/{quote(sid, safe='')}.json")
        document = _document(answer.body) if 200 <= answer.status < 300 else None
        resource = _resource(document)
        if resource is None or document is None or resource.sid != sid:
            return Read(answer.status, retry_after_seconds=answer.retry_after_seconds)
        return Read(answer.status, resource, _text(document.get("error_message")))

    async def search(self, to: str) -> list[Found] | None:
        wanted = urlencode({"To": to, "PageSize": SEARCHED_MESSAGES})
        answer = await self._ask("GET", f"{self._messages}.json?{wanted}")
        document = _document(answer.body) if answer.status == 200 else None
        if document is None or not isinstance(document.get("messages"), list):
            return None
        found = []
        for message in document["messages"]:
            resource = _resource(message)
            created = _instant(message.get("date_created")) if isinstance(message, dict) else None
            if resource is not None and created is not None and message.get("to") == to:
                found.append(Found(resource, str(message.get("body") or ""), created))
        return found

    async def _ask(
        self, method: str, target: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Answer:
        try:
            got = await self._connections.ask(method, target, body, headers)
        except NotConnected:
            return Answer(0, error=NOT_CONNECTED)
        except AnswerLost as error:
            return Answer(0, error=str(error))
        return Answer(got.status, got.body, _seconds(got.headers.get("retry-after")))


class OneAtATime:
    """Another gateway, of which one request is outstanding at a time, in whatever process: for single runs."""

    def __init__(self, gateway: Gateway, valkey: Valkey, clock: Clock) -> None:
        self._gateway, self._valkey, self._clock = gateway, valkey, clock
        self._place = f"sms-{socket.gethostname()}"

    async def create(self, to: str, body: str, callback_url: str) -> MessageResource | FailureInfo:
        async with self._alone():
            return await self._gateway.create(to, body, callback_url)

    async def read(self, sid: str) -> Read:
        async with self._alone():
            return await self._gateway.read(sid)

    async def search(self, to: str) -> list[Found] | None:
        async with self._alone():
            return await self._gateway.search(to)

    def _alone(self) -> AbstractAsyncContextManager[object]:
        return TWILIO_LOCK.at().hold(self._valkey, self._clock, hostname=self._place, spin=True)


# -- what an answer means ----------------------------------------------------------------------------------------------


def classified(answer: Answer) -> MessageResource | FailureInfo:
    """A message that the provider took, or why it did not. The order of the questions is part of the contract."""
    if not answer.status:
        return _failed(answer, Identifier.NETWORK, None, answer.error)
    if answer.status >= 500:
        return _failed(answer, Identifier.SERVER, str(answer.status))
    document = _document(answer.body)
    fine = 200 <= answer.status < 300
    code = _code(document)
    said = _text((document or {}).get("message")) or _text((document or {}).get("error_message"))
    if code is None:
        if answer.status == 429:
            return _failed(answer, Identifier.CLIENT_429, None, said)
        if not fine:
            return _failed(answer, Identifier.CLIENT_OTHER, str(answer.status), said)
    elif answer.status == 429 or code in RATELIMIT_CODES:
        return _failed(answer, Identifier.RATELIMIT, code, said)
    else:
        return _failed(answer, Identifier.APPLICATION, code, said)
    resource = _resource(document)
    if resource is None:
        return _failed(answer, Identifier.INTERNAL, None, "the answer is no message resource")
    return resource_failure(resource) or resource


def resource_failure(resource: MessageResource) -> FailureInfo | None:
    """Why a message that exists has failed; None if it has not."""
    if resource.error_code is None and resource.status.category is not Category.FAILED:
        return None
    ratelimit = resource.error_code in RATELIMIT_CODES
    identifier = Identifier.RATELIMIT if ratelimit else Identifier.APPLICATION
    return FailureInfo("send", identifier, resource.error_code or WITHOUT_CODE, ratelimit, f"status {resource.status}")


def _failed(answer: Answer, identifier: Identifier, sub: str | None, extra: str | None = None) -> FailureInfo:
    said = extra[:_LONGEST_EXTRA] if extra else None
    return FailureInfo("send", identifier, sub, identifier in _RETRYABLE, said, answer.retry_after_seconds)


def _document(body: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _code(document: dict[str, Any] | None) -> str | None:
    """The provider's own error code: ``error_code`` of a message resource, ``code`` of an error."""
    for name in ("error_code", "code"):
        code = (document or {}).get(name)
        if isinstance(code, int | str) and not isinstance(code, bool) and str(code).strip() not in ("", "0"):
            return str(code).strip()[:20]
    return None


def _resource(document: object) -> MessageResource | None:
    if not isinstance(document, dict):
        return None
    sid, status = document.get("sid"), told_status(document.get("status"))
    updated = _instant(document.get("date_updated"))
    if not isinstance(sid, str) or not is_sid(sid) or status is None or updated is None:
        return None
    return MessageResource(sid, status, _code(document), updated)


def is_sid(text: str) -> bool:
    """Whether this can name a message at the provider, and so be a part of a key."""
    return 2 < len(text) <= 64 and text.isascii() and text.isalnum()


def _instant(date: object) -> float | None:
    """Unix seconds of a date as in email headers."""
    if not isinstance(date, str):
        return None
    try:
        parsed = parsedate_to_datetime(date)
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _seconds(header: str | None) -> float:
    """A Retry-After: seconds, or a date."""
    if not header:
        return 0.0
    if header.strip().isdigit():
        return min(float(header), 86400.0)
    instant = _instant(header)
    return 0.0 if instant is None else min(max(0.0, instant - datetime.now(UTC).timestamp()), 86400.0)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
