"""When a failed job is tried again."""

import math
import random
from dataclasses import dataclass

from keystead.errors import DeclarationError, Invalid


class RetryLater(Exception):
    """Raised by a job that knows when it should be tried again. Counts as a failed try unless ``counts`` is false."""

    def __init__(self, delay_seconds: float, *, counts: bool = True) -> None:
        if not math.isfinite(delay_seconds):
            raise Invalid(f"a job is tried again after some seconds, not after {delay_seconds}")
        super().__init__(f"to be tried again in {delay_seconds:g} s")
        self.delay_seconds = delay_seconds
        self.counts = counts


class GiveUp(Exception):
    """Raised by a job that knows that another try is useless: it goes to the dead letters at once."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Up to ``tries`` tries in all; the pause doubles from ``first_seconds`` up to ``most_seconds``.

    ``jitter`` is the part of each pause that is left to chance, so that jobs that failed together do not come back
    together. ``only`` narrows which exceptions are worth another try.
    """

    tries: int = 5
    first_seconds: float = 1.0
    most_seconds: float = 900.0
    factor: float = 2.0
    jitter: float = 0.25
    only: tuple[type[Exception], ...] = (Exception,)

    def __post_init__(self) -> None:
        if self.tries < 1 or self.first_seconds < 0 or self.factor < 1 or not 0 <= self.jitter <= 1:
            raise DeclarationError(
                f"a retry needs tries >= 1, first_seconds >= 0, factor >= 1 and jitter from 0 to 1; got {self}"
            )

    def pause_seconds(self, attempt: int) -> float:
        """How long to wait after the failed try number ``attempt``, counted from 1."""
        # The exponent is bounded first: a float overflows long before attempt numbers do.
        pause = min(self.first_seconds * self.factor ** min(attempt - 1, 64), self.most_seconds)
        return pause * (1 - self.jitter * random.random())


DEFAULT = Retry()
NEVER = Retry(tries=1)
