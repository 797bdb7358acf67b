"""Counting reminders: changes of rows once, with the live counts by channel; and a check of those against the rows."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from sqlalchemy import func, select

from keystead.engine import Valkey
from keystead.engine.scripts import ScriptRunner
from keystead.patterns import Once, Writes, once
from keystead.reminders.keys import CHANNELS, COUNTS, QUEUED, ROWS_COUNTED
from keystead.reminders.models import DueReminder
from keystead.reminders.stats import REGISTRATIONS, SETTINGS
from keystead.reminders.tables import REMINDERS
from keystead.store import Database
from keystead.telemetry import counts, logger

SUBSCRIBED: Final = "subscribed"
UNSUBSCRIBED: Final = "unsubscribed"
# A difference that is seen once and so many times more, a second apart, is none of a change under way.
REPEATS: Final = 5
ROUNDS: Final = 120
# Whatever the zone, a reminder that waits belongs to one of these days around the day in UTC.
_DAYS_AROUND: Final = (-2, -1, 0, 1, 2)
_STEP: Final = 500

counts.describe("reminder_counts_mended", "reminders by which the live counts were off, by channel")
_log = logger("reminders")


def count_rows(
    on: ScriptRunner, uid: str, changed_at: float, changes: Sequence[tuple[str, str, str, int]],
    wishes: Sequence[tuple[str, str, int]], moved: Sequence[str], now: float,
) -> Awaitable[Once]:
    """Count changes of rows (event, channel, reason, amount) and of wishes (channel, how, amount), once for each uid.

    In one atomic step with the live counts; and what waits for its time of the reminders ``moved``, which were changed
    or deleted, waits no longer.
    """
    writes = Writes(on.layout)
    registrations, settings = REGISTRATIONS.tally(), SETTINGS.tally()
    for event, channel, reason, amount in changes:
        registrations.incr(event, f"{channel}:{reason}", amount, at=changed_at)
        COUNTS.at().increment(writes, channel, amount if event == SUBSCRIBED else -amount)
    for channel, how, amount in wishes:
        settings.incr(channel, how, amount, at=changed_at)
    for tally in (registrations, settings):
        if tally:
            tally.store(writes)
    today = int(now // 86400)
    for first in range(0, len(moved), _STEP):
        gone = [DueReminder(each, today + days) for each in moved[first : first + _STEP] for days in _DAYS_AROUND]
        QUEUED.due.remove(writes, *gone)
    return once(on, ROWS_COUNTED.at(uid), writes)


class CountsCheck:
    """Compares the live counts with the rows, and mends them if they are really off."""

    def __init__(
        self, valkey: Valkey, database: Database, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._valkey, self._database, self._sleep = valkey, database, sleep

    async def run(self) -> dict[str, int]:
        """What was added to each channel's count; empty if nothing had to be. Ends when a difference stays the same.

        While changes come all the time it gives up after two minutes; the next run tries again.
        """
        last, seen = await self._difference(), 0
        for _ in range(ROUNDS):
            if not last:
                return {}
            if seen == REPEATS:
                await self._mend(last)
                return last
            await self._sleep(1.0)
            found = await self._difference()
            last, seen = found, seen + 1 if found == last else 0
        _log.warning("the counts of reminders never stood still", rounds=ROUNDS)
        return {}

    async def _difference(self) -> dict[str, int]:
        async with self._database.reading() as sql:
            found = await sql.execute(select(REMINDERS.c.channel, func.count()).group_by(REMINDERS.c.channel))
            stored: dict[str, int] = {channel: number for channel, number in found}  # noqa: C416 - rows, not pairs
        counted = await COUNTS.at().all(self._valkey)
        off = {channel: stored.get(channel, 0) - counted.get(channel, 0) for channel in CHANNELS}
        return {channel: number for channel, number in off.items() if number}

    async def _mend(self, difference: dict[str, int]) -> None:
        async with self._valkey.pipeline(transaction=True) as block:
            for channel, number in difference.items():
                COUNTS.at().increment(block, channel, number)
            await block.execute()
        for channel, number in difference.items():
            counts.add("reminder_counts_mended", abs(number), channel=channel)
        _log.error("the counts of reminders were off and were mended", **difference)
