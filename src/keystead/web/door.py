"""The one way in: every request and every websocket passes here before any route sees it.

A plain ASGI layer, because it stands in front of everything. In order: a request id; is the host name ours; which
address, is it blocked; who is asking; may a page of another site do this; is a credential needed; is there room in the
limit; is the body too long. A refusal at any step has the one error body and runs nothing behind it.
"""

import asyncio
import json
import re
from urllib.parse import quote

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keystead.clock import Clock
from keystead.edge import (
    API,
    LOOPBACK,
    PROBLEM_MEDIA_TYPE,
    CallerKind,
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
from keystead.telemetry import counts, logger
from keystead.web.callers import Identified, identify
from keystead.web.names import HostNames, same_origin

# What needs no log-in; progress of a job is shown to whoever has a ticket for it.
PUBLIC_PATHS = frozenset({
    "/health", "/login", "/session", "/jobs/live", "/api/1/notifications/complete",
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
_SANE_REQUEST_ID = re.compile(rb"[A-Za-z0-9_.:-]{1,100}")

counts.describe("http_requests", "requests answered, by class of status")
_log = logger("web")


class Door:
    """Wraps the assembled application."""

    def __init__(
        self, app: ASGIApp, *, guard: Guard, tickets: Tickets, clock: Clock, names: HostNames,
        trusted_proxies: Networks, cookie_name: str,
    ) -> None:
        self.app = app
        self._guard = guard
        self._tickets = tickets
        self._clock = clock
        self._names = names
        self._trusted = trusted_proxies
        self._cookie_name = cookie_name

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope)
        request_id = headers.request_id()
        answer = _Answer(send, scope, request_id)
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                await self._let_in(scope, headers, receive, answer)
            except KeysteadError as error:
                await answer.refuse(error, wants_page=headers.wants_page)
            except Exception as error:
                _log.error("request failed", kind=scope["type"], exc_info=error)
                await answer.refuse(error, wants_page=False)
            finally:
                if scope["type"] == "http":
                    counts.add("http_requests", status=f"{answer.status // 100}xx")

    async def _let_in(self, scope: Scope, headers: "Headers", receive: Receive, answer: "_Answer") -> None:
        hosts = headers.all(b"host")
        # Two names in one request mean that someone before us may have read the other one.
        if len(hosts) != 1 or not self._names.serves(hosts[0]):
            raise Invalid("this server is not known under the host name that was asked for; "
                          "add the name to the setting http.host_names")
        peer = scope["client"][0] if scope.get("client") else None
        address = client_address(peer, headers.all(b"x-forwarded-for"), self._trusted)
        by_proxy = client_address(peer, (), self._trusted).within(self._trusted)
        if by_proxy and headers.one(b"x-forwarded-proto") == "https":
            # TLS ended at a proxy we trust; cookies made behind it are for TLS only.
            scope["scheme"] = "https" if scope["type"] == "http" else "wss"
        path: str = scope["path"]
        async with self._guard.passage(address):
            found = identify(scope["headers"], self._tickets, self._cookie_name)
            _check_origin(scope, headers, hosts[0], found)
            if not (path.startswith(SANDBOX_PREFIXES) and address.within(LOOPBACK)):
                _check_credential(path, found)
            if path.startswith(LIMITED_PREFIX) and path not in WEBHOOK_PATHS:
                answer.decision = await self._guard.count(API, address)
                if not answer.decision.allowed:
                    raise LimitReached("too many requests from this address",
                                       retry_after_seconds=answer.decision.reset_seconds)
            state = scope.setdefault("state", {})
            state["caller"], state["address"], state["request_id"] = found.caller, address, answer.request_id
            if scope["type"] == "websocket":
                await self._until_session_ends(scope, receive, answer, found)
            else:
                await self.app(scope, _limited(receive, headers, is_webhook=path in WEBHOOK_PATHS), answer)

    async def _until_session_ends(self, scope: Scope, receive: Receive, answer: "_Answer", found: Identified) -> None:
        """An open page must not outlive the log-in that opened it."""
        left = None if found.expires_at is None else found.expires_at - self._clock.now()
        try:
            async with asyncio.timeout(left):
                await self.app(scope, receive, answer)
        except TimeoutError:
            await answer.send({"type": "websocket.close", "code": SESSION_ENDED, "reason": "log-in ended"})


class Headers:
    """The headers of a request, read without building a mapping."""

    def __init__(self, scope: Scope) -> None:
        self._pairs: list[tuple[bytes, bytes]] = scope["headers"]
        self._method: str = scope.get("method", "GET")

    def one(self, name: bytes) -> str:
        return next((value.decode("latin-1") for key, value in self._pairs if key == name), "")

    def all(self, name: bytes) -> list[str]:
        return [value.decode("latin-1") for key, value in self._pairs if key == name]

    def request_id(self) -> str:
        """The client's own id if it is a harmless one, so that its log and ours can be matched."""
        given = self.one(b"x-request-id")
        return given if _SANE_REQUEST_ID.fullmatch(given.encode("latin-1")) else new_uid("req")

    @property
    def wants_page(self) -> bool:
        return self._method in ("GET", "HEAD") and "text/html" in self.one(b"accept")


def _check_credential(path: str, found: Identified) -> None:
    """Whether somebody may come in at all; what they may touch there is decided behind the door."""
    if path in PUBLIC_PATHS or path in WEBHOOK_PATHS or path.startswith(PUBLIC_PREFIXES):
        return
    if not found.caller.known:
        raise NotLoggedIn("this needs a credential: log in with a link from `keystead login-link`, "
                          "or send a bearer token")
    if found.caller.kind is CallerKind.USER and not path.startswith(LIMITED_PREFIX):
        raise Forbidden("this credential is for the HTTP interface alone")


def _check_origin(scope: Scope, headers: Headers, host: str, found: Identified) -> None:
    """A browser adds the cookie to whatever any page asks for; only our own pages may use it to change things.

    A bearer token is never sent by itself, so programs need no origin.
    """
    changes = scope["type"] == "websocket" or scope["method"] not in SAFE_METHODS
    if not changes:
        return
    origin = headers.one(b"origin")
    if (origin or found.by_cookie) and not same_origin(origin, host):
        raise Forbidden("this was sent by a page of another site")


def _limited(receive: Receive, headers: Headers, *, is_webhook: bool) -> Receive:
    """Refuse a body that says it is too long before reading it, and one that turns out to be while reading."""
    announced, most = headers.one(b"content-length"), MOST_WEBHOOK_BYTES if is_webhook else MOST_BODY_BYTES
    refusal = TooLarge(f"the request body is too long; at most {most} bytes are taken")
    if not is_webhook and announced.isascii() and announced.isdigit() and int(announced) > most:
        raise refusal
    taken = 0

    async def receive_some() -> Message:
        nonlocal taken
        message = await receive()
        if message["type"] == "http.request":
            taken += len(message.get("body", b""))
            if taken > most:
                raise refusal
        return message

    return receive_some


class _Answer:
    """Sends on, adds the headers every answer has, and remembers whether one was begun."""

    def __init__(self, send: Send, scope: Scope, request_id: str) -> None:
        self.send = send
        self.request_id = request_id
        self.decision: Decision | None = None
        self.status = 500
        self._scope = scope
        self._begun = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._begun = True
            self.status = message["status"]
            present = {name.lower() for name, _ in message["headers"]}
            added = [*_STANDING_HEADERS, (b"x-request-id", self.request_id.encode())]
            if self.decision is not None:
                added += [(name.lower().encode(), value.encode()) for name, value in self.decision.headers().items()]
            message = {**message, "headers": [*message["headers"], *(pair for pair in added if pair[0] not in present)]}
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
