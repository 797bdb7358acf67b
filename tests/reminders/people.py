"""People who can be reached, their wishes, and the rows that follow: put together as the app does it."""

from typing import Any

from sqlalchemy import select

from keystead.engine import Valkey
from keystead.ids import UserSub
from keystead.reminders.counts import CountsCheck
from keystead.reminders.effective import EVERY_DAY, TimeRange
from keystead.reminders.jobs import register_rows
from keystead.reminders.keys import COUNTS
from keystead.reminders.rows import Rows
from keystead.reminders.settings import ReminderSettings
from keystead.reminders.stats import REGISTRATIONS, SETTINGS
from keystead.reminders.tables import REMINDERS
from keystead.store import Database

from ..members.room import NOON, Room

ADA, BEN = UserSub("user_ada"), UserSub("user_ben")
EMAIL, NUMBER, TOKEN = "ada@example.com", "+15555550123", "ExponentPushToken[abc-DEF_123]"
MORNING, EVENING = TimeRange("morning"), TimeRange("evening")


class People(Room):
    def __init__(self, valkey: Valkey, database: Database) -> None:
        self.moved: list[str] = []
        super().__init__(valkey, database)

    def _listen(self) -> None:
        """The rooms above are here."""
        self.rows_of_all = Rows(self.database, self.outbox, self.clock)
        self.settings = ReminderSettings(
            self.valkey, self.database, self.outbox, self.rows_of_all, self.timezones, self.clock
        )
        self.slept: list[float] = []

        async def sleep(seconds: float) -> None:
            self.slept.append(seconds)

        async def moved(uids: Any) -> None:
            self.moved.extend(uids)

        self.check = CountsCheck(self.valkey, self.database, sleep)
        register_rows(self.book, self.valkey, self.rows_of_all, self.check, self.clock, moved=moved)

    async def settle(self, times: int = 1) -> None:
        """Jobs leave jobs."""
        for _ in range(3):
            await super().settle(times)

    async def reminders(self) -> dict[tuple[str, str], tuple[int, int, int, str]]:
        """Start, end, days and zone by person and channel."""
        await self.settle()
        found = {}
        for sub in (ADA, BEN):
            for each in await self._reminders(sub):
                found[sub, each.channel] = each.start_time, each.end_time, each.day_of_week_mask, each.timezone
        return found

    async def _reminders(self, sub: UserSub) -> list[Any]:
        from keystead.members.tables import USERS

        async with self.database.reading() as sql:
            joined = select(REMINDERS).join(USERS, USERS.c.id == REMINDERS.c.user_id).where(USERS.c.sub == sub)
            return list((await sql.execute(joined)).all())

    async def registered(self) -> dict[str, int]:
        """Registrations of today, by event, channel and reason; and the live counts by channel."""
        await self.settle()
        day = await REGISTRATIONS.read(self.valkey, REGISTRATIONS.day_of(self.clock.now()))
        assert day.inconsistencies() == []
        found = {f"{event}/{how}": n for event, fields in day.breakdowns.items() for how, n in fields.items()}
        return found | {channel: n for channel, n in (await COUNTS.at().all(self.valkey)).items() if n}

    async def wished(self) -> dict[str, int]:
        """Changes of wishes of today, by channel and how."""
        await self.settle()
        day = await SETTINGS.read(self.valkey, SETTINGS.day_of(self.clock.now()))
        return {f"{event} {how}": n for event, fields in day.breakdowns.items() for how, n in fields.items()}


async def reachable_ada(people: People) -> None:
    """Ada, by email, text and push."""
    await people.person(ADA, NOON)
    await people.contacts.add_email(ADA, EMAIL, verified=True)
    await people.contacts.add_phone(ADA, NUMBER, verified=True)
    await people.tokens.register(ADA, TOKEN, "ios")
    await people.settle()


async def wants(people: People, channel: str, time_range: TimeRange = MORNING, mask: int = EVERY_DAY) -> None:
    await people.settings.update(ADA, mask=mask, time_range=time_range, channel=channel, timezone="Asia/Tokyo")
