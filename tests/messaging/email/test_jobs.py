"""The worker's door: every job is in the book, runs by the clock, and goes on all the time in the crew."""

import asyncio

import pytest
import pytest_asyncio

from keystead.engine import Valkey
from keystead.errors import Invalid
from keystead.jobs import Crew, RecurringList
from keystead.messaging.email.jobs import crew, recurring
from keystead.messaging.email.keys import SENDING
from keystead.messaging.email.models import Bounce, BounceReason, Delivery
from keystead.messaging.email.stats import SENDS
from keystead.store import Database

from .room import ADA, DOWN, Room, on_sqlite

pytestmark = on_sqlite


@pytest_asyncio.fixture
async def room(server: Valkey, database: Database) -> Room:
    """On one server, and on the cluster."""
    return Room(server, database)



async def test_recurring_jobs_are_in_the_book_and_are_single_runs(room: Room) -> None:
    listed = RecurringList(recurring())
    listed.check(room.book)
    await room.email.queue(ADA, "s", "code", {"code": 1})
    for one in listed:
        await room.book.jobs[one.name]()
    assert len(room.provider.sent) == 1


async def test_an_email_without_callbacks_is_looked_after_by_the_room(room: Room) -> None:
    room.provider.answers.append(DOWN)
    await room.email.queue(ADA, "s", "code", {"code": 1})
    await room.send()
    assert await room.run_jobs(times=2) == ["email.failed"]
    room.later(3600)
    await room.send()
    await room.tell("m-0", Delivery())
    await room.reconcile()
    assert await room.run_jobs() == ["email.succeeded"]
    counted = await room.counted(SENDS)
    assert (counted["retried"], counted["accepted"]) == (1, {"code": 1})


async def test_a_bounce_of_an_email_without_callbacks_suppresses_the_address(room: Room) -> None:
    await room.email.queue(ADA, "s", "code", {"code": 1})
    await room.send()
    await room.tell("m-0", Bounce(BounceReason("Permanent", "General"), [ADA], [ADA]))
    await room.reconcile()
    assert sorted(await room.run_jobs()) == ["email.failed", "email.unreachable"]
    assert await room.suppression.emails([ADA]) == {ADA}


@pytest.mark.parametrize("name", ["email.failed", "email.succeeded"])
async def test_callbacks_refuse_what_they_cannot_read(room: Room, name: str) -> None:
    with pytest.raises(Invalid):
        await room.book.jobs[name](data_raw="nonsense")
    with pytest.raises(Invalid):
        await room.book.jobs["abandoned_email_callback"](event_obj={"x": 1})


async def test_a_crew_sends_and_hears_without_being_called(room: Room) -> None:
    stop = asyncio.Event()

    async def tell(mail: object, message_id: str) -> None:
        await room.tell(message_id, Delivery(), uid=getattr(mail, "uid", ""))

    room.provider.before_answer = tell
    async with asyncio.TaskGroup() as group:
        group.create_task(Crew(*crew(room.workers)).work(stop))
        for number in range(20):
            await room.queue(f"a{number}@example.com", lane=("high", "normal", "low")[number % 3])
        async with asyncio.timeout(40):
            while len(room.succeeded) < 20:
                await room.run_jobs()
                await asyncio.sleep(0.02)
        stop.set()
    assert len(room.provider.sent) == 20 and await room.pending() == {}
    assert await SENDING.waiting().length(room.valkey) == 0


