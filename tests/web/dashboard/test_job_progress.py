"""How far one job is."""

import pytest
from playwright.async_api import expect

from keystead.clock import SystemClock
from keystead.jobs import Progress, ProgressEvent
from keystead.jobs.models import Indicator, Spawned
from keystead.web.dashboard.job_progress import bar_html, furthest, lines_html, step_html

from ..jobs_at_hand import jobs_on, report, working


def event(kind, message="", indicator=None, **more):
    return ProgressEvent(kind, message, 1_800_000_000.0, indicator, **more)


STARTED = event("started", "begins", Indicator("spinner"))
HALF = event("progress", "half", Indicator("bar", 5, 10))


def test_bar_tells_the_share():
    assert 'aria-valuenow="50"' in bar_html([STARTED, HALF]) and "width:50.0%" in bar_html([STARTED, HALF])
    assert "5 of 10" in step_html([STARTED, HALF])
    done = [STARTED, HALF, event("succeeded", "done", Indicator("final"))]
    assert 'aria-valuenow="100"' in bar_html(done) and "good" in bar_html(done)
    failed = [STARTED, HALF, event("failed", "failed: KeyError", Indicator("final"))]
    assert 'aria-valuenow="50"' in bar_html(failed) and "bad" in bar_html(failed)


def test_bar_of_unknown_length_only_moves():
    assert "unknown" in bar_html([STARTED]) and "unknown" in bar_html([])
    odd = [event("progress", "odd", Indicator("bar", 20, 10))]
    assert 'aria-valuenow="100"' in bar_html(odd)


def test_new_try_starts_from_nothing():
    assert furthest([STARTED, HALF]) == (5, 10)
    assert furthest([STARTED, HALF, STARTED]) == (0, 0)


def test_lines_come_newest_first_and_are_only_text():
    spawned = event("spawned", "more", None, spawned=Spawned("u/2", "<i>"))
    shown = lines_html([event("progress", "<b>first</b>"), spawned], missed=3)
    assert shown.index("more") < shown.index("first") and "<b>" not in shown and "<i>" not in shown
    assert 'href="/jobs/u%2F2"' in shown and "3 earlier lines" in shown and "08:00:00" in shown


@pytest.mark.browser
async def test_progress_is_live_from_the_queue_to_the_end(tab, store):
    handle = await jobs_on(store).enqueue(report, pages=4)
    await tab.goto(f"/jobs/{handle.uid}")
    card = tab.get_by_role("region", name="Progress")
    await expect(card).to_contain_text("waiting for its turn")
    told = Progress(handle.uid, SystemClock())
    await told.progress(store, "halfway <there>", 2, 4)
    await expect(card).to_contain_text("halfway <there>")
    await expect(card.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "50")
    async with working(store):
        await expect(card).to_contain_text("read page 4")
        await expect(card.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "100")
    await expect(tab.locator("[data-state]")).to_have_text("succeeded")
    await expect(card.locator("li", has_text="halfway")).to_have_count(1)


@pytest.mark.browser
async def test_who_comes_later_sees_the_past(tab, store):
    handle = await jobs_on(store).enqueue(report, pages=3)
    async with working(store):
        await handle.wait(60)
    await tab.goto(f"/jobs/{handle.uid}")
    await expect(tab.get_by_role("region", name="Progress")).to_contain_text("read page 3")
    await tab.get_by_role("button", name="Reveal personal data").click()
    await expect(tab.get_by_role("region", name="Result")).to_contain_text('"pages": 3')
