"""Logging in by a one-time link."""

import asyncio
import re
from urllib.parse import quote

import pytest

from keystead.edge import Endings, TicketExpired, Tickets
from keystead.edge.keys import LOGIN_IP
from keystead.web.callers import LOGIN_PURPOSE, OPERATOR, SESSION_PURPOSE, cookie_name
from keystead.web.login import local_path

from .conftest import PORT

ORIGIN = {"Origin": f"http://127.0.0.1:{PORT}"}


@pytest.fixture
def ticket(running):
    return running.tickets.issue(LOGIN_PURPOSE, OPERATOR, lasts_seconds=60, once=True)


def exchange(client, ticket, **fields):
    return client.post("/login", data={"ticket": ticket, **fields}, headers=ORIGIN)


async def test_opening_the_link_uses_nothing_up(visitor, ticket, valkey):
    for _ in range(3):
        page = await visitor().get("/login", params={"ticket": ticket})
        assert page.status_code == 200 and ticket in page.text
        assert page.headers["cache-control"] == "no-store" and "set-cookie" not in page.headers
    assert await valkey.dbsize() == 0


async def test_exchange_gives_a_session_and_leads_on(visitor, ticket):
    client = visitor()
    answer = await exchange(client, ticket, next="/pattern?name=x")
    assert (answer.status_code, answer.headers["location"]) == (303, "/pattern?name=x")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"{cookie_name(PORT)}=")
    assert {"HttpOnly", "SameSite=strict", "Path=/", "Max-Age=43200"} <= set(re.split("; ", cookie))
    assert (await client.get("/api/1/keys")).status_code == 200
    assert (await client.get("/session")).json() == {"known": True}


@pytest.mark.parametrize(("proxy", "secure"), [("10.0.0.9", True), ("198.51.100.1", False)])
async def test_cookie_behind_a_trusted_proxy_with_tls_is_for_tls_only(visitor, ticket, proxy, secure):
    headers = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "127.0.0.1", "Origin": "https://keys.example"}
    client = visitor(proxy, base_url="http://keys.example", headers=headers)
    answer = await client.post("/login", data={"ticket": ticket})
    assert answer.status_code == 303
    assert ("Secure" in answer.headers["set-cookie"]) is secure


async def test_used_link_says_so_and_how_to_get_another(visitor, ticket):
    await exchange(visitor(), ticket)
    second = await exchange(visitor(), ticket)
    assert second.status_code == 401
    assert "already used" in second.text and "keystead login-link" in second.text
    assert "set-cookie" not in second.headers


async def test_one_who_is_in_already_is_led_on_by_a_used_link(visitor, ticket):
    client = visitor()
    await exchange(client, ticket)
    assert (await exchange(client, ticket)).status_code == 303


async def test_of_many_who_hold_the_link_one_gets_in(visitor, ticket):
    answers = await asyncio.gather(*(exchange(visitor(), ticket) for _ in range(20)))
    assert sorted(answer.status_code for answer in answers) == [303] + [401] * 19


@pytest.mark.parametrize("method", ["get", "post"])
async def test_expired_and_broken_links_are_told_apart(visitor, running, method):
    expired = running.tickets.issue(LOGIN_PURPOSE, OPERATOR, lasts_seconds=-1, once=True)
    for text, says in ((expired, "expired"), (expired[:-3], "not complete"), ("<script>", "not complete")):
        if method == "get":
            answer = await visitor().get(f"/login?ticket={quote(text)}")
        else:
            answer = await exchange(visitor(), text)
        assert answer.status_code == 401
        assert says in answer.text and "<script>" not in answer.text
        assert "keystead login-link" in answer.text


async def test_page_of_another_site_cannot_log_a_browser_in(visitor, ticket):
    answer = await visitor().post("/login", data={"ticket": ticket}, headers={"Origin": "http://evil.example"})
    assert answer.status_code == 403 and "set-cookie" not in answer.headers


async def test_page_without_a_link_says_what_to_do_and_goes_on_by_itself_once_known(visitor):
    page = await visitor().get("/login", params={"next": "/key?key=</script>"})
    assert page.status_code == 200
    assert "keystead login-link" in page.text and "/session" in page.text
    assert "key=</script>" not in page.text


async def test_one_who_is_known_needs_no_log_in_page(operator):
    answer = await operator.get("/login", params={"next": "/pattern"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/pattern")


async def test_logging_out_takes_the_cookie_away(operator):
    answer = await operator.post("/logout", headers=ORIGIN)
    assert answer.status_code == 303 and "Max-Age=0" in answer.headers["set-cookie"]


async def test_logging_out_ends_copies_of_the_cookie_and_no_other_session(visitor, running, valkey):
    one, other = (running.tickets.issue(SESSION_PURPOSE, OPERATOR, lasts_seconds=60) for _ in range(2))
    thief = visitor(cookies={cookie_name(PORT): one})
    assert (await thief.get("/api/1/keys")).status_code == 200
    assert (await visitor(cookies={cookie_name(PORT): one}).post("/logout", headers=ORIGIN)).status_code == 303
    assert (await thief.get("/api/1/keys")).status_code == 401
    assert (await thief.get("/session")).json() == {"known": False}
    assert (await visitor(cookies={cookie_name(PORT): other}).get("/api/1/keys")).status_code == 200
    # Another process, and one that is started later, know it from the server.
    elsewhere = await Endings.open(valkey, running.clock, keeps_seconds=60)
    tickets = Tickets(bytes(32), running.clock, elsewhere)
    with pytest.raises(TicketExpired):
        tickets.read(SESSION_PURPOSE, one)
    assert tickets.read(SESSION_PURPOSE, other)


async def test_log_out_that_nobody_would_remember_is_no_log_out(operator, valkey):
    await valkey.config_set("maxmemory", 1)
    try:
        answer = await operator.post("/logout", headers=ORIGIN)
    finally:
        await valkey.config_set("maxmemory", 0)
    assert answer.status_code == 503 and "still logged in" in answer.text and "set-cookie" not in answer.headers
    assert (await operator.get("/session")).json() == {"known": True}


async def test_attempts_are_counted_and_a_success_is_given_back(visitor, ticket, valkey):
    client = visitor("203.0.113.7")
    for _ in range(3):
        await exchange(client, "nonsense")
    assert await LOGIN_IP.at("203.0.113.7").get(valkey) == 3
    assert (await exchange(client, ticket)).status_code == 303
    assert await LOGIN_IP.at("203.0.113.7").get(valkey) == 3


async def test_too_many_attempts_are_refused(visitor):
    client = visitor("203.0.113.7")
    answers = [await exchange(client, "nonsense") for _ in range(11)]
    assert [answer.status_code for answer in answers] == [401] * 10 + [429]
    assert "Too many log-ins" in answers[-1].text and int(answers[-1].headers["retry-after"]) > 0


async def test_server_that_takes_no_writes_leaves_the_link_good(visitor, ticket, valkey):
    await valkey.config_set("maxmemory", 1)
    try:
        answer = await exchange(visitor(), ticket)
        assert answer.status_code == 503 and "Open your link again" in answer.text
    finally:
        await valkey.config_set("maxmemory", 0)
    assert (await exchange(visitor(), ticket)).status_code == 303


@pytest.mark.parametrize(("wanted", "path"), [
    ("/pattern?name=a:b", "/pattern?name=a:b"), ("/", "/"), ("", "/"), ("//evil.example", "/"), ("https://evil", "/"),
    ("/\\evil", "/"), ("/login?ticket=x", "/"), ("/a\r\nSet-Cookie: x", "/"),
])
def test_nobody_is_sent_elsewhere(wanted, path):
    assert local_path(wanted) == path
