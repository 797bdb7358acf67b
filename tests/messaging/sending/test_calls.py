"""The last calls of providers, in memory."""

from keystead.keys import Layout
from keystead.messaging.sending.calls import Calls
from keystead.messaging.sending.carrier import Carried, Health
from keystead.patterns import Writes


def carried(health: Health = Health.FINE, **facts: str | int) -> Carried:
    return Carried(Writes(Layout.PLAIN), health, facts=facts)


def test_a_call_is_remembered_with_its_time_and_what_was_wrong():
    calls = Calls()
    calls.note("sms", 10.0, 0.2, [carried(sid="SM1", status="queued")], Health.FINE)
    calls.note("sms", 11.0, 0.3, [carried(failed="application", why="21610", retryable=0)], Health.FINE)
    calls.note("sms", 12.0, 9.0, [carried(Health.FAILED, error="", status=503), carried()], Health.FAILED)
    fine, refused, failed = calls.of("sms")
    assert (fine.why, fine.refused, fine.messages, fine.seconds) == ("", 0, 1, 0.2)
    assert (refused.why, refused.refused, refused.health) == ("application 21610", 1, Health.FINE)
    assert (failed.why, failed.refused, failed.messages) == ("503", 1, 2)


def test_nothing_that_names_a_message_is_kept_and_no_more_than_so_many():
    calls = Calls(kept=3)
    for number in range(10):
        calls.note("email", number, 0.1, [carried(error="MessageRejected", message_id="mid-1")], Health.FINE)
    kept = calls.of("email")
    assert [call.at for call in kept] == [7, 8, 9] and {call.why for call in kept} == {"MessageRejected"}


def test_what_was_not_asked_is_no_call():
    calls = Calls()
    calls.note("push", 1.0, 0.0, [carried(Health.NOT_CALLED)], Health.NOT_CALLED)
    assert calls.of("push") == ()
