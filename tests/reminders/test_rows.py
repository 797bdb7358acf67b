"""Rows of reminders follow from how people can be reached and what they wish; each change is counted once."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
import pytest_asyncio
from sqlalchemy import func, select

from keystead.engine import EmbeddedServer, Valkey, connect
from keystead.errors import Invalid
from keystead.ids import UserSub
from keystead.reminders.effective import EVERY_DAY, TimeRange
from keystead.reminders.keys import COUNTS, QUEUED
from keystead.reminders.models import DueReminder
from keystead.reminders.rows import reminder_uid
from keystead.reminders.tables import SETTINGS, SETTINGS_LOG
from keystead.store import Database

from ..jobs.batch_room import Died, at_call, each_call
from ..members.room import NOON, on_sqlite
from .people import ADA, BEN, EMAIL, EVENING, MORNING, NUMBER, TOKEN, People, reachable_ada, wants

LA = "America/Los_Angeles"
DAILY = EVERY_DAY


@pytest_asyncio.fixture
async def people(valkey: Valkey, database: Database) -> AsyncIterator[People]:
    yield People(valkey, database)


async def test_whoever_can_be_reached_is_reminded_every_morning(people: People) -> None:
    await reachable_ada(people)
    assert await people.reminders() == {
        (ADA, "email"): (21600, 39600, DAILY, LA), (ADA, "sms"): (28800, 39600, DAILY, LA),
        (ADA, "push"): (21600, 39600, DAILY, LA),
    }
    assert await people.registered() == {
        "subscribed/email:email_added": 1, "subscribed/sms:phone_verify_finish": 1,
        "subscribed/push:push_token_added": 1, "email": 1, "sms": 1, "push": 1,
    }


@on_sqlite
async def test_what_ends_a_reminder_is_counted_by_its_reason(people: People) -> None:
    await reachable_ada(people)
    await people.suppression.suppress_phone(NUMBER, "Stop")
    await people.suppression.email_failed(EMAIL, "Bounce", "Permanent/General")
    await people.tokens.forget(TOKEN, "ticket")
    assert await people.reminders() == {}
    found = await people.registered()
    assert {name: n for name, n in found.items() if not name.startswith("subscribed")} == {
        "unsubscribed/sms:sms_stop": 1, "unsubscribed/email:unreachable": 1, "unsubscribed/push:unreachable": 1}
    await people.suppression.lift_phone(NUMBER)
    assert list(await people.reminders()) == [(ADA, "sms")]
    assert (await people.registered())["subscribed/sms:sms_start"] == 1


@on_sqlite
async def test_another_address_keeps_the_reminder(people: People) -> None:
    await reachable_ada(people)
    await people.contacts.add_email(ADA, "other@example.com", verified=True)
    await people.suppression.suppress_email(EMAIL, "Complaint")
    assert (ADA, "email") in await people.reminders()
    await people.suppression.suppress_email("other@example.com", "Complaint")
    assert (ADA, "email") not in await people.reminders()


@on_sqlite
async def test_a_device_in_other_hands_ends_the_reminder_of_its_former_owner(people: People) -> None:
    await reachable_ada(people)
    await people.person(BEN, NOON)
    await people.tokens.register(BEN, TOKEN, "ios")
    assert sorted(await people.reminders()) == [(ADA, "email"), (ADA, "sms"), (BEN, "push")]


@on_sqlite
async def test_to_derive_again_changes_nothing(people: People) -> None:
    await reachable_ada(people)
    before = await people.reminders(), await people.registered()
    people.moved.clear()
    await people.rows_of_all.derive(ADA, "account_created")
    await people.rows_of_all.derive_many([ADA, BEN, ADA], "merge_consistency")
    assert (await people.reminders(), await people.registered()) == before and people.moved == []
    with pytest.raises(Invalid, match="no reason"):
        await people.rows_of_all.derive(ADA, "whim")


@on_sqlite
async def test_news_that_come_out_of_order_are_counted_as_what_happened(people: People) -> None:
    """Both changes are seen by the first job: what it was told does not fit what it does."""
    await people.person(ADA, NOON)
    await people.contacts.add_email(ADA, EMAIL, verified=True)
    await people.rows_of_all.derive(ADA, "unreachable", "email")
    await people.contacts.remove_email(ADA, EMAIL)
    await people.rows_of_all.derive(ADA, "email_added", "email")
    assert await people.registered() == {"subscribed/email:email_added": 1, "unsubscribed/email:unreachable": 1}


@on_sqlite
async def test_what_waits_of_a_changed_reminder_is_taken_away_and_told(people: People) -> None:
    await reachable_ada(people)
    today = int(NOON // 86400)
    waiting = {channel: DueReminder(reminder_uid(ADA, channel), today) for channel in ("email", "sms", "push")}
    await QUEUED.schedule_many(people.valkey, dict.fromkeys(waiting.values(), NOON + 60))
    people.moved.clear()
    await people.settings.update(ADA, mask=DAILY, time_range=EVENING, channel="email")
    await people.contacts.remove_phone(ADA, NUMBER)
    await people.settle()
    # Push has no wish of its own and follows that of email.
    assert await QUEUED.size(people.valkey) == 0
    assert sorted(set(people.moved)) == sorted(each.uid for each in waiting.values())


@on_sqlite
async def test_a_reminder_keeps_its_uid_when_it_ends_and_begins_again(people: People) -> None:
    await reachable_ada(people)
    (before,) = [each.uid for each in await people.settings.reminders_of(ADA) if each.channel == "email"]
    await wants(people, "email", mask=0)
    await people.settle()
    assert (ADA, "email") not in await people.reminders()
    await wants(people, "email", EVENING)
    await people.settle()
    assert before in [each.uid for each in await people.settings.reminders_of(ADA)]


@on_sqlite
async def test_a_reminder_that_comes_back_is_told_so_that_it_gets_its_time_of_today(people: People) -> None:
    """What waited of it was taken away when it went, and nobody comes by its place again today."""
    await reachable_ada(people)
    await people.tokens.forget(TOKEN, "receipt")
    await people.settle()
    people.moved.clear()
    await people.tokens.register(ADA, TOKEN.replace("abc", "new"), "ios")
    await people.settle()
    assert people.moved == [reminder_uid(ADA, "push")]


async def test_the_zone_of_a_person_is_that_of_their_reminders(people: People) -> None:
    await reachable_ada(people)
    people.moved.clear()
    await people.timezones.set(ADA, "Asia/Tokyo")
    assert {zone for *_, zone in (await people.reminders()).values()} == {"Asia/Tokyo"}
    assert len(people.moved) == 3


async def test_whoever_is_erased_leaves_nothing(people: People) -> None:
    await reachable_ada(people)
    await wants(people, "all")
    await people.contacts.erase(ADA)
    assert await people.reminders() == {} and await COUNTS.at().all(people.valkey) == {"email": 0, "sms": 0, "push": 0}
    assert (await people.registered())["unsubscribed/push:account_deleted"] == 1
    async with people.database.reading() as sql:
        for table in (SETTINGS, SETTINGS_LOG):
            assert await sql.scalar(select(func.count()).select_from(table)) == 0
    await people.rows_of_all.erase(ADA)
    await people.rows_of_all.erase(BEN)


@on_sqlite
async def test_jobs_that_run_more_than_once_count_once(server: Valkey, database: Database) -> None:
    people = People(server, database)
    await people.person(ADA, NOON)
    await people.contacts.add_email(ADA, EMAIL, verified=True)
    await people.settings.update(ADA, mask=3, time_range=MORNING, channel="email")
    await people.settle(times=3)
    assert await people.registered() == {"subscribed/email:update_notification_time": 1, "email": 1}
    assert await people.wished() == {"email 1111111:unspecified|0000011:morning": 1}


async def test_after_any_changes_rows_are_what_they_would_be_from_scratch(people: People) -> None:
    """Random changes of reach and wishes, some at once, jobs in any order and more than once."""
    chance = random.Random(7)
    await reachable_ada(people)
    for _ in range(6):
        changes = [
            lambda: people.contacts.add_email(ADA, EMAIL, verified=True),
            lambda: people.contacts.remove_email(ADA, EMAIL),
            lambda: people.suppression.suppress_phone(NUMBER, "Stop"),
            lambda: people.suppression.lift_phone(NUMBER),
            lambda: people.tokens.register(ADA, TOKEN, "ios"),
            lambda: people.tokens.forget(TOKEN, "receipt"),
            lambda: wants(people, "email", TimeRange("", 100, 200), chance.choice((0, 3, 127))),
            lambda: wants(people, "all", EVENING, chance.choice((0, 127))),
        ]
        await asyncio.gather(*(change() for change in chance.sample(changes, 3)))
        await people.settle(times=2)
        found = await people.reminders()
        counts = {channel: n for channel, n in (await COUNTS.at().all(people.valkey)).items() if n}
        assert counts == {channel: 1 for _, channel in found}
        moved = len(people.moved)
        await people.rows_of_all.derive(ADA, "merge_consistency")
        assert await people.reminders() == found and len(people.moved) == moved


@on_sqlite
async def test_each_change_is_counted_once_wherever_the_process_dies(
    valkey: Valkey, database: Database, valkey_server: EmbeddedServer
) -> None:
    """Every call of the relay and of the jobs, cut off before and after it was applied; another process goes on."""
    people, made = People(valkey, database), 0
    async for number, after in each_call():
        mortal = await connect(valkey_server.url)
        doomed = People(mortal, database)

        async def dies() -> None:
            raise Died

        sub = UserSub(await people.person(f"user_{made}", NOON))
        made += 1
        await people.contacts.add_email(sub, EMAIL, verified=True)
        calls = at_call(mortal, number, dies, after=after)
        with suppress(Died):
            await doomed.settle()
        await mortal.aclose()
        await people.settle()
        assert await COUNTS.at().all(valkey) == {"email": made}, f"died at call {number}, after={after}"
        if len(calls) < number:
            break
    assert made > 10
