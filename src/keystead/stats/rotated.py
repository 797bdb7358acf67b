"""Did yesterday rotate? When the rotation ran, how many rows it wrote, and what is late."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import distinct, func, select

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.patterns import DailyFamily
from keystead.stats.catalogue import Catalogue
from keystead.stats.keys import ROTATION_RUN, RotationRun
from keystead.stats.lateness import late_days
from keystead.stats.tables import FamilyTables, label
from keystead.store import Database

DAY_SECONDS: Final = 86_400.0
# A rotation that is due begins at once and may take a while; before that nothing is called late.
PATIENCE_SECONDS: Final = 600.0
# Each day that was added is written down by its date, beside the id under which it was added.
_BY_DATE: Final = "%:____-__-__%"


@dataclass(frozen=True, slots=True)
class RotationStanding:
    """How the rotation stands. ``rows``: days that were added to tables in the last 24 hours, of ``families`` things;
    ``late``: by name, the earliest day that was due and is still on the server, as it is written in its table."""

    now: float
    run: RotationRun | None
    rows: int
    families: int
    late: Mapping[str, str]
    due_at: float | None
    next_at: float | None

    @property
    def is_running(self) -> bool:
        run = self.run
        return run is not None and run.started_at is not None and (
            run.finished_at is None or run.finished_at < run.started_at)

    @property
    def is_late(self) -> bool:
        """Whether something is late that is not just being rotated."""
        return bool(self.late) and (self.due_at is None or self.now - self.due_at > PATIENCE_SECONDS)


async def rotation_standing(
    valkey: Valkey, database: Database, catalogue: Catalogue, clock: Clock
) -> RotationStanding:
    """Look, and change nothing. Two commands for each thing that is counted, and one query."""
    now = clock.now()
    applied = FamilyTables(catalogue).applied.c
    added = select(func.count(), func.count(distinct(applied.family))).where(
        applied.applied_at > now - DAY_SECONDS, applied.id.like(_BY_DATE))
    async with database.reading() as sql:
        rows, families = (await sql.execute(added)).one()
    late = await late_days(valkey, catalogue, now=now)
    monthly = {one.name: not isinstance(one, DailyFamily) and one.monthly for one in catalogue}
    due_at, next_at = due_times(catalogue, now)
    return RotationStanding(
        now, await ROTATION_RUN.at().get(valkey), rows, families,
        {name: label(day, monthly=monthly[name]) for name, day in late.items()}, due_at, next_at,
    )


def due_times(catalogue: Catalogue, now: float) -> tuple[float | None, float | None]:
    """When the rotation was last due, and when it is next."""
    before: list[float] = []
    after: list[float] = []
    for zone, at in {(one.home, one.rotates_at) for one in catalogue if one.table is not None}:
        today = datetime.fromtimestamp(now, zone).date()
        times = [datetime.combine(today + timedelta(days=days), at, zone).timestamp() for days in (-1, 0, 1)]
        before.append(max(each for each in times if each <= now))
        after.append(min(each for each in times if each > now))
    return max(before, default=None), min(after, default=None)
