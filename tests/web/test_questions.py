"""The ten questions of docs/questions.md, each answered from the overview in at most three clicks, or one search.

A whole installation with planted facts, and a real browser that does what the page says and nothing else.
"""

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from keystead.app import App, Running
from keystead.jobs import FairJobs, Jobs
from keystead.messaging.sms.keys import OWNER
from keystead.messaging.sms.keys import SENDING as SMS
from keystead.messaging.touches.keys import DAY_COUNT
from keystead.messaging.touches.stats import SENDS as TOUCHES
from keystead.reminders.effective import TimeRange
from keystead.settings import load_settings
from keystead.stats.jobs import ROTATE

from ..browser import FLAGS, MISSING, find_browser
from .dashboard.conftest import _PROGRAM, Site
from .jobs_at_hand import bury, greet, jobs_on

pytestmark = pytest.mark.xdist_group("site")
in_the_browser = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

MOST_CLICKS, MOST_SEARCHES = 3, 1
PATIENCE_MS = 60_000
DAY = 86_400.0
SILENT, WRITTEN, LEAVING = "+14155550101", "+14155550102", "+14155550103"
QUESTIONS = Path(__file__).parents[2] / "docs" / "questions.md"


class Operator:
    """Somebody at the dashboard who counts what they do."""

    def __init__(self, page) -> None:
        self.page, self.clicks, self.searches = page, 0, 0

    async def start(self) -> None:
        await self.page.goto("/")
        await self.page.wait_for_selector("main")

    async def click(self, role: str, name: str | re.Pattern[str], within=None, *, exact: bool = False) -> None:
        self.clicks += 1
        await (within or self.page).get_by_role(role, name=name, exact=exact).first.click()

    async def menu(self, name: str) -> None:
        await self.click("link", name, self.page.get_by_role("navigation", name="Pages"), exact=True)
        await self.page.wait_for_url(lambda url: not url.endswith("/"))

    async def search(self, text: str) -> None:
        self.searches += 1
        await self.page.keyboard.press("/")
        await self.page.keyboard.type(text)
        await self.page.keyboard.press("Enter")
        await self.page.wait_for_url(lambda url: not url.endswith("/"))

    def region(self, name: str):
        return self.page.get_by_role("region", name=name, exact=True)


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A whole installation in a process of its own."""
    directory = tmp_path_factory.mktemp("questions") / "data"
    log = directory.with_name("log")
    with log.open("w") as errors, subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(directory)], stdout=subprocess.PIPE, stderr=errors, text=True
    ) as process:
        try:
            url = process.stdout.readline().strip()
            assert url, log.read_text()
            yield Site(url, directory)
        finally:
            process.terminate()
            process.wait(60)
    assert "Traceback" not in log.read_text()


@dataclass
class Planted:
    """What was put there."""

    silent: str
    written: str
    leaving: str


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def running(house) -> AsyncIterator[Running]:
    """The same installation as the one that is looked at."""
    app = App(load_settings({"valkey.url": house.valkey_url}, environment={}))
    async with app.running() as found:
        yield found


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def planted(running) -> Planted:
    board, valkey, now = running.switchboard, running.valkey, running.clock.now()
    people = []
    for name, number in (("Silent", SILENT), ("Written", WRITTEN), ("Leaving", LEAVING)):
        person = await running.users.ensure("test", name, given_name=name, timezone="Europe/Berlin")
        await board.contacts.add_phone(person.sub, number, verified=True)
        people.append(person.sub)
    await board.reminders.update(people[0], mask=0, time_range=TimeRange("morning"), channel="all")
    for number in range(60):  # heavier than everything else
        await OWNER.at(f"SM{number:032x}").set(valkey, "x" * 20_000)
    await DAY_COUNT.at(people[2], "sms", 20_000).increment(valkey)
    for number in range(3):
        await jobs_on(valkey).enqueue(greet, name=str(number))
    await bury(valkey, "KeyError: 'price'", most=3, now=now)
    fair = FairJobs(Jobs(valkey, clock=running.clock))
    for tenant, many in (("loud-imports", 60), ("quiet-shop", 3), ("other-shop", 2)):
        await asyncio.gather(*(fair.enqueue(tenant, "nobody.runs_this", {}, delay_seconds=3600) for _ in range(many)))
    await TOUCHES.incr(valkey, "attempted", "daily_reminder:sms", at=now - 6 * DAY)
    return Planted(*people)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def window(house) -> AsyncIterator:
    program = find_browser()
    if program is None:
        pytest.skip(MISSING)
    from playwright.async_api import async_playwright, expect

    expect.set_options(timeout=PATIENCE_MS)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=program, args=[flag for flag in FLAGS if flag != "--headless"]
        )
        context = await browser.new_context(viewport={"width": 1280, "height": 900}, base_url=house.url)
        context.set_default_timeout(PATIENCE_MS)
        await context.add_cookies([house.session_cookie()])
        yield context
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def operator(window, planted) -> AsyncIterator[Operator]:
    """On the overview; fails the test for more clicks or searches than a question may take."""
    page = await window.new_page()
    found = Operator(page)
    await found.start()
    yield found
    await page.close()
    assert found.clicks <= MOST_CLICKS and found.searches <= MOST_SEARCHES
    assert found.clicks + found.searches


def question(test):
    """A test that a browser does."""
    for mark in in_the_browser:
        test = mark(test)
    return test


def sees(locator) -> Callable[[str | re.Pattern[str]], Awaitable[None]]:
    from playwright.async_api import expect

    return expect(locator).to_contain_text


@question
async def test_1_which_pattern_uses_most_memory(operator):
    await operator.menu("Keys")
    await sees(operator.region("Memory by pattern").locator("li, tr").first)(OWNER.pattern)


@question
async def test_2_what_is_this_key(operator):
    await operator.search("sms:owner:SM00000000000000000000000000000001")
    await sees(operator.page.locator("main.ks-page"))(OWNER.purpose)


@question
async def test_3_why_did_this_person_get_no_reminder(operator, planted):
    await operator.search(planted.silent)
    await sees(operator.region("Reminder"))("settings say no reminders")


@question
async def test_4_which_jobs_fail_and_why_and_retry_them(operator):
    await operator.menu("Jobs")
    failed = operator.region("Failed jobs")
    await sees(failed)("KeyError: 'price'")
    await sees(failed)("shop.greet")
    await operator.click("button", re.compile("^Retry 3 of"), failed)
    await sees(operator.page.locator(".ks-told"))("3 jobs queued again")


@question
async def test_5_who_is_the_noisy_tenant_and_pause_it(operator):
    await operator.menu("Tenants")
    await sees(operator.page.locator("[data-noisy]"))(re.compile("loud-imports is the noisy one"))
    await operator.click("button", "Pause loud-imports", operator.region("Tenants"))
    await operator.click("button", "Pause loud-imports", operator.page.get_by_role("alertdialog"))
    await sees(operator.page.locator(".ks-told"))("loud-imports is paused")
    await sees(operator.region("Tenants").locator("tr", has_text="loud-imports"))("paused")


@question
async def test_6_what_did_we_send_to_this_number(operator, running, planted):
    await running.switchboard.messaging.touch(
        planted.written, "daily_reminder", channel="sms", lane="high",
        parameters={"name": "Written", "time_of_day": "morning", "url": "app.example.com/a/abc"})
    await operator.search(WRITTEN)
    history = operator.region("History")
    await sees(history)("daily_reminder")
    await sees(history)("app.example.com/a/abc")


@question
async def test_7_did_yesterday_rotate(operator, running):
    await operator.menu("Statistics")
    line = operator.page.locator("[data-rotated]")
    await sees(line)(re.compile("Yesterday did not rotate.*touch_send"))
    rotate = running.book.get(ROTATE)
    assert rotate is not None
    await rotate.function()
    await sees(line)(re.compile(r"Yesterday rotated.*[1-9]\d* rows? of \d+ famil.*nothing is late.*last ran"))


@question
async def test_8_which_keys_hold_their_personal_data_and_erase_them(operator, running, planted):
    await operator.search(planted.leaving)
    data = operator.region("Personal data")
    await sees(data)(DAY_COUNT.pattern)
    await operator.click("button", "Erase this person", data)
    question = operator.page.get_by_role("alertdialog")
    await sees(question)(DAY_COUNT.pattern)
    await operator.click("button", "Erase for good", question)
    await sees(data)("Receipt")
    assert planted.leaving not in await data.locator("[data-receipt]").inner_text()
    assert await running.users.created_at(planted.leaving) is None
    assert await DAY_COUNT.at(planted.leaving, "sms", 20_000).get(running.valkey) is None


@question
async def test_9_is_a_provider_down(operator, running):
    breaker = SMS.breaker.at()
    for _ in range(20):
        permit = await breaker.ask(running.valkey, now=running.clock.now())
        await breaker.record(running.valkey, permit, went_well=False, now=running.clock.now())
    await operator.menu("Providers")
    await sees(operator.page.locator("[data-verdict]"))(re.compile("A provider is down. Text: .* of the last"))
    await sees(operator.page.locator("[data-verdict]"))("sandbox")
    await sees(operator.region("Text"))("Down: the breaker is open")
    await sees(operator.region("Push"))("Not asked lately")


@question
async def test_10_what_changed_in_the_keyspace_in_the_last_hour(operator, running):
    await running.valkey.mset({f"legacy:cart:{number}": "x" * 100 for number in range(120)})
    await operator.menu("Changes")
    await operator.click("button", "Count again")
    await sees(operator.page.locator("[data-verdict]"))("keys that nobody declares")
    await sees(operator.region("Not declared"))("legacy:cart:{cart_id}")
    await sees(operator.region("Changed patterns"))(OWNER.pattern)


def test_the_page_of_questions_names_them_all():
    text = QUESTIONS.read_text(encoding="utf-8")
    headings = re.findall(r"^## (\d+)\. ", text, flags=re.MULTILINE)
    assert headings == [str(number) for number in range(1, 11)]
    for address in ("/keys", "/key", "/people", "/jobs", "/tenants", "/stats", "/providers", "/changes"):
        assert f"`{address}" in text, address


@question
async def test_who_may_only_read_messages_is_not_shown_people(house, window, planted):
    """Not one of the ten: the way to erase is as guarded as over HTTP."""
    from keystead.web.callers import TOKEN_PURPOSE

    token = house.app.tickets().issue(TOKEN_PURPOSE, "reader", lasts_seconds=600, scopes=["messaging"])
    context = await window.browser.new_context(
        base_url=house.url, extra_http_headers={"Authorization": f"Bearer {token}"})
    try:
        page = await context.new_page()
        answer = await page.goto(f"/people/{planted.silent}")
        assert answer.status == 403
        assert planted.silent not in await page.inner_text("body")
    finally:
        await context.close()
