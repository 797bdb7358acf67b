"""Jobs at a glance."""

import asyncio
import os
import re
import signal

import pytest
from playwright.async_api import expect

from keystead.jobs import SchedulerOverview
from keystead.jobs.inspection_views import JobPage, QueueView, Snapshot, Totals, WorkerView
from keystead.jobs.models import WorkerState
from keystead.settings import ValkeySettings
from keystead.web.dashboard.jobs_page import first_steps, standing, summary, tile_texts
from keystead.web.jobs_watch import LISTED, JobsLook

from ..jobs_at_hand import bury, greet, jobs_on, working

WORKER = WorkerView("w", True, 999.0, WorkerState("host", 1, 900.0, 999.0, "hot", 20))


def look(*, workers=(WORKER,), **facts):
    counts = {"queued": 0, "delayed": 0, "running": 0, "waiting": 0, "dead": 0, "paused": False, "workers": 0, **facts}
    snapshot = Snapshot(1000.0, (QueueView(name="hot", **counts),), tuple(workers), Totals(1234, 5, 6))
    tasks = SchedulerOverview(0, 0, 0, 0, None, "", False)
    return JobsLook(snapshot, {place: JobPage([], 0, 0) for place in LISTED}, [], tasks, {})


def test_the_one_thing_to_know():
    assert standing(look(workers=(), queued=1)) == ("Jobs wait, no worker", "away")
    assert standing(look(workers=())) == ("No worker", "idle")
    assert standing(look(paused=True)) == ("hot is paused", "warn")
    assert standing(look(running=1)) == ("Working", "")
    assert standing(look()) == ("Idle, ready", "")


def test_summary_and_tiles():
    assert summary(look()) == "1 queue, 1 worker. Ever: 1,234 done, 5 failed, 6 tried again."
    assert tile_texts(look(queued=3, running=2, dead=1)) == [
        ("3", "ready to run"), ("2", "of 20 at once"), ("0", "later, or again"), ("0", "for other jobs"),
        ("1", "to retry or drop"), ("1,234", "ever"),
    ]
    assert tile_texts(look(workers=()))[1] == ("0", "no worker")


def test_first_steps_fit_this_server_and_hold_no_password():
    assert "keystead worker tasks<" in first_steps(ValkeySettings().url)
    assert "keystead worker tasks --url valkey://here:1<" in first_steps("valkey://here:1")
    assert "secret" not in first_steps("valkey://me:secret@here:1")


@pytest.mark.browser
async def test_bare_server_says_how_to_begin_and_the_page_moves_by_itself(page, store):
    await page.get_by_role("link", name="Jobs", exact=True).click()
    await expect(page.locator(".ks-first")).to_contain_text("keystead worker tasks")
    await expect(page.locator(".ks-tiles")).to_be_hidden()
    await jobs_on(store).enqueue(greet, name="Ada")
    await expect(page.get_by_label("Queued", exact=True).locator(".value")).to_have_text("1")
    await expect(page.locator(".ks-first")).to_be_hidden()


@pytest.mark.browser
async def test_rates_move_when_jobs_end(tab, store):
    jobs = jobs_on(store)
    await jobs.enqueue(greet, name="Ada")
    await tab.goto("/jobs")
    await expect(tab.locator(".ks-chart canvas")).to_be_visible()
    rates = tab.locator("[data-rates]")
    queued, seen = 1, asyncio.Event()

    async def feed():
        nonlocal queued
        while not seen.is_set():
            await jobs.enqueue_many(greet, [{"name": "Ada"}] * 50)
            queued += 50
            await asyncio.sleep(0.1)

    async with working(store), asyncio.TaskGroup() as tasks:
        tasks.create_task(feed())
        try:
            await expect(rates.locator(".done b")).to_have_text(re.compile(r"[1-9]"))
        finally:
            seen.set()
    await expect(tab.get_by_label("Done", exact=True).locator(".value")).to_have_text(f"{queued:,}")
    await expect(rates.locator(".done b")).to_have_text("0")


@pytest.mark.browser
@pytest.mark.slow
async def test_server_that_went_away_is_told_and_the_page_goes_on_by_itself(tab, site, store):
    await jobs_on(store).enqueue(greet, name="Ada")
    await tab.goto("/jobs")
    queued = tab.get_by_label("Queued", exact=True).locator(".value")
    await expect(queued).to_have_text("1")
    pid = site.valkey_pid
    os.kill(pid, signal.SIGSTOP)
    try:
        await expect(tab.locator(".ks-banner", has_text="The server is away")).to_be_visible()
        await expect(queued).to_have_text("1")
    finally:
        os.kill(pid, signal.SIGCONT)
    await expect(tab.locator(".ks-banner", has_text="The server is away")).to_be_hidden()
    await jobs_on(store).enqueue(greet, name="Bob")
    await expect(queued).to_have_text("2")


@pytest.mark.browser
async def test_foreign_key_is_told_instead_of_an_empty_page(tab, store):
    await store.set("jobs:hot", "of another program")
    await tab.goto("/jobs")
    await expect(tab.locator(".ks-banner", has_text="Jobs cannot be read")).to_contain_text("WRONGTYPE")
    await store.delete("jobs:hot")
    await expect(tab.locator(".ks-banner", has_text="Jobs cannot be read")).to_be_hidden()


@pytest.mark.browser
@pytest.mark.parametrize("width", [360, 768, 1280])
async def test_nothing_hangs_over_the_edge(tab, store, width):
    jobs = jobs_on(store)
    await jobs.enqueue(greet, name="Ada")
    await bury(store, "ConnectionError: " + "long" * 60)
    await jobs.options(queue="a-queue-with-a-long-name" * 3).enqueue(greet, name="Ada")
    [queued] = await jobs.enqueue_many(greet, [{"name": "long" * 500}])
    await tab.set_viewport_size({"width": width, "height": 800})
    for path, shown in (("/jobs", "ConnectionError"), (f"/jobs/{queued}", "It waits for a worker")):
        await tab.goto(path)
        await expect(tab.locator(".ks-page")).to_contain_text(shown)
        assert await tab.evaluate("document.documentElement.scrollWidth") <= width, path
