"""Wire values: yesterday's can be read today."""

import msgspec

from keystead.messaging.sending import Lane, TraceEntry, lane_of


def test_a_kept_step_of_a_trace_is_read():
    kept = b'{"what":"queued","at":1700000000.5,"facts":{"lane":"high","ms":12},"later":"unknown"}'
    assert msgspec.json.decode(kept, type=TraceEntry) == TraceEntry("queued", 1700000000.5, {"lane": "high", "ms": 12})


def test_a_lane_that_is_none_is_the_normal_one():
    assert [lane_of(name) for name in ("high", "normal", "low", "", "express")] == [
        Lane.HIGH, Lane.NORMAL, Lane.LOW, Lane.NORMAL, Lane.NORMAL
    ]
