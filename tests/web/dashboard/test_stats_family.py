"""The page of one family."""

import re

import pytest
from playwright.async_api import expect

from keystead.clock import SystemClock
from keystead.messaging.sms.stats import EVENTS, SENDS
from keystead.web.dashboard.stats_family import broken_at_all, idle_html, summary

from .stats_given import ORDERS, orders


def test_summary_names_the_days_that_go_on():
    assert summary(orders()) == "39 events, 2026-03-01 to 2026-03-04; 2026-03-04 still counting"
    assert "still counting" not in summary(orders(live=0))


def test_only_days_that_are_over_put_broken_sums_first():
    assert broken_at_all(ORDERS, orders(failed=(2, 0, 0, 0)))
    assert not broken_at_all(ORDERS, orders()) and not broken_at_all(ORDERS, None)


def test_events_without_a_count_are_only_named():
    assert idle_html([]) == "" and "a_<wbr>b" in idle_html(["a_b"])


@pytest.mark.browser
async def test_counts_show_as_they_come_and_lines_can_be_switched_off(tab, store):
    now = SystemClock().now()
    await SENDS.incr(store, "queued", amount=7, at=now)
    await SENDS.incr(store, "succeeded_pending", "accepted", amount=5, at=now)
    await tab.goto("/stats/sms_send?days=7")
    plot = tab.get_by_label("Events by day", exact=True)
    await expect(plot.locator("canvas").first).to_be_visible()
    queued = plot.get_by_role("button", name=re.compile("^queued"))
    await expect(queued).to_contain_text("7")
    row = tab.get_by_label("sms_send day by day").locator("tr", has_text="still counting").first
    await expect(row).to_contain_text("7")
    await SENDS.incr(store, "queued", amount=1000, at=SystemClock().now())
    await expect(queued).to_contain_text("1,007")
    await expect(row).to_contain_text("1,007")
    await queued.focus()
    await tab.keyboard.press("Enter")
    await expect(queued).to_have_attribute("aria-pressed", "false")
    selected = "() => getElement(document.querySelector('.ks-chart').id.slice(1)).chart.getOption().legend[0].selected"
    await tab.wait_for_function(f"({selected})().queued === false")
    await plot.get_by_role("button", name="Lines").click()
    await tab.wait_for_function(f"({selected})().queued === false")
    # A line that was never there makes another chart, and what was switched off stays off.
    await SENDS.incr(store, "abandoned", at=SystemClock().now())
    await expect(plot.get_by_role("button", name=re.compile("^abandoned"))).to_be_visible()
    await expect(queued).to_have_attribute("aria-pressed", "false")


@pytest.mark.browser
async def test_event_by_value_is_chosen_and_stays_in_the_address(tab, store):
    now = SystemClock().now()
    await SENDS.incr(store, "succeeded_pending", "accepted", amount=5, at=now)
    await SENDS.incr(store, "failed_due_to_server_error", "503", amount=2, at=now)
    await tab.goto("/stats/sms_send?days=7")
    card = tab.get_by_label("One event by value", exact=True)
    await expect(card).to_contain_text("succeeded_pending, by message status: 1 value")
    await card.get_by_label("Event", exact=True).select_option("failed_due_to_server_error")
    await expect(card).to_contain_text("failed_due_to_server_error, by HTTP status: 1 value")
    await tab.wait_for_url("**event=failed_due_to_server_error")
    await tab.reload()
    await expect(card).to_contain_text("failed_due_to_server_error, by HTTP status: 1 value")
    await expect(card.get_by_label("Event", exact=True)).to_have_value("failed_due_to_server_error")


@pytest.mark.browser
async def test_image_and_sums_that_do_not_agree(tab, store):
    day = EVENTS.day_of(SystemClock().now())
    await EVENTS.incr(store, "attempted", "delivered", amount=3, unix_date=day - 4)
    await EVENTS.incr(store, "found", amount=5, unix_date=day - 1)
    await tab.goto("/stats/sms_events?days=7")
    sums = tab.get_by_label("Sums that must agree")
    await expect(sums.locator(".ks-identity", has_text="found + unknown")).to_contain_text("+5")
    async with tab.expect_download() as waiting:
        await tab.get_by_role("button", name="Save Events by day as an image").click()
    download = await waiting.value
    assert re.fullmatch(r"sms_events-\d{4}-\d\d-\d\d-to-\d{4}-\d\d-\d\d\.png", download.suggested_filename)
    assert (await download.path()).read_bytes().startswith(b"\x89PNG")
