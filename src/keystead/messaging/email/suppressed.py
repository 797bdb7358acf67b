"""Addresses that must not be written to."""

from keystead.clock import Clock
from keystead.members import Suppression, folded_email
from keystead.messaging.sending import Listed


class Suppressed(Listed):
    """Whether an address is suppressed, whatever its case."""

    def __init__(self, suppression: Suppression, clock: Clock) -> None:
        super().__init__(suppression.emails, clock, folded=folded_email)
