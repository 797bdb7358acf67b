"""What the town says of itself: a short line now and then, never a stream."""

import time
from collections.abc import Callable
from typing import Final

LEAST_SECONDS: Final = 4.0


class Telling:
    """Hands lines on, with a pause between them; what comes too soon is left out unless it matters."""

    def __init__(
        self, say: Callable[[str], None], *, every_seconds: float = LEAST_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._say, self._every, self._clock = say, every_seconds, clock
        self._next_at = 0.0

    def now_and_then(self, line: str) -> None:
        if line and self._clock() >= self._next_at:
            self.at_once(line)

    def at_once(self, line: str) -> None:
        self._next_at = self._clock() + self._every
        self._say(line)
