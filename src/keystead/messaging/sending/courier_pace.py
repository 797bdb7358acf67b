"""How fast a provider may be asked: each message gets a start of its own, evenly spaced over all processes."""

import math
from collections.abc import Awaitable

from keystead.engine import Script
from keystead.engine.scripts import ScriptRunner
from keystead.keys import StringRef
from keystead.messaging.sending.channel import PACE_AHEAD_SECONDS

RESERVE = Script("keystead.patterns", "scripts/limits/reserve.lua")
_NEXT_FREE = 0


class Pace:
    """Starts in a row. With a rate of 0 every start is now."""

    def __init__(self, row: StringRef[float], per_second: float) -> None:
        self.gap_seconds = 1.0 / per_second if per_second > 0 else 0.0
        self._row = row

    @property
    def is_limited(self) -> bool:
        return self.gap_seconds > 0

    def reserve(self, on: ScriptRunner, messages: int, *, now: float) -> Awaitable[float]:
        """When the first of so many messages may be sent; the others follow a gap apart."""
        gap = math.ceil(min(self.gap_seconds * messages, PACE_AHEAD_SECONDS) * 1e6)

        def start(reply: list[int]) -> float:
            allowed, _, retry_ms, _, starts_at = reply
            # A row that is full for an hour is joined at its end.
            return int(starts_at) / 1e6 if allowed else now + PACE_AHEAD_SECONDS + retry_ms / 1000

        return RESERVE(on, keys=[self._row], args=(round(now * 1e6), gap, 0, PACE_AHEAD_SECONDS * 10**6, _NEXT_FREE),
                       decode=start)
