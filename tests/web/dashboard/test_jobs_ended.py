"""Jobs that ended lately."""

import time

import pytest
from playwright.async_api import expect

from keystead.jobs import EndedJob
from keystead.jobs.inspection_views import EndedPage
from keystead.jobs.keys import ENDED_LATELY
from keystead.web.dashboard.jobs_ended import ended_row, newest_of, pages_of
from keystead.web.jobs_watch import SHOWN_JOBS


def ended(number=1, status="succeeded", **facts):
    return EndedJob(**{"uid": f"u{number}", "name": "shop.greet", "queue": "hot", "status": status, "worker": "one",
                       "ended_at": 990.0 + number, "ran_seconds": 0.25, **facts})


def test_row_tells_how_where_and_how_long_and_leads_to_the_job():
    name, status, queue, worker, tries, took, when = ended_row(ended(attempts=3), 1000.0).cells
    assert 'href="/jobs/u1"' in name and "ks-chip good" in status and (queue, tries, took) == ("hot", "3", "250 ms")
    assert "one" in worker and "9 s ago" in when and "1970-01-01 00:16:31 UTC" in when


def test_job_that_never_began_took_no_time_and_an_error_is_only_text():
    row = ended_row(ended(status="failed", ran_seconds=None, worker="", error="<b>KeyError"), 1000.0)
    assert "ks-chip bad" in row.cells[1] and "&lt;b&gt;KeyError" in row.cells[1]
    assert row.cells[3] == row.cells[5] == "\N{EN DASH}"
    assert ended_row(ended(ran_seconds=0.0002), 1000.0).cells[5] == "&lt; 1 ms"
    assert "href" not in ended_row(ended(uid=""), 1000.0).cells[0]


def test_newest_of_all_kinds_come_first():
    good = EndedPage([ended(number) for number in range(100, 100 - SHOWN_JOBS, -1)], 1000)
    bad = EndedPage([ended(99.5, "failed"), ended(1, "failed")], 2)
    together, *each = pages_of({"succeeded": good, "failed": bad, "cancelled": EndedPage([], 0)})
    assert [job.uid for job in together.jobs[:3]] == ["u100", "u99.5", "u99"] and len(together.jobs) == SHOWN_JOBS
    assert together.total == 1002 and each == [good, bad, EndedPage([], 0)]
    assert newest_of(together) == f" Shown are {SHOWN_JOBS} of 1,002." and newest_of(bad) == ""


@pytest.mark.browser
async def test_walk_from_what_ended_lately_to_the_job(tab, store):
    now = time.time()
    for number, status in enumerate(("succeeded", "failed", "cancelled")):
        job = ended(number, status, ended_at=now - 2143 - number, queued_at=now - 3000, name=f"shop.{status}",
                    error="KeyError" if status == "failed" else "")
        await ENDED_LATELY.at(status=status).add(store, job, job.ended_at)
    await store.hset("jobs:totals", "done", 1)  # a server that never saw a job shows how to begin instead
    await tab.goto("/jobs")
    card = tab.get_by_role("region", name="Jobs", exact=True)
    await card.get_by_role("button", name="Ended").click()
    await expect(card).to_contain_text("The newest that ended")
    await expect(card.locator("tbody tr", has_text="shop.cancelled")).to_contain_text("cancelled")
    last = card.locator("tbody tr", has_text="shop.cancelled").locator("td:visible").last
    await expect(last).to_contain_text(" ago")
    assert await last.evaluate("cell => cell.scrollWidth <= cell.clientWidth"), "a long age stays inside the card"
    await card.get_by_role("button", name="Failed").click()
    await expect(card.locator("tbody tr", has_text="shop.succeeded")).to_have_count(0)
    await expect(card.locator("tbody tr", has_text="shop.failed")).to_contain_text("KeyError")
    await card.get_by_role("link", name="shop.failed").click()
    await expect(tab.locator("h1")).to_have_text("shop.failed")
    await expect(tab.locator("[data-state]")).to_have_text("failed")
    await expect(tab.locator(".ks-facts")).to_contain_text("one of the newest that ended")
    await expect(tab.locator(".ks-facts")).to_contain_text("250 ms")
    await expect(tab.get_by_role("region", name="Error")).to_contain_text("KeyError")
    await expect(tab.get_by_role("button", name="Retry")).to_be_hidden()
    for status in ("succeeded", "failed", "cancelled"):
        await ENDED_LATELY.at(status=status).delete(store)
    await expect(tab.locator("[data-state]")).to_have_text("ended", timeout=30_000)
    await expect(tab.locator(".ks-facts")).to_contain_text("no state of it is kept")
