"""Texts without news: found in time, asked about, and given up in the end."""

import pytest

from keystead.engine import Valkey
from keystead.messaging.sms import Settled
from keystead.messaging.sms.gateway import Read
from keystead.messaging.sms.keys import NEWS, PENDING, RECOVERY
from keystead.messaging.sms.models import FailureInfo, Identifier, MessageResource, PendingSms
from keystead.messaging.sms.stats import EVENTS, POLLING
from keystead.messaging.sms.statuses import Status

from .room import NOON, Room


async def sent(room: Room) -> str:
    await room.queue()
    await room.send()
    return next(reversed(room.provider.messages))


async def test_without_news_a_text_is_asked_about_thrice_and_given_up_after_an_hour(server: Valkey) -> None:
    """Acceptance 5: polls at 15, 30 and 45 minutes, abandoned at 60; every job is run twice."""
    room = Room(server)
    sid = await sent(room)
    for quarter in range(1, 5):
        room.clock.advance(899)
        assert await room.find_stale() == 0
        room.clock.advance(1)
        assert await room.find_stale() == 1 and await room.find_stale() == 0
        await room.run_jobs(times=2)
        await room.check_all()
        if quarter < 4:
            assert await room.recover() == {"attempted": 1, "pending": 1}
            assert (await room.reconcile())["duplicate"] == 1
            assert (await room.pending())[sid].num_failures == quarter
    assert await room.pending() == {} and await room.recover() == {}
    assert [how for _, how in room.failed] == [Settled.RETRIED] * 6 + [Settled.ABANDONED] * 2
    assert room.provider.asked.count(f"read {sid}") == 3
    assert await room.counted(POLLING, NOON) == {
        "detected_stale": {"accepted": 4}, "queued_for_recovery": {"0": 1, "1": 1, "2": 1}, "abandoned": {"3": 1},
        "attempted": 3, "received": {"accepted:accepted": 3},
    }


async def test_a_stale_text_is_handed_over_as_it_is_after_the_step(server: Valkey) -> None:
    room = Room(server)
    sid = await sent(room)
    room.clock.advance(900)
    await room.find_stale()
    assert await room.due() == {sid: room.clock.now() + 900}
    record = (await room.pending())[sid]
    assert (record.num_failures, record.num_changes, record.failure_job_last_called_at) == (1, 1, room.clock.now())
    await room.run_jobs()
    ((failure, _),) = room.failed
    assert failure.failure_info == FailureInfo("pending", Identifier.STUCK, None, True)
    assert isinstance(failure.sms, PendingSms) and failure.sms == record.nested()


async def test_many_stale_texts_are_found_in_one_run_and_broken_ones_stop_none(server: Valkey) -> None:
    room = Room(server)
    for number in range(25):
        await room.queue(f"Hello {number}")
    await room.send()
    broken = PENDING.record("SM3").name(server.layout)
    await server.hset(broken, "num_failures", "many")
    await server.delete(PENDING.record("SM4").name(server.layout))
    room.clock.advance(901)
    assert await room.find_stale() == 23 and await room.find_stale() == 0
    assert len(await room.jobs()) == 23 and "SM4" not in await room.due()


async def test_what_polling_finds_settles_the_text(server: Valkey) -> None:
    room = Room(server)
    sid = await sent(room)
    room.clock.advance(900)
    await room.find_stale()
    await room.run_jobs()
    room.provider.messages[sid].status, room.provider.messages[sid].updated_at = Status.DELIVERED, NOON + 60
    assert await room.recover() == {"attempted": 1, "succeeded": 1}
    (event,) = await NEWS.queue.range(server)
    assert (event.received_via, event.date_updated, event.status) == ("poll", NOON + 60, Status.DELIVERED)
    assert (await room.reconcile())["removed"] == 1
    await room.run_jobs()
    assert len(room.succeeded) == 1 and await room.pending() == {}
    assert (await room.counted(EVENTS))["received_via_polling"] == {"delivered": 1}


async def test_a_message_that_the_provider_forgot_has_failed(server: Valkey) -> None:
    room = Room(server)
    sid = await sent(room)
    del room.provider.messages[sid]
    await RECOVERY.push(server, sid)
    assert await room.recover() == {"attempted": 1, "lost": 1}
    assert (await room.reconcile())["removed"] == 1
    await room.run_jobs()
    ((failure, settled),) = room.failed
    assert settled is Settled.FINAL and failure.failure_info == FailureInfo(
        "pending", Identifier.APPLICATION, "failure_status_without_error_code"
    )
    assert isinstance(failure.sms, PendingSms) and failure.sms.num_failures == 1
    assert failure.sms.message_resource.status is Status.LOST
    assert await room.counted(POLLING) == {"attempted": 1, "error_client_404": 1}


@pytest.mark.parametrize(("answer", "event", "breakdown", "of_run"), [
    (Read(0), "error_network", None, "transient_error"),
    (Read(429), "error_client_429", None, "transient_error"),
    (Read(502), "error_server", "502", "transient_error"),
    (Read(401), "error_client_other", "401", "permanent_error"),
    (Read(301), "error_client_other", "301", "permanent_error"),
    (Read(200), "error_internal", None, "permanent_error"),
])
async def test_an_answer_that_says_nothing_is_counted_and_asked_for_again_later(
    valkey: Valkey, answer: Read, event: str, breakdown: str | None, of_run: str
) -> None:
    """Defect 6: a number was counted where text is needed, the job crashed, and every later run with it."""
    room = Room(valkey)
    sid = await sent(room)
    await RECOVERY.push(valkey, sid)
    room.provider.reads.append(answer)
    assert await room.recover() == {"attempted": 1, of_run: 1}
    assert await room.counted(POLLING) == {"attempted": 1, event: 1 if breakdown is None else {breakdown: 1}}
    assert await NEWS.length(valkey) == 0 and set(await room.pending()) == {sid}


async def test_news_of_a_text_that_is_settled_meanwhile_is_counted_as_unknown(valkey: Valkey) -> None:
    room = Room(valkey)
    await RECOVERY.push(valkey, "SM99", "SM98")
    room.provider.reads.append(Read(200, MessageResource("SM99", Status.READ, None, NOON)))
    assert await room.recover() == {"attempted": 2, "succeeded": 1, "lost": 1}
    assert await room.counted(POLLING) == {"attempted": 2, "received": {"(unknown):read": 1}, "error_client_404": 1}
    assert (await room.reconcile())["attempted"] == 2
    assert (await room.counted(EVENTS))["unknown"] == {"read": 1, "lost": 1}


async def test_the_same_sid_twice_is_asked_about_once(valkey: Valkey) -> None:
    room = Room(valkey)
    sid = await sent(room)
    await RECOVERY.push(valkey, sid, sid)
    assert await room.recover() == {"attempted": 1, "pending": 1}
    assert await RECOVERY.length(valkey) == 0
