"""Tickets that became dead letters: whoever sent the message is told, once."""

from keystead.messaging.push.keys import HOT
from keystead.messaging.push.stats import RECEIPTS

from .room import Room


async def given_up(room: Room, *, times: int = 3) -> None:
    """A ticket whose worker died with it too often."""
    await room.queue(uid="pma_1")
    await room.send()
    room.clock.advance(900)
    await room.move()
    for life in range(times):
        worker = HOT.worker(f"dying{life}")
        await worker.take(room.valkey, 10, now=room.clock.now())
        await HOT.alive_key.at(f"dying{life}").lower_flag(room.valkey)
        await HOT.adopt(room.valkey, now=room.clock.now())


async def test_a_ticket_that_is_a_dead_letter_ends_its_message_once(server):
    room = Room(server)
    await given_up(room)
    assert await HOT.dead.length(server) == 1 and await room.jobs() == []
    for _ in range(2):
        await room.move()
    await room.run_jobs()
    ((failure, settled),) = room.failed
    assert failure.attempt.uid == "pma_1" and settled.is_over and not failure.failure_info.retryable
    assert await room.counted(RECEIPTS) == {"failed_due_to_internal_error": 1}
    assert await HOT.dead.length(server) == 1, "it can still be looked at"
    await room.check_all()


async def test_a_ticket_that_is_tried_again_by_hand_tells_nobody_a_second_time(valkey):
    room = Room(valkey)
    await given_up(room)
    await room.move()
    await room.run_jobs()
    assert await HOT.replay(valkey, 10) == 1
    await room.check()
    await room.run_jobs()
    assert room.succeeded == [] and len(room.failed) == 1
    assert await room.places() == {} and await room.counted(RECEIPTS) == {"failed_due_to_internal_error": 1}
    await room.check_all()


async def test_a_dead_letter_that_cannot_be_read_holds_up_nobody(valkey):
    room = Room(valkey)
    await HOT.push_raw(valkey, b"no ticket")
    await room.check()
    assert await HOT.dead.length(valkey) == 1
    await given_up(room)
    await room.move()
    await room.run_jobs()
    assert [failure.attempt.uid for failure, _ in room.failed] == ["pma_1"]
    assert await HOT.dead.length(valkey) == 2
