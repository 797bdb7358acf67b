"""Asking before, and telling after, in a real browser."""

import contextlib
import re

import pytest
import pytest_asyncio
from playwright.async_api import expect

from keystead.jobs.keys import Queue

from ..jobs_at_hand import bury, greet, jobs_on

pytestmark = pytest.mark.browser


@pytest_asyncio.fixture(loop_scope="session")
async def failed(tab, store):
    """The page with one failed job."""
    await jobs_on(store).enqueue(greet, name="Ada")
    await bury(store, "KeyError: <b>17</b>")
    await tab.goto("/jobs")
    question = tab.get_by_role("alertdialog")
    # The table is drawn anew as the first facts come; a click on a row that is just being replaced goes nowhere.
    for _ in range(4):
        await tab.get_by_role("button", name=re.compile("^Drop 1 of")).click()
        with contextlib.suppress(AssertionError):
            await expect(question).to_be_visible(timeout=15_000)
            break
    await expect(question).to_contain_text("Drop 1 failed job?")
    return tab


async def test_closing_the_question_means_no(failed, store):
    for close in (lambda: failed.keyboard.press("Escape"),
                  lambda: failed.get_by_role("button", name="Keep as it is").click()):
        await close()
        await expect(failed.get_by_role("alertdialog")).to_be_hidden()
        assert await Queue().work.dead.length(store) == 1
        await failed.get_by_role("button", name=re.compile("^Drop 1 of")).click()
        await expect(failed.get_by_role("alertdialog")).to_be_visible()


async def test_question_outlives_the_row_it_was_asked_in(failed, store):
    await jobs_on(store).options(delay_seconds=7000).enqueue(greet, name="later")  # or the page would say how to begin
    await store.delete(Queue().work.dead.name(store.layout))
    await expect(failed.get_by_role("region", name="Failed jobs")).to_contain_text("No job has failed for good")
    await failed.get_by_role("button", name="Drop 1 job").click()
    await expect(failed.locator(".ks-told")).to_have_text("0 jobs dropped.")


async def test_what_could_not_be_done_is_told(failed, store):
    await failed.get_by_role("button", name="Keep as it is").click()
    await store.set("jobs:hot", "of another program")
    await failed.get_by_role("button", name=re.compile("^Retry 1 of")).click()
    await expect(failed.locator(".ks-told.bad")).to_contain_text("WRONGTYPE")
    assert await Queue().work.dead.length(store) == 1
    await expect(failed.locator(".ks-told")).to_be_hidden()
