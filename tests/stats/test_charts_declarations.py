"""Charts and rotation of what was declared otherwise yesterday."""

import pytest
from sqlalchemy import insert

from keystead import dates
from keystead.engine import Valkey
from keystead.errors import Invalid
from keystead.keys import Keyspace
from keystead.patterns import Cohorts, DailyFamily, DaySet
from keystead.stats.charts import Charts
from keystead.stats.charts_calendar import check_range
from keystead.stats.rotation import Rotation
from keystead.stats.tables import FamilyTables, label
from keystead.store import Database
from keystead.testing.clock import MovableClock

from .charting import LA, NOW, TODAY
from .counted import catalogue


async def test_what_was_a_gauge_may_become_an_event(valkey: Valkey, database: Database, clock: MovableClock) -> None:
    def declared(*counts: str, gauges: tuple[str, ...] = ()) -> DailyFamily:
        shop = Keyspace("shop", tag="shop")
        return DailyFamily(shop, "sales", counts=counts, gauges=gauges, held_days=1, zone=LA.key, table="sales_stats",
                           purpose="what was sold")

    before, now = declared("sold", gauges=("left",)), declared("sold", "left")
    await before.incr(valkey, "sold", unix_date=TODAY - 1)
    await Rotation(valkey, database, catalogue(before), clock).run()
    async with Charts.open(valkey, database, catalogue(now), clock) as charts:
        assert (await charts.recent("sales", 2)).counts == {"sold": [1, 0], "left": [0, 0]}
        await now.incr(valkey, "left", amount=3, unix_date=TODAY - 1)
        assert (await Rotation(valkey, database, catalogue(now), clock).run()).late == 1
        assert (await charts.recent("sales", 2)).counts == {"sold": [1, 0], "left": [3, 0]}


async def test_late_members_show_though_a_period_came_later(
    valkey: Valkey, database: Database, clock: MovableClock
) -> None:
    cohorts = Cohorts(Keyspace("club", tag="club"), "stats:club", periods=(0, 1, 7), window_days=10, zone=LA.key,
                      table="club_stats", purpose="who came back")
    tables, joined = FamilyTables(catalogue(cohorts)), label(TODAY - 20)
    await tables.ensure(database)
    async with database.transaction() as sql:
        for period, late in ((0, 4), (1, 4), (7, 0)):
            await sql.execute(insert(tables.table("club")).values(
                period_days=period, retrieved_for=joined, retrieved_at=NOW, retained=1, unretained=2, late=late))
    async with Charts.open(valkey, database, catalogue(cohorts), clock) as charts:
        assert (await charts.cohorts("club", TODAY - 20, TODAY - 19)).late == [4]


def test_months_that_have_not_begun_anywhere_are_refused() -> None:
    months = DaySet(Keyspace("world", tag="world"), "stats:world", zone=None, monthly=True, purpose="who was there")
    month = dates.unix_month(NOW, months.home)
    check_range(months, month, month + 1, NOW)
    with pytest.raises(Invalid, match="newest of months"):
        check_range(months, month, month + 2, NOW)
