"""Choosing a time again: for reminders that came or were edited after the times of their day had been chosen."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import select

from keystead.clock import Clock
from keystead.dates import UnixDate, day_starts_at, unix_date, unix_date_to_date
from keystead.engine import Valkey
from keystead.jobs import RetryLater
from keystead.members import zone_of
from keystead.members.tables import USERS
from keystead.reminders.assigner import Assigner
from keystead.reminders.keys import EARLIEST, PROGRESS, QUEUED, SENT
from keystead.reminders.models import DueReminder, Progress
from keystead.reminders.tables import REMINDERS
from keystead.settings import RemindersSettings
from keystead.store import Database

STEP: Final = 500
# Edits of a few are not held up by what waits usually, which is up to the limit.
MOST_OVER: Final = 2
FULL_SECONDS: Final = 60.0
# A window ends up to two days after the midnight it is counted from.
_DAYS: Final = (-1, 0, 1)


@dataclass(frozen=True, slots=True)
class _Row:
    uid: str
    timezone: str
    start_time: int
    end_time: int
    day_of_week_mask: int


@dataclass(frozen=True, slots=True)
class _Turn:
    """A reminder on one day whose window is not over."""

    row: _Row
    day: UnixDate
    start: float
    end: float


class Again:
    """Lets reminders wait for their time, if whoever chooses times has passed them already, or may be about to.

    Those still ahead are left to it. A reminder that was dealt with on a day is not chosen a time for on that day
    again, also if it went and came back. Nothing is counted here.
    """

    def __init__(
        self, valkey: Valkey, database: Database, clock: Clock, settings: RemindersSettings, assigner: Assigner
    ) -> None:
        self._valkey, self._database, self._clock = valkey, database, clock
        self._settings, self._assigner = settings, assigner

    async def moved(self, uids: Sequence[str]) -> None:
        """Choose anew for these reminders; who is gone is left out. May be repeated: the times are the same.

        ``RetryLater`` while far too many wait already: a whole crowd can come at once, from a file.
        """
        for first in range(0, len(uids), STEP):
            if await QUEUED.size(self._valkey) > MOST_OVER * self._settings.queued_items:
                raise RetryLater(FULL_SECONDS, counts=False)
            now, turns = self._clock.now(), []
            for row in await self._rows(uids[first : first + STEP]):
                turns += _turns(row, now)
            if turns:
                await self._choose(turns, now)

    async def _choose(self, turns: Sequence[_Turn], now: float) -> None:
        """Two round trips, however many they are."""
        pairs = {(turn.row.timezone, turn.day) for turn in turns}
        uids: dict[UnixDate, list[str]] = {}
        for turn in turns:
            uids.setdefault(turn.day, []).append(turn.row.uid)
        async with self._valkey.pipeline(transaction=False) as pipeline:
            earliest = EARLIEST.at().get(pipeline)
            asked = {pair: PROGRESS.at(*pair).get(pipeline) for pair in pairs}
            sent = {day: SENT.at(day).contains_many(pipeline, some) for day, some in uids.items()}
            await pipeline.execute()
        first, progress = await earliest, {pair: await answer for pair, answer in asked.items()}
        dealt_with = {(uid, day) for day, some in uids.items()
                      for uid, was in zip(some, await sent[day], strict=True) if was}
        times = {
            DueReminder(turn.row.uid, turn.day): self._time(turn, now) for turn in turns
            if (turn.row.uid, turn.day) not in dealt_with
            and self._is_passed(turn, progress[turn.row.timezone, turn.day], first, now)
        }
        if times:
            await QUEUED.schedule_many(self._valkey, times)

    def _is_passed(self, turn: _Turn, found: Progress | None, earliest: int | None, now: float) -> bool:
        """Whether times of this day were chosen up to the row's place, so that nobody may come by it any more.

        Of what begins soon that cannot be known: a page that was read before the row changed may be written after
        this. It gets its time here in any case, and gets the same one again from whoever comes by.
        """
        if turn.start <= now + self._settings.horizon_seconds:
            return True
        progress = found or Progress()
        behind = (progress.start_time, progress.uid) >= (turn.row.start_time, turn.row.uid)
        return earliest is not None and (turn.day < earliest or bool(progress.finished) or behind)

    def _time(self, turn: _Turn, now: float) -> float:
        start = max(turn.start, now)
        return float(int(start + self._assigner.share(turn.row.uid, turn.day) * (turn.end - start)))

    async def _rows(self, uids: Sequence[str]) -> list[_Row]:
        old_enough = self._clock.now() - self._settings.youngest_seconds
        row = REMINDERS.c
        wanted = (
            select(row.uid, row.timezone, row.start_time, row.end_time, row.day_of_week_mask)
            .join(USERS, USERS.c.id == row.user_id).where(row.uid.in_(uids), USERS.c.created_at < old_enough)
        )
        async with self._database.reading() as sql:
            return [_Row(*found) for found in await sql.execute(wanted)]


def _turns(row: _Row, now: float) -> list[_Turn]:
    """The days on which the reminder is wanted and not over."""
    zone, found = zone_of(row.timezone), []
    today = unix_date(now, zone)
    for day in (UnixDate(today + days) for days in _DAYS):
        midnight = day_starts_at(day, zone)
        weekday = (unix_date_to_date(day).weekday() + 1) % 7
        if row.day_of_week_mask >> weekday & 1 and midnight + row.end_time >= now:
            found.append(_Turn(row, day, midnight + row.start_time, midnight + row.end_time))
    return found
