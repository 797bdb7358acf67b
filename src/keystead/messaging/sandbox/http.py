"""HTTP without a framework: what the providers are asked and answer, as plain values, and the ASGI program around it.

One skin serves the assembled server and the sandbox's own process. There is none between it and the wire that would
cost as much as what the providers do.
"""

import gzip
import json
import zlib
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from keystead.errors import Unavailable

BODY_BYTES: Final = 10 * 1024 * 1024
_GZIP_FROM_BYTES: Final = 1024

Scope = MutableMapping[str, Any]  # as ASGI has them
Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Asked:
    """One request. Names of headers are in lower case; ``path`` is what follows the sandbox's prefix."""

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def json(self) -> object:
        """The body, unpacked where it says that it is packed. ``ValueError`` if it is no JSON."""
        body = self.body
        if self.headers.get("content-encoding", "").lower() == "gzip":
            try:
                body = zlib.decompressobj(wbits=31).decompress(body, BODY_BYTES)
            except zlib.error:
                raise ValueError("the body is not gzip") from None
        found: object = json.loads(body)
        return found


@dataclass(frozen=True, slots=True)
class Answer:
    """What is answered."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


Handler = Callable[[Asked], Awaitable[Answer | None]]


def json_answer(status: int, body: object, content_type: str = "application/json", **headers: str) -> Answer:
    """JSON; further headers with _ for -."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, msgspec.json.encode(body),
                  {"content-type": content_type, **named})


class SandboxApp:
    """An ASGI program over a handler. A handler that answers None, or loses the server, cuts the connection."""

    def __init__(self, handler: Handler, prefix: str = "/sandbox") -> None:
        self._handler = handler
        self._prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        if scope["type"] != "http":
            return
        answer: Answer | None
        try:
            body = await _body(receive)
            if body is None:
                answer = json_answer(413, {"message": "the body is too large"})
            else:
                answer = await self._handler(self._asked(scope, body))
        except Unavailable:
            # Whether the message was kept is not known. A provider that says nothing leaves it as open as it is.
            answer = None
        if answer is None:
            await _cut(send)
            return
        if len(answer.body) >= _GZIP_FROM_BYTES and b"gzip" in dict(scope["headers"]).get(b"accept-encoding", b""):
            packed = {**answer.headers, "content-encoding": "gzip"}
            answer = Answer(answer.status, gzip.compress(answer.body, 1), packed)
        await answered(send, answer)

    def _asked(self, scope: Scope, body: bytes) -> Asked:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        return Asked(scope["method"], scope["path"].removeprefix(self._prefix), scope["query_string"].decode("latin-1"),
                     headers, body)


async def answered(send: Send, answer: Answer) -> None:
    """Send an answer as it is."""
    headers = {**answer.headers, "content-length": str(len(answer.body))}
    raw = [(name.encode(), value.encode("latin-1", "replace")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": answer.status, "headers": raw})
    await send({"type": "http.response.body", "body": answer.body})


async def _body(receive: Receive) -> bytes | None:
    """The whole body, or None if it is too large."""
    event = await receive()
    if not event.get("more_body"):
        body: bytes = event.get("body", b"")
        return body if len(body) <= BODY_BYTES else None
    parts, size = [event.get("body", b"")], len(event.get("body", b""))
    while event.get("more_body"):
        event = await receive()
        part = event.get("body", b"")
        size += len(part)
        if size <= BODY_BYTES:
            parts.append(part)
    return b"".join(parts) if size <= BODY_BYTES else None


async def _cut(send: Send) -> None:
    """ASGI knows no way to close a connection. One that ends within an answer is closed by the server."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1")]})
    await send({"type": "http.response.body", "body": b"", "more_body": True})


async def _live(receive: Receive, send: Send) -> None:
    while True:
        event = await receive()
        await send({"type": f"{event['type']}.complete"})
        if event["type"] == "lifespan.shutdown":
            return
