"""The dashboard's own connections."""

import httpx
import pytest
from websockets.asyncio.client import connect as open_websocket
from websockets.exceptions import InvalidStatus

from keystead.app import App
from keystead.settings import load_settings
from keystead.web.callers import OPERATOR, SESSION_PURPOSE, TOKEN_PURPOSE, cookie_name

PATH = "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"


@pytest.fixture
def cookie(site):
    tickets = App(load_settings({"valkey.url": site.valkey_url}, environment={})).tickets()
    session = tickets.issue(SESSION_PURPOSE, OPERATOR, lasts_seconds=60)
    return {"Cookie": f"{cookie_name(httpx.URL(site.url).port)}={session}"}


async def status_of(site, *, origin, headers):
    """What the server answers to the handshake of a websocket."""
    try:
        async with open_websocket(site.url.replace("http", "ws") + PATH, origin=origin, additional_headers=headers):
            return 101
    except InvalidStatus as refusal:
        return refusal.response.status_code


async def test_websocket_needs_a_session_and_our_own_page(site, cookie):
    assert await status_of(site, origin=site.url, headers=cookie) == 101
    assert await status_of(site, origin=site.url, headers={}) == 403
    assert await status_of(site, origin="http://evil.example", headers=cookie) == 403
    assert await status_of(site, origin=None, headers=cookie) == 403
    assert await status_of(site, origin=site.url, headers={**cookie, "Host": "evil.example"}) in (400, 403)


async def test_long_polling_needs_them_as_well(site, cookie):
    path = PATH.replace("websocket", "polling")
    async with httpx.AsyncClient(timeout=60, base_url=site.url) as client:
        assert (await client.get(path)).status_code == 401
        assert (await client.post(path, headers=cookie)).status_code == 403
        assert (await client.get(path, headers={**cookie, "Host": "evil.example"})).status_code == 400


async def test_files_of_the_dashboard_need_a_session(site, cookie):
    async with httpx.AsyncClient(timeout=60, base_url=site.url, follow_redirects=False) as client:
        page = await client.get("/", headers=cookie)
        assert page.status_code == 200
        script = page.text.split('src="', 1)[1].split('"', 1)[0]
        assert (await client.get(script, headers=cookie)).status_code == 200
        assert (await client.get(script)).status_code == 401


async def test_pages_on_jobs_are_for_those_who_may_touch_jobs(site, cookie):
    tickets = App(load_settings({"valkey.url": site.valkey_url}, environment={})).tickets()

    def token(*scopes):
        return {"Authorization": f"Bearer {tickets.issue(TOKEN_PURPOSE, 'someone', lasts_seconds=60, scopes=scopes)}"}

    async with httpx.AsyncClient(timeout=60, base_url=site.url, follow_redirects=False) as client:
        for path in ("/jobs", "/jobs/some-uid"):
            assert (await client.get(path)).status_code == 401
            assert (await client.get(path, headers=token("metrics"))).status_code == 403
            assert (await client.get(path, headers=token("jobs"))).status_code == 200
            assert (await client.get(path, headers=cookie)).status_code == 200
        # The door leaves this path open, for whoever watches a job with a ticket; no page is there for them.
        assert (await client.get("/jobs/live")).status_code in (303, 400)
        assert (await client.get("/jobs/", headers=cookie)).headers["location"] == "/jobs"


async def test_pages_on_keys_are_for_those_who_may_see_keys(site, cookie):
    tickets = App(load_settings({"valkey.url": site.valkey_url}, environment={})).tickets()

    def token(*scopes):
        return {"Authorization": f"Bearer {tickets.issue(TOKEN_PURPOSE, 'someone', lasts_seconds=60, scopes=scopes)}"}

    async with httpx.AsyncClient(timeout=60, base_url=site.url, follow_redirects=False) as client:
        for path in ("/keys", "/key?key=api_ip:192.0.2.1", "/pattern?name=api_ip:{ip}", "/%6beys"):
            assert (await client.get(path)).status_code == 401
            assert (await client.get(path, headers=token("metrics"))).status_code == 403, path
            assert (await client.get(path, headers=token("keys"))).status_code == 200
            assert (await client.get(path, headers=cookie)).status_code == 200
        assert (await client.get("/", headers=token("metrics", "keys"))).status_code == 403, "it shows all there is"
        assert (await client.get("/", headers=token("admin"))).status_code == 200
        assert "Admin keys" not in (await client.get("/settings", headers=token("keys"))).text
        assert "Admin keys" in (await client.get("/settings", headers=cookie)).text


async def test_a_number_that_nobody_has_is_no_fault(site, cookie):
    async with httpx.AsyncClient(timeout=60, base_url=site.url, follow_redirects=False) as client:
        for number in ("9" * 40, "-1", "9223372036854775808"):
            assert (await client.get(f"/people?before={number}", headers=cookie)).status_code == 200
