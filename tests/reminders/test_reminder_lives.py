"""Random days of somebody who changes their mind all morning: one reminder a day for each channel, none too few."""

import random
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import select

from keystead.dates import day_starts_at, unix_date
from keystead.engine import Valkey
from keystead.messaging.links import Links
from keystead.messaging.touches import Touches
from keystead.messaging.touches.keys import TO_SEND
from keystead.reminders.again import Again
from keystead.reminders.assigner import Assigner
from keystead.reminders.counts import CountsCheck
from keystead.reminders.effective import TimeRange
from keystead.reminders.jobs import register_rows
from keystead.reminders.keys import SENT
from keystead.reminders.rows import Rows
from keystead.reminders.sender import Sender
from keystead.reminders.settings import ReminderSettings
from keystead.reminders.tables import REMINDERS
from keystead.settings import RemindersSettings
from keystead.store import Database

from ..members.room import on_sqlite
from .people import ADA, EMAIL, NUMBER, TOKEN, People

# Where it is the same day all afternoon.
ZONES = ("America/Los_Angeles", "America/Phoenix", "America/Denver", "America/Chicago")
FIRST = datetime(2026, 3, 3, 0, 30, tzinfo=ZoneInfo("America/Los_Angeles")).timestamp()
HOUR, NOON = 3600, 12 * 3600


class Lives(People):
    """Everybody who works on reminders, run by hand."""

    def _listen(self) -> None:
        self.clock.advance(FIRST - self.clock.now())
        settings = RemindersSettings()
        self.rows_of_all = Rows(self.database, self.outbox, self.clock)
        self.settings = ReminderSettings(
            self.valkey, self.database, self.outbox, self.rows_of_all, self.timezones, self.clock
        )
        self.check = CountsCheck(self.valkey, self.database)
        self.assigner = Assigner(self.valkey, self.database, self.clock, settings, b"secret", page_rows=2)
        again = Again(self.valkey, self.database, self.clock, settings, self.assigner)
        register_rows(self.book, self.valkey, self.rows_of_all, self.check, self.clock, moved=again.moved)
        self.sender = Sender(self.valkey, self.database, self.clock, Touches(self.valkey, self.clock),
                             Links(self.valkey, self.database, self.clock), "https://app.example.com")

    async def change(self, chance: random.Random) -> None:
        start = chance.randrange(0, 12) * HOUR
        explicit = TimeRange("", start, chance.randrange(15, 18) * HOUR)
        wish = chance.choice((TimeRange("morning"), TimeRange("evening"), explicit, explicit))
        changes = [
            lambda: self.settings.update(ADA, mask=chance.choice((0, 127, 127)), time_range=wish,
                                         channel=chance.choice(("email", "sms", "push", "all"))),
            lambda: self.timezones.set(ADA, chance.choice(ZONES)),
            lambda: self.contacts.remove_email(ADA, EMAIL), lambda: self.contacts.add_email(ADA, EMAIL, verified=True),
            lambda: self.suppression.suppress_phone(NUMBER, "Stop"), lambda: self.suppression.lift_phone(NUMBER),
            lambda: self.tokens.forget(TOKEN, "receipt"), lambda: self.tokens.register(ADA, TOKEN, "ios"),
        ]
        await chance.choice(changes)()

    async def work(self) -> None:
        await self.settle()
        await self.assigner.run()
        await self.sender.run()

    async def should_have(self) -> set[tuple[str, int]]:
        """Whose window of today ended in the afternoon, when nobody changed anything any more."""
        row = REMINDERS.c
        async with self.database.reading() as sql:
            rows = (await sql.execute(select(row.uid, row.timezone, row.end_time))).all()
        found = set()
        for uid, timezone, end in rows:
            zone = ZoneInfo(timezone)
            today = unix_date(self.clock.now(), zone)
            if self.quiet_from + HOUR < day_starts_at(today, zone) + end < self.clock.now() - HOUR:
                found.add((uid, int(today)))
        return found

    quiet_from = 0.0


@on_sqlite
@pytest.mark.parametrize("seed", [0, 3])
async def test_each_reminder_is_sent_once_a_day_whatever_is_changed(
    valkey: Valkey, database: Database, seed: int
) -> None:
    chance = random.Random(seed)
    lives = Lives(valkey, database)
    await lives.person(ADA, 0.0)
    await lives.contacts.add_email(ADA, EMAIL, verified=True)
    await lives.contacts.add_phone(ADA, NUMBER, verified=True)
    await lives.tokens.register(ADA, TOKEN, "ios")
    looked_at = 0
    for day in range(2):
        begins = FIRST + day * 86400
        while lives.clock.now() < begins + 20 * HOUR:
            if lives.clock.now() < begins + NOON:
                for _ in range(chance.randrange(3)):
                    await lives.change(chance)
                lives.quiet_from = lives.clock.now()
            if chance.random() < 0.8:
                await lives.work()
            lives.clock.advance(chance.randrange(10, 40) * 60)
        await lives.work()
        for uid, date in await lives.should_have():
            looked_at += 1
            assert await SENT.at(date).contains(valkey, uid), f"{uid} of day {day} was never sent"
        lives.clock.advance(begins + 86400 - lives.clock.now())
    touches = [touch.uid for touch in await TO_SEND.queue.range(valkey, 0, -1)]
    assert looked_at and len(touches) == len(set(touches))
