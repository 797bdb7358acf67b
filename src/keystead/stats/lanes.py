"""Lanes of a cluster, as those who rotate and read see them: one day of a family lies in each, SQL has their sum."""

from keystead.engine import Valkey
from keystead.patterns import DailyFamily
from keystead.stats.catalogue import Charted


def lanes_of(valkey: Valkey, of: Charted) -> tuple[Valkey, ...]:
    """A client for each lane of it; only daily families are counted by lane, everything else is in one place."""
    return valkey.lanes_of(of.earliest_key) if isinstance(of, DailyFamily) else (valkey,)


def part_of(valkey: Valkey) -> str:
    """What the ids under which SQL has a day of this lane end with. Those of the first lane are as without lanes."""
    return f":lane{valkey.layout.lane}" if valkey.layout.lane else ""


async def ever_counted(valkey: Valkey, of: Charted) -> bool:
    """Whether anything was ever counted, in whichever lane."""
    for lane in lanes_of(valkey, of):
        if await of.earliest(lane) is not None:
            return True
    return False
