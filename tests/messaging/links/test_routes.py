"""The doors of links over HTTP: programs get answers, people get pages."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import pytest_asyncio
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from keystead.edge import ANONYMOUS, Caller, CallerKind, ClientAddress, Guard, Networks, client_address, problem_of
from keystead.edge.keys import LINK_WINDOW, VIOLATIONS, WRONG_CODE_WINDOW
from keystead.errors import KeysteadError
from keystead.ids import UserSub
from keystead.members import Suppression
from keystead.messaging.links import Style
from keystead.messaging.links.keys import CODE_WINDOW
from keystead.messaging.links.pages import Pages
from keystead.messaging.links.persister import Persister
from keystead.messaging.links.queues import RUNS, LinkQueues
from keystead.messaging.links.routes import admin_routes, landing_routes, routes
from keystead.messaging.links.unsubscribing import Unsubscribing

from .room import Room, on_sqlite
from .test_unsubscribing import suppression

pytestmark = on_sqlite
BROWSER = {"user-agent": "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) Version/18.1 Mobile Safari/604.1"}
ANN = Caller(CallerKind.USER, "user_ann")
HERE = client_address("203.0.113.7", (), Networks(()))


@dataclass
class Site:
    room: Room
    listed: Suppression
    http: httpx.AsyncClient
    caller: Caller
    entered: list[tuple[str, str, dict[str, Any]]]
    address: ClientAddress = HERE


@pytest_asyncio.fixture
async def site(room: Room) -> AsyncIterator[Site]:
    app, listed, entered = FastAPI(), suppression(room), []
    unsubscribing = Unsubscribing(room.links, room.database, listed)

    async def enter(sub: UserSub, flow: str, extra: dict[str, Any]) -> None:
        entered.append((sub, flow, extra))

    app.include_router(routes(room.links, unsubscribing, enter_flow=enter), prefix="/api/1")
    app.include_router(admin_routes(LinkQueues(room.valkey, room.clock)), prefix="/api/1")
    app.include_router(landing_routes(
        room.links, unsubscribing, Pages(app_url="https://app.example.com"), Guard(room.valkey)))

    @app.middleware("http")
    async def identify(request: Request, call_next: Any) -> Any:
        request.state.caller, request.state.address = made.caller, made.address
        return await call_next(request)

    @app.exception_handler(KeysteadError)
    async def answer(request: Request, error: KeysteadError) -> JSONResponse:
        problem = problem_of(error)
        return JSONResponse(problem.body(), problem.status, problem.headers)

    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://here", headers=BROWSER) as http:
        made = Site(room, listed, http, ANONYMOUS, entered)
        yield made


async def test_a_click_says_where_the_link_leads(site: Site) -> None:
    link = await site.room.links.create("share_journey", {"journey_uid": "j1"}, touch_uid="tch_1")
    answer = await site.http.post("/api/1/notifications/complete", json={"code": link.code},
                                  headers={"visitor": "v_device"})
    assert answer.status_code == 200
    body = answer.json()
    assert (body["page_identifier"], body["page_extra"]) == ("share_journey", {"journey_uid": "j1"})
    assert body["click_uid"].startswith("utlc_")
    site.caller = ANN
    answer = await site.http.post("/api/1/notifications/post_login", json={"code": link.code, "uid": body["click_uid"]})
    assert answer.status_code == 202
    assert (await site.room.counted("clicks_buffered"))["clicks_buffered"] == {
        "on_click:share_journey:vis=True:user=False": 1, "post_login:share_journey:vis=False:user=True": 1,
    }


@pytest.mark.parametrize(("body", "status"), [
    ({"code": "nothing"}, 404), ({"code": "a:b c"}, 404), ({"code": ""}, 422), ({"code": "x" * 256}, 422), ({}, 422),
])
async def test_a_code_that_leads_nowhere_is_not_found(site: Site, body: dict[str, str], status: int) -> None:
    answer = await site.http.post("/api/1/notifications/complete", json=body)
    assert answer.status_code == status


async def test_a_login_needs_somebody_who_is_logged_in(site: Site) -> None:
    answer = await site.http.post("/api/1/notifications/post_login", json={"code": "x", "uid": "y"})
    assert answer.status_code == 401
    answer = await site.http.post("/api/1/users/me/screens/apply_touch_link", json={"code": "x"})
    assert answer.status_code == 401


async def test_following_a_link_while_logged_in_enters_its_flow(site: Site) -> None:
    link, path = await site.room.link(), "/api/1/users/me/screens/apply_touch_link"
    site.caller = ANN
    first = await site.http.post(path, json={"code": link.code})
    then = await site.http.post(path, json={"code": link.code, "click_uid": first.json()["click_uid"]})
    assert (first.status_code, then.status_code) == (200, 200)
    assert site.entered == [("user_ann", "touch_link_home", {})] * 2
    assert (await site.http.post(path, json={"code": "nothing"})).status_code == 404
    assert (await site.room.counted("clicks_buffered"))["clicks_buffered"] == {
        "on_click:home:vis=False:user=True": 1, "post_login:home:vis=False:user=True": 1,
    }


async def test_unsubscribing_by_address_needs_an_unsubscribe_code(site: Site) -> None:
    path, home = "/api/1/notifications/unsubscribe_by_email", await site.room.link()
    refused = await site.http.post(path, json={"email": "ann@example.com", "code": home.code})
    assert (refused.status_code, refused.json()["type"]) == (403, "invalid_code")
    permits = await site.room.link("tch_1", "unsubscribe", Style.LONG)
    done = await site.http.post(path, json={"email": "ann@example.com", "code": permits.code})
    assert done.status_code == 202
    assert await site.listed.emails(["ann@example.com"]) == {"ann@example.com"}
    bad = await site.http.post(path, json={"email": "no address", "code": permits.code})
    assert bad.status_code == 400


@pytest.mark.parametrize("path", ["l", "a"])
@pytest.mark.parametrize("stored", [False, True])
async def test_a_person_who_opens_a_link_is_counted_and_led_on(site: Site, path: str, stored: bool) -> None:
    await site.room.touch("tch_1")
    link = await site.room.link()
    if stored:
        await site.room.links.persist(link.code)
        site.room.clock.advance(1800)
        await Persister(site.room.valkey, site.room.clock, site.room.database).run()
    page = await site.http.get(f"/{path}/{link.code}")
    assert page.status_code == 200
    assert "https://app.example.com/?touch_link=" in page.text and "og:title" in page.text
    assert page.headers["referrer-policy"] == "same-origin", "other sites are not told the code"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert await site.room.counted("click_attempts") == {"click_attempts": 1}


@pytest.mark.parametrize("headers", [
    {"user-agent": "Slackbot-LinkExpanding 1.0"}, {"user-agent": ""}, {"sec-purpose": "prefetch"},
])
async def test_programs_see_the_preview_and_are_not_counted(site: Site, headers: dict[str, str]) -> None:
    link = await site.room.link()
    page = await site.http.get(f"/l/{link.code}", headers=headers)
    assert page.status_code == 200 and "og:title" in page.text and "http-equiv" not in page.text
    assert (await site.http.head(f"/l/{link.code}")).status_code == 200
    assert await site.room.counted() == {"created": 1}
    assert not await CODE_WINDOW.at(link.code).exists(site.room.valkey)


@pytest.mark.parametrize("code", ["nothing", "a:b", "%3Cscript%3E", "x" * 300])
async def test_a_link_that_leads_nowhere_has_a_kind_page(site: Site, code: str) -> None:
    page = await site.http.get(f"/l/{code}")
    assert page.status_code == 404
    assert "does not lead anywhere" in page.text and "<script" not in page.text
    assert (await site.http.post(f"/l/{code}")).status_code == 404


async def test_one_button_unsubscribes_the_address_of_the_message(site: Site) -> None:
    await site.room.touch("tch_1", "ann@example.com")
    link = await site.room.link("tch_1", "unsubscribe", Style.LONG)
    page = await site.http.get(f"/l/{link.code}")
    assert "a•••@example.com" in page.text and 'method="post"' in page.text
    # With no-referrer browsers send the form with the origin null, and the server refuses it.
    assert page.headers["referrer-policy"] == "same-origin"
    assert await site.listed.emails(["ann@example.com"]) == set(), "looking at it does nothing"
    done = await site.http.post(f"/l/{link.code}")
    assert done.status_code == 200 and "unsubscribed" in done.text
    assert await site.listed.emails(["ann@example.com"]) == {"ann@example.com"}


async def test_before_the_message_is_written_down_the_page_asks_for_the_address(site: Site) -> None:
    link = await site.room.link("tch_1", "unsubscribe", Style.LONG)
    assert 'name="email"' in (await site.http.get(f"/l/{link.code}")).text
    for typed in ("", "nonsense", "a@"):
        assert (await site.http.post(f"/l/{link.code}", data={"email": typed})).status_code == 400
    done = await site.http.post(f"/l/{link.code}", data={"email": " bob@example.com "})
    assert done.status_code == 200
    assert await site.listed.emails(["bob@example.com"]) == {"bob@example.com"}


async def test_a_link_that_is_no_unsubscribe_link_takes_no_form(site: Site) -> None:
    link = await site.room.link()
    assert (await site.http.post(f"/l/{link.code}", data={"email": "bob@example.com"})).status_code == 404
    assert await site.listed.emails(["bob@example.com"]) == set()


async def test_operators_see_what_waits_and_how_jobs_ran(site: Site) -> None:
    link = await site.room.link()
    await site.room.links.persist(link.code)
    paths = ["buffered_link_sorted_set_info", "persistable_link_sorted_set_info",
             "delayed_link_clicks_sorted_set_info", *RUNS]
    for path in paths:
        assert (await site.http.get(f"/api/1/admin/touch/{path}")).status_code == 401
    site.caller = ANN
    assert (await site.http.get(f"/api/1/admin/touch/{paths[0]}")).status_code == 403
    site.caller = Caller(CallerKind.OPERATOR)
    answers = [await site.http.get(f"/api/1/admin/touch/{path}") for path in paths]
    assert {answer.headers["cache-control"] for answer in answers} == {"no-store"}
    bodies = [answer.json() for answer in answers]
    assert bodies[:3] == [
        {"length": 1, "oldest_at": link.created_at, "num_overdue": 0},
        {"length": 1, "oldest_at": link.created_at + 1800, "num_overdue": 0},
        {"length": 0, "oldest_at": None, "num_overdue": 0},
    ]
    assert all(body["in_purgatory"] == 0 for body in bodies[3:])


# -- too many from one address ---------------------------------------------------------------------------------------


async def test_whoever_guesses_codes_is_refused_and_others_are_not(site: Site) -> None:
    short = await site.room.links.create("home", {}, touch_uid="tch_1", style=Style.SHORT)
    long = await site.room.links.create("home", {}, touch_uid="tch_1", style=Style.LONG)
    for number in range(WRONG_CODE_WINDOW.most):
        assert (await site.http.get(f"/a/guess{number}")).status_code == 404
    refused = await site.http.get("/a/another")
    assert refused.status_code == 429 and int(refused.headers["retry-after"]) > 0
    assert (await site.http.get(f"/a/{short.code}")).status_code == 429, "else a guess that is right would tell"
    assert (await site.http.post(f"/a/{short.code}")).status_code == 429
    assert (await site.http.get(f"/l/{long.code}")).status_code == 200, "a code that nobody guesses is heard"
    assert await VIOLATIONS.at("203.0.113.7").get(site.room.valkey) is None, "nobody behind the address is blocked"
    site.caller = ANN
    assert (await site.http.get(f"/a/{short.code}")).status_code == 200
    site.caller, site.address = ANONYMOUS, client_address("203.0.113.8", (), Networks(()))
    assert (await site.http.get(f"/a/{short.code}")).status_code == 200


async def test_many_people_behind_one_address_reach_their_links(site: Site) -> None:
    for _ in range(3):
        link = await site.room.links.create("home", {}, touch_uid="tch_1", style=Style.SHORT)
        for _ in range(WRONG_CODE_WINDOW.most):
            assert (await site.http.get(f"/a/{link.code}")).status_code == 200


async def test_a_flood_from_one_address_is_refused(site: Site) -> None:
    link = await site.room.links.create("home", {}, touch_uid="tch_1", style=Style.LONG)
    assert LINK_WINDOW.most >= 1000
    await LINK_WINDOW.key.at("203.0.113.7").set(site.room.valkey, LINK_WINDOW.most)
    refused = await site.http.get(f"/l/{link.code}")
    assert refused.status_code == 429 and "Too many" in refused.text
