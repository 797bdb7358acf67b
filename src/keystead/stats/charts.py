"""What was counted, as charts need it: any range of days, live ones included, and answers that are kept."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.errors import Invalid
from keystead.patterns import DailyFamily
from keystead.stats.catalogue import Catalogue
from keystead.stats.charts_calendar import check_range, last_of, today_of
from keystead.stats.charts_days import FamilyDays
from keystead.stats.series import Series
from keystead.stats.tables import FamilyTables
from keystead.store import Database

HISTORICAL_DAYS = 90


class Charts:
    """Reads everything in a catalogue. Made by ``open``."""

    def __init__(self, valkey: Valkey, database: Database, catalogue: Catalogue, clock: Clock) -> None:
        self.catalogue, self.clock = catalogue, clock
        self._days = FamilyDays(valkey, database, FamilyTables(catalogue), clock)

    @classmethod
    @asynccontextmanager
    async def open(
        cls, valkey: Valkey, database: Database, catalogue: Catalogue, clock: Clock
    ) -> AsyncIterator[Self]:
        """For as long as the block runs; in it the channels that carry answers to all processes are heard."""
        yield cls(valkey, database, catalogue, clock)

    def family(self, name: str) -> DailyFamily:
        """The family of this name. ``NotFound`` says which was perhaps meant; ``Invalid`` if it is of another kind."""
        found = self.catalogue.find(name)
        if not isinstance(found, DailyFamily):
            raise Invalid(f"{name} is no family of daily counts but a {type(found).__name__}")
        return found

    # -- families ---------------------------------------------------------------------------------------------------

    async def series(self, name: str, start: int, end: int) -> Series:
        """The days from ``start`` to before ``end``, at most 3,660, as they are now; live ones and late counts are in.

        A range that is empty, too long or in the future is ``Invalid``; a name that is not known is ``NotFound``.
        """
        family = self.family(name)
        check_range(family, start, end, self.clock.now())
        return await self._days.read(family, start, end)

    async def recent(self, name: str, days: int) -> Series:
        """The last ``days`` days, today included."""
        end = last_of(self.family(name), self.clock.now()) + 1
        return await self.series(name, end - days, end)

    async def partial(self, name: str) -> Series:
        """The days that are held on the server by rule: today and ``held_days - 1`` before. Never kept."""
        family, now = self.family(name), self.clock.now()
        return await self.series(name, today_of(family, now) - family.held_days + 1, last_of(family, now) + 1)
