"""The library's door: a program that declares families of its own connects here, and has all that is done with them."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Self

from keystead.clock import Clock, SystemClock
from keystead.engine import Valkey, connect, sync_clock
from keystead.patterns import Tallies
from keystead.stats.catalogue import Catalogue
from keystead.stats.charts import Charts
from keystead.stats.rotation import Rotation
from keystead.stats.rotation_counts import Gauge
from keystead.stats.tables import FamilyTables
from keystead.store import Database


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counting, rotation and charts of what a program declares."""

    valkey: Valkey
    database: Database
    catalogue: Catalogue
    clock: Clock
    rotation: Rotation
    charts: Charts

    @classmethod
    @asynccontextmanager
    async def open(
        cls, valkey_url: str, database_url: str, *declared: object, gauges: Mapping[str, Gauge] | None = None,
        lanes: int = 1,
    ) -> AsyncIterator[Self]:
        """Connect for as long as the block runs. ``declared``: modules that hold families, or families.
        ``lanes``: how many a cluster has, where something of it is declared in a laned keyspace.

        Their tables are made if they are missing, and get a column for each event that is new.
        """
        catalogue = Catalogue.of(*declared)
        async with AsyncExitStack() as stack:
            valkey = await connect(valkey_url, lanes=lanes)
            stack.push_async_callback(valkey.aclose)
            clock = SystemClock()
            await sync_clock(valkey, clock)
            database = await stack.enter_async_context(Database.open(database_url))
            await FamilyTables(catalogue).ensure(database)
            charts = await stack.enter_async_context(Charts.open(valkey, database, catalogue, clock))
            rotation = Rotation(valkey, database, catalogue, clock, gauges=gauges)
            yield cls(valkey, database, catalogue, clock, rotation, charts)

    def counting(self) -> Tallies:
        """What one piece of work counts, to be filled and stored. It refuses days that have not begun."""
        return Tallies(self.clock.now())
