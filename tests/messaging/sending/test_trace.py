"""The life of a message, step by step."""

from keystead.messaging.sending import TraceEntry, trace, traced
from keystead.messaging.sending.keys import TRACE


async def test_steps_are_noted_in_order_and_forgotten_in_time(server):
    async with server.pipeline(transaction=False) as pipeline:
        trace(pipeline, "sms_1", "queued", 10.0, kept_seconds=60, lane="high")
        trace(pipeline, "sms_1", "settled", 11.0, kept_seconds=60)
        await pipeline.execute()
    assert await traced(server, "sms_1") == [TraceEntry("queued", 10.0, {"lane": "high"}), TraceEntry("settled", 11.0)]
    assert 0 < await TRACE.at("sms_1").remaining_seconds(server) <= 60


async def test_no_trace_is_kept_where_none_is_wanted(server):
    async with server.pipeline(transaction=False) as pipeline:
        trace(pipeline, "sms_1", "queued", 10.0, kept_seconds=0)
        await pipeline.execute()
    assert await traced(server, "sms_1") == []
