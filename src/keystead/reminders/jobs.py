"""The worker's door: what follows from news of people, from changes of rows, and a check of the counts each night."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from keystead.clock import Clock
from keystead.dates import LOS_ANGELES
from keystead.engine import Valkey
from keystead.ids import UserSub
from keystead.jobs import Calendar, JobBook, Recurring, Work
from keystead.members import ERASED_JOB, REACHABILITIES_JOB, REACHABILITY_JOB, TIMEZONE_JOB
from keystead.messaging.links import Links
from keystead.messaging.touches import Touches
from keystead.reminders.again import Again
from keystead.reminders.assigner import Assigner
from keystead.reminders.counts import CountsCheck, count_rows
from keystead.reminders.plans import FactsProvider, OneEvent, Plan, nothing_known
from keystead.reminders.rows import ROWS_JOB, Rows
from keystead.reminders.sender import Sender
from keystead.settings import RemindersSettings
from keystead.store import Database

RECHECK_JOB: Final = "keystead.reminders.recheck_counts"
ASSIGN_JOB: Final = "keystead.reminders.assign_times"
SEND_JOB: Final = "keystead.reminders.send"

Moved = Callable[[Sequence[str]], Awaitable[None]]


def register_rows(
    book: JobBook, valkey: Valkey, rows: Rows, check: CountsCheck, clock: Clock, *, moved: Moved | None = None
) -> None:
    """Add the jobs that keep rows and their counts. All of them may run any number of times.

    ``moved`` hears the uids of rows that came, were changed or deleted, after what waited of them was taken away: so
    that it can choose their time of today. Whoever leaves and comes back on a day has that day's reminder before them.
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
        uid: str, changed_at: float, changes: list[list[Any]], wishes: list[list[Any]], moved_uids: list[str],
        new_uids: Sequence[str] = (),
    ) -> None:
        await count_rows(
            valkey, uid, changed_at, [(event, channel, why, n) for event, channel, why, n in changes],
            [(channel, how, n) for channel, how, n in wishes], moved_uids, clock.now(),
        )
        if moved is not None and (moved_uids or new_uids):
            await moved([*moved_uids, *new_uids])

    async def recheck_counts() -> None:
        await check.run()

    book.listen(REACHABILITY_JOB, reachability_changed)
    book.listen(REACHABILITIES_JOB, reachabilities_changed)
    book.listen(TIMEZONE_JOB, timezone_changed)
    book.listen(ERASED_JOB, erased)
    book.register(ROWS_JOB, rows_changed)
    book.register(RECHECK_JOB, recheck_counts)


def recurring_rows() -> tuple[Recurring, ...]:
    """When the counts are checked: at two in the morning, by the clock of the statistics."""
    return (Recurring(RECHECK_JOB, Calendar(LOS_ANGELES, hours=(2,), minutes=(0,), seconds=(0,))),)


@dataclass(frozen=True)
class ReminderWorkers:
    """What those who work need. ``secret`` draws the times; ``public_url`` begins the links."""

    valkey: Valkey
    database: Database
    clock: Clock
    touches: Touches
    links: Links
    settings: RemindersSettings
    secret: bytes
    public_url: str
    plan: Plan = field(default_factory=OneEvent)
    facts: FactsProvider = nothing_known

    def assigner(self, **options: Any) -> Assigner:
        return Assigner(self.valkey, self.database, self.clock, self.settings, self.secret, **options)

    def again(self) -> Again:
        return Again(self.valkey, self.database, self.clock, self.settings, self.assigner())

    def sender(self, **options: Any) -> Sender:
        return Sender(self.valkey, self.database, self.clock, self.touches, self.links, self.public_url,
                      plan=self.plan, facts=self.facts, **options)


def register(book: JobBook, workers: ReminderWorkers, *, stopping: Callable[[], bool] = lambda: False) -> None:
    """Add the single runs of those who choose times and send."""
    assigner, sender = workers.assigner(stopping=stopping), workers.sender(stopping=stopping)

    async def assign_times() -> None:
        await assigner.run()

    async def send() -> None:
        await sender.run()

    book.register(ASSIGN_JOB, assign_times)
    book.register(SEND_JOB, send)


def recurring() -> tuple[Recurring, ...]:
    """Single runs four times an hour, for where nobody works all the time."""
    return (
        Recurring(ASSIGN_JOB, Calendar(LOS_ANGELES, minutes=(0, 15, 30, 45), seconds=(0,))),
        Recurring(SEND_JOB, Calendar(LOS_ANGELES, minutes=(5, 20, 35, 50), seconds=(0,))),
    )


def crew(workers: ReminderWorkers) -> list[Work]:
    """Who works all the time in this process."""
    return [workers.assigner(), workers.sender()]
