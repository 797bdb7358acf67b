"""Which days are still in Valkey though they were due to leave."""

from keystead.engine import Valkey
from keystead.patterns import DailyFamily
from keystead.stats.catalogue import Catalogue
from keystead.stats.lanes import lanes_of
from keystead.stats.rotation_days import last_due


async def late_days(valkey: Valkey, catalogue: Catalogue, *, now: float) -> dict[str, int]:
    """By name, the earliest day (or month) that was due by ``now`` and is still here; empty when all have left.

    Two commands for each thing that is counted; nothing is changed.
    """
    late: dict[str, int] = {}
    for one in catalogue:
        if one.table is None:
            continue
        monthly = not isinstance(one, DailyFamily) and one.monthly
        due = last_due(now, one.home, one.rotates_at, one.held_days, monthly=monthly)
        found = [await one.earliest(lane) for lane in lanes_of(valkey, one)]
        here = min((day for day in found if day is not None), default=None)
        if here is not None and here <= due:
            late[one.name] = here
    return late
