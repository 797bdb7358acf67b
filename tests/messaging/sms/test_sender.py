"""Texts on their way: every answer of the provider has its outcome, its counts and its callback."""

import asyncio

import pytest

from keystead.engine import Valkey
from keystead.messaging.sending import Carried, Health, Verdict
from keystead.messaging.sms.gateway import NOT_CONNECTED
from keystead.messaging.sms.keys import OWNER, PENDING, SENDING
from keystead.messaging.sms.models import FailureInfo, Identifier, OutgoingSms
from keystead.messaging.sms.sender import SmsCarrier
from keystead.messaging.sms.stats import EVENTS, SENDS
from keystead.messaging.sms.statuses import Status

from .room import CUT, NETWORK, NOON, NUMBER, Held, Room

I = Identifier  # noqa: E741


def carrier(room: Room) -> SmsCarrier:
    return SmsCarrier(room.valkey, room.clock, room.provider, room.workers.suppressed, room.workers.settings)


async def test_a_text_that_is_taken_waits_for_news(server: Valkey) -> None:
    room = Room(server)
    uid = await room.queue(user_sub="u1")
    counts = await room.send()
    assert counts == {"attempted": 1, "pending": 1, "succeeded": 0, "failed_permanently": 0, "failed_transiently": 0}
    record = (await room.pending())["SM0"]
    assert (record.uid, record.message_resource_status, record.num_failures, record.num_changes) == (
        uid, Status.ACCEPTED, 0, 0
    )
    assert (record.send_initially_queued_at, record.message_resource_date_updated) == (NOON, NOON)
    assert record.user_sub == "u1"
    assert await room.due() == {"SM0": NOON + 900}
    assert await room.counted(SENDS) == {"queued": 1, "succeeded_pending": {"accepted": 1}}
    assert room.provider.messages["SM0"].callback_url == (
        f"https://app.example.com/api/1/sms/webhook?uid={uid}&lane=0"
    )
    assert await SENDING.work.length(server) == 0 and not await SENDING.intent(uid).exists(server)
    assert await room.jobs() == [] and await OWNER.at("SM0").get(server) == uid


async def test_a_text_that_succeeds_at_once_is_called_back_at_once(server: Valkey) -> None:
    room = Room(server)
    room.provider.answers.append(Status.SENT)
    uid = await room.queue()
    assert (await room.send())["succeeded"] == 1
    assert await room.pending() == {} and await room.run_jobs() == 1
    (success,) = room.succeeded
    assert (success.sms.uid, success.result.message_resource.status) == (uid, Status.SENT)
    assert await room.counted(SENDS) == {"queued": 1, "succeeded_immediate": {"sent": 1}}


async def test_nothing_is_asked_for_without_a_way_back(valkey: Valkey) -> None:
    room = Room(valkey, public_url="")
    await room.queue()
    await room.send()
    assert room.provider.messages["SM0"].callback_url == ""


@pytest.mark.parametrize(("info", "event", "breakdown", "health"), [
    (FailureInfo("send", I.NETWORK, None, True), "network_error", None, Health.FAILED),
    (FailureInfo("send", I.SERVER, "503", True), "server_error", "503", Health.FAILED),
    (FailureInfo("send", I.CLIENT_429, None, True, None, 9.0), "client_error_429", None, Health.THROTTLED),
    (FailureInfo("send", I.CLIENT_OTHER, "401"), "client_error_other", "401", Health.FAILED),
    (FailureInfo("send", I.INTERNAL), "internal_error", None, Health.FINE),
    (FailureInfo("send", I.RATELIMIT, "30022", True), "application_error_ratelimit", "30022", Health.THROTTLED),
    (FailureInfo("send", I.APPLICATION, "21211"), "application_error_other", "21211", Health.FINE),
])
async def test_a_failure_is_counted_and_called_back(
    valkey: Valkey, info: FailureInfo, event: str, breakdown: str | None, health: Health
) -> None:
    room = Room(valkey)
    room.provider.answers.append(info)
    sms = room.sms.outgoing(NUMBER, "Hello")
    (carried,) = await carrier(room).carry([sms])
    assert (carried.health, carried.retry_after_seconds) == (health, info.retry_after_seconds)
    assert carried.counts == {"attempted": 1, "failed_transiently" if info.retryable else "failed_permanently": 1}
    room.provider.answers.append(info)
    await room.queue()
    await room.send()
    assert await room.counted(SENDS) == {
        "queued": 1, f"failed_due_to_{event}": {breakdown: 1} if breakdown is not None else 1
    }
    (job,) = await room.jobs()
    await room.book.jobs[job.name](**job.kwargs)
    ((failure, _),) = room.failed
    assert failure.failure_info == info and isinstance(failure.sms, OutgoingSms) and failure.sms.body == "Hello"


async def test_a_number_for_tests_is_never_texted(valkey: Valkey) -> None:
    room = Room(valkey)
    await room.queue(number="+15555555555")
    assert (await room.send())["failed_permanently"] == 1
    assert room.provider.asked == []
    await room.run_jobs()
    assert room.failed[0][0].failure_info == FailureInfo("send", I.CLIENT_OTHER, "418")
    assert await room.counted(SENDS) == {"queued": 1, "failed_due_to_client_error_other": {"418": 1}}


async def test_a_suppressed_number_is_not_texted(valkey: Valkey) -> None:
    room = Room(valkey)
    room.numbers.listed[NUMBER] = ("Stop", None)
    await room.queue()
    await room.queue(number="+14155550101")
    await room.send()
    assert room.provider.asked == ["create +14155550101 Hello"]
    await room.run_jobs()
    assert room.failed[0][0].failure_info == FailureInfo("send", I.APPLICATION, "suppressed")
    assert list(room.numbers.listed) == [NUMBER]


@pytest.mark.parametrize("code", ["21610", "30006"])
async def test_a_number_that_cannot_be_reached_is_suppressed_at_send(valkey: Valkey, code: str) -> None:
    """Defect 6: the codes of refusals at creation were never looked at."""
    room = Room(valkey)
    room.provider.answers.append(FailureInfo("send", I.APPLICATION, code, False, "why"))
    await room.queue()
    await room.send()
    await room.run_jobs(times=2)
    details = {"identifier": "ApplicationErrorOther", "subidentifier": code, "extra": "why"}
    assert room.numbers.listed == {NUMBER: ("Unreachable", details)}


async def test_other_failures_suppress_nobody(valkey: Valkey) -> None:
    """Defect 11: which codes mean the person is a setting; a fault of ours or the carrier's says nothing of them."""
    room = Room(valkey)
    for info in (
        FailureInfo("send", I.APPLICATION, "30003"), FailureInfo("send", I.RATELIMIT, "30022", True),
        FailureInfo("send", I.CLIENT_OTHER, "404"), FailureInfo("send", I.SERVER, "500", True),
    ):
        room.provider.answers.append(info)
        await room.queue()
    await room.send()
    await room.run_jobs()
    assert room.numbers.listed == {}


async def test_news_that_beats_the_answer_is_applied(server: Valkey) -> None:
    """Acceptance 4: the provider calls before the sender has noted the message."""
    room = Room(server)
    uid = await room.queue()

    async def tell_first(held: Held) -> None:
        await room.tell(held.sid, "delivered", uid=uid)
        counts = await room.reconcile()
        assert counts["attempted"] == 0 and await room.counted(EVENTS) == {}

    room.provider.before_answer = tell_first
    await room.send()
    assert set(await room.pending()) == {"SM0"}
    room.clock.advance(3)
    assert (await room.reconcile())["removed"] == 1
    await room.run_jobs()
    assert [success.sms.uid for success in room.succeeded] == [uid] and await room.pending() == {}
    assert (await room.counted(EVENTS))["removed"] == {"accepted:delivered": 1}


# -- may have been sent ------------------------------------------------------------------------------------------------


async def crashed(room: Room, **more: str) -> str:
    """A courier asked the provider, and died before it noted the answer."""
    uid = await room.queue(**more)
    dead = asyncio.Event()

    class Dies(Exception):
        pass

    async def die(held: Held) -> None:
        dead.set()
        await asyncio.sleep(3600)

    room.provider.before_answer = die
    running = asyncio.ensure_future(room.workers.courier(room.provider).run())
    await asyncio.wait_for(dead.wait(), 20)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    room.provider.before_answer = None
    assert await SENDING.intent(uid).exists(room.valkey)
    return uid


async def test_a_text_that_was_sent_before_a_crash_is_found_and_not_sent_again(server: Valkey) -> None:
    room = Room(server)
    uid = await crashed(room)
    assert len(room.provider.messages) == 1
    await _let_go_of_lock(room)
    await room.send()
    assert len(room.provider.messages) == 1 and f"search {NUMBER}" in room.provider.asked
    assert (await room.pending())["SM0"].uid == uid
    assert await room.counted(SENDS) == {"queued": 1, "succeeded_pending": {"accepted": 1}}


async def test_a_message_of_another_text_with_the_same_words_is_not_taken_for_it(valkey: Valkey) -> None:
    room = Room(valkey)
    await room.queue()
    await room.send()
    (before,) = await room.pending()
    sms = room.sms.outgoing(NUMBER, "Hello")
    await SENDING.intent(sms.uid).set(valkey, "1 other")
    assert await carrier(room).verify(sms) is Verdict.NOT_SENT
    await room.tell(before, "delivered")
    await room.reconcile()
    assert await carrier(room).verify(sms) is Verdict.NOT_SENT
    other = Held("SM7", NUMBER, "Hello", "", room.clock.now(), updated_at=room.clock.now())
    room.provider.messages["SM7"] = other
    assert isinstance(await carrier(room).verify(sms), Carried)
    other.created_at -= 3600
    assert await carrier(room).verify(sms) is Verdict.NOT_SENT
    room.provider.is_away = True
    assert await carrier(room).verify(sms) is Verdict.WAIT


async def test_a_text_that_was_found_failed_is_called_back_as_failed(valkey: Valkey) -> None:
    room = Room(valkey)
    sms = room.sms.outgoing(NUMBER, "Hello")
    room.provider.messages["SM7"] = Held("SM7", NUMBER, "Hello", "", NOON, Status.UNDELIVERED, NOON, "30005")
    found = await carrier(room).verify(sms)
    assert isinstance(found, Carried) and found.facts["failed"] == "ApplicationErrorOther"


async def test_a_retry_looks_whether_the_lost_answer_was_a_yes(server: Valkey) -> None:
    """Nobody is texted twice because an answer was lost on the way."""
    room = Room(server)
    room.provider.answers.append(CUT)
    uid = await room.queue()
    await room.send()
    await room.run_jobs()
    room.clock.advance(3600)
    assert (await room.send())["pending"] == 1
    assert len(room.provider.messages) == 1 and (await room.pending())["SM0"].uid == uid
    assert await room.counted(SENDS) == {
        "queued": 1, "failed_due_to_network_error": 1, "retried": 1, "succeeded_pending": {"accepted": 1}
    }


async def test_a_retry_of_what_the_provider_made_and_then_held_back_is_sent(valkey: Valkey) -> None:
    """Its own message, that failed for a reason that passes, must not be taken for an answer to every later try."""
    room = Room(valkey)
    room.provider.answers.append(FailureInfo("send", I.RATELIMIT, "30022", True))
    room.provider.messages["SM0"] = Held("SM0", NUMBER, "Hello", "", NOON, Status.FAILED, NOON, "30022")
    await room.queue()
    assert (await room.send())["failed_transiently"] == 1
    await room.run_jobs()
    room.clock.advance(3600)
    await SENDING.resume(valkey)
    assert (await room.send())["pending"] == 1 and len(room.provider.messages) == 2


async def test_a_retry_that_cannot_look_waits(valkey: Valkey) -> None:
    room = Room(valkey)
    room.provider.answers.append(NETWORK)
    await room.queue()
    await room.send()
    await room.run_jobs()
    room.clock.advance(3600)
    room.provider.is_away = True
    assert (await room.send())["failed_transiently"] == 1 and room.provider.messages == {}


async def test_who_wants_it_so_sends_again_or_gives_up_unasked(valkey: Valkey) -> None:
    for wish, messages in (("resend", 2), ("drop", 1)):
        await valkey.flushall()
        room = Room(valkey, on_ambiguous=wish)
        room.provider.answers.append(CUT)
        await room.queue()
        await room.send()
        await room.run_jobs()
        room.clock.advance(3600)
        await room.send()
        assert len(room.provider.messages) == messages, wish
        assert not any(asked.startswith("search") for asked in room.provider.asked)


async def test_what_surely_was_not_heard_is_sent_again_even_so(valkey: Valkey) -> None:
    room = Room(valkey, on_ambiguous="drop")
    room.provider.answers.append(FailureInfo("send", I.NETWORK, None, True, NOT_CONNECTED))
    await room.queue()
    await room.send()
    await room.run_jobs()
    room.clock.advance(3600)
    assert (await room.send())["pending"] == 1


async def _let_go_of_lock(room: Room) -> None:
    await SENDING.lock.at().reference.delete(room.valkey)


async def test_a_dropped_text_is_called_back_as_failed_for_good(valkey: Valkey) -> None:
    room = Room(valkey, on_ambiguous="drop")
    await crashed(room)
    await _let_go_of_lock(room)
    await room.send()
    await room.run_jobs()
    ((failure, settled),) = room.failed
    assert failure.failure_info.identifier is I.INTERNAL and settled.is_over and len(room.provider.messages) == 1
    assert await PENDING.size(valkey) == 0
