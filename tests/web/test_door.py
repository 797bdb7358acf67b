"""What every request passes before a route sees it."""

import asyncio

import pytest
from fastapi import WebSocket

from keystead.edge import API, NotLoggedIn, user_token
from keystead.edge.keys import API_IP, BLOCKED_IP, VIOLATIONS
from keystead.web import callers
from keystead.web.callers import NOBODY, OPERATOR, SESSION_PURPOSE, cookie_name
from keystead.web.door import MOST_BODY_BYTES, SESSION_ENDED, _check_credential

from .conftest import PORT

STRANGER = "203.0.113.7"
PAGE = {"Accept": "text/html,application/xhtml+xml"}


# -- credentials ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/api/1/keys", "/api/1/keys/explain?key=x", "/metrics", "/docs", "/openapi.json",
                                  "/docs/swagger-ui.css", "/api/1/blocks", "/nothing/here"])
async def test_everything_but_health_needs_a_credential(visitor, path):
    answer = await visitor().get(path)
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"] == "not_logged_in"
    assert answer.headers["www-authenticate"] == "Bearer"


async def test_health_needs_none(visitor):
    assert (await visitor().get("/health")).status_code == 200


async def test_person_without_a_session_is_led_to_the_log_in(visitor):
    answer = await visitor().get("/pattern?name=a%3Ab", headers=PAGE)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/login?next=%2Fpattern%3Fname%3Da%253Ab"


async def test_ended_session_is_no_credential(visitor, running):
    ended = running.tickets.issue(SESSION_PURPOSE, OPERATOR, lasts_seconds=-1)
    answer = await visitor(cookies={cookie_name(PORT): ended}).get("/api/1/keys")
    assert answer.status_code == 401


async def test_log_in_link_is_no_session(visitor, running):
    link = running.tickets.issue("login", OPERATOR, lasts_seconds=60, once=True)
    assert (await visitor(cookies={cookie_name(PORT): link}).get("/api/1/keys")).status_code == 401
    assert (await visitor(headers={"Authorization": f"Bearer {link}"}).get("/api/1/keys")).status_code == 401


async def test_program_reaches_what_its_token_says(program):
    assert (await program("metrics").get("/metrics")).status_code == 200
    assert (await program("metrics").get("/api/1/keys")).status_code == 403
    assert (await program("keys").get("/api/1/keys")).status_code == 200


async def test_a_person_reaches_the_interface_and_no_page(visitor, running):
    ada = visitor(headers={"Authorization": f"Bearer {user_token(running.tickets, 'user_ada', lasts_seconds=60)}"})
    assert (await ada.get("/api/1/keys")).status_code == 403
    assert (await ada.get("/metrics")).status_code == 403 == (await ada.get("/docs")).status_code
    assert (await ada.get("/health")).status_code == 200


@pytest.mark.parametrize("path", ["/api/1/sms/webhook", "/api/1/emails/sns-mail", "/l/abcdef", "/a/abcdef",
                                  "/api/1/notifications/unsubscribe_by_email"])
def test_what_providers_and_readers_of_messages_call_needs_no_credential(path):
    _check_credential(path, NOBODY)
    with pytest.raises(NotLoggedIn):
        _check_credential("/api/1" + path, NOBODY)


# -- host names and origins -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1:8400", "localhost:8400", "[::1]:8400", "192.0.2.7", "keys.example",
                                  "KEYS.example.:8400"])
async def test_own_names_are_served(visitor, host):
    assert (await visitor().get("/health", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8400", "localhost.evil", "", "a b",
                                  "x@localhost", "localhost:x"])
async def test_foreign_name_is_refused_even_with_a_session(operator, host):
    answer = await operator.get("/api/1/keys", headers={"Host": host})
    assert answer.status_code == 400
    assert "http.host_names" in answer.json()["message"]


async def test_two_names_in_one_request_are_refused(operator):
    answer = await operator.get("/api/1/keys", headers=[("Host", "127.0.0.1:8400"), ("Host", "evil.example")])
    assert answer.status_code == 400


@pytest.mark.parametrize("origin", ["http://evil.example", "http://127.0.0.1:9999", "null", "http://localhost:8400"])
async def test_page_of_another_site_cannot_use_the_session_to_write(operator, valkey, origin):
    answer = await operator.post("/api/1/blocks", json={"address": STRANGER, "lasts_seconds": 60},
                                 headers={"Origin": origin})
    assert answer.status_code == 403
    assert await valkey.dbsize() == 0


async def test_session_without_an_origin_cannot_write(operator):
    answer = await operator.post("/api/1/blocks", json={"address": STRANGER, "lasts_seconds": 60})
    assert answer.status_code == 403


async def test_own_page_can_write(operator):
    answer = await operator.post("/api/1/blocks", json={"address": STRANGER, "lasts_seconds": 60},
                                 headers={"Origin": f"http://127.0.0.1:{PORT}"})
    assert answer.status_code == 204


async def test_program_needs_no_origin(program):
    answer = await program("blocks").post("/api/1/blocks", json={"address": STRANGER, "lasts_seconds": 60})
    assert answer.status_code == 204


# -- addresses, limits, blocks ----------------------------------------------------------------------------------------


async def test_calls_are_counted_and_every_answer_says_how_many_are_left(program, valkey):
    client = program("keys", address=STRANGER)
    for left in (599, 598):
        answer = await client.get("/api/1/keys")
        assert answer.headers["ratelimit-limit"] == "600"
        assert answer.headers["ratelimit-remaining"] == str(left)
        assert 0 < int(answer.headers["ratelimit-reset"]) <= 60
    assert await API_IP.at(STRANGER).get(valkey) == 2


async def test_full_window_is_a_refusal_with_a_violation(program, valkey):
    await API_IP.at(STRANGER).set(valkey, API.most)
    answer = await program("keys", address=STRANGER).get("/api/1/keys")
    assert answer.status_code == 429
    assert answer.json()["type"] == "limit_reached"
    assert int(answer.headers["retry-after"]) > 0 and answer.headers["ratelimit-remaining"] == "0"
    assert await VIOLATIONS.at(STRANGER).get(valkey) == 1


async def test_blocked_address_gets_nothing_not_even_health(visitor, program, valkey):
    await BLOCKED_IP.at(STRANGER).lasting(100).set(valkey, "blocked:api_ip")
    for client in (visitor(STRANGER), program("keys", address=STRANGER)):
        answer = await client.get("/health")
        assert answer.status_code == 403
        assert answer.json()["type"] == "blocked" and "api_ip" not in answer.text
        assert 0 < int(answer.headers["retry-after"]) <= 100


async def test_forwarding_header_counts_only_from_a_trusted_proxy(program, valkey):
    forwarded = {"X-Forwarded-For": f"1.1.1.1, {STRANGER}"}
    await program("keys", address="10.0.0.9").get("/api/1/keys", headers=forwarded)
    await program("keys", address="198.51.100.1").get("/api/1/keys", headers=forwarded)
    assert sorted(await valkey.keys()) == [b"api_ip:198.51.100.1", b"api_ip:203.0.113.7"]


async def test_pages_are_not_counted(visitor, valkey):
    await visitor(STRANGER).get("/login", headers=PAGE)
    assert await valkey.dbsize() == 0


# -- bodies, ids, headers ---------------------------------------------------------------------------------------------


async def test_body_that_says_it_is_too_long_is_not_read(program):
    answer = await program("blocks").post("/api/1/blocks", content=b"x" * (MOST_BODY_BYTES + 1))
    assert answer.status_code == 413 and answer.json()["type"] == "too_large"


async def test_body_that_turns_out_too_long_is_refused(program):
    async def chunks():
        for _ in range(20):
            yield b"x" * 100_000

    answer = await program("blocks").post("/api/1/blocks", content=chunks(),
                                          headers={"Content-Type": "application/json"})
    assert answer.status_code == 413 and answer.json()["type"] == "too_large"


async def test_request_id_of_the_client_is_kept_if_it_is_harmless(visitor):
    given = await visitor().get("/health", headers={"X-Request-Id": "abc-123"})
    assert given.headers["x-request-id"] == "abc-123"
    odd = await visitor().get("/health", headers={"X-Request-Id": "a b;c"})
    assert odd.headers["x-request-id"].startswith("req_")
    assert (await visitor().get("/api/1/keys")).headers["x-request-id"].startswith("req_")


async def test_nothing_foreign_may_be_loaded_or_frame_us(visitor):
    headers = (await visitor().get("/health")).headers
    assert "default-src 'self'" in headers["content-security-policy"]
    assert "http" not in headers["content-security-policy"]
    assert headers["x-frame-options"] == "DENY" and headers["x-content-type-options"] == "nosniff"


# -- websockets -------------------------------------------------------------------------------------------------------


async def open_websocket(app, *headers):
    """Send a handshake and return what the server sends until it closes or the handler ends."""
    sent = []
    scope = {
        "type": "websocket", "path": "/_nicegui_ws/socket.io/", "query_string": b"", "scheme": "ws", "state": {},
        "headers": [(b"host", f"127.0.0.1:{PORT}".encode()), *headers], "client": ("127.0.0.1", 1), "subprotocols": [],
        "raw_path": b"/", "root_path": "", "extensions": {}, "http_version": "1.1",
    }
    messages = asyncio.Queue()
    messages.put_nowait({"type": "websocket.connect"})

    async def send(message):
        sent.append(message)

    async with asyncio.timeout(30):
        await app(scope, messages.get, send)
    return sent


def cookie(running, **options):
    session = running.tickets.issue(SESSION_PURPOSE, OPERATOR, **options)
    return b"cookie", f"{cookie_name(PORT)}={session}".encode()


OWN = (b"origin", f"http://127.0.0.1:{PORT}".encode())


async def test_websocket_without_a_session_is_refused(app):
    assert [(each["type"], each["code"]) for each in await open_websocket(app, OWN)] == [("websocket.close", 4401)]


@pytest.mark.parametrize("origin", [(), ((b"origin", b"http://evil.example"),)])
async def test_websocket_from_another_site_is_refused(app, running, origin):
    sent = await open_websocket(app, cookie(running, lasts_seconds=60), *origin)
    assert [(each["type"], each["code"]) for each in sent] == [("websocket.close", 4403)]


async def test_websocket_ends_with_the_session(app, running):
    @app.websocket("/_nicegui_ws/socket.io/")
    async def stay(websocket: WebSocket):
        await websocket.accept()
        await asyncio.Event().wait()

    sent = await open_websocket(app, cookie(running, lasts_seconds=2), OWN)
    assert sent[0]["type"] == "websocket.accept"
    assert sent[-1] == {"type": "websocket.close", "code": SESSION_ENDED, "reason": "log-in ended"}


async def test_websocket_ends_when_its_key_is_taken_back(app, running, monkeypatch):
    monkeypatch.setattr(callers, "KEY_LOOK_SECONDS", 0.05)
    made = await running.admin_keys.create("shop", ["*"])

    @app.websocket("/_nicegui_ws/socket.io/")
    async def stay(websocket: WebSocket):
        await websocket.accept()
        await asyncio.sleep(0.3)  # some looks pass, and nothing ends
        await websocket.send_text("still here")
        await running.admin_keys.revoke(made.id)
        await asyncio.Event().wait()

    sent = await open_websocket(app, (b"authorization", f"Bearer {made.text}".encode()))
    assert [each["type"] for each in sent] == ["websocket.accept", "websocket.send", "websocket.close"]
    assert sent[-1]["code"] == SESSION_ENDED


async def test_a_key_opens_the_door_and_many_wrong_ones_are_slowed_down(visitor, running):
    made = await running.admin_keys.create("shop", ["jobs"])
    stranger = visitor(address="203.0.113.9")
    good, wrong = ({"Authorization": f"Bearer {made.text}{end}"} for end in ("", "x"))
    assert (await stranger.get("/api/1/jobs/overview", headers=good)).status_code == 200
    assert (await stranger.get("/api/1/keys", headers=good)).status_code == 403
    tried = [(await stranger.get("/api/1/jobs/overview", headers=wrong)).status_code for _ in range(21)]
    assert tried == [401] * 20 + [429]
    assert (await stranger.get("/api/1/jobs/overview", headers=good)).status_code == 200, "nobody is blocked for it"
    await running.admin_keys.revoke(made.id)
    assert (await visitor().get("/api/1/jobs/overview", headers=good)).status_code == 401
