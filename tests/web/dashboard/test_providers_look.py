"""How providers are doing, from calls in memory and what the breaker judges by."""

from dataclasses import replace

from keystead.messaging.sending import Call, Health
from keystead.web.dashboard.messages_look import ChannelLook
from keystead.web.dashboard.providers_look import Answers, ProviderLook, answers

NOW = 1_800_000_000.0
QUIET = ChannelLook("sms", (0, 0, 0), 0, 0, 0, 0, None, "closed", 0, False, None)
SMS = ProviderLook("sms", "twilio", QUIET, Answers(), ())


def test_calls_of_the_last_hour_are_summed_up_by_what_was_wrong():
    made = [
        Call(NOW - 4000, 9.0, 1, Health.FAILED, 1, "old"), Call(NOW - 50, 0.1, 1, Health.FINE),
        Call(NOW - 40, 0.3, 2, Health.FINE, 1, "application 21610"), Call(NOW - 30, 0.2, 1, Health.FAILED, 1, "503"),
        Call(NOW - 20, 0.4, 1, Health.FAILED, 1, "503"),
    ]
    found = answers(made, NOW)
    assert found.seconds == (0.1, 0.3, 0.2, 0.4) and found.failed == 2 and found.last_at == NOW - 20
    assert [(each.why, each.count, each.last_at) for each in found.troubles] == [
        ("503", 2, NOW - 20), ("application 21610", 1, NOW - 40)]
    assert found.within(0.5) == 0.3 and found.within(0.95) == 0.4 and Answers().within(0.5) is None


def test_the_state_is_the_worst_that_holds():
    def state(**facts: object) -> str:
        return replace(SMS, now=replace(QUIET, **facts)).state

    assert state() == "idle" and state(calls=20) == "answering"
    assert state(calls=20, failed_calls=4) == "failing" and state(calls=20, failed_calls=3) == "answering"
    assert state(calls=2, failed_calls=2) == "refusing"
    assert state(paused=True) == "paused" and state(paused=True, paused_seconds=3.0) == "resting"
    assert state(breaker="open", paused=True) == "down" and state(breaker="probing") == "probing"
