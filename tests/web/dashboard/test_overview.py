"""The first page, in a real browser."""

import asyncio
import os
import re
import signal

import pytest
from playwright.async_api import expect

from keystead.edge.keys import API_IP, VIOLATIONS
from keystead.web.dashboard.overview import summary, tile_texts
from keystead.web.facts import facts_of_info, facts_together

browser = pytest.mark.browser


@browser
async def test_facts_of_the_server_are_shown(page):
    await expect(page.locator("h1")).to_have_text(re.compile(r"Valkey \d+\.\d+"))
    await expect(page.get_by_role("status")).to_have_text("Running")
    await expect(page.get_by_label("Memory").locator(".value")).to_have_text(re.compile(r"[\d.]+ MB"))
    await expect(page.get_by_label("On disk")).to_contain_text("Append-only file")
    await expect(page.locator(".ks-chart canvas")).to_be_visible()
    await expect(page.locator(".ks-banner")).to_be_hidden()


@browser
async def test_rate_moves_when_commands_are_sent(page, store):
    rate = page.locator("[data-rate]")
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


@browser
async def test_new_viewer_sees_the_last_minutes(page, site):
    chart = "getElement(Number(document.querySelector('.ks-chart').id.slice(1))).chart"
    shown = f"{chart}.getOption().series[0].data.length"
    await page.wait_for_selector(".ks-chart canvas")
    await page.wait_for_function(f"() => {shown} >= 5")
    await page.reload()
    await page.wait_for_selector(".ks-chart canvas")
    assert await page.evaluate(f"() => {shown}") >= 5


@browser
async def test_patterns_have_live_counts_and_strays_are_told(page, store):
    for last in range(12):
        await API_IP.at(f"203.0.113.{last}").set(store, 1)
    await store.set("stray", "x")
    await page.get_by_role("button", name="Count again").click()
    row = page.locator("tr", has_text="api_ip:{ip}")
    await expect(row.locator(".num").first).to_have_text("12")
    await expect(page.locator(".stray")).to_contain_text("Not declared")
    await expect(page.get_by_text(re.compile("keys, counted"))).to_be_visible()


@browser
async def test_filter_narrows_the_table(page):
    box = page.get_by_placeholder("Filter patterns…")
    patterns = page.locator(".ks-table a.mono")
    await expect(patterns.nth(6)).to_be_visible()
    declared = await patterns.count()
    await box.fill("login_ip")
    await expect(patterns).to_have_text(["login_ip:{ip}"])
    await box.fill("no such thing")
    await expect(page.locator(".ks-empty")).to_contain_text("No declared pattern matches")
    await box.fill("")
    await expect(patterns).to_have_count(declared)


@browser
async def test_largest_patterns_come_first_when_asked(page, store):
    for last in range(30):
        await VIOLATIONS.at(f"203.0.113.{last}").set(store, 1)
    await page.get_by_role("button", name="Count again").click()
    await expect(page.locator("tr", has_text="violations:{ip}").locator(".num").first).to_have_text("30")
    first = page.locator(".ks-table a.mono").first
    by_room = await first.inner_text()
    assert by_room != "violations:{ip}"
    await page.get_by_role("button", name="Largest first").click()
    await expect(first).to_have_text("violations:{ip}")
    await page.get_by_role("button", name="By room").click()
    await expect(first).to_have_text(by_room)


@browser
@pytest.mark.slow
async def test_server_that_went_away_is_told_and_the_page_recovers_by_itself(page, site):
    pid = site.valkey_pid
    os.kill(pid, signal.SIGSTOP)
    try:
        await expect(page.locator(".ks-banner")).to_contain_text("The server is away")
        await expect(page.get_by_role("status")).to_have_text("Away")
    finally:
        os.kill(pid, signal.SIGCONT)
    await expect(page.locator(".ks-banner")).to_be_hidden()
    await expect(page.get_by_role("status")).to_have_text("Running")


def test_summary_says_what_it_is():
    alone = {"role": "master", "redis_mode": "standalone", "uptime_in_seconds": 61}
    assert summary(facts_of_info(alone)) == "Primary, up 1 min 1 s"
    assert summary(facts_of_info({**alone, "connected_slaves": 2})) == "Primary with 2 replicas, up 1 min 1 s"
    node = facts_of_info({**alone, "redis_mode": "cluster", "connected_slaves": 1})
    assert summary(facts_together([node] * 3)) == "Cluster of 3 primaries with 3 replicas, up 1 min 1 s"


def test_every_tile_has_its_text():
    texts = tile_texts(facts_of_info({
        "used_memory": 5_000_000, "used_memory_peak": 6_000_000, "maxmemory": 8_000_000, "evicted_keys": 3,
        "aof_enabled": 1, "aof_last_write_status": "err",
    }))
    assert ("Memory", "5.0 MB", "peak 6.0 MB, limit 8.0 MB") in texts
    assert ("Commands", "0", "0 keys expired, 3 evicted") in texts
    assert ("On disk", "Append-only file, last write failed", "needs attention") in texts
