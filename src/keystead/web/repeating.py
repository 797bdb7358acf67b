"""Idempotency keys at the door: a plain ASGI layer behind ``Door``, which has said who asks.

A request without the header costs one look at its method. With it, the body is read whole (the door bounds it), the key
is claimed, and the answer is kept before any of it is sent: so a client that never heard the answer finds it kept. What
was refused (400 and above) changed nothing and is not kept; the same key may be tried again.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keystead.edge import Begun, Caller, KeptAnswer, Repeats
from keystead.edge.idempotency import HEADER, MOST_ANSWER_BYTES, REPLAYED_HEADER
from keystead.edge.keys import CLAIM_SECONDS
from keystead.errors import Invalid
from keystead.web.bodies import again, content_of, is_whole, read_whole

PREFIX: Final = "/api/"
METHODS: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
REFUSED_FROM: Final = 400
_HEADER: Final = HEADER.encode()
_REPLAYED: Final = (REPLAYED_HEADER.encode(), b"true")
# What belongs to one connection or one browser.
_NOT_KEPT: Final = frozenset({b"set-cookie", b"connection", b"transfer-encoding", b"date"})
_ENDLESS: Final = b"text/event-stream"


class Repeating:
    """Answers repeats from what was kept."""

    def __init__(self, app: ASGIApp, *, repeats: Repeats) -> None:
        self.app = app
        self._repeats = repeats

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in METHODS or not scope["path"].startswith(PREFIX):
            await self.app(scope, receive, send)
            return
        keys = [value for name, value in scope["headers"] if name == _HEADER]
        caller: Caller = scope["state"]["caller"]
        # Of somebody who proved nothing, nothing is remembered.
        if not keys or not caller.known:
            await self.app(scope, receive, send)
            return
        if len(keys) > 1:
            raise Invalid(f"the header {HEADER} may be given once")
        read = await read_whole(receive)
        if not is_whole(read):
            raise Invalid("the request ended before its body did")
        begun = await self._repeats.begin(caller, keys[0].decode("latin-1"), _all_of(scope, caller, content_of(read)))
        if isinstance(begun, KeptAnswer):
            await send({"type": "http.response.start", "status": begun.status,
                        "headers": [*(tuple(pair) for pair in begun.headers), _REPLAYED]})
            await send({"type": "http.response.body", "body": begun.body})
            return
        await self._run(scope, again(read, receive), send, begun)

    async def _run(self, scope: Scope, receive: Receive, send: Send, begun: Begun) -> None:
        held = _Held(self._repeats, begun, send)
        async with _alive(self._repeats, begun):
            try:
                await self.app(scope, receive, held)
            except Exception:
                if not held.settled:
                    await self._repeats.let_go(begun)
                raise


class _Held:
    """Holds an answer back until it is kept. One that is too long, or has no end, is let through as it comes."""

    def __init__(self, repeats: Repeats, begun: Begun, send: Send) -> None:
        self._repeats, self._begun, self._send = repeats, begun, send
        self._start: Message = {}
        self._parts: list[bytes] = []
        self._length = 0
        self.settled = False

    async def __call__(self, message: Message) -> None:
        if self.settled:
            await self._send(message)
        elif message["type"] == "http.response.start":
            self._start = message
            if message["status"] >= REFUSED_FROM:
                await self._repeats.let_go(self._begun)
                await self._let_through()
            elif any(name == b"content-type" and value.startswith(_ENDLESS) for name, value in message["headers"]):
                await self._keep(whole=False)
        elif message["type"] == "http.response.body":
            self._parts.append(message.get("body", b""))
            self._length += len(self._parts[-1])
            if self._length > MOST_ANSWER_BYTES:
                await self._keep(whole=False, more=message.get("more_body", False))
            elif not message.get("more_body", False):
                await self._keep()
        else:
            await self._send(message)

    async def _keep(self, *, whole: bool = True, more: bool = False) -> None:
        body = b"".join(self._parts)
        headers = tuple((name, value) for name, value in self._start["headers"] if name.lower() not in _NOT_KEPT)
        status = self._start["status"]
        answer = KeptAnswer(status, headers, body) if whole else KeptAnswer(status, whole=False)
        await self._repeats.keep(self._begun, answer)
        await self._let_through()
        if self._parts:
            await self._send({"type": "http.response.body", "body": body, "more_body": more})

    async def _let_through(self) -> None:
        self.settled = True
        await self._send(self._start)


@asynccontextmanager
async def _alive(repeats: Repeats, begun: Begun) -> AsyncIterator[None]:
    """Keep the claim for as long as the request runs; those that end soon never ask."""
    loop = asyncio.get_running_loop()
    pause = CLAIM_SECONDS / 3
    beats: set[asyncio.Task[None]] = set()

    async def prolong() -> None:
        while True:
            await repeats.prolong(begun)
            await asyncio.sleep(pause)

    handle = loop.call_later(pause, lambda: beats.add(loop.create_task(prolong())))
    try:
        yield
    finally:
        handle.cancel()
        for task in beats:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def _all_of(scope: Scope, caller: Caller, body: bytes) -> bytes:
    """All that the answer may depend on."""
    kind = next((value for name, value in scope["headers"] if name == b"content-type"), b"")
    parts = (scope["method"].encode(), scope.get("raw_path") or scope["path"].encode(), scope["query_string"],
             caller.acts_for.encode("utf-8", "surrogatepass"), kind, body)
    return b"".join(b"%d:%b" % (len(part), part) for part in parts)
