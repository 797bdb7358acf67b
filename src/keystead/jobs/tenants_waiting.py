"""Since when tenants wait: the age of what is first in each one's line."""

import asyncio
import uuid
from collections.abc import Sequence

from keystead.engine import Valkey
from keystead.jobs.keys import FAIR


async def waiting_since(valkey: Valkey, tenants: Sequence[str]) -> dict[str, float]:
    """When the job that is next in each tenant's line was enqueued; who has nothing ready is left out.

    One command for each of them, in one round trip.
    """
    ready = FAIR.keys.names(valkey.layout).ready
    heads: list[list[bytes]] = await asyncio.gather(*(
        valkey.run(("ZRANGE", ready % tenant.encode(), 0, 0), list, repeat=True) for tenant in tenants
    ))
    found = {tenant: _made_at(head[0]) for tenant, head in zip(tenants, heads, strict=True) if head}
    return {tenant: at for tenant, at in found.items() if at is not None}


def _made_at(raw_id: bytes) -> float | None:
    """The moment in a job's id, which is a UUID of version 7; None for an id of another kind."""
    try:
        made = uuid.UUID(raw_id.decode())
    except ValueError:
        return None
    return (made.int >> 80) / 1000 if made.version == 7 else None
