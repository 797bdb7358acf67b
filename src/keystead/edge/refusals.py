"""Refusals that only a door can speak: nobody is there, not for you, too large, blocked, a bad ticket."""

from keystead.errors import Conflict, Refused


class NotLoggedIn(Refused):
    """The request carries no credential, or one that no longer counts."""


class Forbidden(Refused):
    """The caller is known and still may not do this."""


class Blocked(Refused):
    """The address is blocked. Says when it ends and never why."""

    def __init__(self, message: str, *, retry_after_seconds: float) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class TooLarge(Refused):
    """The request body is longer than the server takes."""


class KeyReused(Refused):
    """An idempotency key came again with another request."""


class KeyInUse(Conflict):
    """The request with this idempotency key has begun elsewhere and cannot be answered from here now."""

    problem_type = "idempotency_key_in_use"

    def __init__(self, message: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class TicketRefused(NotLoggedIn):
    """A ticket does not open this door. The subclasses say why, so that a page can say what to do next."""


class TicketTampered(TicketRefused):
    """Not issued here, issued for another purpose, or changed on the way."""


class TicketExpired(TicketRefused):
    """Was good once; its time ran out."""


class TicketUsed(TicketRefused):
    """Works once, and was used."""
