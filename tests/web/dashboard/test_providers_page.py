"""Whether a provider is down, in words."""

from dataclasses import replace

import pytest
from playwright.async_api import expect

from keystead.web.dashboard.messages_failed import Failure
from keystead.web.dashboard.messages_look import ChannelLook
from keystead.web.dashboard.providers_look import Answers, ProviderLook, Trouble
from keystead.web.dashboard.providers_page import (
    calls_html,
    counted_html,
    latency_html,
    provider_html,
    standing,
    troubles_html,
    verdict_html,
    waits_html,
)

NOW = 1_800_000_000.0
QUIET = ChannelLook("sms", (0, 0, 0), 0, 0, 0, 0, None, "closed", 0, False, None)
FINE = ProviderLook("sms", "twilio", replace(QUIET, calls=20), Answers((0.1, 0.2), 0, NOW - 5), ())
DOWN = ProviderLook("push", "sandbox", ChannelLook(
    "push", (0, 3, 0), 2, 1, 1, 0, NOW - 90, "open", 15, False, None, 20), Answers(), (), 2)


def test_the_verdict_names_who_is_down_and_what_is_not_real():
    assert "No provider is down." in verdict_html([FINE]) and "sandbox" not in verdict_html([FINE])
    text = verdict_html([DOWN, FINE])
    assert "A provider is down" in text and "15 of the last 20 calls failed, 5 messages wait" in text
    assert "Push goes to our own" in text and "nothing is delivered" in text
    assert "Providers are down" in verdict_html([DOWN, replace(DOWN, channel="email")])
    refusing = replace(FINE, now=replace(QUIET, calls=2, failed_calls=2))
    assert "A provider may be down. <b>Text</b>: 2 of the last 2 calls failed." in verdict_html([refusing])
    failing = replace(FINE, now=replace(QUIET, calls=20, failed_calls=8))
    assert "No provider is down. <b>Text</b>: answers, with failures" in verdict_html([failing])


def test_the_state_of_the_page():
    assert standing([DOWN, FINE]) == ("1 provider down", "away")
    assert standing([replace(FINE, now=replace(QUIET, calls=2, failed_calls=2))]) == ("Calls fail", "away")
    assert standing([FINE]) == ("Answering", "")
    assert standing([replace(FINE, now=QUIET)]) == ("Not asked lately", "idle")
    assert standing([replace(FINE, now=replace(QUIET, paused=True))]) == ("Needs a look", "warn")


def test_a_card_tells_calls_answers_troubles_and_what_waits():
    assert "15 of the last 20 failed (75.0 %)" in calls_html(DOWN) and "none in the last 5 minutes" in calls_html(
        replace(FINE, now=QUIET))
    assert "<b>200 ms</b>" in latency_html(FINE) and "2 calls of this process" in latency_html(FINE)
    assert "a worker elsewhere may have" in latency_html(replace(FINE, answers=Answers()))
    wrong = replace(FINE, answers=Answers((0.1,), 1, NOW, (Trouble("<503>", 7, NOW - 60),)))
    assert "&lt;503&gt;" in troubles_html(wrong, NOW) and "1 min ago" in troubles_html(wrong, NOW)
    failed = Failure("sms_send", "Text", "failed_due_to_server_error", 4, 9, (("500", 4),))
    assert "server error" in counted_html(replace(FINE, counted=(failed,)))
    assert "no failures today" in counted_html(replace(FINE, counted=(replace(failed, today=0),)))
    waits = waits_html(DOWN, NOW)
    assert "3 messages to send" in waits and "2 to try again" in waits
    assert "1 min 30 s" in waits and "1 overdue" in waits
    whole = provider_html(replace(DOWN, answers=replace(FINE.answers, last_at=NOW - 5)), NOW + 9_000, NOW)
    assert "5 s ago" in whole, "calls by the real clock"
    assert "2 faults switched on in the sandbox" in whole and "Down: the breaker is open" in whole


@pytest.mark.browser
async def test_the_page_shows_every_channel_and_says_that_it_is_the_sandbox(tab):
    await tab.goto("/providers")
    await expect(tab.locator("[data-verdict]")).to_contain_text("nothing is delivered to anybody")
    for name in ("Push", "Text", "Email"):
        await expect(tab.get_by_role("region", name=name)).to_contain_text("our sandbox")
