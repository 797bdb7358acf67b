"""People themselves over HTTP."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from keystead.edge import ANONYMOUS, USER_PURPOSE, Caller, CallerKind, Tickets
from keystead.ids import UserSub
from keystead.members.jobs import register_leaving
from keystead.members.routes_users import routes
from keystead.members.stats import DAILY_ACTIVE

from .door import Visit, visiting
from .room import NOON, Room

PROGRAM = Caller(CallerKind.PROGRAM, "shop", frozenset({"users"}))
ADA = {"provider": "shop", "provider_sub": "17", "given_name": "Ada", "timezone": "Europe/London"}


@pytest_asyncio.fixture
async def visit(room: Room) -> AsyncIterator[Visit]:
    register_leaving(room.book, room.users)
    tickets = Tickets(bytes(32), room.clock)
    async with visiting(routes(room.users, room.contacts, room.activity, tickets)) as found:
        found.caller = PROGRAM
        yield found


async def made(visit: Visit, **more: object) -> str:
    status, shown = await visit.ask("POST", "/users", {**ADA, **more})
    assert status in (200, 201), shown
    return shown["sub"]


async def test_one_identity_is_one_person(visit: Visit) -> None:
    first = await visit.ask("POST", "/users", ADA)
    again = await visit.ask("POST", "/users", {**ADA, "given_name": "Somebody else"})
    assert (first[0], again[0]) == (201, 200) and first[1] == again[1]
    assert first[1] == {"sub": first[1]["sub"], "given_name": "Ada", "family_name": "", "timezone": "Europe/London",
                        "created_at": NOON}
    assert await visit.ask("GET", f"/users/{first[1]['sub']}") == (200, first[1])
    assert (await visit.ask("GET", "/users/user_nobody"))[0] == 404
    for bad in ({"provider": ""}, {"timezone": "Mars/Olympus"}, {"given_name": "x" * 256}, {"provider_sub": "a\0b"}):
        assert (await visit.ask("POST", "/users", {**ADA, **bad}))[0] in (400, 422)


async def test_everybody_is_listed_page_by_page(visit: Visit) -> None:
    subs = [await made(visit, provider_sub=str(number)) for number in range(7)]
    seen, cursor = [], ""
    while True:
        status, page = await visit.ask("GET", f"/users?limit=3{cursor}")
        assert status == 200
        seen += [each["sub"] for each in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert seen == subs
    for bad in ("cursor=x", "limit=0", "limit=501", "cursor=OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk"):
        assert (await visit.ask("GET", f"/users?{bad}"))[0] in (400, 422)


async def test_somebody_who_goes_is_forgotten_and_can_come_back_as_somebody_else(visit: Visit, room: Room) -> None:
    sub = await made(visit)
    await room.contacts.add_email(UserSub(sub), "ada@example.com", verified=True)
    assert (await visit.ask("DELETE", f"/users/{sub}"))[0] == 202
    shown = (await visit.ask("GET", f"/users/{sub}"))[1]
    assert (shown["given_name"], shown["timezone"]) == ("", None), "at once"
    new = await made(visit)
    assert new != sub
    await room.settle(times=2)
    assert (sub, "erased") in room.told
    assert (await visit.ask("GET", f"/users/{sub}"))[0] == 404
    assert (await visit.ask("DELETE", f"/users/{sub}"))[0] == 404
    assert await room.contacts.emails_of([UserSub(sub)]) == {sub: []}
    assert (await visit.ask("GET", f"/users/{new}"))[0] == 200


async def test_a_token_is_for_one_person_and_ends(visit: Visit, room: Room) -> None:
    sub = await made(visit)
    status, shown = await visit.ask("POST", f"/users/{sub}/tokens", {"lasts_seconds": 60})
    assert status == 201 and shown["expires_at"] == room.clock.now() + 60
    ticket = Tickets(bytes(32), room.clock).read(USER_PURPOSE, shown["token"])
    assert ticket.subject == sub
    assert (await visit.ask("POST", "/users/user_nobody/tokens", {}))[0] == 404
    assert (await visit.ask("POST", f"/users/{sub}/tokens", {"lasts_seconds": 10**9}))[0] == 422


async def test_a_visit_is_counted_once_a_day(visit: Visit, room: Room) -> None:
    sub = await made(visit)
    visit.being(sub)
    assert [(await visit.ask("POST", "/users/me/visits"))[0] for _ in range(3)] == [204] * 3
    assert await DAILY_ACTIVE.read(room.valkey, DAILY_ACTIVE.day_of(room.clock.now())) == 1
    visit.being("user_nobody")
    assert (await visit.ask("POST", "/users/me/visits"))[0] == 404


@pytest.mark.parametrize(("caller", "status"), [
    (ANONYMOUS, 401), (Caller(CallerKind.PROGRAM, "x", frozenset({"jobs"})), 403), (Caller(CallerKind.USER, "u"), 403),
])
async def test_only_those_with_the_scope(visit: Visit, caller: Caller, status: int) -> None:
    sub = await made(visit)
    visit.caller = caller
    for method, path, body in (
        ("POST", "/users", ADA), ("GET", "/users", None), ("GET", f"/users/{sub}", None),
        ("DELETE", f"/users/{sub}", None), ("POST", f"/users/{sub}/tokens", {}),
    ):
        assert (await visit.ask(method, path, body))[0] == status, path
