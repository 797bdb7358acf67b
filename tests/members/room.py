"""The members room, put together as the app does it, with a clock that is moved by hand."""

from collections.abc import Iterable
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import func, insert, select

from keystead.engine import Valkey
from keystead.jobs import ROOMS_QUEUE, JobBook
from keystead.jobs.keys import Queue
from keystead.members import (
    Activity,
    Attribution,
    Contacts,
    PushTokens,
    Source,
    Suppression,
    Timezones,
    Users,
    Visitors,
)
from keystead.members.contact_changes import ERASED_JOB, REACHABILITIES_JOB, REACHABILITY_JOB
from keystead.members.contact_tables import CONTACT_METHOD_LOG
from keystead.members.jobs import register, register_tokens
from keystead.members.stats import CONTACT_METHODS, CONVERSION, NEW_USERS, PUSH_TOKENS, RETENTION, USERS
from keystead.members.tables import USERS as ROWS
from keystead.members.timezones import TIMEZONE_JOB
from keystead.store import Database, SqlOutbox
from keystead.testing.clock import MovableClock

LOS_ANGELES = ZoneInfo("America/Los_Angeles")
NOON = datetime(2026, 3, 2, 12, tzinfo=LOS_ANGELES).timestamp()
TODAY = 20514  # that day

# For a test that runs on one server and on the cluster: what the databases differ in is tested elsewhere.
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


class Room:
    def __init__(self, valkey: Valkey, database: Database, now: float = NOON) -> None:
        self.valkey, self.database, self.clock = valkey, database, MovableClock(now=now)
        self.book = JobBook()
        self.outbox = SqlOutbox(database, valkey, self.book)
        self.attribution = Attribution(database, self.outbox, self.clock)
        register(self.book, valkey, self.attribution, self.clock)
        self.visitors = Visitors(valkey, database, self.clock, b"a secret of tests")
        self.users = Users(valkey, database, self.outbox, self.clock)
        self.activity = Activity(valkey, self.users, self.clock)
        self.contacts = Contacts(database, self.outbox, self.clock)
        self.suppression = Suppression(database, self.outbox, self.clock)
        self.tokens = PushTokens(database, self.outbox, self.clock)
        self.timezones = Timezones(valkey, database, self.outbox, self.clock)
        register_tokens(self.book, self.tokens)
        self.told: list[tuple[str, ...]] = []
        self._listen()

    def _listen(self) -> None:
        """Answer to what the room tells those above it: remember it."""

        async def reachability(user_sub: str, channel: str, reason: str) -> None:
            self.told.append((user_sub, channel, reason))

        async def reachabilities(user_subs: list[str], channel: str, reason: str) -> None:
            self.told.extend((user_sub, channel, reason) for user_sub in user_subs)

        async def erased(user_sub: str) -> None:
            self.told.append((user_sub, "erased"))

        async def zone(user_sub: str, timezone: str) -> None:
            self.told.append((user_sub, timezone))

        self.book.listen(REACHABILITY_JOB, reachability)
        self.book.listen(REACHABILITIES_JOB, reachabilities)
        self.book.listen(ERASED_JOB, erased)
        self.book.listen(TIMEZONE_JOB, zone)

    async def heard(self) -> list[tuple[str, ...]]:
        """What the rooms above were told since the last time, in order."""
        await self.settle()
        told = sorted(self.told)
        self.told.clear()
        return told

    async def log(self) -> list[tuple[str, str, str, str]]:
        """The log of contacts: channel, identifier, action, reason."""
        rows = CONTACT_METHOD_LOG.c
        async with self.database.reading() as sql:
            found = await sql.execute(
                select(rows.channel, rows.identifier, rows.action, rows.reason).order_by(rows.id)
            )
            return [(channel, who, action, reason["reason"]) for channel, who, action, reason in found]

    async def contact_counts(self) -> dict[str, int]:
        """What was counted of contacts and devices today, with breakdowns."""
        await self.settle()
        day = CONTACT_METHODS.day_of(self.clock.now())
        methods, tokens = await CONTACT_METHODS.read(self.valkey, day), await PUSH_TOKENS.read(self.valkey, day)
        found = {
            f"{event}/{how}": amount for event, fields in methods.breakdowns.items() for how, amount in fields.items()
        }
        return found | {event: amount for event, amount in tokens.counts.items() if amount}

    async def settle(self, times: int = 1) -> None:
        """Relay what the transactions left, and run the jobs, each so many times: as a worker does, and quicker."""
        while await self.outbox.relay():
            pass
        for queue in (Queue(), Queue(ROOMS_QUEUE)):
            worker = queue.work.worker("test")
            await worker.recover(self.valkey, now=self.clock.now())
            while taken := (await worker.take(self.valkey, 100, now=self.clock.now())).items:
                for item in taken * times:
                    await self.book.jobs[item.value.name](**item.value.kwargs)
                await worker.finish(self.valkey, taken)
            await worker.leave(self.valkey)

    async def device(self) -> str:
        return await self.visitors.create(Source.BROWSER)

    async def person(self, sub: str, joined_at: float) -> str:
        async with self.database.transaction() as sql:
            await sql.execute(insert(ROWS).values(sub=sub, created_at=joined_at))
        return sub

    async def conversions(self, days: Iterable[int]) -> dict[tuple[int, str, str], int]:
        """Counts by campaign that are not zero: by day, campaign and field."""
        found = {}
        for day in days:
            for utm, fields in (await CONVERSION.read(self.valkey, day)).items():
                found.update({(day, utm, name): amount for name, amount in fields.items() if amount})
        return found

    async def rows(self) -> int:
        async with self.database.reading() as sql:
            return await sql.scalar(select(func.count()).select_from(ROWS)) or 0

    async def counted(self) -> tuple[int, int, int, dict[int, tuple[int, int]]]:
        """People in all, of the month, of today, and in each period's cohort of today."""
        now = self.clock.now()
        of_month = await USERS.read(self.valkey, USERS.month_of(now))
        day = NEW_USERS.day_of(now)
        return of_month.total, of_month.month, await NEW_USERS.read(self.valkey, day), await RETENTION.sizes(
            self.valkey, day
        )
