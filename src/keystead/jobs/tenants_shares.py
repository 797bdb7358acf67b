"""What each tenant asks for and gets, minute by minute. Written by whoever queues and runs their jobs."""

from collections.abc import Awaitable, Mapping
from typing import Final

from keystead.engine import Script, Valkey
from keystead.jobs.keys import TENANT_MINUTE_SECONDS
from keystead.keys import SortedSetKey

MINUTE_SECONDS: Final = 60
_COUNT: Final = Script("keystead.jobs", "scripts/tenants_count.lua")


def count(
    valkey: Valkey, minutes: SortedSetKey[str], costs: Mapping[str, float], *, now: float
) -> Awaitable[int]:
    """Add to what tenants asked for (``ASKED``) or got (``SERVED``) in this minute; ``now`` is real time."""
    flat = [text for tenant, cost in costs.items() for text in (tenant, str(cost))]
    return _COUNT(valkey, keys=[minutes.at(int(now) // MINUTE_SECONDS)], args=[TENANT_MINUTE_SECONDS * 1000, *flat],
                  decode=int)
