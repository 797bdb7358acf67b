"""Wishes: stored, logged and counted, with the rows that follow from them, in one transaction."""

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from sqlalchemy import select

from keystead.engine import Valkey
from keystead.errors import Invalid, NotFound
from keystead.members.keys import TIMEZONE_SAID
from keystead.reminders.effective import EVERY_DAY, TimeRange
from keystead.reminders.keys import IMPROVED_AT
from keystead.reminders.settings import Prompt
from keystead.reminders.tables import SETTINGS_LOG
from keystead.store import Database, SqlOutbox

from ..jobs.batch_room import Died
from ..members.room import NOON, on_sqlite
from .people import ADA, BEN, EVENING, MORNING, People, reachable_ada, wants

TOKYO = "Asia/Tokyo"


@pytest_asyncio.fixture
async def people(valkey: Valkey, database: Database) -> AsyncIterator[People]:
    found = People(valkey, database)
    await reachable_ada(found)
    yield found


async def logged(people: People) -> list[tuple[str, int, dict[str, object], str]]:
    row = SETTINGS_LOG.c
    async with people.database.reading() as sql:
        found = await sql.execute(
            select(row.channel, row.day_of_week_mask, row.time_range, row.reason).order_by(row.id)
        )
        return [(channel, mask, json.loads(when), json.loads(why)["reason"]) for channel, mask, when, why in found]


async def test_a_wish_changes_the_row_the_zone_the_log_and_the_statistics(people: People) -> None:
    await wants(people, "sms", EVENING, 0b0111110)
    found = await people.reminders()
    assert found[ADA, "sms"] == (57600, 61200, 62, TOKYO)
    assert found[ADA, "email"] == (61200, 68400, 62, TOKYO), "it has no wish of its own, and borrows"
    assert await logged(people) == [("sms", 62, {"type": "preset", "preset": "evening"}, "update_notification_time")]
    assert await people.wished() == {"sms 1111111:unspecified|0111110:evening": 1}
    assert await TIMEZONE_SAID.at(ADA).get(people.valkey) == TOKYO
    registered = await people.registered()
    assert "unsubscribed" not in str(registered) and registered["sms"] == 1


@on_sqlite
async def test_only_the_half_that_changed_is_counted(people: People) -> None:
    await wants(people, "email", MORNING)
    await wants(people, "email", MORNING)
    await wants(people, "email", MORNING, 3)
    await wants(people, "email", TimeRange("", 0, 100), 3)
    assert await people.wished() == {
        "email :unspecified|:morning": 1, "email 1111111:|0000011:": 1, "email :morning|:0-100": 1}
    assert len(await logged(people)) == 3, "the same wish again is no change"


@on_sqlite
async def test_no_days_end_the_reminder_and_days_bring_it_back(people: People) -> None:
    await wants(people, "all", mask=0)
    assert await people.reminders() == {}
    await wants(people, "push", EVENING)
    assert list(await people.reminders()) == [(ADA, "push")]
    registered = await people.registered()
    assert {name: n for name, n in registered.items() if "update_notification_time" in name} == {
        "unsubscribed/email:update_notification_time": 1, "unsubscribed/sms:update_notification_time": 1,
        "unsubscribed/push:update_notification_time": 1, "subscribed/push:update_notification_time": 1,
    }


@on_sqlite
async def test_a_reminder_is_ended_by_its_uid_by_its_owner_alone(people: People) -> None:
    (uid,) = [each.uid for each in await people.settings.reminders_of(ADA) if each.channel == "sms"]
    await people.person(BEN, NOON)
    assert await people.settings.unsubscribe(BEN, uid) is None
    assert [await people.settings.unsubscribe(ADA, uid) for _ in range(2)] == ["sms", None]
    assert sorted(await people.reminders()) == [(ADA, "email"), (ADA, "push")]
    assert (await people.registered())["unsubscribed/sms:user"] == 1
    holds = await people.settings.effective_of(ADA)
    assert (holds["sms"].mask, holds["sms"].is_real, holds["email"].mask) == (0, True, EVERY_DAY)


@on_sqlite
async def test_who_has_not_said_since_the_question_is_asked_is_asked(people: People) -> None:
    assert await IMPROVED_AT.at().get(people.valkey) is None
    await wants(people, "email")
    people.clock.advance(60)
    everything = ("email", "push", "sms")
    assert await people.settings.prompt_of(ADA) == Prompt(everything, everything)
    assert await IMPROVED_AT.at().get(people.valkey) == NOON + 60
    people.clock.advance(60)
    await wants(people, "email")
    await wants(people, "sms", mask=0)
    assert await people.settings.prompt_of(ADA) == Prompt(("push",), everything)
    assert await IMPROVED_AT.at().get(people.valkey) == NOON + 60


@on_sqlite
async def test_what_cannot_be_is_refused_and_changes_nothing(people: People) -> None:
    before = await people.reminders()
    for wrong in ({"channel": "fax"}, {"mask": 128}, {"mask": -1}, {"timezone": "Asia/Tokio"}):
        with pytest.raises(Invalid):
            await people.settings.update(ADA, **{  # type: ignore[arg-type]
                "mask": 1, "time_range": EVENING, "channel": "all", "timezone": TOKYO, **wrong})
    with pytest.raises(NotFound):
        await people.settings.update(BEN, mask=1, time_range=EVENING, channel="all")
    assert await people.reminders() == before and await logged(people) == []


@on_sqlite
async def test_a_transaction_that_does_not_commit_leaves_nothing(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await people.reminders()

    async def fails(*args: object, **kwargs: object) -> str:
        raise Died

    monkeypatch.setattr(SqlOutbox, "enqueue", fails)
    with pytest.raises(Died):
        await wants(people, "all", EVENING)
    monkeypatch.undo()
    assert await people.reminders() == before and await logged(people) == []
    assert (await people.users.get(ADA)).timezone is None
