"""The provider of push messages: Expo over HTTP. Whatever goes wrong there is an answer, not an exception."""

import gzip
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypeVar

import aiohttp
import msgspec

from keystead.messaging.push.models import FailureInfo, Identifier, OutgoingPush, PushReceipt, PushTicket
from keystead.messaging.sending import pause_of, read_body
from keystead.settings import PushSettings

EXPO_URL: Final = "https://exp.host"
SEND_PATH: Final = "/--/api/v2/push/send"
RECEIPTS_PATH: Final = "/--/api/v2/push/getReceipts"
TIMEOUT_SECONDS: Final = 10.0
LONGEST_PAUSE_SECONDS: Final = 86_400.0
NOT_CONNECTED: Final = "not connected"  # so the provider has heard nothing
MOST_ANSWER_BYTES: Final = 8 * 1024 * 1024
_LONGEST_EXTRA: Final = 500
_RETRYABLE: Final = frozenset({Identifier.NETWORK, Identifier.CLIENT_429, Identifier.SERVER})

Action = Literal["send", "check"]
A = TypeVar("A", "_Tickets", "_Receipts")


class Gateway(Protocol):
    """What the room asks of a provider."""

    async def send(self, messages: Sequence[OutgoingPush]) -> list[PushTicket] | FailureInfo:
        """Hand over at most a hundred messages; a ticket for each in their order, or why none was taken."""
        ...

    async def receipts(self, ids: Sequence[str]) -> Mapping[str, PushReceipt] | FailureInfo:
        """What became of at most a thousand tickets, as far as it is known."""
        ...


class _Tickets(msgspec.Struct):
    data: list[PushTicket]
    errors: list[Any] | None = None


class _Receipts(msgspec.Struct):
    data: dict[str, PushReceipt]
    errors: list[Any] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back over HTTP. ``status`` 0: nothing did, and ``error`` says why."""

    status: int
    body: bytes = b""
    retry_after_seconds: float = 0.0
    error: str = ""


class ExpoGateway:
    """Expo's push API, version 2. One per process; ``async with ExpoGateway.open(settings)``."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session, self._url = session, url.rstrip("/")

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: PushSettings, url: str = "") -> AsyncIterator["ExpoGateway"]:
        """``url``: where the API is, unless the settings say; without either it is the real one."""
        headers = {"Accept": "application/json", "Content-Type": "application/json; charset=utf-8",
                   "Content-Encoding": "gzip"}
        if settings.access_token:
            headers["Authorization"] = f"Bearer {settings.access_token}"
        connector = aiohttp.TCPConnector(limit=0)  # whoever calls decides how many requests there are at once
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_SECONDS, sock_connect=TIMEOUT_SECONDS / 2)
        async with aiohttp.ClientSession(timeout=timeout, headers=headers, connector=connector) as session:
            yield cls(session, settings.url or url or EXPO_URL)

    async def send(self, messages: Sequence[OutgoingPush]) -> list[PushTicket] | FailureInfo:
        body = [{"to": each.push_token, "title": each.contents.title, "body": each.contents.body,
                 "channelId": each.contents.channel_id} for each in messages]
        found = read_answer("send", await self._post(SEND_PATH, body), _Tickets)
        if isinstance(found, FailureInfo):
            return found
        if len(found.data) != len(messages):
            return FailureInfo("send", Identifier.INTERNAL,
                               extra=f"{len(found.data)} tickets for {len(messages)} messages")
        return found.data

    async def receipts(self, ids: Sequence[str]) -> Mapping[str, PushReceipt] | FailureInfo:
        found = read_answer("check", await self._post(RECEIPTS_PATH, {"ids": list(ids)}), _Receipts)
        return found if isinstance(found, FailureInfo) else found.data

    async def _post(self, path: str, body: object) -> Answer:
        packed = gzip.compress(msgspec.json.encode(body), 6, mtime=0)
        try:
            async with self._session.post(f"{self._url}{path}", data=packed, allow_redirects=False) as response:
                raw = await read_body(response.content, MOST_ANSWER_BYTES)
                pause = pause_of(response.headers.get("Retry-After"), LONGEST_PAUSE_SECONDS)
                return Answer(response.status, raw, pause)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
            return Answer(0, error=NOT_CONNECTED)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return Answer(0, error=type(error).__name__)


def read_answer(action: Action, answer: Answer, of: type[A]) -> A | FailureInfo:
    """What an answer says of a whole request: the document, or why every message in it failed."""
    identifier = _of_status(answer.status)
    if identifier is not None:
        return FailureInfo(
            action, identifier, identifier in _RETRYABLE, extra=answer.error or f"HTTP {answer.status}",
            retry_after_seconds=answer.retry_after_seconds,
        )
    try:
        found = msgspec.json.decode(answer.body, type=of)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return FailureInfo(action, Identifier.INTERNAL, extra=str(error)[:_LONGEST_EXTRA])
    if found.errors:
        said = msgspec.json.encode(found.errors).decode(errors="replace")
        return FailureInfo(action, Identifier.INTERNAL, extra=said[:_LONGEST_EXTRA])
    return found


def _of_status(status: int) -> Identifier | None:
    if status == 0:
        return Identifier.NETWORK
    if status == 429:
        return Identifier.CLIENT_429
    if status >= 500:
        return Identifier.SERVER
    return None if 200 <= status < 300 else Identifier.CLIENT_OTHER
