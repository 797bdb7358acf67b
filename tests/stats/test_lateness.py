"""A day that was due and is still here is late; one that is not due yet, or has left, is not."""

from keystead.app import App
from keystead.patterns import DailyFamily
from keystead.settings import Settings
from keystead.stats import Catalogue, late_days
from keystead.stats.rotation_days import last_due

DAY = 86400


async def test_a_day_is_late_only_once_it_was_due(server):
    catalogue = App(Settings()).catalogue()
    family = next(one for one in catalogue if isinstance(one, DailyFamily) and one.table is not None)
    catalogue = Catalogue([family])
    counted_at = 1_700_000_000.0
    assert await late_days(server, catalogue, now=counted_at + 30 * DAY) == {}, "nothing was ever counted"
    day = last_due(counted_at, family.home, family.rotates_at, 0)
    tally = family.tally(counted_at)
    tally.incr(family.events[0], at=counted_at) if not family.breakdowns.get(family.events[0]) else tally.incr(
        family.events[0], "x", at=counted_at)
    await tally.store(server)
    assert await late_days(server, catalogue, now=counted_at) == {}
    late = await late_days(server, catalogue, now=counted_at + (family.held_days + 2) * DAY)
    assert list(late) == [family.name] and late[family.name] in (day, day + 1)
