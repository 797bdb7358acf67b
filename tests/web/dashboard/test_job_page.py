"""One job, in a real browser."""

import json

import pytest
from playwright.async_api import expect

from keystead.jobs.keys import Queue

from ..jobs_at_hand import bury, greet, jobs_on, working

pytestmark = pytest.mark.browser


async def test_walk_from_an_error_to_its_job_and_try_it_again(tab, store):
    jobs = jobs_on(store)
    handle = await jobs.options(keep_seconds=600).enqueue(greet, name="Ada Lovelace")
    await bury(store, "KeyError: 17")
    await tab.goto("/jobs")
    await tab.get_by_role("link", name="newest one").click()
    await expect(tab.locator("h1")).to_have_text("shop.greet")
    await expect(tab.locator("[data-state]")).to_have_text("failed")
    await expect(tab.get_by_role("region", name="Error")).to_contain_text("KeyError: 17")
    arguments = tab.get_by_role("region", name="Arguments")
    await expect(arguments).to_contain_text('"name": "•••"')
    await tab.get_by_role("button", name="Reveal personal data").click()
    await expect(arguments).to_contain_text("Ada Lovelace")
    await tab.get_by_role("button", name="Retry").click()
    await expect(tab.locator("[data-state]")).to_have_text("queued")
    await expect(tab.get_by_role("region", name="Error")).to_be_hidden()
    async with working(store):
        assert (await handle.wait(60)).status == "succeeded"
    await expect(tab.locator("[data-state]")).to_have_text("succeeded")
    await expect(arguments).to_contain_text("Ada Lovelace")
    await expect(tab.get_by_role("button", name="Cancel")).to_be_hidden()


async def test_failed_job_is_dropped_after_a_question(tab, store):
    [uid] = await jobs_on(store).enqueue_many(greet, [{"name": "Ada"}])
    await bury(store, "KeyError: 17")
    await tab.goto(f"/jobs/{uid}")
    await tab.get_by_role("button", name="Drop", exact=True).click()
    await tab.get_by_role("button", name="Drop it").click()
    await expect(tab.locator("[data-state]")).to_have_text("ended")
    assert await Queue().work.dead.length(store) == 0


async def test_queued_job_is_called_off(tab, store):
    handle = await jobs_on(store).options(keep_seconds=600, queue="mail").enqueue(greet, name="Ada")
    await tab.goto(f"/jobs/{handle.uid}")
    await expect(tab.locator(".ks-facts")).to_contain_text("mail")
    await tab.get_by_role("button", name="Cancel", exact=True).click()
    await tab.get_by_role("button", name="Cancel the job").click()
    await expect(tab.locator(".ks-told")).to_have_text(f"{handle.uid} is called off.")
    async with working(store, "mail"):
        assert (await handle.wait(60)).status == "cancelled"
    await expect(tab.locator("[data-state]")).to_have_text("cancelled")


async def test_job_nobody_knows_is_told_with_the_way_to_keep_one(tab, store):
    await tab.goto("/jobs/nothing<b>here</b>")
    await expect(tab.locator("h1")).to_have_text("nothing<b>here</b>")
    await expect(tab.locator(".ks-empty")).to_contain_text("Nothing is known of this job")
    await expect(tab.locator(".ks-empty")).to_contain_text("keep_seconds=3600")
    await expect(tab.get_by_role("button", name="Cancel")).to_be_hidden()


async def test_uid_and_name_of_another_program_are_only_text(tab, store):
    uid, name = "a/b <img src=x onerror=alert(1)>", "<script>alert(2)</script>"
    await store.rpush("jobs:hot", json.dumps({"name": name, "kwargs": {"x": "</pre><b>"}, "queued_at": 1, "uid": uid}))
    await tab.goto("/jobs")
    await tab.get_by_role("region", name="Jobs", exact=True).get_by_role("button", name="Queued 1").click()
    await tab.get_by_role("link", name=name).click()
    await expect(tab.locator("h1")).to_have_text(name)
    await tab.get_by_role("button", name="Reveal personal data").click()
    await expect(tab.get_by_role("region", name="Arguments")).to_contain_text("</pre><b>")
    assert await tab.locator("main img").count() == 0
