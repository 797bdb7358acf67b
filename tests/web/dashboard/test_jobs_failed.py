"""Failed jobs by their error."""

import pytest
from playwright.async_api import expect

from keystead.jobs import JobRecord
from keystead.jobs.inspection_views import ErrorGroup, JobView
from keystead.jobs.keys import Queue
from keystead.web.dashboard.jobs_failed import SHOWN_GROUPS, error_cell, group_row, groups_heading, those_shown

from ..jobs_at_hand import bury, greet, jobs_on


def letter(error, dead_at=1000.0, uid="u1"):
    return JobView("dead", "hot", JobRecord("shop.greet", {}, 1.0, uid), b"", error=error, dead_at=dead_at)


def group(error="KeyError: …", count=3, names=None, sample=None):
    return ErrorGroup(error, "hot", count, 900.0, 1000.0, names or {"shop.greet": count},
                      sample or letter("KeyError: 17"))


def test_group_tells_its_newest_error_its_jobs_and_times():
    row = group_row(group(), 1060)
    assert "KeyError: 17" in row.cells[0] and "shop.greet" in row.cells[0] and 'href="/jobs/u1"' in row.cells[0]
    assert ">3<" in row.cells[1] and "1 min ago" in row.cells[2] and "2 min 40 s ago" in row.cells[3]
    assert [action.name for action in row.actions] == ["retry", "drop"]


def test_what_an_error_says_is_only_text_and_many_names_are_cut():
    shown = error_cell(group(names={"a": 5, "b": 4, "c": 3, "d": 2}, sample=letter("<script>", uid="")))
    assert "<script>" not in shown and "a (5), b (4), c (3)" in shown and "and 1 more" in shown and "href" not in shown


def test_only_what_was_shown_is_chosen():
    chosen = those_shown(group())
    assert chosen(letter("KeyError: 18", 950.0))
    assert not chosen(letter("KeyError: 18", 1001.0)), "it came after the viewer looked"
    assert not chosen(letter("KeyError: 18 of another kind", 950.0)), "it only begins alike"


def test_heading():
    assert groups_heading([]) == ""
    assert groups_heading([group(count=1)]) == "1 job, 1 error"
    assert "most frequent" in groups_heading([group()] * (SHOWN_GROUPS + 1))


@pytest.mark.browser
async def test_group_is_tried_again_and_another_one_dropped_after_a_question(tab, store):
    jobs = jobs_on(store)
    for number in range(5):
        await jobs.enqueue(greet, name=str(number))
    await bury(store, "KeyError: 17", most=3)
    await bury(store, "ValueError: no", most=2)
    await tab.goto("/jobs")
    failed = tab.get_by_role("region", name="Failed jobs")
    await expect(failed).to_contain_text("5 jobs, 2 errors")
    await failed.get_by_role("button", name="Retry 3 of KeyError: …").click()
    await expect(tab.locator(".ks-told")).to_have_text("3 jobs queued again, with all their tries.")
    await expect(failed.locator("tbody tr")).to_have_count(1)
    assert await Queue().work.queue.length(store) == 3
    await failed.get_by_role("button", name="Drop 2 of ValueError: no").click()
    await expect(tab.locator(".ks-dialog h2")).to_have_text("Drop 2 failed jobs?")
    await tab.keyboard.press("Escape")
    await expect(tab.locator(".ks-dialog")).to_be_hidden()
    assert await Queue().work.dead.length(store) == 2
    await failed.get_by_role("button", name="Drop 2 of ValueError: no").click()
    await tab.get_by_role("button", name="Drop 2 jobs").click()
    await expect(tab.locator(".ks-told")).to_have_text("2 jobs dropped.")
    await expect(failed).to_contain_text("No job has failed for good")
    assert await Queue().work.dead.length(store) == 0 and await Queue().work.queue.length(store) == 3
