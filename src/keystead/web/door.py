"""The one way in: every request and every websocket passes here before any route sees it.

A plain ASGI layer, because it stands in front of everything. In order: a request id; is the host name ours; which
address, is it blocked; who is asking; may a page of another site do this; is a credential needed; is there room in the
limit; is the body too long. A refusal at any step has the one error body and runs nothing behind it.
"""

import asyncio
import json
import re
from dataclasses import dataclass
from time import perf_counter
from typing import TypeVar
from urllib.parse import quote

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keystead.clock import Clock
from keystead.edge import (
    API,
    LOOPBACK,
    PROBLEM_MEDIA_TYPE,
    WRONG_KEY,
    CallerKind,
    ClientAddress,
    Decision,
    Forbidden,
    Guard,
    Networks,
    NotLoggedIn,
    Tickets,
    TooLarge,
    client_address,
    problem_of,
)
from keystead.errors import Invalid, KeysteadError, LimitReached
from keystead.ids import new_uid
from keystead.operations import AdminKeys
from keystead.telemetry import counts, logger
from keystead.web.callers import Identified, ends_with_proof, identify
from keystead.web.names import HostNames, same_origin
from keystead.web.requests_seen import request_seen

K = TypeVar("K")
V = TypeVar("V")

# What needs no log-in; progress of a job is shown to whoever has a ticket for it.
PUBLIC_PATHS = frozenset({
    "/health", "/ready", "/login", "/session", "/jobs/live", "/api/1/notifications/complete",
    "/api/1/notifications/unsubscribe_by_email", "/api/1/emails/unsubscribe",
})
# Parts of an upload show the ticket of their upload instead, and who renders a template a token for that; the routes
# read them. Links in messages are for whoever holds one.
PUBLIC_PREFIXES = ("/api/1/file_uploads/", "/api/3/templates/", "/l/", "/a/")
# Providers that deliver to nobody: for this machine alone, which is where our couriers are.
SANDBOX_PREFIXES = ("/sandbox/expo/", "/sandbox/twilio/", "/sandbox/ses/", "/sandbox/sns/")
# Providers call these, from few addresses and often; their signature is read by the route, which also counts a body
# that is too long, and so has to see its beginning.
WEBHOOK_PATHS = frozenset({"/api/1/sms/webhook", "/api/1/sms/inbound_webhook", "/api/1/emails/sns-mail"})
MOST_WEBHOOK_BYTES = 4 * 1024 * 1024
LIMITED_PREFIX = "/api/"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
MOST_BODY_BYTES = 1024 * 1024
# Close code of a websocket whose log-in ended; the 4000s are for applications.
SESSION_ENDED = 4401

# Only our own server may be loaded from. The dashboard compiles its templates in the browser, hence unsafe-eval.
CONTENT_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self' data:; connect-src 'self'; object-src 'none'; frame-ancestors 'none'; "
    "base-uri 'self'; form-action 'self'"
)
_STANDING_HEADERS = [
    (b"cache-control", b"no-store"),
    (b"content-security-policy", CONTENT_POLICY.encode()),
    (b"referrer-policy", b"same-origin"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
]
_STANDING_NAMES = frozenset(name for name, _ in _STANDING_HEADERS) | {
    b"x-request-id", b"ratelimit-limit", b"ratelimit-remaining", b"ratelimit-reset", b"retry-after",
}
MOST_REMEMBERED = 10_000
MOST_REMEMBERED_CHARACTERS = 200
_SANE_REQUEST_ID = re.compile(rb"[A-Za-z0-9_.:-]{1,100}")

counts.describe("http_requests", "requests answered, by class of status")
_log = logger("web")
_CLASSES = tuple(f"{number}xx" for number in range(10))


class Door:
    """Wraps the assembled application."""

    def __init__(
        self, app: ASGIApp, *, guard: Guard, tickets: Tickets, clock: Clock, names: HostNames,
        trusted_proxies: Networks, cookie_name: str, keys: AdminKeys | None = None,
    ) -> None:
        self.app = app
        self._guard = guard
        self._tickets = tickets
        self._clock = clock
        self._names = names
        self._trusted = trusted_proxies
        self._cookie_name = cookie_name
        self._keys = keys
        # The same few come again and again, and reading an address takes longer than any other check.
        self._comers: dict[str | None, _Comer] = {}
        self._forwarded: dict[tuple[str | None, str], _Comer] = {}
        self._served: dict[str, bool] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind = scope["type"]
        if kind == "lifespan":
            await self.app(scope, receive, send)
            return
        began = perf_counter()
        headers = Headers(scope)
        request_id = headers.request_id()
        answer = _Answer(send, scope, request_id)
        bound = structlog.contextvars.bind_contextvars(request_id=request_id)
        try:
            await self._let_in(scope, headers, receive, answer)
        except KeysteadError as error:
            await answer.refuse(error, wants_page=headers.wants_page)
        except Exception as error:
            _log.error("request failed", kind=kind, exc_info=error)
            await answer.refuse(error, wants_page=False)
        finally:
            structlog.contextvars.reset_contextvars(**bound)
            if kind == "http":
                counts.add("http_requests", status=_CLASSES[answer.status // 100])
                request_seen(scope, answer.status, perf_counter() - began)

    async def _let_in(self, scope: Scope, headers: "Headers", receive: Receive, answer: "_Answer") -> None:
        # Two names in one request mean that someone before us may have read the other one.
        if len(headers.hosts) != 1 or not self._serves(headers.hosts[0]):
            raise Invalid("this server is not known under the host name that was asked for; "
                          "add the name to the setting http.host_names")
        comer = self._comer(scope, headers)
        if comer.by_proxy and headers.forwarded_proto == "https":
            # TLS ended at a proxy we trust; cookies made behind it are for TLS only.
            scope["scheme"] = "https" if scope["type"] == "http" else "wss"
        if comer.is_spared:
            await self._pass(scope, headers, receive, answer, comer)
            return
        async with self._guard.passage(comer.address):
            await self._pass(scope, headers, receive, answer, comer)

    async def _pass(
        self, scope: Scope, headers: "Headers", receive: Receive, answer: "_Answer", comer: "_Comer"
    ) -> None:
        path: str = scope["path"]
        found = identify(scope["headers"], self._tickets, self._cookie_name, self._keys)
        if found.wrong_key and self._keys is not None:
            await self._slow_down(comer.address)
            await self._keys.look_again()
            found = identify(scope["headers"], self._tickets, self._cookie_name, self._keys)
            if not found.wrong_key:
                await self._guard.give_back(WRONG_KEY, comer.address)
        _check_origin(scope, headers, found)
        if not (comer.is_local and path.startswith(SANDBOX_PREFIXES)):
            _check_credential(path, found)
        is_webhook = path in WEBHOOK_PATHS
        if path.startswith(LIMITED_PREFIX) and not is_webhook:
            if comer.is_spared:
                answer.limit_headers = _SPARED_HEADERS
            else:
                decision = await self._guard.count(API, comer.address)
                answer.limit_headers = _limit_headers(decision)
                if not decision.allowed:
                    raise LimitReached("too many requests from this address",
                                       retry_after_seconds=decision.reset_seconds)
        state = scope.setdefault("state", {})
        state["caller"], state["address"], state["request_id"] = found.caller, comer.address, answer.request_id
        state["proof_ends_at"] = found.expires_at
        if scope["type"] == "websocket":
            await self._until_session_ends(scope, receive, answer, found)
        else:
            await self.app(scope, _limited(receive, headers, is_webhook=is_webhook), answer)

    async def _slow_down(self, address: ClientAddress) -> None:
        """Whoever tries keys that nobody has learns nothing more after a few."""
        decision = await self._guard.count(WRONG_KEY, address)
        if not decision.allowed:
            raise LimitReached("too many keys from this address that nobody has",
                               retry_after_seconds=decision.reset_seconds)

    def _serves(self, host: str) -> bool:
        known = self._served.get(host)
        if known is None:
            known = self._names.serves(host)
            _remember(self._served, host, known, len(host))
        return known

    def _comer(self, scope: Scope, headers: "Headers") -> "_Comer":
        client = scope.get("client")
        peer = client[0] if client else None
        found = self._comers.get(peer)
        if found is None:
            address = client_address(peer, (), self._trusted)
            found = self._found(address, by_proxy=address.within(self._trusted))
            _remember(self._comers, peer, found, len(peer or ""))
        if not (found.by_proxy and headers.forwarded_for):
            return found
        hops = ",".join(headers.forwarded_for)
        forwarded = self._forwarded.get((peer, hops))
        if forwarded is None:
            address = client_address(peer, headers.forwarded_for, self._trusted)
            forwarded = self._found(address, by_proxy=True)
            _remember(self._forwarded, (peer, hops), forwarded, len(hops))
        return forwarded

    def _found(self, address: ClientAddress, *, by_proxy: bool) -> "_Comer":
        return _Comer(address, by_proxy, address.within(LOOPBACK), self._guard.spares(address))

    async def _until_session_ends(self, scope: Scope, receive: Receive, answer: "_Answer", found: Identified) -> None:
        """An open page must not outlive the log-in that opened it."""
        left = None if found.expires_at is None else found.expires_at - self._clock.now()
        try:
            async with asyncio.timeout(left) as limit:
                with ends_with_proof(limit, found, self._tickets, self._keys):
                    await self.app(scope, receive, answer)
        except TimeoutError:
            await answer.send({"type": "websocket.close", "code": SESSION_ENDED, "reason": "log-in ended"})


def _remember(memory: dict[K, V], what: K, found: V, length: int) -> None:
    """Strangers choose what is asked for, so there is an end to what is kept of it."""
    if length > MOST_REMEMBERED_CHARACTERS:
        return
    if len(memory) >= MOST_REMEMBERED:
        memory.clear()
    memory[what] = found


@dataclass(frozen=True, slots=True)
class _Comer:
    """From where a request comes, and what follows from that alone."""

    address: ClientAddress
    by_proxy: bool
    is_local: bool
    is_spared: bool


class Headers:
    """What the door needs of the headers of a request, found in one pass; of two with a name the first counts."""

    __slots__ = ("_found", "_method", "forwarded_for", "hosts")

    def __init__(self, scope: Scope) -> None:
        self._method: str = scope.get("method", "GET")
        self.hosts: list[str] = []
        self.forwarded_for: list[str] = []
        found = self._found = dict[bytes, bytes]()
        for name, value in scope["headers"]:
            if name == b"host":
                self.hosts.append(value.decode("latin-1"))
            elif name == b"x-forwarded-for":
                self.forwarded_for.append(value.decode("latin-1"))
            elif name not in found:
                found[name] = value

    def one(self, name: bytes) -> str:
        return self._found.get(name, b"").decode("latin-1")

    @property
    def forwarded_proto(self) -> str:
        return self.one(b"x-forwarded-proto")

    def request_id(self) -> str:
        """The client's own id if it is a harmless one, so that its log and ours can be matched."""
        given = self._found.get(b"x-request-id")
        return given.decode() if given is not None and _SANE_REQUEST_ID.fullmatch(given) else new_uid("req")

    @property
    def has_body(self) -> bool:
        """A request that says neither how long its body is nor that it comes in pieces has none."""
        return b"content-length" in self._found or b"transfer-encoding" in self._found

    @property
    def wants_page(self) -> bool:
        return self._method in ("GET", "HEAD") and "text/html" in self.one(b"accept")


def _check_credential(path: str, found: Identified) -> None:
    """Whether somebody may come in at all; what they may touch there is decided behind the door."""
    if path in PUBLIC_PATHS or path in WEBHOOK_PATHS or path.startswith(PUBLIC_PREFIXES):
        return
    if not found.caller.known:
        raise NotLoggedIn("this needs a credential: log in with a link from `keystead login-link`, "
                          "or send a bearer token; one that was sent is wrong, has expired or was taken back")
    if found.caller.kind is CallerKind.USER and not path.startswith(LIMITED_PREFIX):
        raise Forbidden("this credential is for the HTTP interface alone")


def _check_origin(scope: Scope, headers: Headers, found: Identified) -> None:
    """A browser adds the cookie to whatever any page asks for; only our own pages may use it to change things.

    A bearer token is never sent by itself, so programs need no origin.
    """
    changes = scope["type"] == "websocket" or scope["method"] not in SAFE_METHODS
    if not changes:
        return
    origin = headers.one(b"origin")
    if (origin or found.by_cookie) and not same_origin(origin, headers.hosts[0]):
        raise Forbidden("this was sent by a page of another site")


def _limited(receive: Receive, headers: Headers, *, is_webhook: bool) -> Receive:
    """Refuse a body that says it is too long before reading it, and one that turns out to be while reading."""
    if not headers.has_body:
        return receive
    announced, most = headers.one(b"content-length"), MOST_WEBHOOK_BYTES if is_webhook else MOST_BODY_BYTES
    if not is_webhook and announced.isascii() and announced.isdigit() and int(announced) > most:
        raise _too_large(most)
    taken = 0

    async def receive_some() -> Message:
        nonlocal taken
        message = await receive()
        if message["type"] == "http.request":
            taken += len(message.get("body", b""))
            if taken > most:
                raise _too_large(most)
        return message

    return receive_some


def _too_large(most: int) -> TooLarge:
    return TooLarge(f"the request body is too long; at most {most} bytes are taken")


def _limit_headers(decision: Decision) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode(), value.encode()) for name, value in decision.headers().items()]


_SPARED_HEADERS = _limit_headers(API.untouched)


class _Answer:
    """Sends on, adds the headers every answer has, and remembers whether one was begun."""

    def __init__(self, send: Send, scope: Scope, request_id: str) -> None:
        self.send = send
        self.request_id = request_id
        self.limit_headers: list[tuple[bytes, bytes]] = []
        self.status = 500
        self._scope = scope
        self._begun = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._begun = True
            self.status = message["status"]
            given = message["headers"]
            added = [*_STANDING_HEADERS, (b"x-request-id", self.request_id.encode()), *self.limit_headers]
            present = {name.lower() for name, _ in given}
            if not present.isdisjoint(_STANDING_NAMES):
                added = [pair for pair in added if pair[0] not in present]
            message = {**message, "headers": [*given, *added]}
        elif message["type"] == "websocket.accept":
            self._begun = True
        await self.send(message)

    async def refuse(self, error: Exception, *, wants_page: bool) -> None:
        """Answer with the error's status and body; a person who is not logged in is led to the log-in page."""
        problem = problem_of(error)
        if self._begun:
            _log.warning("refused after the answer had begun", type=problem.type, status=problem.status)
            raise error
        if self._scope["type"] == "websocket":
            await self.send({"type": "websocket.close", "code": 4000 + problem.status, "reason": problem.title})
            return
        if isinstance(error, NotLoggedIn) and wants_page:
            query = self._scope.get("query_string", b"").decode("latin-1")
            wanted = self._scope["path"] + (f"?{query}" if query else "")
            await self._send(303, {"location": f"/login?next={quote(wanted, safe='')}"}, b"")
            return
        body = json.dumps(problem.body()).encode()
        await self._send(problem.status, {"content-type": PROBLEM_MEDIA_TYPE, **problem.headers}, body)

    async def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        pairs = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
        pairs.append((b"content-length", str(len(body)).encode()))
        await self({"type": "http.response.start", "status": status, "headers": pairs})
        await self.send({"type": "http.response.body", "body": body})
