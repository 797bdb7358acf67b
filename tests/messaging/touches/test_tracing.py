"""The whole life of one touch."""

from keystead.messaging.sms.keys import SENDING
from keystead.messaging.touches.keys import TO_SEND
from keystead.messaging.touches.tracing import Tracer

from .room import Room, on_sqlite

pytestmark = on_sqlite


def now(events) -> list[str]:
    return [event.what for event in events if event.source == "now"]


async def test_a_touch_is_followed_from_queue_to_end(wide_room: Room):
    room = wide_room
    tracer = Tracer(room.valkey, room.database, room.outlets)
    await room.point()
    await room.person("ada", phones=["+15005550001"])
    uid = await room.send("ada")
    assert now(await tracer.trace(uid)) == ["waits in the queue"]
    await room.dispatcher.run()
    (sms,) = await room.texts()
    waits = await tracer.trace(uid)
    assert "waits for news" in now(waits) and "waits in the queue" in now(waits)
    assert "a row of user_touch_debug_log waits to be written" in now(waits)
    (message,) = [event for event in waits if event.what == "waits in the queue"]
    assert message.about == sms.uid and message.facts == {"channel": "sms"}
    await room.fail(sms, retryable=True)
    await SENDING.waiting().delete(room.valkey)
    assert any(what.startswith("waits for another try in sms:retry") for what in now(await tracer.trace(uid)))
    await room.succeed(sms)
    await room.log_job.run()
    events = await tracer.trace(uid)
    steps = [event.what for event in events if event.source == "step" and event.about == uid]
    assert steps == ["queued", "reachable", "send_retry", "destination reached", "ended"]
    assert [event.what for event in events if event.source == "count"] == [
        "touch_send.queued", "touch_send.attempted", "touch_send.reachable"]
    rows = [event.what for event in events if event.source == "row"]
    assert "user_touches" in rows and "user_touch_debug_log: send_success" in rows
    assert "+15005550001" not in str(events), "no address is shown"


async def test_taken_dead_and_unknown(room: Room):
    tracer = Tracer(room.valkey, room.database, room.outlets)
    assert await tracer.trace("tch_nobody") == []
    uid = await room.send("ada")
    worker = TO_SEND.worker("w")
    (item,) = (await worker.take(room.valkey, 1, now=1.0)).items
    assert now(await tracer.trace(uid)) == ["taken by a worker"]
    await worker.bury(room.valkey, [item], error="it was too much", now=1.0)
    assert now(await tracer.trace(uid)) == ["dead: it was too much"]


async def test_a_drop_says_why_it_was_counted(room: Room):
    await room.point()
    await room.person("ada", phones=["+15005550001"])
    await room.send("ada")
    uid = await room.send("ada")
    await room.dispatcher.run()
    events = await Tracer(room.valkey, room.database, room.outlets).trace(uid)
    counted = [event.what for event in events if event.source == "count"]
    assert "touch_drops.same_content" in counted and "touch_send.unreachable" in counted
    assert [event.what for event in events if event.source == "job"] == []
