"""Numbers that must not be texted."""

from keystead.clock import Clock
from keystead.members import Suppression
from keystead.messaging.sending import Listed


class Suppressed(Listed):
    """Whether a number is suppressed."""

    def __init__(self, suppression: Suppression, clock: Clock) -> None:
        super().__init__(suppression.phones, clock)
