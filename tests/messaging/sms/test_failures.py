"""Texts that failed: the ladder of retries, its two ends, and jobs that are run twice."""

import pytest

from keystead.engine import Valkey
from keystead.jobs import FailurePolicy
from keystead.messaging.sending import Retries
from keystead.messaging.sms import Failures, Settled, SmsFailure
from keystead.messaging.sms.keys import RECOVERY, SENDING
from keystead.messaging.sms.models import FailureInfo, Identifier, PendingSms
from keystead.messaging.sms.stats import POLLING, SENDS

from .room import NOON, Room

SERVER = FailureInfo("send", Identifier.SERVER, "500", True)
STUCK = FailureInfo("pending", Identifier.STUCK, None, True)


async def test_four_sends_then_abandoned(server: Valkey) -> None:
    """Acceptance 6, first half; every failure job is run twice."""
    room = Room(server, on_ambiguous="resend")
    room.provider.answers.extend([SERVER] * 10)
    await room.queue()
    for retry in range(4):
        assert (await room.send())["attempted"] == 1
        await room.run_jobs(times=2)
        room.clock.advance(3600)
        settled = [how for failure, how in room.failed if getattr(failure.sms, "retry", None) == retry]
        assert settled == [Settled.RETRIED if retry < 3 else Settled.ABANDONED] * 2
    assert (await room.send())["attempted"] == 0 and len(room.provider.asked) == 4
    assert await room.counted(SENDS, NOON) == {
        "queued": 1, "retried": 3, "abandoned": 1, "failed_due_to_server_error": {"500": 4}
    }


async def test_the_age_limit_wins_when_it_is_earlier(server: Valkey) -> None:
    """Acceptance 6, second half."""
    room = Room(server, on_ambiguous="resend")
    room.provider.answers.extend([SERVER] * 10)
    await room.queue()
    await room.send()
    await room.run_jobs()
    room.clock.advance(12 * 3600 + 1)
    await room.send()
    await room.run_jobs()
    assert [how for _, how in room.failed] == [Settled.RETRIED, Settled.ABANDONED] and len(room.provider.asked) == 2
    assert await room.counted(SENDS, NOON) == {
        "queued": 1, "retried": 1, "abandoned": 1, "failed_due_to_server_error": {"500": 2}
    }


async def test_a_decision_stays_though_the_limit_passes_meanwhile(valkey: Valkey) -> None:
    room = Room(valkey)
    failure = SmsFailure(room.sms.outgoing("+14155550100", "Hello"), SERVER)
    assert await room.failures.settle(failure) is Settled.RETRIED
    room.clock.advance(13 * 3600)
    assert await room.failures.settle(failure) is Settled.RETRIED
    assert await room.counted(SENDS, NOON) == {"retried": 1}


async def test_the_provider_is_left_alone_as_long_as_it_asked(valkey: Valkey) -> None:
    room = Room(valkey)
    info = FailureInfo("send", Identifier.CLIENT_429, None, True, None, 500.0)
    await room.failures.settle(SmsFailure(room.sms.outgoing("+14155550100", "Hello"), info))
    await room.workers.courier(room.provider).run()
    room.clock.advance(499)
    await room.send()
    assert room.provider.asked == []
    room.clock.advance(32)
    await room.send()
    assert len(room.provider.asked) == 2


async def test_what_cannot_be_mended_is_left_alone(valkey: Valkey) -> None:
    room = Room(valkey)
    info = FailureInfo("send", Identifier.APPLICATION, "21211")
    assert await room.failures.settle(SmsFailure(room.sms.outgoing("+14155550100", "Hello"), info)) is Settled.FINAL
    assert await room.counted(SENDS) == {} and await SENDING.work.length(valkey) == 0 and Settled.FINAL.is_over


async def stuck(room: Room) -> tuple[str, PendingSms]:
    """A text without news, and what its failure job was told."""
    await room.queue()
    await room.send()
    room.clock.advance(901)
    assert await room.find_stale() == 1
    await room.jobs()
    ((sid, record),) = (await room.pending()).items()
    return sid, record.nested()


async def test_a_text_without_news_is_asked_about_once(server: Valkey) -> None:
    room = Room(server)
    sid, sms = await stuck(room)
    for _ in range(2):
        assert await room.failures.settle(SmsFailure(sms, STUCK)) is Settled.RETRIED
    assert await RECOVERY.queue.range(server) == [sid]
    assert await room.counted(POLLING) == {"detected_stale": {"accepted": 1}, "queued_for_recovery": {"0": 1}}


@pytest.mark.parametrize("why", ["failures", "age"])
async def test_a_text_is_given_up_by_failures_or_age(server: Valkey, why: str) -> None:
    room = Room(server)
    if why == "age":
        _, sms = await stuck(room)
        room.clock.advance(12 * 3600)
    else:
        await stuck(room)
        for _ in range(3):
            room.clock.advance(901)
            assert await room.find_stale() == 1
        sms = next(iter((await room.pending()).values())).nested()
        await room.jobs()
    for _ in range(2):
        assert await room.failures.settle(SmsFailure(sms, STUCK)) is Settled.ABANDONED
    assert await room.pending() == {} and await RECOVERY.length(server) == 0
    assert (await room.counted(POLLING, NOON))["abandoned"] == {"3" if why == "failures" else "0": 1}


async def test_who_may_not_retry_gives_up_whatever_fails(valkey: Valkey) -> None:
    room = Room(valkey)
    final = Failures(valkey, room.clock, Retries(FailurePolicy(0)), most_failures=0)
    _, sms = await stuck(room)
    assert await final.settle(SmsFailure(sms, STUCK)) is Settled.ABANDONED and await room.pending() == {}
    assert await final.settle(SmsFailure(room.sms.outgoing("+14155550100", "Hello"), SERVER)) is Settled.ABANDONED


async def test_newer_information_silences_the_failure(server: Valkey) -> None:
    room = Room(server)
    sid, sms = await stuck(room)
    await room.tell(sid, "sending")
    await room.reconcile()
    assert await room.failures.settle(SmsFailure(sms, STUCK)) is Settled.IGNORED
    assert "queued_for_recovery" not in await room.counted(POLLING) and await RECOVERY.length(server) == 0
    await room.tell(sid, "delivered")
    await room.reconcile()
    assert await room.failures.settle(SmsFailure(sms, STUCK)) is Settled.IGNORED
    assert not Settled.IGNORED.is_over
