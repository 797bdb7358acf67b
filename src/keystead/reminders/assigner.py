"""Choosing a time: each reminder of a day gets a moment in its reader's window, shortly before the window opens."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from keystead.clock import Clock
from keystead.dates import LOS_ANGELES, UnixDate, day_starts_at, unix_date, unix_date_to_date
from keystead.engine import Script, Valkey
from keystead.jobs import StopReason, SweepJob, SweepRun
from keystead.members import zone_of
from keystead.patterns import Writes
from keystead.patterns.guarded import judged
from keystead.reminders.due_rows import DueRow, DueRows
from keystead.reminders.keys import ASSIGN_LOCK, EARLIEST, PROGRESS, QUEUED, SENT, ZONES
from keystead.reminders.models import DueReminder, Progress
from keystead.reminders.stats import ASSIGN_RUN
from keystead.reminders.stats import SENT as COUNTED
from keystead.settings import RemindersSettings
from keystead.store import Database

ADVANCE: Final = Script("keystead.reminders", "scripts/advance.lua")
OPEN_DAY: Final = Script("keystead.reminders", "scripts/open_day.lua")
CLOSE_DAY: Final = Script("keystead.reminders", "scripts/close_day.lua")

PAGE_ROWS: Final = 1000
DAY_SECONDS: Final = 86_400
STALE_SECONDS: Final = 3600
# The last place on Earth where a day begins is twelve hours behind UTC.
LAST_ZONE_SECONDS: Final = 12 * 3600


@dataclass(frozen=True, slots=True)
class _Pair:
    """One day in one zone: when it begins there, and how far ahead of that times are chosen."""

    day: UnixDate
    zone: str
    midnight: float
    horizon: float


class Assigner(SweepJob):
    """Gives times. Any number may run at once: each page of rows is given its times by one of them, once.

    A time is drawn by a keyed hash of reminder and day, so it is the same whoever draws it.
    """

    lock = ASSIGN_LOCK
    runs = ASSIGN_RUN
    every_seconds = 15.0
    stated = frozenset({"start_unix_date", "end_unix_date", "unique_timezones"})

    def __init__(
        self, valkey: Valkey, database: Database, clock: Clock, settings: RemindersSettings, secret: bytes, *,
        page_rows: int = PAGE_ROWS, stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(valkey, clock, stopping=stopping)
        self._rows, self._settings, self._key, self._page_rows = DueRows(database), settings, secret[:64], page_rows

    async def sweep(self, run: SweepRun) -> StopReason:
        """Go through the days, from the earliest that is not done to the last that begins somewhere by the horizon."""
        started = run.started_at
        limit_at = started + self._settings.horizon_seconds
        zones = sorted({*await self._rows.zones(), LOS_ANGELES})
        run.counts["unique_timezones"] = len(zones)
        earliest = await EARLIEST.at().get(self.valkey)
        day = UnixDate(earliest if earliest is not None else int((started - LAST_ZONE_SECONDS) // DAY_SECONDS))
        run.counts["start_unix_date"] = day
        while True:
            run.counts["end_unix_date"] = day
            if not await OPEN_DAY(self.valkey, keys=[EARLIEST.at(), ZONES.at(day)], args=(day, 0, *zones)):
                return StopReason.LIST_EXHAUSTED  # another run has closed it meanwhile
            pairs = [_pair(day, zone, limit_at) for zone, _ in await ZONES.at(day).range(self.valkey)]
            finished, goes_on = True, False
            for pair in pairs:
                goes_on = goes_on or unix_date(limit_at, zone_of(pair.zone)) > day
                if pair.horizon >= 0:
                    run.count("pairs")
                    reason = await self._work_off(run, pair)
                    if isinstance(reason, StopReason):
                        return reason
                    finished = finished and reason
                else:
                    finished = False
            if finished and limit_at > (day + 1) * DAY_SECONDS + LAST_ZONE_SECONDS:
                progress = [PROGRESS.at(pair.zone, day) for pair in pairs]
                await CLOSE_DAY(self.valkey, keys=[EARLIEST.at(), ZONES.at(day), *progress], args=(day,))
            if not goes_on:
                return StopReason.LIST_EXHAUSTED
            day = UnixDate(day + 1)

    async def _work_off(self, run: SweepRun, pair: _Pair) -> StopReason | bool:
        """Whether there can be no more rows of this day and zone; or why the run has to stop."""
        while True:
            if (reason := await self._reason_to_stop(run)) is not None:
                return reason
            progress = await PROGRESS.at(pair.zone, pair.day).get(self.valkey) or Progress()
            if progress.finished:
                return True
            rows = await self._rows.page(
                pair.zone, (progress.start_time, progress.uid), weekday=_weekday(pair.day), up_to=int(pair.horizon),
                joined_before=run.started_at - self._settings.youngest_seconds, most=self._page_rows,
            )
            run.count("queries")
            last_page = len(rows) < self._page_rows
            finished = last_page and pair.horizon > DAY_SECONDS
            if (rows or finished) and not await self._assign(run, pair, progress, rows, finished):
                continue  # another run is further, though perhaps not as far as this page went
            if last_page:
                return finished

    async def _reason_to_stop(self, run: SweepRun) -> StopReason | None:
        if (reason := run.reason_to_stop()) is not None:
            return reason
        waiting = await QUEUED.size(self.valkey)
        return StopReason.BACKPRESSURE if waiting > self._settings.queued_items else None

    async def _assign(
        self, run: SweepRun, pair: _Pair, progress: Progress, rows: Sequence[DueRow], finished: bool
    ) -> bool:
        """One page in one step: times, how far we are, and what was counted; or nothing, if another run was faster."""
        dealt_with = await self._dealt_with(pair.day, rows)
        writes, counted = Writes(self.valkey.layout), COUNTED.tally()
        times: dict[DueReminder, float] = {}
        numbers: dict[str, int] = {}

        def count(name: str) -> None:
            numbers[name] = numbers.get(name, 0) + 1

        for row, sent in zip(rows, dealt_with, strict=True):
            if sent:
                continue  # it was edited after it had been sent today
            start, end = pair.midnight + row.start_time, pair.midnight + row.end_time
            counted.incr("attempted", unix_date=pair.day)
            count("attempted")
            if start < run.started_at:
                counted.incr("overdue", unix_date=pair.day)
                count("overdue")
                if end < run.started_at - STALE_SECONDS:
                    counted.incr("skipped_assigning_time", row.channel, unix_date=pair.day)
                    count("stale")
                    continue
                start, end = run.started_at, max(end, run.started_at)
            counted.incr("time_assigned", row.channel, unix_date=pair.day)
            count(f"{row.channel}_queued")
            times[DueReminder(row.uid, pair.day)] = float(int(start + self.share(row.uid, pair.day) * (end - start)))
        if times:
            QUEUED.schedule_many(writes, times)
        counted.store(writes)
        at = rows[-1] if rows else progress
        reference = PROGRESS.at(pair.zone, pair.day)
        reference.update(writes, start_time=at.start_time, uid=at.uid, finished=int(finished))
        names, packed = writes.packed(self.valkey.layout)
        # A record that is not there yet has neither field.
        seen = ("", "") if progress == Progress() else (str(progress.start_time), progress.uid)
        done = await ADVANCE(
            self.valkey, keys=[reference, *names], args=(*seen, packed), decode=lambda reply: judged(writes, reply)
        )
        if done:
            for name, number in numbers.items():
                run.count(name, number)
        return bool(done)

    async def _dealt_with(self, day: UnixDate, rows: Sequence[DueRow]) -> list[bool]:
        return await SENT.at(day).contains_many(self.valkey, [row.uid for row in rows]) if rows else []

    def share(self, uid: str, day: UnixDate) -> float:
        """A number from 0 to 1 that only we could have guessed, the same each time."""
        digest = hashlib.blake2b(f"{uid}:{day}".encode(), key=self._key, digest_size=7).digest()
        return int.from_bytes(digest, "big") / 2**56


def _pair(day: UnixDate, zone: str, limit_at: float) -> _Pair:
    midnight = day_starts_at(day, zone_of(zone))
    return _Pair(day, zone, midnight, limit_at - midnight)


def _weekday(day: UnixDate) -> int:
    """0 for Sunday."""
    return (unix_date_to_date(day).weekday() + 1) % 7

