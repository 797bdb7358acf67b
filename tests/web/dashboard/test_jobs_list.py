"""Jobs that have not ended."""

import pytest
from playwright.async_api import expect

from keystead.jobs import JobRecord
from keystead.jobs.inspection_views import JobPage, JobView
from keystead.web.dashboard.jobs_list import first_of, job_row, where

from ..jobs_at_hand import endless, greet, jobs_on, working


def view(**facts):
    return JobView(**{"place": "queued", "queue": "hot", "record": JobRecord("shop.greet", {}, 900.0, "u1"),
                      "raw": b"x", **facts})


def test_row_tells_name_queue_and_age():
    row = job_row(view(), 1000)
    assert row.cells[1] == "hot" and row.cells[3] == "1 min 40 s"
    assert [action.name for action in row.actions] == ["cancel"] and row.key.endswith(" u1")


def test_job_without_a_uid_cannot_be_called_off():
    assert job_row(view(record=JobRecord("shop.greet", {}, 900.0)), 1000).actions == ()
    assert job_row(view(record=None, problem="not JSON"), 1000).cells[3] == "\N{EN DASH}"


def test_where_it_lies():
    assert "one" in where(view(place="running", worker="one"), 1000)
    assert where(view(place="delayed", due_at=1060.0), 1000) == "in 1 min"
    again = view(place="delayed", due_at=1060.0, record=JobRecord("shop.greet", {}, 900.0, "u1", attempt=2))
    assert "after 2 failed tries" in where(again, 1000)


def test_heading_says_when_there_are_more():
    assert first_of(JobPage([view()], 0, 1)) == ""
    assert first_of(JobPage([view()], 0, 2000)) == " The first 1 of 2,000."


@pytest.mark.browser
async def test_each_place_shows_its_jobs_and_a_queued_one_can_be_called_off(tab, store):
    jobs = jobs_on(store)
    handle = await jobs.options(keep_seconds=600).enqueue(greet, name="Ada")
    await jobs.options(delay_seconds=7000).enqueue(greet, name="later")
    await tab.goto("/jobs")
    card = tab.get_by_role("region", name="Jobs", exact=True)
    await expect(card).to_contain_text("No job is running at this moment")
    await card.get_by_role("button", name="Delayed 1").click()
    await expect(card.locator("tbody tr")).to_have_count(1)
    await expect(card.locator("th").nth(2)).to_have_text("Due")
    await expect(card.locator("tbody tr")).to_contain_text("in 1 h")
    await card.get_by_role("button", name="Queued 1").click()
    row = card.locator("tbody tr", has_text=handle.uid)
    await row.get_by_role("button").click()
    await tab.get_by_role("button", name="Cancel the job").click()
    await expect(tab.locator(".ks-told")).to_have_text(f"{handle.uid} is called off.")
    async with working(store):
        assert (await handle.wait(60)).status == "cancelled"
    await expect(card).to_contain_text("Nothing waits for a worker")


@pytest.mark.browser
async def test_running_job_is_stopped(tab, store):
    handle = await jobs_on(store).options(keep_seconds=600).enqueue(endless)
    async with working(store):
        await tab.goto("/jobs")
        card = tab.get_by_role("region", name="Jobs", exact=True)
        await card.get_by_role("button", name=f"Cancel shop.endless {handle.uid}").click()
        await tab.get_by_role("button", name="Cancel the job").click()
        assert (await handle.wait(60)).status == "cancelled"
        await expect(card).to_contain_text("No job is running at this moment")
