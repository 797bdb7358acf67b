"""Touches in two lanes: each person's lie in one of them, and whoever looks for them finds it."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from keystead.engine import Valkey
from keystead.keys import ListRef
from keystead.messaging.sending.keys import JOBS_OUTBOX
from keystead.messaging.sms.keys import SENDING
from keystead.messaging.touches.dispatcher import Dispatcher
from keystead.messaging.touches.history import History
from keystead.messaging.touches.jobs import LOG_JOB, SEND_JOB, crew
from keystead.messaging.touches.keys import PENDING, TO_LOG, TO_SEND
from keystead.messaging.touches.queues import Queues
from keystead.messaging.touches.tracing import Tracer
from keystead.patterns import Once
from keystead.store import Database

from .room import Room, on_sqlite

pytestmark = [pytest.mark.cluster, on_sqlite]

ADA, BOB = "ada", "bob"  # of the first lane and of the second


@pytest_asyncio.fixture
async def laned(two_lanes: Valkey, database: Database) -> AsyncIterator[Room]:
    room = Room(two_lanes, database)
    assert [two_lanes.layout.lane_of(sub) for sub in (ADA, BOB)] == [0, 1]
    await room.person(ADA, phones=["+14155550101"])
    await room.person(BOB, phones=["+14155550102"])
    await room.point()
    yield room


async def lengths(room: Room, place: ListRef) -> list[int]:
    return [await place.length(lane) for lane in room.valkey.lanes]


async def test_many_are_queued_in_their_lanes_each_with_its_answer(laned: Room):
    touches = [laned.touch(sub, uid=uid) for sub, uid in ((BOB, "a"), (ADA, "b"), (BOB, "a"), (ADA, "c"))]
    assert await laned.touches.queue_many(touches) == [Once.DONE, Once.DONE, Once.SEEN, Once.DONE]
    assert await lengths(laned, TO_SEND.queue) == [2, 1] and await laned.touches.waiting() == 3
    assert (await Queues(laned.valkey, laned.clock).to_send()).length == 3


async def test_a_touch_ends_in_the_lane_it_began_in(laned: Room):
    uids = {sub: await laned.send(sub) for sub in (ADA, BOB)}
    for sub in (ADA, BOB):
        [past] = await History(laned.valkey, laned.database).of(sub)
        assert past.uid == uids[sub]
    latest = await History(laned.valkey, laned.database).latest()
    assert {touch.uid: touch.user_sub for touch in latest.touches} == {uid: sub for sub, uid in uids.items()}
    await laned.book.jobs[SEND_JOB]()
    assert await lengths(laned, SENDING.waiting()) == [1, 1]
    for number, sub in enumerate((ADA, BOB)):
        lane = laned.valkey.lanes[number]
        [sms] = await SENDING.waiting().range(lane)
        assert sms.user_sub == sub and await PENDING.get(lane, uids[sub]) is not None
        kwargs = sms.failure_job.kwargs
        await laned.book.jobs[sms.failure_job.name](**kwargs, data_raw=laned.refused(sms, retryable=True))
        assert await SENDING.retrying().size(lane) == 1, "it is tried again there"
        await laned.book.jobs[sms.success_job.name](**sms.success_job.kwargs, data_raw=laned.arrived(sms))
        assert await PENDING.get(lane, uids[sub]) is None
        trace = [event.what for event in await Tracer(laned.valkey, laned.database, laned.outlets).trace(uids[sub])]
        assert "ended" in trace
    for lane in laned.valkey.lanes:
        assert await JOBS_OUTBOX.drain(lane, now=laned.clock.now()) == 1
    assert await laned.callbacks() == ["shop.reached", "shop.reached"]
    await laned.book.jobs[LOG_JOB]()
    assert await lengths(laned, TO_LOG.queue) == [0, 0]


async def test_erasing_takes_out_what_waits_in_the_lane_of_the_person(laned: Room):
    for sub in (ADA, BOB):
        await laned.send(sub)
    await laned.book.jobs[SEND_JOB]()
    erased = await laned.erasure.erase(BOB)
    assert (erased.messages, erased.touches) == (1, 1)
    assert await lengths(laned, SENDING.waiting()) == [1, 0]


async def test_every_lane_has_a_crew(laned: Room):
    works = crew(laned.valkey, laned.clock, laned.planner, laned.outlets, laned.pending, laned.log, workers=2)
    dispatchers = [work for work in works if isinstance(work, Dispatcher)]
    assert [work.valkey.layout.lane for work in dispatchers] == [0, 0, 1, 1] and len(works) == 8
