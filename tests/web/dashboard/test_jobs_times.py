"""What runs by the clock."""

import re
import time

import pytest
from playwright.async_api import expect

from keystead.jobs import Scheduler, SchedulerOverview
from keystead.jobs.inspection_views import RecurringView
from keystead.jobs.keys import ROOMS_QUEUE, Queue
from keystead.jobs.recurring import MOST_VERSION
from keystead.web.dashboard.jobs_times import recurring_row, task_rows, tasks_state

from ..jobs_at_hand import greet, jobs_on


def tasks(**facts):
    return SchedulerOverview(**{"scheduled": 3, "ready": 0, "processing": 1, "dead": 0, "next_at": 1060.0,
                                "leader": "here:1:7", "paused": False, **facts})


def test_entry_tells_next_and_last_run():
    row = recurring_row(RecurringView("mail", "17", "shop.greet", 1060.0, 940.0), 1000)
    assert "shop.<wbr>greet" in row.cells[0] and "mail" in row.cells[0]
    assert "in 1 min" in row.cells[1] and "1 min ago" in row.cells[2]


def test_entry_of_a_fast_clock_is_late_in_real_seconds_only():
    entry = RecurringView("mail", "17", "shop.greet", 600.0, 540.0)
    assert "overdue" in recurring_row(entry, 1000).cells[1] and ">now<" in recurring_row(entry, 1000, 144).cells[1]


def test_entry_without_a_name_says_what_it_is():
    row = recurring_row(RecurringView("hot", "<17>", "", 1060.0, None), 1000)
    assert "entry &lt;17&gt;" in row.cells[0]


def test_one_entry_in_two_queues_is_two_rows():
    rows = [recurring_row(RecurringView(queue, "17", "shop.greet", 1060.0, None), 1000) for queue in ("hot", "mail")]
    assert rows[0].key != rows[1].key


def test_scheduler_at_a_glance():
    rows = {row.key: row.cells[1] for row in task_rows(tasks(), 1000)}
    assert rows["Next one"] == "in 1 min" and ">3<" in rows["Scheduled"]
    assert ">here:1<" in rows["Leader"] and "epoch 7" in rows["Leader"]
    assert "due tasks wait" in {row.key: row.cells[1] for row in task_rows(tasks(leader=""), 1000)}["Leader"]


def test_state_of_the_scheduler():
    assert "good" in tasks_state(tasks()) and "nobody leads" in tasks_state(tasks(leader=""))
    assert "paused" in tasks_state(tasks(paused=True))


@pytest.mark.browser
async def test_both_say_how_to_begin_and_then_what_there_is(tab, store):
    # The installation's own list comes back every minute, wherever it was taken away; for a newer one it stands aside.
    own = Queue(ROOMS_QUEUE).recurring
    await own.version.set(store, f"{MOST_VERSION}:0")
    await own.next.delete(store)
    await jobs_on(store).enqueue(greet, name="Ada")
    await tab.goto("/jobs")
    recurring = tab.get_by_role("region", name="Recurring jobs")
    scheduled = tab.get_by_role("region", name="Scheduled tasks")
    await expect(recurring).to_contain_text("RecurringList([")
    await expect(scheduled).to_contain_text("Scheduler(valkey).schedule(")
    await Queue().recurring.next.add(store, "17", time.time() + 7000)
    await Queue().recurring.names.set(store, "17", "shop.rotate")
    await Queue().recurring.last.set(store, "17", int(time.time()) - 7200)
    await Scheduler(store).schedule("shop.greet", {"name": "Ada"}, delay_seconds=7000)
    await expect(recurring.locator("tbody tr")).to_contain_text("shop.rotate")
    await expect(recurring.locator("tbody tr")).to_contain_text("in 1 h")
    await expect(recurring.locator("tbody tr")).to_contain_text(re.compile(r"2 h.* ago"))
    await expect(scheduled.locator("tr", has_text="Next one")).to_contain_text("in 1 h")
