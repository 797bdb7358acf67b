"""One declared pattern, in a real browser."""

import pytest
from playwright.async_api import expect

from keystead.edge.keys import API_IP, TICKET_USED
from keystead.web.dashboard.pattern_page import keys_heading, keys_html
from keystead.web.live_keys import LiveKey


@pytest.mark.browser
async def test_walk_from_the_overview_to_a_pattern_and_to_a_key(page, store):
    await API_IP.at("203.0.113.77").set(store, 41)
    await page.get_by_role("link", name="Keys", exact=True).first.click()
    await page.get_by_label("Patterns", exact=True).get_by_role("link", name="api_ip:{ip}").click()
    await expect(page.locator("h1")).to_have_text("api_ip:{ip}")
    await expect(page.locator(".ks-facts")).to_contain_text("edge.guard")
    key = page.locator(".ks-table a.mono")
    await expect(key).to_have_text("api_ip:20•••")
    await page.get_by_role("button", name="Reveal personal data").click()
    await expect(key).to_have_text("api_ip:203.0.113.77")
    await key.click()
    await expect(page.locator("h1")).to_have_text("api_ip:20•••")
    await expect(page.locator(".ks-chip.good")).to_have_text("as declared")


@pytest.mark.browser
async def test_unknown_pattern_is_told(tab):
    await tab.goto("/pattern?name=<b>nothing</b>")
    await expect(tab.locator(".ks-empty")).to_have_text("Nothing declares the pattern <b>nothing</b>.")


def test_heading_says_whether_these_are_all():
    key = LiveKey(b"api_ip:203.0.113.7", {"ip": "203.0.113.7"}, 5)
    assert "all 2" in keys_heading([key, key], True)
    assert "2 of them" in keys_heading([key, key], False)
    assert "the only one" in keys_heading([key], True)
    assert keys_heading([], True) == "<h2>Live keys</h2>"


def test_keys_are_masked_escaped_and_say_when_they_end():
    key = LiveKey(b"api_ip:203.0.113.7", {"ip": "203.0.113.7"}, 61)
    shown = keys_html(API_IP, [key], revealed=False)
    assert ">api_ip:20•••<" in shown and "1 min 1 s" in shown
    assert ">api_ip:203.0.113.7<" in keys_html(API_IP, [key], revealed=True)
    raw = LiveKey(b"tickets:used:<b>", {"sha256": "<b>"}, None)
    assert "&lt;b&gt;" in keys_html(TICKET_USED, [raw], revealed=False) and "never" in keys_html(
        TICKET_USED, [raw], revealed=False
    )
