"""A table that changes under the reader's eyes, in a real browser."""

import pytest
from playwright.async_api import expect

from ..jobs_at_hand import bury, greet, jobs_on

pytestmark = pytest.mark.browser


async def test_numbers_move_while_the_row_stays_the_same(tab, store):
    jobs = jobs_on(store)
    await jobs.enqueue(greet, name="Ada")
    await tab.goto("/jobs")
    row = tab.get_by_role("region", name="Queues").locator("tbody tr")
    await expect(row.locator(".num").first).to_have_text("1")
    await row.evaluate("row => row.isTheOneISaw = true")
    await row.get_by_role("button").focus()
    await jobs.enqueue(greet, name="Bob")
    await expect(row.locator(".num").first).to_have_text("2")
    assert await row.evaluate("row => row.isTheOneISaw && row.contains(document.activeElement)")


async def test_rows_come_go_and_change_places(tab, store):
    jobs = jobs_on(store)
    for queue in ("b", "d"):
        await jobs.options(queue=queue).enqueue(greet, name="Ada")
    await tab.goto("/jobs")
    names = tab.get_by_role("region", name="Queues").locator("tbody td:first-child")
    await expect(names).to_have_text(["hot", "b", "d"])
    await jobs.options(queue="c").enqueue(greet, name="Ada")
    await expect(names).to_have_text(["hot", "b", "c", "d"])
    await store.srem("jobs:queues", "b")
    await expect(names).to_have_text(["hot", "c", "d"])


async def test_row_that_moves_keeps_its_buttons_at_work(tab, store):
    jobs = jobs_on(store)
    for number in range(6):
        await jobs.enqueue(greet, name=str(number))
    await bury(store, "KeyError: 17", most=2)
    await bury(store, "ValueError: no")
    await tab.goto("/jobs")
    errors = tab.get_by_role("region", name="Failed jobs").locator(".ks-error")
    await expect(errors).to_have_text(["KeyError: 17", "ValueError: no"])
    await bury(store, "ValueError: no", most=3, now=1001.0)
    await expect(errors).to_have_text(["ValueError: no", "KeyError: 17"])
    await tab.get_by_role("button", name="Retry 4 of ValueError: no").click()
    await expect(errors).to_have_text(["KeyError: 17"])
