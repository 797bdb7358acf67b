"""Requests to a provider over connections that stay open.

It does what the providers of messages need and no more: HTTP/1.1, one request at a time on a connection, no redirects,
no cookies, no proxies. A request takes a fifth of the processor time that a general client needs for it, which was a
tenth of all that it takes to send a message. Answers are parsed by httptools.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

import httptools

from keystead.errors import Invalid
from keystead.tracing import is_listening, span, traceparent

IDLE_SECONDS: Final = 15.0  # providers close what is unused for longer, and might while we write to it
CONNECT_SHARE: Final = 0.5  # whoever cannot be reached at all is known sooner


class NotConnected(OSError):
    """Nobody took the connection: nothing was sent."""


class AnswerLost(OSError):
    """The request left, and no answer can be had: it may have been heard."""


@dataclass(slots=True)
class HttpAnswer:
    """What came back. Names of headers are in lower case; the body is cut off after what anybody needs."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


class Connections:
    """Connections to one host. Whoever calls decides how many requests there are at once.

    ``headers`` go with every request. ``seconds``: how long one may take, connecting included.
    """

    def __init__(self, url: str, *, headers: Mapping[str, str], seconds: float, most_bytes: int) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Invalid(f"the address of a provider begins with http:// or https://, this is {url[:100]!r}")
        self._host, self._port = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._path = parts.path.rstrip("/")
        self._fixed = _lines({"Host": parts.netloc.rpartition("@")[2], "Accept": "*/*", **headers})
        self._seconds, self._most_bytes = seconds, most_bytes
        self._idle: deque[_Connection] = deque()  # the one used last is on the right
        self._all: set[_Connection] = set()

    @classmethod
    @asynccontextmanager
    async def open(
        cls, url: str, *, headers: Mapping[str, str] | None = None, seconds: float, most_bytes: int
    ) -> AsyncIterator["Connections"]:
        """All of them are closed at the end."""
        connections = cls(url, headers=headers or {}, seconds=seconds, most_bytes=most_bytes)
        try:
            yield connections
        finally:
            for connection in tuple(connections._all):
                connection.close()

    async def ask(
        self, method: str, target: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> HttpAnswer:
        """One request; ``target`` follows the path of the address. ``NotConnected`` if nothing was sent, ``AnswerLost``
        if it may have been heard."""
        if not is_listening():
            return await self._ask(method, target, body, headers)
        # Only who was asked: addresses may stand in the rest of the target.
        with span(f"{method} {self._host}", kind="client", **{"server.address": self._host}) as here:
            answer = await self._ask(method, target, body, {**(headers or {}), "traceparent": traceparent()})
            here.set(status=answer.status)
            if answer.status >= 500:
                here.failed(f"status {answer.status}")
            return answer

    async def _ask(self, method: str, target: str, body: bytes, headers: Mapping[str, str] | None) -> HttpAnswer:
        head = f"{method} {self._path}{target} HTTP/1.1\r\n{self._fixed}{_lines(headers) if headers else ''}" \
               f"Content-Length: {len(body)}\r\n\r\n"
        connection: _Connection | None = None
        try:
            async with asyncio.timeout(self._seconds):
                connection = self._take() or await self._connect()
                answer = await connection.ask(head.encode("latin-1") + body)
        except TimeoutError:
            if connection is None:
                raise NotConnected("no connection in time") from None
            raise AnswerLost("no answer in time") from None
        finally:
            if connection is not None:
                self._put_back(connection)
        return answer

    def _take(self) -> "_Connection | None":
        now = asyncio.get_running_loop().time()
        while self._idle:
            connection = self._idle.pop()
            if connection.is_usable and now - connection.idle_since < IDLE_SECONDS:
                return connection
            connection.close()
        return None

    def _put_back(self, connection: "_Connection") -> None:
        if not connection.is_usable:
            connection.close()
            return
        now = connection.idle_since = asyncio.get_running_loop().time()
        self._idle.append(connection)
        while self._idle and now - self._idle[0].idle_since >= IDLE_SECONDS:
            self._idle.popleft().close()

    async def _connect(self) -> "_Connection":
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._seconds * CONNECT_SHARE):
                _, connection = await loop.create_connection(
                    lambda: _Connection(self._all, self._most_bytes), self._host, self._port, ssl=self._tls
                )
        except (OSError, TimeoutError) as error:
            raise NotConnected(type(error).__name__) from error
        return connection


class _Connection(asyncio.Protocol):
    """One connection, and the answer that arrives on it."""

    def __init__(self, every: "set[_Connection]", most_bytes: int) -> None:
        self.idle_since = 0.0
        self._every, self._most_bytes = every, most_bytes
        self._transport: asyncio.BaseTransport | None = None
        self._answering: asyncio.Future[HttpAnswer] | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._is_done = True  # nothing of an answer is missing
        self._may_stay = True
        self._begin()

    def _begin(self) -> None:
        self._answer = HttpAnswer()
        self._parts: list[bytes] = []
        self._size = 0

    @property
    def is_usable(self) -> bool:
        return self._transport is not None and self._is_done and self._may_stay and not self._transport.is_closing()

    def close(self) -> None:
        self._every.discard(self)
        if self._transport is not None and not self._transport.is_closing():
            self._transport.close()

    async def ask(self, request: bytes) -> HttpAnswer:
        self._begin()
        self._is_done = False
        self._answering = asyncio.get_running_loop().create_future()
        self._transport.write(request)  # type: ignore[union-attr]
        return await self._answering

    def _end(self, error: AnswerLost | None = None) -> None:
        answering, self._answering = self._answering, None
        if answering is None or answering.done():
            return
        if error is not None:
            answering.set_exception(error)
            return
        self._is_done = True
        self._answer.body = b"".join(self._parts)
        answering.set_result(self._answer)

    # -- from the loop ----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._every.add(self)

    def data_received(self, data: bytes) -> None:
        if self._answering is None:  # nobody asked for anything
            self._may_stay = False
            self.close()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._may_stay = False
            self._end(AnswerLost(f"the answer is no HTTP: {type(error).__name__}"))
            self.close()

    def connection_lost(self, error: Exception | None) -> None:
        self._may_stay = False
        self._every.discard(self)
        # An answer may also end with its connection, if it does not say how long it is.
        headers = self._answer.headers
        ends_here = self._answer.status and "content-length" not in headers and "transfer-encoding" not in headers
        self._end(None if ends_here and error is None else AnswerLost("the connection is gone"))

    # -- from the parser --------------------------------------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        self._answer.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._answer.status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        self._parts.append(body[:max(0, len(body) - self._size + self._most_bytes)])
        if self._size > self._most_bytes:
            self._may_stay = False
            self._end()

    def on_message_complete(self) -> None:
        if 100 <= self._answer.status < 200:  # the answer itself is still to come
            self._begin()
            return
        self._may_stay = self._may_stay and self._parser.should_keep_alive()
        self._end()


def _lines(headers: Mapping[str, str]) -> str:
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    if lines.count("\n") != len(headers) or lines.count("\r") != len(headers):
        raise Invalid("a header of a request is one line")
    return lines
