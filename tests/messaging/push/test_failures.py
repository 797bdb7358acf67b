"""Push messages that fail: retried, checked again, given up; whatever is asked twice is done once."""

import pytest

from keystead.messaging.push import Settled
from keystead.messaging.push.models import FailureInfo, Identifier, PushTicket
from keystead.messaging.push.stats import RECEIPTS, TICKETS

from .room import TOKEN, Room

AWAY = FailureInfo("send", Identifier.SERVER, True)


async def test_four_sends_and_then_it_is_given_up(server):
    room = Room(server)
    await room.queue(uid="pma_1")
    room.provider.answers.extend([AWAY] * 4)
    for _ in range(4):
        await room.send()
        await room.run_jobs(times=2)
        await room.check_all()
        room.clock.advance(600)
    assert room.provider.sent == ["pma_1"] * 4
    assert [settled for _, settled in room.failed] == [Settled.RETRIED] * 6 + [Settled.ABANDONED] * 2
    assert await room.counted(TICKETS) == {
        "queued": 1, "retried": 3, "abandoned": 1, "failed_due_to_server_error": 4,
    }
    assert await room.places() == {}


async def test_a_message_that_is_too_old_is_not_sent_again(valkey):
    room = Room(valkey)
    await room.queue(uid="pma_1")
    room.provider.answers.append(AWAY)
    room.clock.advance(12 * 3600 + 1)
    await room.send()
    await room.run_jobs()
    assert [settled for _, settled in room.failed] == [Settled.ABANDONED]
    assert await room.places() == {}


async def test_the_pause_that_the_provider_asks_for_is_kept(valkey):
    room = Room(valkey)
    await room.queue(uid="pma_1")
    room.provider.answers.append(FailureInfo("send", Identifier.CLIENT_429, True, retry_after_seconds=500))
    await room.send()
    await room.run_jobs()
    room.clock.advance(499)
    await room.send()
    assert room.provider.sent == ["pma_1"]
    room.clock.advance(31)
    await valkey.delete("push:paused")
    await room.send()
    assert room.provider.sent == ["pma_1"] * 2


async def test_a_receipt_is_asked_for_after_15_30_60_and_120_minutes_and_then_given_up(server):
    room = Room(server)
    await room.queue(uid="pma_1")
    await room.send()
    room.provider.fates[TOKEN] = None
    asked_at, minute = [], 0
    while minute < 130:
        room.clock.advance(60)
        minute += 1
        if await room.move():
            await room.check()
            await room.run_jobs(times=2)
            await room.check_all()
            asked_at.append(minute)
    assert asked_at == [15, 30, 60, 120]
    assert [settled for _, settled in room.failed] == [Settled.RETRIED] * 6 + [Settled.ABANDONED] * 2
    assert await room.counted(RECEIPTS) == {"failed_due_to_not_ready_yet": 4, "retried": 3, "abandoned": 1}
    assert await room.places() == {}


async def test_a_receipt_is_not_asked_for_after_a_day(valkey):
    room = Room(valkey)
    await room.queue(uid="pma_1")
    await room.send()
    room.provider.fates[TOKEN] = None
    room.clock.advance(86_401)
    await room.move()
    await room.check()
    await room.run_jobs()
    assert [settled for _, settled in room.failed] == [Settled.ABANDONED]


async def test_a_message_that_the_device_refuses_again_and_again_is_given_up(valkey):
    room = Room(valkey)
    await room.queue(uid="pma_1")
    room.provider.fates[TOKEN] = "MessageRateExceeded"
    for _ in range(4):
        await room.send()
        room.clock.advance(901)
        await room.move()
        await room.check()
        await room.run_jobs(times=2)
        await room.check_all()
        room.clock.advance(600)
    assert room.provider.sent == ["pma_1"] * 4
    assert room.failed[-1][1] is Settled.ABANDONED
    assert await room.counted(RECEIPTS) == {"failed_due_to_message_rate_exceeded": 4, "abandoned": 1}
    assert await room.places() == {}


async def test_after_it_was_sent_again_its_receipts_are_checked_from_the_start(valkey):
    room = Room(valkey)
    await room.queue(uid="pma_1")
    await room.send()
    for fate in (None, "MessageRateExceeded"):
        room.provider.fates[TOKEN] = fate
        room.clock.advance(1801)
        await room.move()
        await room.check()
        await room.run_jobs()
    room.clock.advance(60)
    await room.send()
    room.provider.fates[TOKEN] = None
    room.clock.advance(901)
    await room.move()
    await room.check()
    await room.run_jobs()
    assert [settled for _, settled in room.failed] == [Settled.RETRIED] * 3
    assert await room.places() == {"cold": ["pma_1"]}
    await room.check_all()


@pytest.mark.parametrize("ticket", [PushTicket("error", None, "gone", {"error": "DeviceNotRegistered"})])
async def test_what_is_not_retryable_is_neither_retried_nor_abandoned(valkey, ticket):
    room = Room(valkey)
    await room.queue(uid="pma_1")
    room.provider.answers.append([ticket])
    await room.send()
    await room.run_jobs(times=3)
    assert {settled for _, settled in room.failed} == {Settled.FINAL}
    assert await room.counted(TICKETS) == {"queued": 1, "failed_due_to_device_not_registered": 1}
