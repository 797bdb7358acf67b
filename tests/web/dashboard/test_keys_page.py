"""The page of all patterns."""

import asyncio
import re

import pytest
from playwright.async_api import expect

from keystead.edge.keys import API_IP, EDGE, LOGIN_IP, VIOLATIONS
from keystead.operations import PatternCount, PatternCounts
from keystead.web.dashboard.keys_page import heaviest, weights_html

browser = pytest.mark.browser


def test_the_heaviest_come_first_with_their_share():
    counts = PatternCounts(
        keys=3, memory_bytes=1000, undeclared_keys=0, undeclared_memory_bytes=0,
        by_declaration={LOGIN_IP: PatternCount(1, 750), API_IP: PatternCount(2, 250)},
    )
    found = heaviest(EDGE, counts)
    assert [(each.pattern, weight) for each, weight in found] == [("login_ip:{ip}", 750), ("api_ip:{ip}", 250)]
    shown = weights_html(found, counts)
    assert "75.0 %" in shown and "750 B" in shown and "width:33.3%" in shown and "personal" in shown


def test_before_there_is_anything_it_says_so():
    assert "being counted" in weights_html([], None)
    assert "No declared key" in weights_html([], PatternCounts(0, 0, 0, 0, {}))


@browser
async def test_patterns_have_live_counts_and_strays_are_told(tab, store):
    for last in range(12):
        await API_IP.at(f"203.0.113.{last}").set(store, 1)
    await store.set("stray", "x")
    await tab.goto("/keys")
    await tab.get_by_role("button", name="Count again").click()
    row = tab.locator("tr", has_text="api_ip:{ip}")
    await expect(row.locator(".num").first).to_have_text("12")
    await expect(tab.locator(".stray")).to_contain_text("Not declared")
    await expect(tab.get_by_text(re.compile("keys, counted"))).to_be_visible()
    await expect(tab.get_by_label("Memory by pattern")).to_contain_text("api_ip:{ip}")


@browser
async def test_filter_narrows_the_table(tab):
    await tab.goto("/keys")
    box = tab.get_by_placeholder("Filter patterns…")
    patterns = tab.get_by_label("Patterns", exact=True).locator(".ks-table a.mono")
    await expect(patterns.nth(6)).to_be_visible()
    declared = await patterns.count()
    await box.fill("login_ip")
    await expect(patterns).to_have_text(["login_ip:{ip}"])
    await box.fill("no such thing")
    await expect(tab.get_by_label("Patterns", exact=True).locator(".ks-empty")).to_contain_text("No declared pattern")
    await box.fill("")
    await expect(patterns).to_have_count(declared)
    await tab.get_by_role("button", name="Personal data").click()
    await expect(tab.get_by_role("button", name="Personal data")).to_have_attribute("aria-pressed", "true")
    await expect(patterns).not_to_have_count(declared)


@browser
async def test_largest_patterns_come_first_when_asked(tab, store):
    for last in range(300):
        await VIOLATIONS.at(f"203.0.113.{last % 250}").set(store, last)
    await tab.goto("/keys?order=memory")
    await tab.get_by_role("button", name="Count again").click()
    patterns = tab.get_by_label("Patterns", exact=True)
    await expect(patterns.locator("tr", has_text="violations:{ip}").locator(".num").first).to_have_text("250")
    first = patterns.locator(".ks-table a.mono").first
    await expect(first).to_have_text("violations:{ip}")
    await tab.get_by_role("button", name="By room").click()
    await expect(first).not_to_have_text("violations:{ip}")


@browser
async def test_rate_moves_when_commands_are_sent(tab, store):
    await tab.goto("/keys")
    rate = tab.locator("[data-rate]")
    await expect(rate).to_contain_text("now")
    busy = asyncio.Event()

    async def send():
        while not busy.is_set():
            await asyncio.gather(*(store.get("x") for _ in range(1000)))
            await asyncio.sleep(0.02)

    task = asyncio.ensure_future(send())
    try:
        await expect(rate).to_have_text(re.compile(r"^[1-9]\d{0,2},\d{3}"))
    finally:
        busy.set()
        await task
    await expect(rate).to_have_text(re.compile(r"^\d{1,3}(\.\d)?now"))
