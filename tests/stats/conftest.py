"""Charts over everything that ``counted`` declares, at a moment that a test moves by hand."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from keystead.engine import Valkey
from keystead.stats.charts import Charts
from keystead.stats.tables import FamilyTables
from keystead.store import Database
from keystead.testing.clock import MovableClock

from .charting import NOW
from .counted import catalogue


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock(now=NOW)


@pytest_asyncio.fixture
async def charts(valkey: Valkey, database: Database, clock: MovableClock) -> AsyncIterator[Charts]:
    await FamilyTables(catalogue()).ensure(database)
    async with Charts.open(valkey, database, catalogue(), clock) as opened:
        yield opened
