"""Everything that is counted, by name."""

from types import ModuleType

import pytest
from sqlalchemy import func, select

from keystead.app import App
from keystead.clock import SystemClock
from keystead.engine import Valkey
from keystead.errors import DeclarationError, NotFound
from keystead.jobs import RunFacts
from keystead.keys import Keyspace, RecordKey
from keystead.patterns import Counter, DailyFamily, DaySet, LateCount, MonthlyCounter
from keystead.settings import Settings
from keystead.stats import Catalogue, Charts, FamilyTables, Rotation
from keystead.store import Database

from .documented import documented

SHOP = Keyspace("shop", tag="shop")
ORDERS = DailyFamily(SHOP, "orders", counts=("placed",), held_days=1, zone="UTC", table="order_stats", purpose="orders")
BUYERS = DaySet(SHOP, "stats:buyers", zone="UTC", table="buyer_stats", personal=True, purpose="who bought")
SALES = MonthlyCounter(SHOP, "stats:sales", zone="UTC", purpose="what was sold")
RUN = RecordKey(SHOP, "stats:shop:send_job", RunFacts, purpose="the last run")
OTHER = RecordKey(SHOP, "shop:record", LateCount, purpose="no run")


def test_a_module_gives_what_it_holds_and_the_same_thing_twice_counts_once():
    module = ModuleType("shop.stats")
    module.ORDERS = module.ALIAS = ORDERS  # type: ignore[attr-defined]
    module.number = 5  # type: ignore[attr-defined]
    catalogue = Catalogue.of(module, BUYERS, SALES, RUN, OTHER)
    assert list(catalogue) == [ORDERS, BUYERS] and len(catalogue) == 2
    assert dict(catalogue.families) == {"orders": ORDERS}
    assert dict(catalogue.day_sets) == {"buyers": BUYERS}
    assert dict(catalogue.totals) == dict(catalogue.monthly) == {"sales": SALES}
    assert dict(catalogue.runs) == {"shop:send_job": RUN}
    assert catalogue.find("orders") is ORDERS


def test_an_unknown_name_is_answered_with_the_near_one():
    catalogue = Catalogue.of(ORDERS, BUYERS)
    with pytest.raises(NotFound, match="nothing is counted as 'order'; did you mean orders"):
        catalogue.find("order")
    with pytest.raises(NotFound, match="there are 2"):
        catalogue.find("zzz")


def test_a_family_declared_twice_with_other_events_is_refused_by_name():
    elsewhere = Keyspace("elsewhere")
    twice = DailyFamily(elsewhere, "orders", counts=("placed", "paid"), held_days=1, zone="UTC", table="more",
                        purpose="orders again")
    says = "orders is declared twice as counted: with placed, and with placed, paid"
    with pytest.raises(DeclarationError, match=says):
        Catalogue.of(ORDERS, twice)


def test_two_families_of_one_table_are_refused_by_name():
    other = DailyFamily(Keyspace("other"), "returns", counts=("a",), held_days=1, zone="UTC", table="order_stats",
                        purpose="x")
    with pytest.raises(DeclarationError, match="returns and orders both declare the table order_stats"):
        Catalogue.of(ORDERS, other)


def test_the_rooms_declare_every_documented_family():
    catalogue = App(Settings()).catalogue()
    assert set(documented()) <= set(catalogue.families)
    assert len(catalogue.runs) == 22 and set(catalogue.totals) == {
        "users", "journeys", "instructors", "interactive_prompt_sessions", "journey_sessions",
    }


async def test_what_is_declared_and_never_counted_costs_nothing(valkey: Valkey, database: Database) -> None:
    """Neither a key nor a row, after a rotation of everything and after charts of everything."""
    catalogue, clock = App(Settings()).catalogue(), SystemClock()
    report = await Rotation(valkey, database, catalogue, clock).run()
    assert (report.days, report.late, report.problems) == (0, 0, [])
    async with Charts.open(valkey, database, catalogue, clock) as charts:
        for name in catalogue.families:
            assert not any(map(any, (await charts.recent(name, 7)).counts.values())), name
    assert await valkey.dbsize() == 0
    async with database.reading() as sql:
        tables = FamilyTables(catalogue)
        rows = [await sql.scalar(select(func.count()).select_from(tables.table(one.name)))
                for one in catalogue if one.table is not None]
    assert sum(rows) == 0 and len(rows) > 20


def test_days_that_nobody_would_ever_take_away_are_refused_by_name() -> None:
    forever = DailyFamily(Keyspace("other"), "forever", counts=("a",), held_days=1, zone="UTC", purpose="x")
    with pytest.raises(DeclarationError, match=r"forever: say table= .* or kept_seconds="):
        Catalogue.of(forever)
    with pytest.raises(DeclarationError, match="crowd: say table="):
        Catalogue.of(DaySet(Keyspace("other"), "stats:crowd", zone="UTC", purpose="x"))


def test_only_families_are_counted_by_lane() -> None:
    room = Keyspace("laned", tag="laned", laned=True)
    with pytest.raises(DeclarationError, match="only daily families are counted by lane"):
        Catalogue([MonthlyCounter(room, "stats:people", zone="UTC", purpose="a test")])
    with pytest.raises(DeclarationError, match="only daily families are counted by lane"):
        Catalogue([Counter(room, "stats:all", purpose="a test")])
