"""A person's addresses, devices and zone over HTTP."""

from collections.abc import AsyncIterator

import pytest_asyncio

from keystead.edge import ANONYMOUS, Caller, CallerKind
from keystead.ids import UserSub
from keystead.jobs import Jobs
from keystead.members.routes import routes

from .door import Visit, visiting
from .room import NOON, Room, on_sqlite

ADA, BEN = UserSub("user_ada"), UserSub("user_ben")
TOKEN = "ExponentPushToken[abc-DEF_123]"

pytestmark = on_sqlite


@pytest_asyncio.fixture
async def visit(room: Room) -> AsyncIterator[Visit]:
    for sub in (ADA, BEN):
        await room.person(sub, NOON)
    jobs = Jobs(room.valkey, room.book, clock=room.clock)
    async with visiting(routes(room.contacts, room.tokens, room.timezones, jobs)) as found:
        found.being(ADA)
        yield found


async def test_a_device_is_registered_by_a_job_and_removed_by_its_owner_alone(visit: Visit, room: Room) -> None:
    path = "/notifications/push/tokens/"
    assert await visit.ask("POST", path, {"push_token": TOKEN, "platform": "ios"}) == (202, None)
    assert await room.contacts.tokens_of([ADA]) == {ADA: []}, "not before the job ran"
    await room.settle(times=2)
    assert await room.contacts.tokens_of([ADA]) == {ADA: [TOKEN]}
    visit.being(BEN)
    assert (await visit.ask("DELETE", path, {"push_token": TOKEN}))[0] == 404
    visit.being(ADA)
    assert [(await visit.ask("DELETE", path, {"push_token": TOKEN}))[0] for _ in range(2)] == [204, 404]
    for wrong in ("", "abc", "ExponentPushToken[]abcdefghij", "ExponentPushToken[a b c d e f]", TOKEN + "\n"):
        assert (await visit.ask("POST", path, {"push_token": wrong, "platform": "ios"}))[0] == 422, wrong
    assert (await visit.ask("POST", path, {"push_token": TOKEN, "platform": "generic"}))[0] == 422
    visit.being("user_nobody")
    assert (await visit.ask("POST", path, {"push_token": TOKEN, "platform": "ios"}))[0] == 202
    await room.settle()  # the job finds nobody and ends


async def test_addresses_are_given_listed_and_removed(visit: Visit) -> None:
    path = "/users/me/contacts/emails"
    assert await visit.ask("POST", path, {"email": "Ada@Example.com"}) == (201, {"outcome": "created"})
    assert (await visit.ask("POST", path, {"email": "ada@example.com", "verified": True}))[0] == 403
    visit.caller = Caller(CallerKind.PROGRAM, "shop", frozenset({"users"}), ADA)
    assert await visit.ask("POST", path, {"email": "ada@example.com", "verified": True}) == (
        201, {"outcome": "verified"})
    visit.being(ADA)
    status, listed = await visit.ask("GET", path)
    assert status == 200 and listed == {"items": [{
        "address": "Ada@example.com", "verified": True, "receives_notifications": True, "suppressed": False,
        "created_at": NOON,
    }]}
    assert (await visit.ask("POST", path, {"email": "nonsense"}))[0] == 400
    assert [(await visit.ask("DELETE", path, {"email": "ADA@example.com"}))[0] for _ in range(2)] == [204, 404]


async def test_numbers_are_given_listed_and_removed(visit: Visit, room: Room) -> None:
    path = "/users/me/contacts/phones"
    assert await visit.ask("POST", path, {"phone_number": "+1 555 555 0123"}) == (201, {"outcome": "created"})
    await room.suppression.suppress_phone("+15555550123", "Stop")
    _, listed = await visit.ask("GET", path)
    assert isinstance(listed, dict)
    assert [(each["address"], each["suppressed"]) for each in listed["items"]] == [("+15555550123", True)]
    assert (await visit.ask("POST", path, {"phone_number": "0123"}))[0] == 400
    assert [(await visit.ask("DELETE", path, {"phone_number": "+15555550123"}))[0] for _ in range(2)] == [204, 404]


async def test_an_address_is_switched_off_and_everything_is_erased(visit: Visit, room: Room) -> None:
    await room.contacts.add_email(ADA, "ada@example.com", verified=True)
    await room.contacts.add_phone(ADA, "+15555550123", verified=True)
    for path, named in (("emails", {"email": "ADA@example.com"}), ("phones", {"phone_number": "+1 555 555 0123"})):
        for on in (True, False):
            answer = await visit.ask("PATCH", f"/users/me/contacts/{path}", {**named, "receives_notifications": on})
            assert answer == (204, None)
    assert (await visit.ask("PATCH", "/users/me/contacts/emails", {
        "email": "other@example.com", "receives_notifications": True}))[0] == 404
    assert await room.contacts.emails_of([ADA]) == {ADA: []} == await room.contacts.phones_of([ADA])
    await room.heard()
    assert await visit.ask("DELETE", "/users/me/contacts") == (202, None)
    assert await room.contacts.listed_emails(ADA) == [] and await room.heard() == [(ADA, "erased")]


async def test_the_zone_is_stored_if_there_is_one(visit: Visit, room: Room) -> None:
    path = "/users/me/attributes/timezone"
    assert await visit.ask("POST", path, {"timezone": "Asia/Tokyo"}) == (202, None)
    assert (await room.users.get(ADA)).timezone == "Asia/Tokyo"
    assert (await visit.ask("POST", path, {"timezone": "Asia/Tokio"}))[0] == 400


async def test_nobody_and_programs_without_the_scope_see_nothing(visit: Visit) -> None:
    for caller, status in (
        (ANONYMOUS, 401), (Caller(CallerKind.PROGRAM, "shop", frozenset({"keys"}), ADA), 403),
        (Caller(CallerKind.OPERATOR, "operator"), 400),
    ):
        visit.caller = caller
        assert (await visit.ask("GET", "/users/me/contacts/emails"))[0] == status


async def test_text_that_no_database_takes_is_the_fault_of_whoever_sent_it(visit: Visit) -> None:
    zone = {"timezone": "Asia/Seoul", "timezone_technique": "brow\0ser"}
    assert (await visit.ask("POST", "/users/me/attributes/timezone", zone))[0] == 422


async def test_a_program_that_names_what_can_be_nobody_is_told_so(visit: Visit) -> None:
    visit.caller = Caller(CallerKind.OPERATOR, "operator", acts_for="a {b}:c")
    assert (await visit.ask("POST", "/users/me/attributes/timezone", {"timezone": "Asia/Seoul"}))[0] == 400
