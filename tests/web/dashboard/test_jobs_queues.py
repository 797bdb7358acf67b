"""Queues and workers."""

import pytest
from playwright.async_api import expect

from keystead.jobs.inspection_views import QueueView, WorkerView
from keystead.jobs.keys import Queue
from keystead.jobs.models import WorkerState
from keystead.web.dashboard.jobs_queues import (
    SHOWN_QUEUES,
    queue_row,
    shown_queues,
    shown_workers,
    worker_row,
    workers_heading,
)

from ..jobs_at_hand import greet, jobs_on, working


def worker(alive=True, stopping=False, told=True):
    state = WorkerState("host<1>", 4711, 900.0, 999.0, "hot", 20, running=3, done=1234, failed=1, stopping=stopping)
    return WorkerView("host-4711", alive, 990.0, state if told else None)


def test_queue_tells_its_counts_and_offers_what_can_be_done():
    row = queue_row(QueueView("<mail>", 5, 0, 2, 0, 1, paused=False, workers=1))
    assert "&lt;mail&gt;" in row.cells[0] and ">5<" in row.cells[1] and row.actions[0].name == "pause"
    assert 'class="bad">1' in row.cells[5]
    paused = queue_row(QueueView("mail", 5, 0, 2, 0, 1, paused=True, workers=1))
    assert "paused" in paused.cells[0] and paused.actions[0].name == "resume"


def test_of_very_many_queues_those_with_something_in_them_are_shown():
    queues = [QueueView(str(n), int(n == SHOWN_QUEUES + 5), 0, 0, 0, 0, False, 0) for n in range(SHOWN_QUEUES + 10)]
    shown = shown_queues(queues)
    assert len(shown) == SHOWN_QUEUES and shown[0].queued == 1 and shown[1].name == "0"
    assert shown_queues(queues[:3]) == queues[:3]


def test_worker_tells_where_it_is_and_how_it_does():
    row = worker_row(worker(), 1000)
    assert "host&lt;1&gt;" in row.cells[0] and "pid 4711" in row.cells[0] and "alive" in row.cells[0]
    assert row.cells[2] == "1 min 40 s" and row.cells[3].startswith("3<") and "1,234" in row.cells[4]
    assert "stopping" in worker_row(worker(stopping=True), 1000).cells[0]


def test_silent_worker_runs_nothing_and_says_since_when():
    row = worker_row(worker(alive=False), 1000)
    assert "last seen 10 s ago" in row.cells[0] and row.cells[3].startswith("0<") and row.tone == "faded"
    assert "host-4711" in worker_row(worker(alive=False, told=False), 1000).cells[0]


def test_workers_keep_their_places():
    early, late = (WorkerView(name, True, seen_at, None) for name, seen_at in (("b", 999.0), ("a", 998.0)))
    gone = WorkerView("0", False, 990.0, None)
    assert [one.name for one in shown_workers([early, late, gone])] == ["a", "b", "0"]


def test_heading_counts_those_that_are_there():
    assert workers_heading([]) == ""
    assert workers_heading([worker(), worker(alive=False)]) == "1 worker, 20 jobs at once, 1 silent"


@pytest.mark.browser
async def test_queue_is_paused_after_a_question_and_resumed_without_one(tab, store):
    await jobs_on(store).options(queue="mail").enqueue(greet, name="Ada")
    await tab.goto("/jobs")
    queues = tab.get_by_role("region", name="Queues")
    await queues.get_by_role("button", name="Pause mail").click()
    await tab.get_by_role("button", name="Keep as it is").click()
    await expect(tab.locator(".ks-dialog")).to_be_hidden()
    assert not await Queue("mail").paused.is_raised(store)
    await queues.get_by_role("button", name="Pause mail").click()
    await tab.locator(".ks-dialog").get_by_role("button", name="Pause").click()
    await expect(queues.locator("tr", has_text="mail").locator(".ks-chip")).to_have_text("paused")
    assert await Queue("mail").paused.is_raised(store) and not await Queue().paused.is_raised(store)
    await expect(tab.locator(".ks-told")).to_have_text("The queue mail is paused.")
    await queues.get_by_role("button", name="Resume mail").click()
    await expect(queues.get_by_role("button", name="Pause mail")).to_be_visible()
    assert not await Queue("mail").paused.is_raised(store)


@pytest.mark.browser
async def test_worker_comes_and_goes_by_itself(tab, store):
    await jobs_on(store).enqueue(greet, name="Ada")
    await tab.goto("/jobs")
    workers = tab.get_by_role("region", name="Workers")
    await expect(workers).to_contain_text("keystead worker tasks")
    await expect(tab.get_by_role("status").first).to_have_text("Jobs wait, no worker")
    async with working(store):
        await expect(workers.locator("tbody tr")).to_contain_text("alive")
        await expect(workers).to_contain_text("1 worker, 7 jobs at once")
        await expect(tab.get_by_label("Done", exact=True).locator(".value")).to_have_text("1")
    await expect(workers).to_contain_text("No worker is running")
