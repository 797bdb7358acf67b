"""Each kind has its page."""

import pytest
from playwright.async_api import expect

from keystead import dates
from keystead.clock import SystemClock
from keystead.content.stats import JOURNEY_VIEWS
from keystead.members.stats import CONVERSION, DAILY_ACTIVE, RETENTION
from keystead.messaging.sms.stats import SEND_RUN, SendRun


@pytest.mark.browser
async def test_pages_of_people_views_campaigns_and_runs(tab, store):
    now = SystemClock().now()
    today = RETENTION.day_of(now)
    await DAILY_ACTIVE.add(store, "ada", "bob", at=now)
    for sub in ("ada", "bob", "eve", "joe"):
        await RETENTION.join(store, sub, day=today - 10)
    await RETENTION.active(store, "ada", joined_day=today - 10, day=today - 2)
    await JOURNEY_VIEWS.viewed(store, "Sleep", "ada", at=now)
    await CONVERSION.add(store, [("utm_source=letter", "visits", 41)], day=today - 1)
    await SEND_RUN.at().set(store, SendRun(started_at=now - 60, finished_at=now - 57, running_time=3.0,
                                           stop_reason="time_exhausted", attempted=1234))
    await tab.goto("/stats/daily_active_users?days=7")
    await expect(tab.locator(".ks-days tr", has_text="still counting").first).to_contain_text("2")
    await expect(tab.locator(".ks-chart canvas").first).to_be_visible()

    await tab.goto("/stats/retention?days=30")
    await expect(tab.locator(".ks-tile", has_text="After 7 days")).to_contain_text("1 of 4")
    await expect(tab.get_by_label("Heat map").locator("canvas").first).to_be_visible()
    await tab.get_by_role("link", name="Weeks").click()
    await expect(tab.get_by_role("link", name="Weeks")).to_have_attribute("aria-current", "true")
    async with tab.expect_download() as waiting:
        await tab.get_by_role("button", name="Save the heat map as an image").click()
    assert (await waiting.value).suggested_filename.startswith("retention-cohorts-")
    async with tab.expect_download() as waiting:
        await tab.get_by_role("button", name="Save the lines as an image").click()
    assert (await waiting.value).suggested_filename.startswith("retention-rates-")
    legend = "getElement(document.querySelectorAll('.ks-chart')[1].id.slice(1)).chart.getOption().legend[0].show"
    assert await tab.evaluate(legend) is True  # the image has one of its own, and gives it back

    await tab.goto("/stats/journey_sessions")
    await expect(tab.get_by_label("Values", exact=True)).to_contain_text("Sleep")
    await tab.get_by_role("button", name="People").click()
    await expect(tab.get_by_label("By subcategory", exact=True)).to_contain_text("1 people, each once a day")

    day = dates.unix_date_to_date(dates.UnixDate(today - 1)).isoformat()
    await tab.goto("/stats/visitors")
    await tab.get_by_role("link", name=f"← {day}").click()
    await expect(tab.get_by_label("Rows", exact=True)).to_contain_text("41")

    await tab.goto("/stats/job-runs")
    await expect(tab.locator(".ks-runs tr", has_text="sms_send:send_job")).to_contain_text("out of time")
    await expect(tab.locator(".ks-runs tr", has_text="sms_send:send_job")).to_contain_text("1,234")
    await expect(tab.locator(".ks-idle")).to_contain_text("Never ran")


@pytest.mark.browser
async def test_name_that_is_not_counted_leads_to_one_that_is(tab):
    await tab.goto("/stats/sms_sent")
    await expect(tab.locator(".ks-head p")).to_contain_text("did you mean sms_send?")
