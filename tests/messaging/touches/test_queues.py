"""What waits, since when, and how the jobs last ran."""

from keystead.messaging.touches.keys import TO_LOG, TO_SEND
from keystead.messaging.touches.queues import RUNS, QueueInfo, Queues
from keystead.messaging.touches.stale import STALE_SECONDS

from .room import NOON, Room, on_sqlite

pytestmark = on_sqlite


async def test_queues_say_how_much_waits_and_since_when(wide_room: Room):
    room, queues = wide_room, Queues(wide_room.valkey, wide_room.clock)
    assert await queues.to_send() == await queues.to_log() == await queues.pending() == QueueInfo(0)
    await room.point()
    await room.person("ada", phones=["+15005550001"])
    await room.send("ada")
    room.clock.advance(5)
    await room.send("ada")
    assert await queues.to_send() == QueueInfo(2, NOON)
    await room.dispatcher.run()
    assert await queues.to_log() == QueueInfo(4, NOON + 5)
    assert await queues.pending() == QueueInfo(1, NOON + 5)
    room.clock.advance(STALE_SECONDS + 1)
    assert (await queues.pending()).overdue == 1


async def test_an_oldest_element_that_does_not_decode_is_no_error(room: Room):
    await TO_SEND.push_raw(room.valkey, b"nonsense")
    await TO_LOG.push_raw(room.valkey, b"nonsense")
    queues = Queues(room.valkey, room.clock)
    assert await queues.to_send() == await queues.to_log() == QueueInfo(1)


async def test_runs_are_shown_with_what_workers_hold(room: Room):
    queues = Queues(room.valkey, room.clock)
    await room.send("ada")
    await TO_SEND.worker("w").take(room.valkey, 1, now=NOON)
    await room.log_job.run()
    shown = {name: await queues.last_run(name) for name in RUNS}
    assert shown["last_send_job"] == {"in_purgatory": 1}
    assert shown["last_log_job"]["stop_reason"] == "list_exhausted" and shown["last_stale_detection_job"] == {}
