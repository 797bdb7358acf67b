"""The first page: what it makes of what it read, and the page in a real browser."""

import os
import re
import signal
from dataclasses import replace

import pytest
from playwright.async_api import expect

from keystead.app import App
from keystead.backup import LastBackup
from keystead.jobs.inspection_views import QueueView, RecurringView, WorkerView
from keystead.jobs.keys import Queue
from keystead.jobs.models import JobRecord
from keystead.jobs.tenants import Pause, TenantView
from keystead.messaging.sms.keys import SENDING
from keystead.messaging.touches import QueueInfo
from keystead.operations.models import Alert
from keystead.patterns import DeadLetter
from keystead.settings import load_settings
from keystead.web.dashboard.messages_look import ChannelLook, MessagesLook
from keystead.web.dashboard.overview import health_html, lately_html, troubles_html
from keystead.web.dashboard.overview_chart import COLOURS, moved, options, points
from keystead.web.dashboard.overview_judged import (
    Lately,
    Part,
    Trouble,
    lately,
    noisy_tenant,
    parts,
    together,
    troubles,
    verdict,
)
from keystead.web.dashboard.overview_look import Arrived, OverviewLook
from keystead.web.facts import facts_of_info
from keystead.web.job_rates import JobRates, JobRateSample
from keystead.web.message_rates import MessageRates, MessageRateSample
from keystead.web.request_rates import RequestRate

browser = pytest.mark.browser
NOW = 1_700_000_000.0
HOSTILE = "<script>alert('x')</script>"
FACTS = facts_of_info({"valkey_version": "9.0.0", "aof_enabled": 1, "role": "master"})


def queue(name="hot", **facts):
    given = {"queued": 0, "delayed": 0, "running": 0, "waiting": 0, "dead": 0, "paused": False, "workers": 1, **facts}
    return QueueView(name, **given)


def channel(name="sms", **facts):
    given = {"lanes": (0, 0, 0), "retrying": 0, "pending": 0, "overdue": 0, "dead": 0, "oldest_at": None,
             "breaker": "closed", "failed_calls": 0, "paused": False, "paused_seconds": None, **facts}
    return ChannelLook(name, **given)


def messages(*channels):
    return MessagesLook(channels or (channel(),), QueueInfo(0), QueueInfo(0), QueueInfo(0))


def look(**facts):
    given = {"sql_ms": 1.0, "sql_problem": "", "workers": (WorkerView("w", True, NOW, None),), "queues": (queue(),),
             "recurring": (RecurringView("hot", "h", "rotate", NOW + 60, None),), "messages": messages(),
             "backup": LastBackup(taken_at=NOW - 60, bytes=5_000_000), **facts}
    return OverviewLook(**given)


def found_parts(seen, *, away=False):
    return {part.name: part for part in parts(seen, FACTS, away=away, dialect="sqlite", now=NOW)}


def test_a_sound_installation_is_said_to_work():
    found = found_parts(look())
    assert {part.tone for part in found.values()} == {"good"}
    assert found["Server"].says == "Valkey 9.0.0" and found["Database"].says == "SQLite, 1 ms"
    assert found["Backup"].says == "1 min ago, 5.0 MB"
    assert verdict(look(), list(found.values()), troubles(look(), FACTS)) == ("Everything works", "good")


@pytest.mark.parametrize(("facts", "part", "tone"), [
    ({"sql_ms": None, "sql_problem": "gone"}, "Database", "bad"),
    ({"workers": ()}, "Workers", "bad"),
    ({"recurring": (RecurringView("hot", "h", "rotate", NOW - 600, None),)}, "Schedule", "warn"),
    ({"recurring": ()}, "Schedule", "idle"),
    ({"messages": messages(channel(breaker="open"))}, "Providers", "bad"),
    ({"messages": messages(channel(paused=True))}, "Providers", "warn"),
    ({"backup": None}, "Backup", "idle"),
    ({"backup": LastBackup(taken_at=NOW - 60, failed_at=NOW - 5)}, "Backup", "bad"),
    ({"alerts": (Alert(kind="queue_stuck", subject="hot", says="x", severity="critical", opened_at=NOW, version=1,
                       seen_at=NOW),)}, "Alerts", "bad"),
])
def test_each_part_fails_by_itself(facts, part, tone):
    found = found_parts(look(**facts))
    assert found[part].tone == tone
    assert [name for name, each in found.items() if each.tone != "good"] == [part]


def test_a_server_that_is_away_is_the_one_thing_to_know():
    found = list(found_parts(look(), away=True).values())
    assert verdict(look(), found, []) == ("The server is away", "bad")


def test_what_needs_somebody_comes_worst_first_with_the_way_to_mend_it():
    seen = look(queues=(queue(dead=2), queue("mail", paused=True, queued=5)),
                messages=messages(channel(dead=3), channel("email", breaker="open", lanes=(1, 2, 0))),
                tenants=(TenantView("acme", ready=900, share=0.8, asked=90, served=4), TenantView("quiet", dead=1)))
    found = troubles(seen, FACTS, stray_keys=2)
    assert [(one.tone, one.address) for one in found] == [
        ("bad", "/jobs"), ("bad", "/messages"), ("bad", "/providers"), ("warn", "/jobs"),
        ("warn", "/tenants?tenant=acme"), ("warn", "/tenants"), ("warn", "/keys")]
    assert found[0].title == "2 jobs of the queue hot failed for good"
    assert verdict(seen, [], found) == ("3 things need attention", "bad")
    assert verdict(seen, [], found[3:]) == ("Works, 4 things to look at", "warn")
    assert HOSTILE not in troubles_html([replace(found[0], title=HOSTILE, says=HOSTILE)], known=True)
    assert "Nothing is stuck" in troubles_html([], known=True)


def test_a_late_run_is_said_where_the_title_looks():
    seen = look(recurring=(RecurringView("hot", "h", "rotate", NOW - 600, None),))
    found = troubles(seen, FACTS, now=NOW)
    assert [(one.title, one.address) for one in found] == [("1 recurring job late", "/jobs")]
    assert verdict(seen, [], found) == ("Works, 1 thing to look at", "warn")
    assert not troubles(seen, FACTS, now=NOW, speed=144)


def test_an_alert_is_not_said_twice():
    alert = Alert(kind="provider_down", subject="sms", says="calls fail", severity="critical", opened_at=NOW - 90,
                  version=1, seen_at=NOW)
    [only] = troubles(look(alerts=(alert,), messages=messages(channel(breaker="open"))), FACTS, now=NOW)
    assert (only.title, only.address) == ("Provider down: sms", "/providers")
    assert only.says == "calls fail. Open for 1 min 30 s"


@pytest.mark.parametrize(("tenants", "noisy"), [
    ((), None),
    ((TenantView("a", ready=50),), None),
    ((TenantView("a", ready=50), TenantView("b", ready=1)), "a"),
    ((TenantView("a", asked=5), TenantView("b", asked=60)), "b"),
    ((TenantView("a", ready=2), TenantView("b", ready=1)), None),
    ((TenantView("a", ready=50, pauses=(Pause("x", NOW),)), TenantView("b", ready=1)), None),
])
def test_noisy_is_who_takes_most_while_others_wait(tenants, noisy):
    found = noisy_tenant(tenants)
    assert (found.tenant if found else None) == noisy


def test_lately_names_nobody_and_puts_the_same_together():
    seen = look(arrived=tuple(Arrived(f"tch_{n}", "hello", "sms", NOW - n) for n in range(5)),
                joined=(NOW - 2.5, NOW - 1000))
    found = lately(seen)
    assert [(one.what, one.times) for one in found] == [
        ("Text arrived", 5), ("Somebody joined", 1), ("Somebody joined", 1)]
    assert found[0].address == "/messages/trace?uid=tch_0" and "5 times" in lately_html(found, known=True)
    assert "Nothing has happened" in lately_html([], known=True) and "Waiting" in lately_html([], known=False)
    assert len(together([Lately(NOW, "good", "a", "", ""), Lately(NOW - 61, "good", "a", "", "")])) == 2


def test_health_is_said_in_words_too():
    shown = health_html([Part("Server", "bad", HOSTILE, "/keys"), Part("On disk", "good", "fine")])
    assert HOSTILE not in shown and '<a href=/keys>' in shown and "<b>On disk</b>" in shown


def test_chart_has_a_line_for_each_with_gaps():
    lines = points([RequestRate(NOW, 3.26, 0)], [JobRateSample(NOW, JobRates(1, 2, 3, 4)), JobRateSample(NOW, None)],
                   [MessageRateSample(NOW, MessageRates({"sms": (0, 2, 0), "email": (0, 3, 0)}))], NOW)
    at = 1_700_000_000_000
    assert lines == {"requests": [(at, 3.3)], "jobs": [(at, 7), (at, None)],
                     "messages": [(at, 5)]}
    whole = options(lines, NOW)
    assert [line["name"] for line in whole["series"]] == [f"{name}/s" for name in COLOURS]
    assert moved({name: [] for name in COLOURS}, NOW)["xAxis"]["max"] == NOW * 1000


# -- in a browser ------------------------------------------------------------------------------------------------------


@browser
async def test_it_says_that_all_works_and_what_it_does(page):
    await expect(page.locator("h1")).to_have_text(re.compile("Everything works|to look at"))
    health = page.get_by_label("Health")
    await expect(health).to_contain_text(re.compile(r"Valkey \d+\.\d+"))
    await expect(health).to_contain_text("SQLite")
    await expect(health).to_contain_text("1 alive")
    await expect(page.get_by_role("link", name="Memory").locator(".value")).to_have_text(
        re.compile(r"[\d.]+ ?MB"))
    await expect(page.locator(".ks-chart canvas")).to_be_visible()
    await expect(page.locator(".ks-banner")).to_be_hidden()


@browser
async def test_requests_move_the_tile_and_the_chart(page):
    chart = "getElement(Number(document.querySelector('.ks-chart').id.slice(1))).chart"
    await page.wait_for_selector(".ks-chart canvas")
    await page.wait_for_function(f"() => {chart}.getOption().series[0].data.some((point) => point[1] > 0)")
    shown = f"{chart}.getOption().series[0].data.length"
    await page.wait_for_function(f"() => {shown} >= 5")
    await page.reload()
    await page.wait_for_selector(".ks-chart canvas")
    assert await page.evaluate(f"() => {shown}") >= 5, "a new viewer sees the last minutes"


@browser
async def test_what_fails_is_told_with_the_way_to_mend_it(page, store):
    attention = page.get_by_label("Needs attention")
    await expect(attention).to_be_visible()
    work = Queue("").work
    record = JobRecord(uid="job_x", name=HOSTILE, kwargs={}, queued_at=NOW)
    await work.dead.push_right(store, DeadLetter(work.queue_key.codec.encode(record), "boom", NOW, 3))
    await SENDING.pause(store)
    await expect(attention).to_contain_text("1 job of the queue hot failed for good")
    await expect(attention).to_contain_text("Text messages are paused")
    await expect(page.locator("h1")).to_have_text(re.compile("need"))
    await expect(page.get_by_label("Lately")).to_contain_text(HOSTILE)
    await attention.get_by_role("link", name="See why, retry").click()
    await expect(page.get_by_label("Failed jobs")).to_contain_text("boom")
    await SENDING.resume(store)


@browser
async def test_people_who_come_are_counted_and_told_without_names(page, site):
    async with App(load_settings({"valkey.url": site.valkey_url}, environment={})).running() as running:
        for number in range(3):
            member = await running.users.ensure("test", f"overview {number}", given_name="Hidden Name")
            await running.activity.seen(member.sub)
    await expect(page.get_by_role("link", name="Active people").locator(".value")).to_have_text(re.compile(r"^3"))
    await expect(page.get_by_label("Lately")).to_contain_text("Somebody joined")
    assert "Hidden Name" not in await page.content()


@browser
@pytest.mark.slow
async def test_server_that_went_away_is_told_and_the_page_recovers_by_itself(page, site):
    pid = site.valkey_pid
    os.kill(pid, signal.SIGSTOP)
    try:
        await expect(page.locator(".ks-banner")).to_contain_text("The server is away")
        await expect(page.locator("h1")).to_have_text("The server is away")
    finally:
        os.kill(pid, signal.SIGCONT)
    await expect(page.locator(".ks-banner")).to_be_hidden()
    await expect(page.locator("h1")).not_to_have_text("The server is away")


def test_a_trouble_says_what_can_be_done():
    assert 'href="/jobs">Retry</a>' in troubles_html([Trouble("k", "bad", "t", "s", "/jobs", "Retry")], known=True)
