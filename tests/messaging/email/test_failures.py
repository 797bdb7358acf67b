"""After a failure: sent again with pauses, given up at last; addresses at fault are written to no more."""

import pytest
from sqlalchemy import func, select

from keystead.jobs import AfterFailure
from keystead.members.contact_tables import EMAIL_FAILURES
from keystead.messaging.email.keys import SENDING
from keystead.messaging.email.models import Bounce, BounceReason, Complaint, Delivery, EmailEvent
from keystead.messaging.email.stats import SENDS
from keystead.messaging.sending import Lane

from .room import ADA, DOWN, Room, on_sqlite

pytestmark = on_sqlite

HOUR = 3600.0


async def noted(room: Room) -> int:
    async with room.database.reading() as sql:
        return await sql.scalar(select(func.count()).select_from(EMAIL_FAILURES)) or 0


async def test_an_email_is_sent_four_times_and_then_given_up(room: Room) -> None:
    room.provider.answers.extend([DOWN] * 9)
    await room.queue()
    for _ in range(6):
        await room.send()
        await room.run_jobs(times=2)
        room.later(HOUR)
    retried = [failure.email.retry for failure, _ in room.failed[::2] if hasattr(failure.email, "retry")]
    assert retried == [0, 1, 2, 3]
    assert [after for _, after in room.failed] == [AfterFailure.RETRY] * 6 + [AfterFailure.ABANDON] * 2
    counted = await room.counted(SENDS)
    assert (counted["retried"], counted["abandoned"], counted["attempted"]) == (3, 1, 4)
    assert await SENDING.waiting().length(room.valkey) == 0


async def test_an_email_that_is_twelve_hours_old_is_given_up_at_once(room: Room) -> None:
    room.provider.answers.append(DOWN)
    await room.queue()
    room.later(12 * HOUR + 1)
    await room.send()
    await room.run_jobs()
    assert [after for _, after in room.failed] == [AfterFailure.ABANDON]


async def test_a_retry_honours_the_pause_that_the_provider_asks_for(room: Room) -> None:
    room.provider.answers.append(type(DOWN)("SESServerError", "ses:503", True, retry_after_seconds=100.0))
    await room.queue(lane="low")
    await room.send()
    await room.run_jobs()
    due = await SENDING.next_due(room.valkey, Lane.LOW)
    assert due is not None and 100 <= due - room.clock.now() <= 130


async def test_a_transient_bounce_suppresses_only_when_three_came_within_a_month(room: Room) -> None:
    """One full mailbox used to end all email to somebody for ever."""
    soft = Bounce(BounceReason("Transient", "MailboxFull"), [ADA], [ADA])
    for times in range(1, 4):
        await room.queue()
        await room.send()
        await room.tell(f"m-{times - 1}", soft)
        await room.reconcile()
        await room.run_jobs(times=2)
        room.suppressed.forget(ADA)
        assert await noted(room) == times, "each bounce is noted once, however often its job runs"
        assert await room.suppression.emails([ADA]) == ({ADA} if times == 3 else set())
        room.later(24 * HOUR)


async def test_transient_bounces_far_apart_suppress_nobody(room: Room) -> None:
    for _ in range(4):
        event = EmailEvent(f"m-{room.clock.now()}", Bounce(BounceReason("Transient", "General"), [ADA], [ADA]), 0.0)
        assert await room.failures.bounced(event) == 1
        room.later(16 * 24 * HOUR)
    assert await room.suppression.emails([ADA]) == set()


@pytest.mark.parametrize(("news", "reason"), [
    (Bounce(BounceReason("Permanent", "NoEmail")), "Bounce"), (Complaint("abuse"), "Complaint"),
])
async def test_a_permanent_bounce_and_a_complaint_suppress_at_once(
    room: Room, news: Bounce | Complaint, reason: str
) -> None:
    named = ["Ada Lovelace <ADA@example.com>", "broken", ""]
    news = (Bounce(news.reason, [], named) if isinstance(news, Bounce) else Complaint(news.feedback_type, [], named))
    assert await room.suppressed.has(ADA) is False
    assert await room.failures.bounced(EmailEvent("m", news, 0.0)) == 1
    assert await room.suppressed.has(ADA) is True, "what was believed of the address is forgotten"
    assert await room.failures.bounced(EmailEvent("m", Delivery(), 0.0)) == 0


async def test_whoever_handles_the_failure_may_note_it_as_well_and_it_counts_once(room: Room) -> None:
    await room.queue()
    await room.send()
    await room.tell("m-0", Bounce(BounceReason("Transient", "General"), [ADA], [ADA]))
    await room.reconcile()
    await room.run_jobs()
    ((failure, after),) = room.failed
    assert after is AfterFailure.NOTHING
    assert await room.failures.unreachable(failure) is False
    assert await noted(room) == 1
