"""The one place that knows status codes: error → status, and the one body every refusal has.

The body is ``{type, message, markdown?}`` and, with ``title``, ``status`` and ``detail``, also a problem document of
RFC 9457. ``type`` is stable and meant for programs; ``message`` is meant for people.
"""

import math
from dataclasses import dataclass, field

from keystead import errors
from keystead.edge import refusals

PROBLEM_MEDIA_TYPE = "application/problem+json"


@dataclass(frozen=True, slots=True)
class Answer:
    """One row of the table."""

    status: int
    type: str
    title: str


# The nearest class up the tree decides.
TABLE: dict[type[Exception], Answer] = {
    errors.Refused: Answer(400, "refused", "Refused"),
    errors.Invalid: Answer(400, "invalid", "Invalid request"),
    # The value came with the request, or nothing like it could ever have been stored.
    errors.NotInKey: Answer(400, "invalid", "Invalid request"),
    errors.NotFound: Answer(404, "not_found", "Not found"),
    errors.Conflict: Answer(409, "conflict", "Conflict"),
    errors.LimitReached: Answer(429, "limit_reached", "Too many requests"),
    errors.NotOwner: Answer(403, "not_owner", "Not yours"),
    refusals.NotLoggedIn: Answer(401, "not_logged_in", "Credential needed"),
    refusals.TicketTampered: Answer(401, "ticket_not_valid", "Ticket not valid"),
    refusals.TicketExpired: Answer(401, "ticket_expired", "Ticket expired"),
    refusals.TicketUsed: Answer(401, "ticket_used", "Ticket already used"),
    refusals.Forbidden: Answer(403, "forbidden", "Not allowed"),
    refusals.Blocked: Answer(403, "blocked", "Blocked"),
    refusals.KeyReused: Answer(422, "idempotency_key_reused", "Idempotency key reused"),
    refusals.TooLarge: Answer(413, "too_large", "Request too large"),
    errors.Unavailable: Answer(503, "unavailable", "Temporarily unavailable"),
    errors.GatewayError: Answer(502, "gateway", "Outside service failed"),
    errors.Corrupt: Answer(500, "corrupt", "Stored value does not decode"),
    errors.KeysteadError: Answer(500, "internal", "Internal error"),
    Exception: Answer(500, "internal", "Internal error"),
}

# Statuses that a web framework answers by itself, so that these answers have the same body.
_BY_STATUS = {
    404: Answer(404, "not_found", "Not found"),
    405: Answer(405, "method_not_allowed", "Method not allowed"),
    413: TABLE[refusals.TooLarge],
    422: TABLE[errors.Invalid],
}

UNAVAILABLE_RETRY_SECONDS = 2


@dataclass(frozen=True, slots=True)
class Problem:
    """What the client gets: status, headers to add, and the body."""

    status: int
    type: str
    title: str
    message: str
    markdown: str | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def body(self) -> dict[str, object]:
        body: dict[str, object] = {
            "type": self.type, "message": self.message, "title": self.title, "status": self.status,
            "detail": self.message,
        }
        if self.markdown is not None:
            body["markdown"] = self.markdown
        return body


def problem_of(error: Exception) -> Problem:
    """How ``error`` is answered. Nothing of an unexpected error reaches the client."""
    answer = next(TABLE[parent] for parent in type(error).__mro__ if parent in TABLE)
    headers: dict[str, str] = {}
    retry_after = getattr(error, "retry_after_seconds", None)
    if retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(retry_after)))
    elif isinstance(error, errors.Unavailable):
        headers["Retry-After"] = str(UNAVAILABLE_RETRY_SECONDS)
    if answer.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    # A Keystead message is written for the reader; any other text may hold anything.
    known = isinstance(error, errors.KeysteadError) and answer.status != 500
    message = str(error) if known and str(error) else "something went wrong here; the log has the details" \
        if answer.status == 500 else answer.title
    if isinstance(error, errors.NotInKey):
        message = "a name in the request is empty, too long, or holds characters that it cannot"
    # An error that a program must tell from others of its branch names its own type.
    return Problem(answer.status, getattr(error, "problem_type", answer.type), answer.title, message, headers=headers)


def problem_of_status(status: int, message: str = "") -> Problem:
    """How a bare status, as a web framework raises it, is answered."""
    answer = _BY_STATUS.get(status) or Answer(status, f"status_{status}", "Refused" if status < 500 else "Failed")
    return Problem(answer.status, answer.type, answer.title, message or answer.title)
