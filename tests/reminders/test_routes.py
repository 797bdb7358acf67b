"""A person's reminders and wishes over HTTP."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from keystead.edge import ANONYMOUS
from keystead.engine import Valkey
from keystead.reminders.routes import routes
from keystead.store import Database

from ..members.door import Visit, visiting
from ..members.room import NOON, on_sqlite
from .people import ADA, BEN, EMAIL, NUMBER, People, reachable_ada

pytestmark = on_sqlite
DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
TIME = "/users/me/attributes/notification_time"


@pytest_asyncio.fixture
async def people(valkey: Valkey, database: Database) -> AsyncIterator[People]:
    found = People(valkey, database)
    await reachable_ada(found)
    await found.person(BEN, NOON)
    yield found


@pytest_asyncio.fixture
async def visit(people: People) -> AsyncIterator[Visit]:
    async with visiting(routes(people.settings, people.contacts)) as found:
        found.being(ADA)
        yield found


def wanted(**said: object) -> dict[str, object]:
    return {"days_of_week": ["Monday"], "time_range": {"type": "explicit", "start": 3600, "end": 90000},
            "channel": "email", "timezone": "Asia/Tokyo", "timezone_technique": "browser", **said}


async def test_reminders_are_listed_with_their_addresses_and_ended(visit: Visit) -> None:
    status, listed = await visit.ask("GET", "/users/me/daily_reminders")
    assert status == 200 and isinstance(listed, dict)
    by_channel = {each["channel"]: each for each in listed["items"]}
    assert {channel: each["addresses"] for channel, each in by_channel.items()} == {
        "email": [EMAIL], "sms": [NUMBER], "push": ["ios"]}
    assert by_channel["sms"]["start"] == 28800 and by_channel["sms"]["days"] == DAYS
    named = {"uid": by_channel["sms"]["uid"]}
    visit.being(BEN)
    assert (await visit.ask("DELETE", "/users/me/daily_reminders", named))[0] == 404
    visit.being(ADA)
    answers = [(await visit.ask("DELETE", "/users/me/daily_reminders", named))[0] for _ in range(2)]
    assert answers == [204, 404]


async def test_a_wish_is_stored_and_shown(visit: Visit, people: People) -> None:
    assert await visit.ask("POST", TIME, wanted()) == (202, None)
    status, shown = await visit.ask("GET", "/users/me/daily_reminder_settings")
    guess = {"start": 3600, "end": 90000, "days": ["Monday"], "is_real": False}
    assert status == 200 and shown == {"email": {**guess, "is_real": True}, "sms": guess, "push": guess}
    assert (await people.users.get(ADA)).timezone == "Asia/Tokyo"
    assert await visit.ask("POST", TIME, wanted(days_of_week=[], channel="all")) == (202, None)
    assert await visit.ask("GET", "/users/me/daily_reminders") == (200, {"items": []})


@pytest.mark.parametrize(("said", "status"), [
    ({"days_of_week": ["Someday"]}, 422), ({"channel": "fax"}, 422), ({"timezone": "Mars/Base"}, 400),
    ({"time_range": {"type": "preset", "preset": "noon"}}, 422), ({"time_range": {"type": "weekly"}}, 422),
    ({"time_range": {"type": "explicit", "start": 10, "end": 5}}, 400),
    ({"time_range": {"type": "explicit", "start": 86400, "end": 86400}}, 422), ({"days_of_week": DAYS * 2}, 422),
])
async def test_a_wish_that_cannot_be_is_refused(visit: Visit, said: dict[str, object], status: int) -> None:
    assert (await visit.ask("POST", TIME, wanted(**said)))[0] == status


async def test_whoever_has_not_said_when_is_asked(visit: Visit, people: People) -> None:
    path = "/users/me/wants_notification_time_prompt"
    everything = ["email", "push", "sms"]
    assert await visit.ask("GET", path) == (200, {
        "wants_notification_time_prompt": True, "channels": everything, "potential_channels": everything})
    people.clock.advance(1)
    await visit.ask("POST", TIME, wanted(channel="all"))
    assert await visit.ask("GET", path) == (200, {
        "wants_notification_time_prompt": False, "channels": [], "potential_channels": everything})


async def test_nobody_sees_nothing_and_who_does_not_exist_is_not_found(visit: Visit) -> None:
    visit.caller = ANONYMOUS
    assert (await visit.ask("GET", "/users/me/daily_reminders"))[0] == 401
    visit.being("user_nobody")
    for path in ("daily_reminders", "daily_reminder_settings", "wants_notification_time_prompt"):
        assert (await visit.ask("GET", f"/users/me/{path}"))[0] == 404
    assert (await visit.ask("POST", TIME, wanted()))[0] == 404


async def test_text_that_no_database_takes_is_the_fault_of_whoever_sent_it(visit: Visit) -> None:
    assert (await visit.ask("DELETE", "/users/me/daily_reminders", {"uid": "udr_\0"}))[0] == 422
    assert (await visit.ask("POST", TIME, wanted(timezone_technique="brow\0ser")))[0] == 422
