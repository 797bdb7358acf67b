"""Live counts against the rows: mended only when the difference stays."""

from collections.abc import AsyncIterator

import pytest_asyncio

from keystead.engine import Valkey
from keystead.reminders.counts import REPEATS, ROUNDS, count_rows
from keystead.reminders.keys import COUNTS, QUEUED
from keystead.reminders.models import DueReminder
from keystead.store import Database

from ..members.room import NOON, on_sqlite
from .people import People, reachable_ada

pytestmark = on_sqlite


@pytest_asyncio.fixture
async def people(valkey: Valkey, database: Database) -> AsyncIterator[People]:
    found = People(valkey, database)
    await reachable_ada(found)
    await found.settle()
    yield found


async def test_counts_that_are_right_are_left_alone(people: People) -> None:
    assert await people.check.run() == {} and people.slept == []


async def test_a_difference_that_stays_is_mended_once(people: People) -> None:
    await COUNTS.at().increment(people.valkey, "email", 7)
    await COUNTS.at().remove(people.valkey, "push")
    assert await people.check.run() == {"email": -7, "push": 1}
    assert people.slept == [1.0] * REPEATS
    assert await COUNTS.at().all(people.valkey) == {"email": 1, "sms": 1, "push": 1}
    assert await people.check.run() == {}


async def test_a_difference_that_passes_is_none(people: People) -> None:
    await COUNTS.at().increment(people.valkey, "email", 1)

    async def is_settled(seconds: float) -> None:
        people.slept.append(seconds)
        if len(people.slept) == REPEATS:
            await COUNTS.at().increment(people.valkey, "email", -1)

    people.check._sleep = is_settled
    assert await people.check.run() == {} and len(people.slept) == REPEATS


async def test_a_difference_that_changes_starts_the_watch_again_and_ends_some_day(people: People) -> None:
    async def goes_on(seconds: float) -> None:
        people.slept.append(seconds)
        await COUNTS.at().increment(people.valkey, "email", 1)

    people.check._sleep = goes_on
    await COUNTS.at().increment(people.valkey, "email", 1)
    assert await people.check.run() == {} and len(people.slept) == ROUNDS


async def test_many_reminders_that_moved_are_taken_away_at_once(people: People) -> None:
    today = int(NOON // 86400)
    uids = [f"udr_{number}" for number in range(1300)]
    await QUEUED.schedule_many(people.valkey, {DueReminder(uid, today + 1): NOON for uid in uids})
    await QUEUED.schedule(people.valkey, DueReminder("udr_other", today), NOON)
    await count_rows(people.valkey, "rc_1", NOON, [("unsubscribed", "sms", "user", 1300)], [], uids, NOON)
    assert await QUEUED.size(people.valkey) == 1
