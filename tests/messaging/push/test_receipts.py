"""Receipts: asked for when they can be there, each told once."""

from itertools import permutations

import pytest

from keystead.messaging.push.keys import COLD, HOT
from keystead.messaging.push.models import FailureInfo, Identifier, PushReceipt
from keystead.messaging.push.receipts import failure_of
from keystead.messaging.push.stats import CHECK_RUN, COLD_TO_HOT_RUN, RECEIPTS, TICKETS

from .room import NOON, TOKEN, Room


async def sent(valkey, *tokens: str, **messaging) -> Room:
    room = Room(valkey, **messaging)
    for place, token in enumerate(tokens or (TOKEN,)):
        await room.queue(token, uid=f"pma_{place}")
    await room.send()
    return room


async def test_a_receipt_is_asked_for_after_a_quarter_of_an_hour_and_not_before(server):
    room = await sent(server)
    room.clock.advance(899)
    assert await room.move() == 0
    room.clock.advance(1)
    assert await room.move() == 1
    assert await room.check() == {"num_checked": 1, "num_succeeded": 1}
    await room.run_jobs()
    (success,) = room.succeeded
    assert (success.attempt.uid, success.attempt.initially_queued_at) == ("pma_0", NOON)
    assert success.result.ticket_created_at == NOON and success.result.receipt_checked_at == NOON + 900
    assert success.result.receipt == PushReceipt("ok")
    assert await room.counted(RECEIPTS) == {"succeeded": 1}
    assert await room.places() == {}
    assert (await COLD_TO_HOT_RUN.at().get(server)).num_moved == 1
    assert (await CHECK_RUN.at().get(server)).num_checked == 1
    await room.check_all()


async def test_more_tickets_than_one_step_moves_are_all_moved_and_asked_for_together(valkey):
    room = await sent(valkey, *[TOKEN] * 230)
    room.clock.advance(901)
    assert await room.move() == 230
    assert (await room.check())["num_succeeded"] == 230
    assert room.provider.checked == [230]
    await room.check_all()


@pytest.mark.parametrize(
    ("error", "counted"),
    [
        ("DeviceNotRegistered", "device_not_registered"), ("MessageTooBig", "message_too_big"),
        ("MismatchSenderId", "mismatched_sender_id"), ("InvalidCredentials", "invalid_credentials"),
        ("SomethingNew", "internal_error"),
    ],
)
async def test_an_error_in_a_receipt_is_final(valkey, error, counted):
    room = await sent(valkey)
    room.provider.fates[TOKEN] = error
    room.clock.advance(901)
    await room.move()
    assert await room.check() == {"num_checked": 1, "num_failed_permanently": 1}
    await room.run_jobs()
    ((failure, settled),) = room.failed
    assert failure.failure_info.action == "check" and not failure.failure_info.retryable and settled.is_over
    assert await room.counted(RECEIPTS) == {f"failed_due_to_{counted}": 1}
    assert room.tokens.forgotten == ([(TOKEN, "receipt")] if error == "DeviceNotRegistered" else [])
    assert await room.places() == {}
    await room.check_all()


async def test_a_device_that_gets_too_many_is_written_to_again_later(valkey):
    """The message is sent again; the older design gave it up."""
    room = await sent(valkey)
    room.provider.fates[TOKEN] = "MessageRateExceeded"
    room.clock.advance(901)
    await room.move()
    assert await room.check() == {"num_checked": 1, "num_failed_transiently": 1}
    await room.run_jobs(times=2)
    assert await room.places() == {"retry": ["pma_0"]}
    assert await room.counted(RECEIPTS) == {"failed_due_to_message_rate_exceeded": 1}
    assert await room.counted(TICKETS) == {"queued": 1, "succeeded": 1, "retried": 1}
    room.provider.fates[TOKEN] = "ok"
    room.clock.advance(60)
    await room.send()
    room.clock.advance(901)
    await room.move()
    await room.check()
    await room.run_jobs()
    assert [success.attempt.uid for success in room.succeeded] == ["pma_0"]
    await room.check_all()


@pytest.mark.parametrize(
    "failure", [FailureInfo("check", Identifier.NETWORK, True), FailureInfo("check", Identifier.SERVER, True)]
)
async def test_a_provider_that_is_away_is_counted_for_every_ticket(valkey, failure):
    room = await sent(valkey, TOKEN, TOKEN)
    room.provider.receipt_answers.append(failure)
    room.clock.advance(901)
    await room.move()
    assert await room.check() == {"num_checked": 2, "num_failed_transiently": 2}
    await room.run_jobs()
    assert sorted((await room.places())["cold"]) == ["pma_0", "pma_1"]
    await room.check_all()


@pytest.mark.parametrize("order", list(permutations(("ok", "DeviceNotRegistered", None))))
async def test_whatever_comes_for_others_each_message_hears_its_own(valkey, order):
    tokens = [f"ExponentPushToken[t-{place}]" for place in range(3)]
    room = await sent(valkey, *tokens)
    room.provider.fates = dict(zip(tokens, order, strict=True))
    room.clock.advance(901)
    await room.move()
    await room.check()
    await room.run_jobs(times=2)
    place = {fate: f"pma_{at}" for at, fate in enumerate(order)}
    assert [success.attempt.uid for success in room.succeeded] == [place["ok"]] * 2
    assert {failure.attempt.uid for failure, _ in room.failed} == {place["DeviceNotRegistered"], place[None]}
    assert await room.places() == {"cold": [place[None]]}
    await room.check_all()


async def test_a_ticket_that_cannot_be_read_is_a_dead_letter(valkey):
    room = await sent(valkey)
    await valkey.zadd(COLD.at().name(valkey.layout), {b"not a ticket": 1.0})
    room.clock.advance(901)
    assert await room.move() == 2
    assert (await room.check())["num_succeeded"] == 1
    (letter,) = await HOT.dead_letters(valkey)
    assert letter.raw == b"not a ticket"


def test_a_receipt_that_is_not_there_yet_is_asked_for_again():
    assert failure_of(None) == FailureInfo("check", Identifier.NOT_READY, retryable=True)
    assert failure_of(PushReceipt("ok")) is None
