"""How many jobs end each second, and how: one small look per second, shared by everyone who watches."""

import asyncio
from collections import deque
from dataclasses import dataclass

from keystead.clock import Clock, real
from keystead.engine.failures import ErrorReply
from keystead.errors import Unavailable
from keystead.jobs import Inspection, Tenants
from keystead.jobs.inspection_views import Totals
from keystead.web.sampler import ANSWER_SECONDS, KEPT_SAMPLES, on_a_beat


@dataclass(frozen=True, slots=True)
class JobRates:
    """Jobs per second over the second before ``at``; ``tenants``: of the fair queue, beside those of the others."""

    done: float
    failed: float
    retried: float
    tenants: float = 0.0


@dataclass(frozen=True, slots=True)
class JobRateSample:
    """``rates`` is None while the server was away, or had just come back."""

    at: float
    rates: JobRates | None


class JobRateSampler:
    """Samples while ``run`` runs. ``samples`` are the last ten minutes, oldest first."""

    def __init__(self, inspection: Inspection, clock: Clock, tenants: Tenants | None = None) -> None:
        self._inspection, self._clock, self._tenants = inspection, real(clock), tenants
        self._last: tuple[float, Totals, int] | None = None
        self.samples: deque[JobRateSample] = deque(maxlen=KEPT_SAMPLES)

    @property
    def newest(self) -> JobRates | None:
        return self.samples[-1].rates if self.samples else None

    async def run(self) -> None:
        """Sample until cancelled."""
        await on_a_beat(self.sample)

    async def sample(self) -> None:
        """Look once. Never raises for a server that is away, or holds something else where the totals should be."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                totals = await self._inspection.totals()
                fair = (await self._tenants.totals()).acked if self._tenants is not None else 0
        except (Unavailable, TimeoutError, ErrorReply):
            self._last = None
            self.samples.append(JobRateSample(self._clock.now(), None))
            return
        now, rates = asyncio.get_running_loop().time(), None
        if self._last is not None and now > self._last[0]:
            rates = _rates(self._last[1], totals, fair - self._last[2], now - self._last[0])
        self._last = now, totals, fair
        self.samples.append(JobRateSample(self._clock.now(), rates))


def _rates(before: Totals, after: Totals, tenants: int, seconds: float) -> JobRates | None:
    """None when the totals went back: someone emptied the server."""
    grown = after.done - before.done, after.failed - before.failed, after.retried - before.retried, tenants
    return None if min(grown) < 0 else JobRates(*(count / seconds for count in grown))
