"""Cookie or bearer token → ``Caller``. The doors of the rooms read only the result."""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from keystead.edge import ANONYMOUS, USER_HEADER, USER_PURPOSE, Caller, CallerKind, Ticket, TicketRefused, Tickets
from keystead.operations import KEY_PREFIX, AdminKeys, key_subject

LOGIN_PURPOSE = "login"
SESSION_PURPOSE = "session"
TOKEN_PURPOSE = "token"  # noqa: S105 - the purpose of a ticket, not a secret
OPERATOR = "operator"
MOST_SUB_CHARACTERS = 255
KEY_LOOK_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Identified:
    """Who it is, until when that counts, and whether a browser sent the proof by itself (a cookie).

    ``wrong_key``: it came with a key that nobody has, or that was taken back; whoever tries many is slowed down.
    ``key_id`` or ``ticket``: what it came with, which may be taken back or ended meanwhile.
    """

    caller: Caller
    expires_at: float | None = None
    by_cookie: bool = False
    wrong_key: bool = False
    key_id: str = ""
    ticket: Ticket | None = None


NOBODY = Identified(ANONYMOUS)
WRONG_KEY = Identified(ANONYMOUS, wrong_key=True)
_USER_HEADER = USER_HEADER.encode()

Headers = Iterable[tuple[bytes, bytes]]


def identify(
    headers: Headers, tickets: Tickets, cookie_name: str, keys: AdminKeys | None = None
) -> Identified:
    """Read the proof a request carries. One that does not count is the same as none.

    A bearer token goes before a cookie, so that a program sharing a browser's cookies is what it says it is. For whom
    somebody asks is only written down here; whether they may is decided by whoever needs to know.
    """
    cookie = token = acts_for = ""
    for name, value in headers:
        if name == b"authorization" and value[:7].lower() == b"bearer ":
            token = token or value[7:].strip().decode("latin-1") or "none"
        elif name == b"cookie":
            cookie = cookie or _cookie_value(value.decode("latin-1"), cookie_name)
        elif name == _USER_HEADER:
            # Two names in one request are one that nobody can have.
            acts_for += (" " if acts_for else "") + value.strip().decode("latin-1")
    found = _by_token(token, tickets, keys) if token else _by_cookie(cookie, tickets)
    if not acts_for or not found.caller.known:
        return found
    return replace(found, caller=replace(found.caller, acts_for=acts_for[:MOST_SUB_CHARACTERS + 1]))


def _by_cookie(cookie: str, tickets: Tickets) -> Identified:
    if not cookie:
        return NOBODY
    try:
        ticket = tickets.read(SESSION_PURPOSE, cookie)
    except TicketRefused:
        return NOBODY
    return Identified(Caller(CallerKind.OPERATOR, ticket.subject), ticket.expires_at, by_cookie=True, ticket=ticket)


def _by_token(text: str, tickets: Tickets, keys: AdminKeys | None) -> Identified:
    if text.startswith(KEY_PREFIX) and keys is not None:
        return _by_key(text, keys)
    try:
        ticket = tickets.read((TOKEN_PURPOSE, USER_PURPOSE), text)
    except TicketRefused:
        return NOBODY
    if ticket.purpose == USER_PURPOSE:
        return Identified(Caller(CallerKind.USER, ticket.subject), ticket.expires_at, ticket=ticket)
    kind = CallerKind.OPERATOR if ticket.subject == OPERATOR else CallerKind.PROGRAM
    return Identified(Caller(kind, ticket.subject, frozenset(ticket.scopes)), ticket.expires_at, ticket=ticket)


def _by_key(text: str, keys: AdminKeys) -> Identified:
    key = keys.find(text)
    if key is None:
        return WRONG_KEY
    return Identified(Caller(CallerKind.PROGRAM, key_subject(key.id), key.scopes), key.expires_at, key_id=key.id)


@contextmanager
def ends_with_proof(
    limit: asyncio.Timeout, found: Identified, tickets: Tickets, keys: AdminKeys | None
) -> Iterator[None]:
    """A key or token that is taken back, and a log-out, close what was opened: ``limit`` is over soon after that."""
    if found.ticket is None and (keys is None or not found.key_id):
        yield
        return
    loop = asyncio.get_running_loop()

    def works() -> bool:
        if found.ticket is not None:
            return not tickets.has_ended(found.ticket)
        return keys is not None and keys.works(found.key_id)

    def look() -> None:
        if works():
            waiting.append(loop.call_later(KEY_LOOK_SECONDS, look))
            del waiting[0]
        elif not limit.expired():
            limit.reschedule(loop.time())

    waiting = [loop.call_later(KEY_LOOK_SECONDS, look)]
    try:
        yield
    finally:
        waiting[0].cancel()


def session_of(headers: Headers, tickets: Tickets, cookie_name: str) -> Ticket | None:
    """The session whose cookie a request carries, if it has not ended; whatever else the request carries."""
    cookie = next((found for name, value in headers if name == b"cookie"
                   and (found := _cookie_value(value.decode("latin-1"), cookie_name))), "")
    return _by_cookie(cookie, tickets).ticket


def _cookie_value(header: str, name: str) -> str:
    for part in header.split(";"):
        key, equals, value = part.strip().partition("=")
        if equals and key == name:
            return value
    return ""


def cookie_name(port: int) -> str:
    """Cookies do not tell ports apart, and two installations on one machine must not log each other out."""
    return f"keystead_session_{port}"
