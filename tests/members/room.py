"""The members room, put together as the app does it, with a clock that is moved by hand."""

from datetime import datetime
from zoneinfo import ZoneInfo

from sqlalchemy import func, select

from keystead.engine import Valkey
from keystead.jobs import JobBook
from keystead.jobs.keys import Queue
from keystead.members import Activity, Users
from keystead.members.jobs import register
from keystead.members.stats import NEW_USERS, RETENTION, USERS
from keystead.members.tables import USERS as ROWS
from keystead.store import Database, SqlOutbox
from keystead.testing.clock import MovableClock

LOS_ANGELES = ZoneInfo("America/Los_Angeles")
NOON = datetime(2026, 3, 2, 12, tzinfo=LOS_ANGELES).timestamp()
TODAY = 20514  # that day


class Room:
    def __init__(self, valkey: Valkey, database: Database, now: float = NOON) -> None:
        self.valkey, self.database, self.clock = valkey, database, MovableClock(now=now)
        self.book = JobBook()
        register(self.book, valkey)
        self.outbox = SqlOutbox(database, valkey, self.book)
        self.users = Users(valkey, database, self.outbox, self.clock)
        self.activity = Activity(valkey, self.users, self.clock)

    async def settle(self) -> None:
        """Relay what the transactions left, and run the jobs: as a worker does, and quicker."""
        while await self.outbox.relay():
            pass
        worker = Queue().work.worker("test")
        while taken := (await worker.take(self.valkey, 100, now=self.clock.now())).items:
            for item in taken:
                await self.book.jobs[item.value.name](**item.value.kwargs)
            await worker.finish(self.valkey, taken)
        await worker.leave(self.valkey)

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
