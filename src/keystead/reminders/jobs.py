"""The worker's door: what follows from news of people, from changes of rows, and a check of the counts each night."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from keystead.clock import Clock
from keystead.dates import LOS_ANGELES
from keystead.engine import Valkey
from keystead.ids import UserSub
from keystead.jobs import Calendar, JobBook, Recurring
from keystead.members import ERASED_JOB, REACHABILITIES_JOB, REACHABILITY_JOB, TIMEZONE_JOB
from keystead.reminders.counts import CountsCheck, count_rows
from keystead.reminders.rows import ROWS_JOB, Rows

RECHECK_JOB: Final = "keystead.reminders.recheck_counts"

Moved = Callable[[Sequence[str]], Awaitable[None]]


def register_rows(
    book: JobBook, valkey: Valkey, rows: Rows, check: CountsCheck, clock: Clock, *, moved: Moved | None = None
) -> None:
    """Add the jobs that keep rows and their counts. All of them may run any number of times.

    ``moved`` hears the uids of rows that were changed or deleted, after what waited of them was taken away: so that it
    can choose their time of today anew.
    """

    async def reachability_changed(user_sub: str, channel: str, reason: str) -> None:
        await rows.derive(UserSub(user_sub), reason, channel)

    async def reachabilities_changed(user_subs: list[str], channel: str, reason: str) -> None:
        await rows.derive_many([UserSub(sub) for sub in user_subs], reason, channel)

    async def timezone_changed(user_sub: str, timezone: str) -> None:
        await rows.move(UserSub(user_sub))

    async def erased(user_sub: str) -> None:
        await rows.erase(UserSub(user_sub))

    async def rows_changed(
        uid: str, changed_at: float, changes: list[list[Any]], wishes: list[list[Any]], moved_uids: list[str]
    ) -> None:
        await count_rows(
            valkey, uid, changed_at, [(event, channel, why, n) for event, channel, why, n in changes],
            [(channel, how, n) for channel, how, n in wishes], moved_uids, clock.now(),
        )
        if moved is not None and moved_uids:
            await moved(moved_uids)

    async def recheck_counts() -> None:
        await check.run()

    book.register(REACHABILITY_JOB, reachability_changed)
    book.register(REACHABILITIES_JOB, reachabilities_changed)
    book.register(TIMEZONE_JOB, timezone_changed)
    book.register(ERASED_JOB, erased)
    book.register(ROWS_JOB, rows_changed)
    book.register(RECHECK_JOB, recheck_counts)


def recurring_rows() -> tuple[Recurring, ...]:
    """When the counts are checked: at two in the morning, by the clock of the statistics."""
    return (Recurring(RECHECK_JOB, Calendar(LOS_ANGELES, hours=(2,), minutes=(0,), seconds=(0,))),)
