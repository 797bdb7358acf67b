"""Cookie or bearer token → ``Caller``. The doors of the rooms read only the result."""

from collections.abc import Iterable
from dataclasses import dataclass

from keystead.edge import ANONYMOUS, Caller, CallerKind, TicketRefused, Tickets

LOGIN_PURPOSE = "login"
SESSION_PURPOSE = "session"
TOKEN_PURPOSE = "token"  # noqa: S105 - the purpose of a ticket, not a secret
OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Identified:
    """Who it is, until when that counts, and whether a browser sent the proof by itself (a cookie)."""

    caller: Caller
    expires_at: float | None = None
    by_cookie: bool = False


NOBODY = Identified(ANONYMOUS)

Headers = Iterable[tuple[bytes, bytes]]


def identify(headers: Headers, tickets: Tickets, cookie_name: str) -> Identified:
    """Read the proof a request carries. One that does not count is the same as none.

    A bearer token goes before a cookie, so that a program sharing a browser's cookies is what it says it is.
    """
    cookie = ""
    for name, value in headers:
        if name == b"authorization" and value[:7].lower() == b"bearer ":
            return _program(value[7:].strip().decode("latin-1"), tickets)
        if name == b"cookie":
            cookie = cookie or _cookie_value(value.decode("latin-1"), cookie_name)
    if not cookie:
        return NOBODY
    try:
        ticket = tickets.read(SESSION_PURPOSE, cookie)
    except TicketRefused:
        return NOBODY
    return Identified(Caller(CallerKind.OPERATOR, ticket.subject), ticket.expires_at, by_cookie=True)


def _program(text: str, tickets: Tickets) -> Identified:
    try:
        ticket = tickets.read(TOKEN_PURPOSE, text)
    except TicketRefused:
        return NOBODY
    kind = CallerKind.OPERATOR if ticket.subject == OPERATOR else CallerKind.PROGRAM
    return Identified(Caller(kind, ticket.subject, frozenset(ticket.scopes)), ticket.expires_at)


def _cookie_value(header: str, name: str) -> str:
    for part in header.split(";"):
        key, equals, value = part.strip().partition("=")
        if equals and key == name:
            return value
    return ""


def cookie_name(port: int) -> str:
    """Cookies do not tell ports apart, and two installations on one machine must not log each other out."""
    return f"keystead_session_{port}"
