"""The keys that the channels share."""

from keystead.messaging.sending.keys import SENDING, TRACE


def test_a_trace_ends_by_itself_and_holds_nothing_personal():
    assert TRACE.ttl.describe() == "at most 7 d"
    assert TRACE.personal is False or not TRACE.personal
    assert TRACE in list(SENDING)
