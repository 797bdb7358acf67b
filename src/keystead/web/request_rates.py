"""How many requests this process answers each second, and how many of them failed: counted here, no server is asked."""

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Final

from keystead.clock import Clock, real
from keystead.telemetry import Counts
from keystead.web.sampler import KEPT_SAMPLES, on_a_beat

COUNTED: Final = "http_requests"
CLASSES: Final = ("2xx", "3xx", "4xx", "5xx")
# After a stall two beats come at once; a request in a few milliseconds would look like hundreds in a second.
LEAST_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class RequestRate:
    """Requests per second up to ``at``; ``failed``: of those, answered with a status of 500 or more."""

    at: float
    answered: float
    failed: float


class RequestRateSampler:
    """Samples while ``run`` runs. ``samples`` are the last ten minutes, oldest first."""

    def __init__(self, counts: Counts, clock: Clock) -> None:
        self._counts, self._clock = counts, real(clock)
        self._last: tuple[float, float, float] | None = None
        self.samples: deque[RequestRate] = deque(maxlen=KEPT_SAMPLES)

    @property
    def newest(self) -> RequestRate | None:
        return self.samples[-1] if self.samples else None

    async def run(self) -> None:
        """Sample until cancelled."""
        await on_a_beat(self.sample)

    async def sample(self) -> None:
        """Look once."""
        now = asyncio.get_running_loop().time()
        by_class = [self._counts.value(COUNTED, status=status) for status in CLASSES]
        answered, failed = sum(by_class), by_class[-1]
        if self._last is None:
            self._last = now, answered, failed
        elif (passed := now - self._last[0]) >= LEAST_SECONDS:
            self.samples.append(RequestRate(
                self._clock.now(), (answered - self._last[1]) / passed, (failed - self._last[2]) / passed))
            self._last = now, answered, failed
