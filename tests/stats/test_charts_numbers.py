"""Sizes of sets and numbers, by day and by month."""

import pytest

from keystead.errors import Invalid
from keystead.patterns.by_day import LATE
from keystead.stats.rotation import Rotation

from .charting import TODAY
from .counted import ACTIVE, ACTIVE_MONTHS, JOINED, catalogue

MAY, JUNE = 664, 665  # of 2025; today is in June


async def test_months_come_from_sql_and_the_running_one_from_the_server(valkey, database, charts, clock):
    await ACTIVE_MONTHS.add(valkey, "a", "b", day=MAY)
    await ACTIVE_MONTHS.add(valkey, "a", day=JUNE)
    before = await charts.numbers("active_months", MAY - 1, JUNE + 1)
    assert (list(before.labels), before.counts["total"]) == (["2025-04", "2025-05", "2025-06"], [0, 2, 1])
    assert before.live == ["2025-05", "2025-06"]
    await Rotation(valkey, database, catalogue(ACTIVE_MONTHS), clock).run()
    assert await ACTIVE_MONTHS.earliest(valkey) == JUNE
    after = await charts.numbers("active_months", MAY - 1, JUNE + 1)
    assert after.counts == before.counts and after.live == ["2025-06"]
    with pytest.raises(Invalid, match="2025-06 is the newest of months"):
        await charts.numbers("active_months", MAY, JUNE + 2)


async def test_late_members_are_counted_apart_and_late_amounts_are_not(valkey, database, charts, clock):
    await ACTIVE.add(valkey, "a", "b", day=TODAY - 1)
    await JOINED.increment(valkey, 5, day=TODAY - 1)
    rotation = Rotation(valkey, database, catalogue(ACTIVE, JOINED), clock)
    await rotation.run()
    assert await ACTIVE.add(valkey, "a", "c", day=TODAY - 1) == LATE
    assert await JOINED.increment(valkey, 2, day=TODAY - 1) == LATE
    for _ in range(2):
        active = await charts.numbers("active", TODAY - 1, TODAY + 1)
        assert active.counts == {"total": [2, 0], "late": [2, 0]}
        assert (await charts.numbers("joined", TODAY - 1, TODAY + 1)).counts == {"total": [7, 0], "late": [0, 0]}
        await rotation.run()
