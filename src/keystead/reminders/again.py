"""Choosing a time again: for reminders that were edited after the times of their day had been chosen."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import select

from keystead.clock import Clock
from keystead.dates import UnixDate, day_starts_at, unix_date, unix_date_to_date
from keystead.engine import Valkey
from keystead.members import zone_of
from keystead.members.tables import USERS
from keystead.reminders.assigner import Assigner
from keystead.reminders.keys import EARLIEST, PROGRESS, QUEUED, SENT
from keystead.reminders.models import DueReminder, Progress
from keystead.reminders.tables import REMINDERS
from keystead.settings import RemindersSettings
from keystead.store import Database

STEP: Final = 500
# A window ends up to two days after the midnight it is counted from.
_DAYS: Final = (-1, 0, 1)


@dataclass(frozen=True, slots=True)
class _Row:
    uid: str
    timezone: str
    start_time: int
    end_time: int
    day_of_week_mask: int


class Again:
    """Lets edited reminders wait for their new time, if whoever chooses times has passed them already.

    Those still ahead are left to it. A reminder that was dealt with on a day is not chosen a time for on that day
    again. Nothing is counted: what was edited is still one reminder of its day.
    """

    def __init__(
        self, valkey: Valkey, database: Database, clock: Clock, settings: RemindersSettings, assigner: Assigner
    ) -> None:
        self._valkey, self._database, self._clock = valkey, database, clock
        self._settings, self._assigner = settings, assigner

    async def moved(self, uids: Sequence[str]) -> None:
        """Choose anew for these reminders; who is gone is left out. May be repeated: the times are the same."""
        for first in range(0, len(uids), STEP):
            for row in await self._rows(uids[first : first + STEP]):
                await self._choose(row)

    async def _choose(self, row: _Row) -> None:
        zone, now = zone_of(row.timezone), self._clock.now()
        earliest = await EARLIEST.at().get(self._valkey)
        today = unix_date(now, zone)
        for day in (UnixDate(today + days) for days in _DAYS):
            midnight = day_starts_at(day, zone)
            start, end = midnight + row.start_time, midnight + row.end_time
            weekday = (unix_date_to_date(day).weekday() + 1) % 7
            if not row.day_of_week_mask >> weekday & 1 or end < now or not await self._is_passed(row, day, earliest):
                continue
            if await SENT.at(day).contains(self._valkey, row.uid):
                continue
            start = max(start, now)
            at = float(int(start + self._assigner.share(row.uid, day) * (end - start)))
            await QUEUED.schedule(self._valkey, DueReminder(row.uid, day), at)

    async def _is_passed(self, row: _Row, day: UnixDate, earliest: int | None) -> bool:
        """Whether times of this day were chosen up to the row's place, so that nobody comes by it any more."""
        if earliest is None:
            return False
        if day < earliest:
            return True
        progress = await PROGRESS.at(row.timezone, day).get(self._valkey) or Progress()
        return bool(progress.finished) or (progress.start_time, progress.uid) >= (row.start_time, row.uid)

    async def _rows(self, uids: Sequence[str]) -> list[_Row]:
        old_enough = self._clock.now() - self._settings.youngest_seconds
        row = REMINDERS.c
        wanted = (
            select(row.uid, row.timezone, row.start_time, row.end_time, row.day_of_week_mask)
            .join(USERS, USERS.c.id == row.user_id).where(row.uid.in_(uids), USERS.c.created_at < old_enough)
        )
        async with self._database.reading() as sql:
            return [_Row(*found) for found in await sql.execute(wanted)]
