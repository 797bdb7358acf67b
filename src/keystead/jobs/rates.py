"""How many runs of a job may begin: each gets a start of its own, evenly spaced over all workers."""

from functools import lru_cache

from keystead.engine import Valkey
from keystead.jobs.book import Rate
from keystead.jobs.keys import JOBS, RATE, RATE_AHEAD_SECONDS
from keystead.keys import Keyspace
from keystead.patterns import SpacedSlots


async def reserve_start(valkey: Valkey, name: str, rate: Rate, now: float) -> float | None:
    """When the next run of this job may begin: now, or later. None when all starts of a day ahead are taken."""
    decision = await _slots(rate).at(name).use(valkey, now=now)
    return decision.starts_at if decision.allowed else None


@lru_cache(maxsize=256)
def _slots(rate: Rate) -> SpacedSlots:
    # A rate is a fact of the job, a declaration is one of the key: this one has the name of the declared key.
    return SpacedSlots(
        Keyspace("jobs", tag=JOBS.tag), RATE.key.pattern, gap_seconds=rate.seconds / rate.most,
        most_ahead_seconds=RATE_AHEAD_SECONDS, purpose="starts of one rate",
    )
