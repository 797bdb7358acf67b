"""The pages on messages: what is computed for them, and the pages in a browser."""

from urllib.parse import quote

import pytest
from playwright.async_api import expect

from keystead.app import App
from keystead.clock import SystemClock
from keystead.messaging.links.clicked import ClickedMessages
from keystead.messaging.sms.keys import SENDING
from keystead.messaging.sms.models import OutgoingSms
from keystead.messaging.sms.stats import EVENTS, SENDS
from keystead.messaging.touches import LatestTouch, LatestTouches, PastTouch, QueueInfo, TraceEvent
from keystead.messaging.touches.tables import DEBUG_LOG
from keystead.patterns import DeadLetter
from keystead.reminders.keys import QUEUED
from keystead.settings import load_settings
from keystead.stats import Series
from keystead.web.dashboard.messages import standing
from keystead.web.dashboard.messages_channels import channel_row, state_chips
from keystead.web.dashboard.messages_chart import moved, options
from keystead.web.dashboard.messages_failed import DeadGroup, dead_row, failure_row, failures
from keystead.web.dashboard.messages_funnel import Stage, funnel, funnel_html, share
from keystead.web.dashboard.messages_latest import Choice, latest_row, nothing, said
from keystead.web.dashboard.messages_look import ChannelLook, MessagesLook, is_busy, together
from keystead.web.dashboard.messages_person import days_said, time_said, touch_row
from keystead.web.dashboard.messages_trace import (
    ended,
    fact_html,
    moments,
    now_html,
    shown_after,
    summary,
    timeline_html,
    tone_of,
)
from keystead.web.message_rates import MessageRates, MessageRateSample

HOSTILE = "<script>alert('x')</script>"
NOW = 1_700_000_000.0


def series(name, counts, breakdowns=None, days=7):
    """Days of a family; each count is of the last days, zeros before."""
    def padded(numbers):
        return [0] * (days - len(numbers)) + numbers

    return Series(name, "UTC", 100, 100 + days, [str(day) for day in range(days)],
                  {event: padded(numbers) for event, numbers in counts.items()},
                  {event: {value: padded(numbers) for value, numbers in values.items()}
                   for event, values in (breakdowns or {}).items()}, 100 + days - 2)


def channel(name="sms", **facts):
    given = {"lanes": (0, 0, 0), "retrying": 0, "pending": 0, "overdue": 0, "dead": 0, "oldest_at": None,
             "breaker": "closed", "failed_calls": 0, "paused": False, "paused_seconds": None, **facts}
    return ChannelLook(name, **given)


def look(*channels, pending=None):
    return MessagesLook(channels, QueueInfo(0), pending or QueueInfo(0), QueueInfo(0))


# -- computed ----------------------------------------------------------------------------------------------------------


def test_texts_arrive_when_the_wait_for_them_ended_well():
    counted = {
        "sms_send": series("sms_send", {"queued": [5, 10], "succeeded_pending": [4, 7], "succeeded_immediate": [0, 2]},
                           {"succeeded_immediate": {"sent": [0, 1], "failed": [0, 1]}}),
        "sms_events": series("sms_events", {}, {"removed": {
            "queued:delivered": [3, 5], "queued:undelivered": [1, 1], "sent:sent": [0, 1]}}),
    }
    assert funnel("sms", counted, {}) == [Stage("Queued", 10, 15), Stage("Sent", 9, 13), Stage("Arrived", 7, 10)]


def test_clicks_are_a_step_where_messages_have_links():
    counted = {
        "email_send": series("email_send", {"queued": [8], "accepted": [8]}),
        "email_events": series("email_events", {"succeeded": [7]}, {"succeeded": {"found": [6], "abandoned": [1]}}),
    }
    assert funnel("email", counted, {"email": ClickedMessages(5, 3, 4, 2)})[-2:] == [
        Stage("Arrived", 6, 6), Stage("Clicked", 2, 3)]
    assert funnel("email", counted, {"email": ClickedMessages(0, 0, 0, 0)})[-1].name == "Arrived"


def test_a_bar_is_never_longer_than_the_first():
    assert (share(12, 10), share(5, 10), share(1, 0)) == (1.0, 0.5, None)
    text = funnel_html([Stage("Queued", 0, 200), Stage("Sent", 0, 150)])
    assert "75.0 %" in text and "width:75.0%" in text and "width:0.0%" in text


def test_the_lanes_of_a_cluster_are_told_as_one_channel_with_what_is_worst():
    one = channel(lanes=(1, 2, 3), retrying=1, dead=2, oldest_at=7.0, paused=True, paused_seconds=5.0)
    two = channel(lanes=(10, 20, 30), pending=4, overdue=1, oldest_at=5.0, breaker="open", failed_calls=9, paused=True)
    assert together([one, two]) == channel(
        lanes=(11, 22, 33), retrying=1, pending=4, overdue=1, dead=2, oldest_at=5.0, breaker="open", failed_calls=9,
        paused=True, paused_seconds=None)
    assert together([one, channel()]).paused_seconds == 5.0 and together([one]) is one


def test_the_state_says_the_worst_first():
    assert standing(look(channel())) == ("Nothing waits", "idle")
    assert standing(look(channel(pending=1))) == ("On their way", "")
    assert standing(look(channel(pending=1, dead=2))) == ("2 given up", "warn")
    assert standing(look(channel(dead=1), pending=QueueInfo(3, 1.0, 2))) == ("News is overdue", "warn")
    assert standing(look(channel(paused=True), channel("push"))) == ("Text paused", "warn")
    assert standing(look(channel(breaker="open"), channel("push", paused=True)))[1] == "away"
    assert not is_busy(look(channel())) and is_busy(look(channel(dead=1)))


def test_a_row_tells_lanes_and_what_keeps_the_channel_from_sending():
    row = channel_row(channel(lanes=(1, 2000, 0), overdue=3, pending=4, oldest_at=NOW - 90), None, NOW)
    assert "2,001" in row.cells[1] and "1 high · 2,000 normal" in row.cells[1]
    assert "3 overdue" in row.cells[3] and row.cells[4] == "1 min 30 s"
    assert row.actions[0].name == "pause"
    stopped = channel(paused=True, breaker="probing", dead=2)
    assert channel_row(stopped, None, NOW).actions[0].name == "resume"
    assert all(words in state_chips(stopped) for words in ("paused", "one call tries", "2 given up"))
    resting = channel(paused=True, paused_seconds=61.0)
    assert "rest of 1 min 1 s" in state_chips(resting) and standing(look(resting)) == ("Nothing waits", "idle")


def test_lines_have_gaps_where_nothing_is_known():
    rates = MessageRates({"push": (0, 1, 0), "sms": (0, 2.26, 0), "email": (0, 0, 0)})
    samples = [MessageRateSample(NOW - 400, rates), MessageRateSample(NOW - 2, None), MessageRateSample(NOW - 1, rates)]
    push, sms, email = (line["data"] for line in moved(samples, NOW)["series"])
    assert [value for _, value in sms] == [None, 2.3] and [value for _, value in push] == [None, 1]
    assert len(options(samples, NOW)["series"]) == 3 and len(email) == 2


def test_failures_are_told_by_their_reasons_most_frequent_first():
    found = failures({
        "sms_send": series("sms_send", {"queued": [9], "failed_due_to_server_error": [1, 3], "abandoned": [0, 0]},
                           {"failed_due_to_server_error": {"503": [1, 2], "500": [0, 1], "502": [0, 0]}}),
        "touch_drops": series("touch_drops", {"quiet_hours": [20, 0]}, {"quiet_hours": {HOSTILE: [20, 0]}}),
    })
    assert [(one.about, one.event, one.today, one.yesterday) for one in found] == [
        ("Touch spared", "quiet_hours", 0, 20), ("Text", "failed_due_to_server_error", 3, 1)]
    assert found[1].details == (("503", 3), ("500", 1))
    assert HOSTILE not in failure_row(found[0]).cells[0] and "server error" in failure_row(found[1]).cells[0]


def test_a_group_of_letters_is_escaped_and_can_be_tried_again():
    row = dead_row(DeadGroup("sms:to_send", "x", 1200, HOSTILE, NOW), NOW)
    assert HOSTILE not in row.cells[0] and "1,200" in row.cells[1] and row.actions[0].name == "replay"


def test_a_person_is_told_in_words():
    assert (time_said(0), time_said(21_600), time_said(90_000)) == ("00:00", "06:00", "01:00 of the next day")
    assert (days_said(127), days_said(0b1000001), days_said(0)) == ("every day", "Sun, Sat", "never")
    row = touch_row(PastTouch("tch_1&x", NOW, HOSTILE, "sms", "failed", {"body": HOSTILE}, [HOSTILE], [], HOSTILE), NOW)
    assert HOSTILE not in "".join(row.cells) and "uid=tch_1%26x" in row.cells[0]


def test_the_latest_messages_are_told_by_subs_and_lead_to_lives_and_people():
    touch = LatestTouch("tch_1&x", NOW - 90, f"user_{HOSTILE}", HOSTILE, "sms", "failed", f"Net_{HOSTILE}", NOW - 3)
    cells = "".join(latest_row(touch, NOW).cells)
    assert HOSTILE not in cells and "uid=tch_1%26x" in cells and f"/people/{quote('user_' + HOSTILE, safe='')}" in cells
    assert "1 min 30 s ago" in cells and "3 s ago" in latest_row(touch, NOW, failed=True).cells[-1]
    unreachable = LatestTouch("tch_2", NOW, "user_1", "hello", "push", "unreachable")
    assert "no address" in latest_row(unreachable, NOW).cells[3]


def test_a_choice_of_latest_messages_says_what_it_shows():
    some = LatestTouches([], 7)
    assert (Choice().more, Choice(most=200).more) == (50, None)
    assert nothing(Choice(), LatestTouches([])) == "No messages were sent yet."
    assert nothing(Choice("sms", failed=True), LatestTouches([])) == "No text messages failed."
    assert "among the latest failures" in nothing(Choice("sms", failed=True), some)
    assert "the database" in said(Choice(), False, "the database is away") and "still" in said(Choice(), True, None)
    assert said(Choice(failed=True), False, None) != said(Choice(), False, None)


def life():
    return [
        TraceEvent(NOW, "tch_1", "step", "queued", {"event": "hello", "lane": "high"}),
        TraceEvent(NOW, "tch_1", "count", "touch_send.queued"),
        TraceEvent(NOW + 0.02, "tch_1", "step", "reachable", {"messages": "sms_1,sms_2"}),
        TraceEvent(NOW + 2, "sms_1", "step", "asked the provider", {"ms": 11, "status": HOSTILE}),
        TraceEvent(NOW + 90, "tch_1", "step", "destination reached", {"message": "sms_1"}),
        TraceEvent(NOW + 90, "tch_1", "row", "user_touches", {"uid": "tch_r_1"}),
    ]


def test_a_life_is_told_with_the_time_between_its_steps():
    found = moments(life())
    assert [one.what for one in found] == [
        "queued", "reachable", "asked the provider", "destination reached", "user_touches"]
    assert found[0].counted == ["touch_send.queued"]
    assert [shown_after(one.after) for one in found] == ["", "+20 ms", "+2.0 s", "+1 min 28 s", "+0 ms"]
    assert "1 call of a provider" in summary(found) and "Nothing is known" in summary([])
    text = timeline_html(found, "tch_1")
    assert HOSTILE not in text and "/messages/trace?uid=sms_2" in text and "trace?uid=tch_r_1" not in text
    assert "trace?uid=tch_1" not in text, "the page does not lead to itself"


def test_the_end_of_a_life_is_told_unless_it_goes_on():
    assert ended(life()) == ("It arrived.", "good")
    assert ended([TraceEvent(NOW, "tch_1", "row", "user_touch_debug_log: send_abandon")])[1] == "bad"
    assert "waits nowhere" in ended(life()[:2])[0]
    here = now_html([*life(), TraceEvent(None, "sms_1", "now", "waits in sms:to_send", {"channel": "sms"})], "tch_1")
    assert "waits in sms:to_send" in here and "arrived" not in here


@pytest.mark.parametrize(("what", "facts", "tone"), [
    ("queued", {}, ""), ("destination reached", {}, "good"), ("news", {"status": "delivered"}, "good"),
    ("news", {"status": "undelivered"}, "bad"), ("retried", {"retry": 1}, "warn"), ("send_retry", {}, "warn"),
    ("send_unretryable", {}, "bad"), ("receipt", {"failed": "DeviceNotRegistered"}, "bad"),
    ("receipt", {"told": "Delivery"}, "good"), ("abandoned", {}, "bad"),
])
def test_steps_have_the_colour_of_what_they_mean(what, facts, tone):
    assert tone_of(what, facts) == tone


def test_only_uids_lead_somewhere():
    assert fact_html(["sms_1", "plain"]) == (
        '<a class="ks-link" href="/messages/trace?uid=sms_1">sms_1</a>, plain')
    assert fact_html(f"em_{HOSTILE}").count("<script>") == 0


# -- in a browser ------------------------------------------------------------------------------------------------------


def text_to(number, body="hello", lane="normal"):
    from keystead.jobs import JobRef

    now = SystemClock().now()
    return OutgoingSms(uid=f"sms_{number}", initially_queued_at=now, last_queued_at=now, phone_number=f"+1555{number}",
                       body=body, failure_job=JobRef("no.such"), success_job=JobRef("no.such"), lane=lane)


async def count_texts(store):
    now = SystemClock().now()
    await SENDS.tally(now).incr("queued", None, 40, at=now).incr("succeeded_pending", "queued", 30, at=now).incr(
        "failed_due_to_server_error", "503", 6, at=now).store(store)
    await EVENTS.tally(now).incr("removed", "queued:delivered", 20, at=now).store(store)


@pytest.mark.browser
async def test_what_became_of_messages_appears_by_itself(page, site, store):
    async with site.app.running() as running, running.database.transaction() as sql:
        await sql.execute(DEBUG_LOG.delete())  # what other tests sent is remembered there
    await page.get_by_role("navigation", name="Pages").get_by_role("link", name="Messages", exact=True).click()
    await expect(page.locator(".ks-first")).to_contain_text("Nothing has been sent yet")
    await count_texts(store)
    funnel_card = page.get_by_label("Text funnel")
    await expect(funnel_card.locator(".ms-stage").nth(2)).to_contain_text("50.0 %")
    await expect(page.locator(".ks-first")).to_be_hidden()
    await expect(page.get_by_label("Failures")).to_contain_text("server error")
    await expect(page.get_by_label("Given up")).to_contain_text("Nothing was given up")
    for width in (390, 768, 1280):
        await page.set_viewport_size({"width": width, "height": 900})
        assert await page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, width


@pytest.mark.browser
async def test_a_channel_is_paused_after_a_question_and_resumed(page, store):
    await count_texts(store)
    await page.goto("/messages")
    channels = page.get_by_label("Channels", exact=True)
    await channels.get_by_role("button", name="Pause sms").click()
    await expect(page.get_by_role("alertdialog")).to_contain_text("Pause text messages?")
    await page.get_by_role("button", name="Keep as it is").click()
    assert not await SENDING.paused_key.at().exists(store)
    await channels.get_by_role("button", name="Pause sms").click()
    await page.get_by_role("alertdialog").get_by_role("button", name="Pause sms").click()
    await expect(page.locator(".ks-state")).to_have_text("Text paused")
    assert await SENDING.paused_key.at().exists(store)
    for number, lane in enumerate(("high", "normal", "normal")):
        await SENDING.waiting(lane).push_right(store, text_to(number, lane=lane))
    await expect(channels).to_contain_text("1 high · 2 normal")
    await channels.get_by_role("button", name="Resume sms").click()
    await expect(channels.get_by_role("button", name="Pause sms")).to_be_visible()
    assert not await SENDING.paused_key.at().exists(store)


@pytest.mark.browser
async def test_letters_that_were_given_up_are_tried_again_by_reason(page, store):
    await SENDING.pause(store)
    work = SENDING.work
    encode = work.queue_key.codec.encode
    for number, error in enumerate(("no such number", "no such number", HOSTILE)):
        letter = DeadLetter(encode(text_to(number)), error, SystemClock().now(), 3)
        await work.dead.push_right(store, letter)
    await page.goto("/messages")
    card = page.get_by_label("Given up")
    await expect(card.locator("tbody tr")).to_have_count(2)
    await expect(card).to_contain_text(HOSTILE)
    await card.get_by_role("button", name="Try 2 of sms:to_send again").click()
    await page.get_by_role("alertdialog").get_by_role("button", name="Try 2 letters").click()
    await expect(card.locator("tbody tr")).to_have_count(1)
    assert (await work.length(store), await work.dead.length(store)) == (2, 1)
    await QUEUED.dead.push_right(store, DeadLetter(b"this is no reminder", "does not decode", SystemClock().now()))
    await expect(card.get_by_role("button", name="Try 1 of daily_reminders:queued again")).to_be_visible()


@pytest.mark.browser
async def test_the_latest_messages_appear_by_themselves_and_lead_on(tab, site):
    async with site.app.running() as running:
        board = running.switchboard
        await board.points.ensure_built_in()
        ben = await running.users.ensure("test", "ben of the latest")
        await board.contacts.add_email(ben.sub, "ben@latest.example", verified=True)
        await tab.goto("/messages")
        given = {"name": HOSTILE, "url": "https://x.example/l/abc", "unsubscribe_url": "https://x.example/l/u"}
        sent = {channel: await board.touches.send(ben.sub, "daily_reminder", channel=channel, lane="high",
                                                  parameters=given) for channel in ("email", "push")}
    card = tab.get_by_label("Latest messages")
    email, push = (card.locator("tr", has=tab.locator(f'a[href$="uid={uid}"]')) for uid in sent.values())
    await expect(email).to_contain_text("arrived")
    await expect(push).to_contain_text("no address")
    await card.get_by_role("button", name="Failed").click()
    await expect(email).to_have_count(0)
    await expect(push).to_be_visible()
    await card.get_by_role("group", name="Channel").get_by_role("button", name="Email").click()
    await expect(push).to_have_count(0)
    await card.get_by_role("group", name="Outcome").get_by_role("button", name="All").click()
    await expect(email).not_to_contain_text("@")
    for width in (390, 1280):
        await tab.set_viewport_size({"width": width, "height": 900})
        assert await tab.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, width
    await email.hover()
    await expect(card).to_contain_text("Holds still")
    await email.get_by_role("link", name=ben.sub).click()
    await expect(tab.get_by_label("History")).to_contain_text("daily_reminder")


@pytest.mark.browser
async def test_a_person_is_found_and_their_messages_lead_to_their_lives(page, site):
    settings = load_settings({"valkey.url": site.valkey_url}, environment={})
    async with App(settings).running() as running:
        board = running.switchboard
        ada = await running.users.ensure("test", "ada of messages", given_name=f"Ada {HOSTILE}")
        await board.contacts.add_email(ada.sub, "ada@messages.example", verified=True)
        await board.contacts.add_phone(ada.sub, "+14155550177")
        await board.points.ensure_built_in()
        [uid] = await board.messaging.touch(ada.sub, "daily_reminder", channel="email", lane="high", parameters={
            "name": HOSTILE, "url": "https://x.example/l/abc", "unsubscribe_url": "https://x.example/l/u"})
    await page.goto("/messages")
    await page.get_by_label("Find a person or a message").fill("Ada@messages.example")
    await page.get_by_role("button", name="Find").click()
    await expect(page.locator("h1")).to_have_text(f"Ada {HOSTILE}")
    addresses = page.get_by_label("Addresses", exact=True)
    await expect(addresses).to_contain_text("not verified")
    await expect(addresses).to_contain_text("ad•••@messages.example")
    await page.get_by_role("button", name="Reveal addresses").click()
    await expect(addresses).to_contain_text("ada@messages.example")
    await page.get_by_label("History").get_by_role("link", name="daily_reminder").first.click()
    await expect(page.locator("h1")).to_have_text(uid)
    await expect(page.get_by_label("Its life")).to_contain_text("touch_send.queued")
    await expect(page.get_by_label("Where it is now")).to_contain_text("arrived")
    await expect(page.get_by_label("Its life")).to_contain_text("destination reached")
    await page.get_by_label("Find a person or a message").fill("nobody@messages.example")
    await page.get_by_role("button", name="Find").click()
    await expect(page.locator("h1")).to_have_text("Nobody is found")
    await page.goto("/messages/trace?uid=" + quote(f"tch_{HOSTILE}"))
    await expect(page.get_by_text("Nothing is known of it, or not any more:")).to_be_visible()
