"""What a worker does for the rows of reminders."""

from keystead.engine import Valkey
from keystead.jobs import Calendar
from keystead.reminders.jobs import RECHECK_JOB, recurring_rows
from keystead.reminders.keys import COUNTS
from keystead.store import Database

from ..jobs.beside import at_work, until
from ..members.room import NOON, on_sqlite
from .people import ADA, EMAIL, People


@on_sqlite
async def test_a_worker_derives_and_counts_whom_it_hears_of(valkey: Valkey, database: Database) -> None:
    people = People(valkey, database)
    await people.person(ADA, NOON)
    await people.contacts.add_email(ADA, EMAIL, verified=True)
    async with at_work(valkey, people.book) as worker:
        await people.outbox.relay()
        await until(lambda: worker.tally.done >= 2)  # the reach of Ada, and what it counts as
        await people.outbox.relay()
        await until(lambda: worker.tally.done >= 3)
    assert await COUNTS.at().all(valkey) == {"email": 1}


def test_counts_are_checked_each_night() -> None:
    (one,) = recurring_rows()
    assert one.job == RECHECK_JOB
    assert one.when == Calendar("America/Los_Angeles", hours=(2,), minutes=(0,), seconds=(0,))
