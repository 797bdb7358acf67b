"""Nobody gets anything without a credential, nor more than theirs is for. Every route of the server is walked."""

import re

import fastapi.routing
import httpx
import pytest

from keystead.app import App
from keystead.edge import USER_HEADER, user_token
from keystead.members import Users
from keystead.settings import load_settings
from keystead.web.callers import LOGIN_PURPOSE, OPERATOR, SESSION_PURPOSE, TOKEN_PURPOSE, cookie_name
from keystead.web.openapi_examples import example_of
from keystead.web.server import build

from .conftest import PORT

ORIGIN = {"Origin": f"http://127.0.0.1:{PORT}"}
# What answers without a credential, and why it may.
OPEN = {
    "/health", "/ready",  # say whether it works, and nothing else
    "/login", "/session",  # how one gets in, and whether one is in
    "/jobs/live",  # shows a job's progress to whoever has a ticket for it
    "/l/{code}", "/a/{code}", "/api/1/notifications/complete",  # links in messages, for whoever holds one
    "/api/1/notifications/unsubscribe_by_email", "/api/1/emails/unsubscribe",
    "/api/1/file_uploads/{uid}/{part}", "/api/3/templates/{slug}",  # have tickets and tokens of their own
    "/api/1/sms/webhook", "/api/1/sms/inbound_webhook", "/api/1/emails/sns-mail",  # signed by the provider
}
# Of these, the ones that must refuse whoever brings nothing at all.
OWN_TICKETS = {
    ("GET", "/jobs/live?ticket=x"): {401}, ("POST", "/api/1/file_uploads/u/1"): {401},
    ("POST", "/api/3/templates/daily_reminder"): {401}, ("POST", "/api/1/emails/unsubscribe?token=x"): {400, 401},
    ("GET", "/api/1/emails/unsubscribe?token=x"): {400, 401}, ("POST", "/api/1/sms/webhook"): {401},
    ("POST", "/api/1/sms/inbound_webhook"): {401}, ("POST", "/api/1/emails/sns-mail"): {400, 401},
    ("GET", "/l/nobody"): {404}, ("POST", "/a/nobody"): {404},
}
PAGES = ("/", "/keys", "/jobs", "/stats", "/messages", "/sandbox", "/people", "/tenants", "/log", "/search",
         "/_nicegui/x", "/docs", "/docs/swagger-ui.css", "/openapi.json", "/metrics", "/nothing-here", "/api/2/x")


@pytest.fixture
async def site(valkey, valkey_server, tmp_path):
    """The whole server, with all its doors; ``ask`` is a stranger from afar."""
    app = App(load_settings({
        "valkey.url": valkey_server.url, "store.url": f"sqlite:///{tmp_path}/keystead.sqlite",
        "store.files_url": f"file://{tmp_path}/files",
    }, environment={}))
    app.data_directory = tmp_path
    async with app.running(works=True, answers=True, public_url=f"http://127.0.0.1:{PORT}") as running:
        web = build(running, port=PORT)
        transport = httpx.ASGITransport(web, client=("127.0.0.1", 4711), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=f"http://127.0.0.1:{PORT}", timeout=60) as ask:
            yield web, running, ask


def routes_of(web):
    spread = getattr(fastapi.routing, "iter_route_contexts", lambda routes: routes)
    for route in spread(web.routes):
        for method in sorted(getattr(route, "methods", None) or ()):
            yield method, route.path or getattr(route.original_route, "path", "")


def concrete(path: str) -> str:
    return re.sub(r"\{[^}]+\}", "1", path)


async def test_without_a_credential_every_route_refuses(site):
    web, _, ask = site
    walked, open_ones = 0, set()
    for method, path in routes_of(web):
        if path in OPEN:
            open_ones.add(path)
            continue
        answer = await ask.request(method, concrete(path), headers=ORIGIN, json={} if method != "GET" else None)
        assert answer.status_code == 401, f"{method} {path} answered {answer.status_code}"
        assert answer.headers["www-authenticate"] == "Bearer"
        walked += 1
    assert walked > 100 and open_ones == OPEN
    for path in PAGES:
        answer = await ask.get(path)
        assert answer.status_code == 401, path
        page = await ask.get(path, headers={"Accept": "text/html"})
        assert (page.status_code, page.headers["location"][:12]) == (303, "/login?next="), path


async def test_what_is_open_asks_for_its_own_proof(site):
    _, _, ask = site
    for (method, path), statuses in OWN_TICKETS.items():
        answer = await ask.request(method, path, headers=ORIGIN)
        assert answer.status_code in statuses, f"{method} {path} answered {answer.status_code}: {answer.text[:200]}"


@pytest.mark.parametrize("credential", [
    "", "x", "ksk_", "ksk_aaaaaaaaaaaa_" + "x" * 43, "ksk_é", "a.b", "." * 5000, "none",
])
async def test_a_wrong_credential_is_none(site, credential):
    _, _, ask = site
    for path in ("/api/1/jobs/overview", "/metrics", "/"):
        answer = await ask.get(path, headers={"Authorization": f"Bearer {credential}".encode()})
        assert answer.status_code == 401, path
        answer = await ask.get(path, headers={"Cookie": f"{cookie_name(PORT)}={credential}".encode()})
        assert answer.status_code == 401, path


async def test_a_ticket_for_one_thing_opens_no_other(site):
    _, running, ask = site
    for purpose in (LOGIN_PURPOSE, SESSION_PURPOSE, "job progress", "upload"):
        ticket = running.tickets.issue(purpose, OPERATOR, lasts_seconds=60)
        answer = await ask.get("/api/1/jobs/overview", headers={"Authorization": f"Bearer {ticket}"})
        assert answer.status_code == 401, purpose
    for purpose in (LOGIN_PURPOSE, TOKEN_PURPOSE, "user"):
        ticket = running.tickets.issue(purpose, OPERATOR, lasts_seconds=60)
        answer = await ask.get("/api/1/jobs/overview", headers={"Cookie": f"{cookie_name(PORT)}={ticket}"})
        assert answer.status_code == 401, purpose


def example_request(document, path, operation):
    """The path, query and body that the description gives as examples."""
    schemas, query = document["components"]["schemas"], {}
    for parameter in operation.get("parameters", ()):
        value = parameter.get("example", example_of(parameter["schema"], schemas))
        if parameter["in"] == "path":
            path = path.replace("{" + parameter["name"] + "}", str(value))
        elif parameter["in"] == "query" and parameter.get("required"):
            query[parameter["name"]] = value
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    body = None if content is None else content.get("example", {})
    return path, query, body


@pytest.mark.parametrize("who", ["program", "key", "person"])
async def test_a_credential_for_nothing_reaches_nothing(site, who):
    """A program and a key without the scope, and a person for what is not theirs: 403 everywhere, or it is theirs."""
    web, running, ask = site
    document = web.openapi()
    if who == "program":
        text = running.tickets.issue(TOKEN_PURPOSE, "tests", lasts_seconds=600, scopes=("no-such-scope",))
    elif who == "key":
        text = (await running.admin_keys.create("tests", ["metrics"])).text
    else:
        text = user_token(running.tickets, "user_ada", lasts_seconds=600)
    headers, wrong, walked = {"Authorization": f"Bearer {text}", USER_HEADER: "user_ben"}, [], 0
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if not operation["security"] or (path == "/metrics" and who == "key"):
                continue
            address, query, body = example_request(document, path, operation)
            answer = await ask.request(method, address, params=query, json=body, headers=headers)
            walked += 1
            if answer.status_code != 403:
                wrong.append(f"{method} {path}: {answer.status_code} {answer.text[:120]}")
    assert not wrong and walked > 80


async def test_a_program_cannot_reach_pages_of_a_person_by_naming_them(site):
    _, running, ask = site
    ada = await running.users.ensure("tests", "ada")
    token = running.tickets.issue(TOKEN_PURPOSE, "tests", lasts_seconds=600, scopes=("jobs",))
    headers = {"Authorization": f"Bearer {token}", USER_HEADER: ada.sub}
    assert (await ask.get("/api/1/users/me/contacts/emails", headers=headers)).status_code == 403
    own = {"Authorization": f"Bearer {user_token(running.tickets, ada.sub, lasts_seconds=60)}"}
    assert (await ask.get("/api/1/users/me/contacts/emails", headers=own)).status_code == 200
    assert (await ask.get(f"/api/1/users/{ada.sub}", headers=own)).status_code == 403


async def test_no_words_of_a_fault_leave_the_server(site, monkeypatch):
    _, running, ask = site

    async def broken(*_):
        raise RuntimeError("the password is hunter2 at /srv/secret.py")

    monkeypatch.setattr(Users, "get", broken)
    token = running.tickets.issue(TOKEN_PURPOSE, "tests", lasts_seconds=600, scopes=("users",))
    for accept in ("application/json", "text/html"):
        answer = await ask.get("/api/1/users/user_x", headers={"Authorization": f"Bearer {token}", "Accept": accept})
        assert answer.status_code == 500 and answer.headers["content-type"] == "application/problem+json"
        for word in ("hunter2", "secret", "Traceback", "RuntimeError", ".py"):
            assert word not in answer.text


async def test_every_answer_carries_the_policy_and_is_not_kept(site):
    _, running, ask = site
    session = running.tickets.issue(SESSION_PURPOSE, OPERATOR, lasts_seconds=60)
    for path in ("/health", "/login", "/docs", "/api/1/jobs/overview", "/nothing"):
        answer = await ask.get(path, headers={"Cookie": f"{cookie_name(PORT)}={session}"})
        policy = answer.headers["content-security-policy"]
        assert "default-src 'self'" in policy and "frame-ancestors 'none'" in policy and "object-src 'none'" in policy
        assert "http:" not in policy and "https:" not in policy and "*" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff" and answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cache-control"] == "no-store"
        assert "server" not in answer.headers


async def test_the_log_in_link_works_once_and_its_cookie_is_strict(site):
    _, running, ask = site
    ticket = running.tickets.issue(LOGIN_PURPOSE, OPERATOR, lasts_seconds=60, once=True)
    first = await ask.post("/login", data={"ticket": ticket}, headers=ORIGIN)
    assert first.status_code == 303
    cookie = first.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie and "path=/" in cookie and "domain" not in cookie
    ask.cookies.clear()
    assert (await ask.post("/login", data={"ticket": ticket}, headers=ORIGIN)).status_code == 401


async def test_guessing_at_the_log_in_is_limited_and_blocked(site):
    web, _, _ = site
    transport = httpx.ASGITransport(web, client=("203.0.113.77", 4711), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=f"http://127.0.0.1:{PORT}", timeout=60) as guesser:
        tried = [(await guesser.post("/login", data={"ticket": f"x{n}"}, headers=ORIGIN)).status_code
                 for n in range(14)]
        assert tried[:10] == [401] * 10 and 429 in tried[10:] and set(tried[10:]) <= {429, 403}


async def test_tokens_of_a_person_end_with_the_person(site):
    _, running, ask = site
    key = {"Authorization": f"Bearer {(await running.admin_keys.create('shop', ('users',))).text}"}
    subs = [(await ask.post("/api/1/users", json={"provider": "shop", "provider_sub": who}, headers=key)).json()["sub"]
            for who in ("1", "2")]
    given = [(await ask.post(f"/api/1/users/{sub}/tokens", json={}, headers=key)).json()["token"] for sub in subs]
    gone, stays = ({"Authorization": f"Bearer {token}"} for token in given)
    assert (await ask.post("/api/1/users/me/visits", headers=gone)).status_code == 204
    assert (await ask.delete(f"/api/1/users/{subs[0]}", headers=key)).status_code == 202
    assert (await ask.post("/api/1/users/me/visits", headers=gone)).status_code == 401
    assert (await ask.post("/api/1/users/me/visits", headers=stays)).status_code == 204
    # Until their row is gone the person can be given a token; it ends with the row.
    late = await ask.post(f"/api/1/users/{subs[0]}/tokens", json={}, headers=key)
    assert late.status_code == 201
    await running.users.remove(subs[0])
    token = {"Authorization": f"Bearer {late.json()['token']}"}
    assert (await ask.post("/api/1/users/me/visits", headers=token)).status_code == 401
