"""Signed tickets: whoever holds one may do one thing until a given time, some of them only once.

A ticket is ``body.signature`` in URL-safe characters. The body can be read by anyone and holds no secret; the
signature is HMAC-SHA256 under a secret that stays in the data directory.
"""

import binascii
import hmac
import os
import re
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256
from pathlib import Path

import msgspec

from keystead.clock import Clock
from keystead.edge.endings import Endings
from keystead.edge.keys import TICKET_MOST_SECONDS, TICKET_USED
from keystead.edge.refusals import TicketExpired, TicketTampered, TicketUsed
from keystead.engine import Valkey
from keystead.engine.failures import ErrorReply
from keystead.errors import Invalid, Unavailable

SECRET_FILE = "ticket.secret"  # noqa: S105 - the name of the file, not the secret
SECRET_BYTES = 32
# In hex, since people give it to commands, and there it must not look like an option.
UID_BYTES = 12
TICKET_UID = re.compile(rf"[0-9a-f]{{{2 * UID_BYTES}}}")
MOST_TICKET_CHARACTERS = 4096
# The subject of such a ticket is the sub of a person.
USER_PURPOSE = "user"

_CONTEXT = b"keystead ticket 1\0"


class Ticket(msgspec.Struct, frozen=True, array_like=True):
    """What a ticket says. ``uid`` makes two tickets for the same thing different."""

    purpose: str
    subject: str
    expires_at: float
    uid: str
    once: bool = False
    scopes: tuple[str, ...] = ()
    issued_at: float = 0.0


class Tickets:
    """Issues and reads tickets under one secret. Without ``endings`` each lasts for all of its time."""

    def __init__(self, secret: bytes, clock: Clock, endings: Endings | None = None) -> None:
        if len(secret) < SECRET_BYTES:
            raise Invalid(f"the ticket secret is too short: {len(secret)} bytes, at least {SECRET_BYTES} are needed")
        self._secret = secret
        self._clock = clock
        self._endings = endings

    def issue(
        self, purpose: str, subject: str, *, lasts_seconds: float, once: bool = False, scopes: tuple[str, ...] = ()
    ) -> str:
        """A ticket for ``purpose`` that counts until ``lasts_seconds`` from now. Remembers nothing: no I/O."""
        if once and lasts_seconds > TICKET_MOST_SECONDS:
            raise Invalid(f"a single-use ticket lasts at most {TICKET_MOST_SECONDS} seconds, not {lasts_seconds:g}")
        now = self._clock.now()
        ticket = Ticket(purpose, subject, now + lasts_seconds, secrets.token_hex(UID_BYTES), once, scopes, now)
        body = _to_text(msgspec.json.encode(ticket))
        return f"{body}.{self._signature(body)}"

    def read(self, purpose: str | tuple[str, ...], text: str) -> Ticket:
        """What the ticket says, if it was issued here, for this purpose or one of these, and has not ended.

        Refuses with ``TicketTampered`` or ``TicketExpired``. Does not say whether a single-use ticket was used.
        """
        body, dot, signature = text.partition(".")
        if not dot or len(text) > MOST_TICKET_CHARACTERS:
            raise TicketTampered("this is not a ticket that was issued here")
        # Compared as bytes: compare_digest refuses non-ASCII text, which a client may well send.
        if not hmac.compare_digest(self._signature(body).encode(), signature.encode("utf-8", "surrogatepass")):
            raise TicketTampered("this is not a ticket that was issued here")
        try:
            ticket = msgspec.json.decode(_from_text(body), type=Ticket)
        except (msgspec.MsgspecError, binascii.Error, ValueError):
            raise TicketTampered("this ticket was issued by a version that wrote them differently") from None
        if ticket.purpose not in ((purpose,) if isinstance(purpose, str) else purpose):
            raise TicketTampered("this ticket is for something else")
        if ticket.expires_at <= self._clock.now():
            raise TicketExpired("this ticket has expired")
        if self.has_ended(ticket):
            raise TicketExpired("this ticket was ended before its time")
        return ticket

    def has_ended(self, ticket: Ticket) -> bool:
        """Whether a ticket that was read before was ended before its time. Asks nobody."""
        return self._endings is not None and self._endings.has(
            ticket.purpose, ticket.subject, ticket.uid, ticket.issued_at)

    async def redeem(self, valkey: Valkey, purpose: str, text: str) -> Ticket:
        """``read``, and use a single-use ticket up: of any number of callers at once, one gets it.

        The others are refused with ``TicketUsed``. The mark outlives the ticket, so there is no second chance in
        between; while the server is away or takes no writes, nothing is redeemed (``Unavailable``).
        """
        ticket = self.read(purpose, text)
        if ticket.once:
            # A second more than the rest, so that the mark never ends before the ticket does.
            left_seconds = ticket.expires_at - self._clock.now() + 1
            mark = TICKET_USED.at(sha256(ticket.uid.encode()).hexdigest()).lasting(left_seconds)
            try:
                first = await mark.try_raise(valkey)
            except ErrorReply as error:
                raise Unavailable("used tickets cannot be remembered: the server refuses to write; is its memory "
                                  "full?") from error
            if not first:
                raise TicketUsed("this ticket works once and was used")
        return ticket

    def derive(self, context: bytes, what: bytes) -> bytes:
        """A key of 32 bytes for ``what``, which nobody can make without the secret; another for each context."""
        return hmac.digest(self._secret, b"keystead " + context + b"\0" + what, "sha256")

    def _signature(self, body: str) -> str:
        return _to_text(hmac.digest(self._secret, _CONTEXT + body.encode("utf-8", "surrogatepass"), "sha256"))


def user_token(tickets: Tickets, sub: str, *, lasts_seconds: float) -> str:
    """A bearer token with which a person may do what is theirs."""
    return tickets.issue(USER_PURPOSE, sub, lasts_seconds=lasts_seconds)


def load_secret(directory: Path) -> bytes:
    """The secret of a data directory, made on first use; two processes that make it at once end up with one.

    The file belongs to its owner alone (0600). Refuses with ``Invalid`` one that others may read.
    """
    path = directory / SECRET_FILE
    try:
        if not path.exists():
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            draft = directory / f"{SECRET_FILE}.{secrets.token_hex(6)}"
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(secrets.token_bytes(SECRET_BYTES))
                    file.flush()
                    os.fsync(file.fileno())
                # A link, not a rename: it never replaces a secret that another process made meanwhile.
                path.hardlink_to(draft)
            except FileExistsError:
                pass
            finally:
                draft.unlink()
        if path.stat().st_mode & 0o077:
            raise Invalid(f"{path} can be read by others; make it private with: chmod 600 {path}")
        secret = path.read_bytes()
    except OSError as error:
        raise Invalid(f"{error.filename or path}: {error.strerror}; the data directory must be writable") from error
    if len(secret) < SECRET_BYTES:
        raise Invalid(f"{path} is damaged ({len(secret)} bytes); remove it to get a new one (everyone logs in again)")
    return secret


def _to_text(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def _from_text(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
