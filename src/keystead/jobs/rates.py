"""How many runs of a job may begin: each gets a start of its own, evenly spaced over all workers."""

from keystead.engine import Valkey
from keystead.jobs.book import Rate
from keystead.jobs.keys import RATE


async def reserve_start(valkey: Valkey, name: str, rate: Rate, now: float) -> float | None:
    """When the next run of this job may begin: now, or later. None when all starts of a day ahead are taken."""
    decision = await RATE.at(name).use(valkey, now=now, gap_seconds=rate.seconds / rate.most)
    return decision.starts_at if decision.allowed else None
