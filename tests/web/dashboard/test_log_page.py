"""The log of the process: chosen, and with links."""

import pytest
from playwright.async_api import expect

from keystead.telemetry import LogLine
from keystead.web.dashboard.log_page import LogFilter, line_html

LINES = [
    LogLine(1, 1_800_000_000.25, "info", "messaging.sms", "text succeeded", {"uid": "sms_1", "status": "delivered"}),
    LogLine(2, 1_800_000_001.0, "warning", "jobs", "job failed", {"job": "shop.greet", "uid": "u17", "error": "<Key>"}),
    LogLine(3, 1_800_000_002.0, "error", "web", "request failed", {"request_id": "req_1", "exception": "a <b>\n at c"}),
]


def chosen(**wanted: str) -> list[int]:
    return [line.number for line in LogFilter(**wanted).chosen(LINES)]


def test_lines_are_chosen_by_level_room_and_words():
    assert chosen() == [1, 2, 3] and chosen(level="warning") == [2, 3] and chosen(level="error") == [3]
    assert chosen(room="messaging") == [1] and chosen(room="mess") == [] and chosen(room="jobs") == [2]
    assert chosen(text="FAILED") == [2, 3] and chosen(text="failed req_1") == [3]
    assert chosen(text="status=delivered") == [1]
    assert chosen(level="nonsense") == [1, 2, 3]


def test_a_line_is_only_text_and_its_ids_lead_somewhere():
    first, second, third = map(line_html, LINES)
    assert "00.250" in first and "/messages/trace?uid=sms_1" in first and "messaging.sms" in first
    assert "&lt;Key&gt;" in second and 'href="/jobs/u17"' in second
    assert 'href="/log?text=req_1"' in third and 'class="error"' in third
    assert "<pre>a &lt;b&gt;\n at c</pre>" in third and "exception=" not in third


@pytest.mark.browser
async def test_an_act_of_an_operator_is_in_the_log_which_can_be_held_and_filtered(tab, store):
    await tab.goto("/tenants?tenant=log-acme")
    await tab.get_by_role("button", name="Pause log-acme").click()
    await tab.get_by_role("alertdialog").get_by_role("button", name="Pause log-acme").click()
    await expect(tab.locator(".ks-told")).to_have_text("log-acme is paused.")
    await tab.goto("/log?text=log-acme")
    lines = tab.locator(".op-log li")
    await expect(lines).to_have_count(1)
    await expect(lines).to_contain_text("a tenant was paused by hand")
    await tab.get_by_role("button", name="Hold the lines still").click()
    await expect(tab.get_by_role("button", name="Follow again")).to_be_visible()
    await tab.get_by_label("Least level").select_option("error")
    await expect(lines).to_have_text("No line is like that.")
    await tab.get_by_label("Least level").select_option("info")
    await tab.get_by_label("Room").select_option("web")
    await expect(lines).to_contain_text("tenant=log-acme")
