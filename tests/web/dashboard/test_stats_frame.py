"""What the pages on statistics share, in a real browser."""

import os
import signal

import httpx
import pytest
from playwright.async_api import expect

from keystead.app import App
from keystead.clock import SystemClock
from keystead.messaging.sms.stats import SENDS
from keystead.settings import load_settings
from keystead.web.callers import TOKEN_PURPOSE

LONG = "averylongvaluewithoutanyspace" * 6


async def test_pages_are_for_those_who_may_see_statistics(site):
    tickets = App(load_settings({"valkey.url": site.valkey_url}, environment={})).tickets()

    def token(*scopes):
        return {"Authorization": f"Bearer {tickets.issue(TOKEN_PURPOSE, 'someone', lasts_seconds=60, scopes=scopes)}"}

    async with httpx.AsyncClient(timeout=60, base_url=site.url, follow_redirects=False) as client:
        for path in ("/stats", "/stats/sms_send", "/stats/job-runs"):
            assert (await client.get(path)).status_code == 401
            assert (await client.get(path, headers=token("jobs"))).status_code == 403
            assert (await client.get(path, headers=token("stats"))).status_code == 200
        assert (await client.get("/stats/", headers=token("stats"))).headers["location"].endswith("/stats")


@pytest.mark.browser
async def test_bare_installation_says_how_to_begin_and_then_shows_what_is_counted(page, store):
    await page.get_by_role("link", name="Statistics", exact=True).click()
    await expect(page.locator(".ks-first")).to_contain_text("DailyFamily")
    await expect(page.locator(".ks-range")).to_be_hidden()
    await SENDS.incr(store, "queued", amount=1234, at=SystemClock().now())
    card = page.get_by_role("link", name="sms_send")
    await expect(card).to_contain_text("1,234")
    await expect(page.locator(".ks-first")).to_be_hidden()
    await card.focus()
    await SENDS.incr(store, "queued", at=SystemClock().now())
    await expect(card).to_contain_text("1,235")
    await expect(card).to_be_focused()
    await page.get_by_role("link", name="90 days").click()
    await expect(page.get_by_role("link", name="90 days")).to_have_attribute("aria-current", "true")
    await card.click()
    await expect(page.locator("h1")).to_have_text("sms_send")
    await expect(page.get_by_role("link", name="90 days")).to_have_attribute("aria-current", "true")


@pytest.mark.browser
@pytest.mark.slow
async def test_server_that_went_away_is_told_and_the_page_goes_on_by_itself(tab, site, store):
    await SENDS.incr(store, "queued", amount=11, at=SystemClock().now())
    await tab.goto("/stats")
    card = tab.get_by_role("link", name="sms_send")
    await expect(card).to_contain_text("11 events")
    pid = site.valkey_pid
    os.kill(pid, signal.SIGSTOP)
    try:
        await expect(tab.locator(".ks-banner", has_text="The server is away")).to_be_visible()
        await expect(card).to_contain_text("11 events")
    finally:
        os.kill(pid, signal.SIGCONT)
    await expect(tab.locator(".ks-banner", has_text="The server is away")).to_be_hidden()
    await SENDS.incr(store, "queued", amount=2, at=SystemClock().now())
    await expect(card).to_contain_text("13 events")


@pytest.mark.browser
async def test_nothing_hangs_over_the_edge(tab, store):
    await SENDS.incr(store, "succeeded_pending", LONG[:120], at=SystemClock().now())
    await SENDS.incr(store, "failed_due_to_application_error_ratelimit", "x", at=SystemClock().now())
    for path in ("/stats", "/stats/sms_send?event=succeeded_pending", "/stats/retention?days=182", "/stats/visitors",
                 "/stats/journey_sessions", "/stats/daily_active_users?from=2026-01-01&to=2026-02-01",
                 "/stats/job-runs", f"/stats/{LONG}"):
        await tab.goto(path)
        await tab.wait_for_selector(".ks-page h1")
        for width in (1280, 768, 360):
            await tab.set_viewport_size({"width": width, "height": 800})
            # A chart follows its card a moment later.
            await tab.wait_for_function(f"document.documentElement.scrollWidth <= {width}")
