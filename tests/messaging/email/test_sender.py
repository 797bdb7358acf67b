"""Sending: each outcome in one step, counted as documented, and told to the right job."""

import pytest
import pytest_asyncio

from keystead.engine import Valkey
from keystead.errors import Unavailable
from keystead.jobs import AfterFailure, StopReason
from keystead.messaging.email.gateway import NoCredentials, NotAccepted
from keystead.messaging.email.keys import EARLY, SENDING, UNANSWERED
from keystead.messaging.email.models import Bounce, BounceReason, Delivery, OutgoingEmail
from keystead.messaging.email.stats import EVENTS, SENDS
from keystead.messaging.sending import Verdict
from keystead.store import Database

from .room import ADA, DOWN, LOST, REJECTED, Room, on_sqlite

pytestmark = on_sqlite


@pytest_asyncio.fixture
async def room(server: Valkey, database: Database) -> Room:
    """On one server, and on the cluster."""
    return Room(server, database)



async def test_an_accepted_email_waits_for_news(room: Room) -> None:
    uid = await room.queue(user_sub="user_1")
    assert (await room.send())["accepted"] == 1
    (mail,) = room.provider.sent
    assert (mail.uid, mail.to, mail.template) == (uid, ADA, "code")
    assert "123456" in str(mail.html) and "123456" in str(mail.text)
    waiting = await room.pending()
    assert waiting["m-0"].uid == uid and waiting["m-0"].user_sub == "user_1"
    assert await room.jobs() == []
    assert await room.counted(SENDS) == {"queued": 1, "attempted": 1, "templated": 1, "accepted": {"code": 1}}
    assert not [name for name in await room.names() if name.startswith("email:inflight:")]


@pytest.mark.parametrize(("template", "parameters", "identifier", "breakdown"), [
    ("missing", {}, "TemplateNotFound", "template:404"),
    ("code", {}, "TemplateUnprocessable", "template:422"),
    ("notice", {"title": "x", "message": 5}, "TemplateInternalError", "template:InternalError"),
])
async def test_a_template_that_does_not_render_fails_for_good_and_asks_nobody(
    room: Room, template: str, parameters: dict[str, object], identifier: str, breakdown: str
) -> None:
    await room.queue(template=template, parameters=parameters)
    await room.queue("grace@example.com")
    counts = await room.send()
    assert (counts["attempted"], counts["templated"], counts["accepted"], counts["failed_permanently"]) == (2, 1, 1, 1)
    await room.run_jobs()
    ((failure, after),) = room.failed
    assert (failure.info.step, failure.info.error_identifier, failure.info.retryable) == ("template", identifier, False)
    assert after is AfterFailure.NOTHING and len(room.provider.sent) == 1
    assert (await room.counted(SENDS))["failed_permanently"] == {breakdown: 1}


async def test_a_suppressed_address_is_not_written_to_whatever_its_case(room: Room) -> None:
    await room.suppression.suppress_email("Ada@Example.com", "Bounce")
    await room.queue()
    await room.send()
    await room.run_jobs()
    ((failure, _),) = room.failed
    assert (failure.info.error_identifier, failure.info.retryable) == ("Suppressed", False)
    assert room.provider.sent == []
    counted = await room.counted(SENDS)
    assert counted["failed_permanently"] == {"template:Suppressed": 1} and "templated" not in counted


@pytest.mark.parametrize(("answer", "counted_as"), [
    (DOWN, "failed_transiently"), (REJECTED, "failed_permanently"),
    (NotAccepted("SESTooManyRequestsException", "ses:TooManyRequestsException", True, 429, True, 7.0),
     "failed_transiently"),
])
async def test_refusals_of_the_provider_are_told_and_counted(
    room: Room, answer: NotAccepted, counted_as: str
) -> None:
    room.provider.answers.append(answer)
    await room.queue()
    counts = await room.send()
    assert (counts["attempted"], counts["templated"], counts[counted_as]) == (1, 1, 1)
    assert (await room.counted(SENDS))[counted_as] == {answer.breakdown: 1}
    await room.run_jobs()
    ((failure, after),) = room.failed
    assert (failure.info.step, failure.info.error_identifier) == ("send", answer.identifier)
    assert failure.info.retryable is answer.retryable and failure.info.retry_after_seconds == answer.retry_after_seconds
    assert after is (AfterFailure.RETRY if answer.retryable else AfterFailure.NOTHING)
    assert await room.pending() == {}


async def test_mailboxes_that_are_busy_keep_nobody_else_waiting(room: Room) -> None:
    busy = NotAccepted("SESServerError", "ses:451", True, 451, of_recipient=True)
    room.provider.answers.extend([busy] * 30)
    for _ in range(40):
        await room.queue()
    counts = await room.send()
    assert (counts["failed_transiently"], counts["accepted"]) == (30, 10)


async def test_a_message_id_that_cannot_be_one_fails_for_good(room: Room) -> None:
    room.provider.answers.append("a id:with {braces}")
    await room.queue()
    await room.send()
    await room.run_jobs()
    assert room.failed[0][0].info.error_identifier == "SESInternalError"


async def test_without_credentials_an_email_waits_and_nothing_is_counted(room: Room) -> None:
    await room.queue()
    item = (await SENDING.waiting().range(room.valkey))[0]
    room.provider.answers.append(NoCredentials("none"))
    with pytest.raises(Unavailable):
        await room.workers.sender().carry([item])
    assert await room.counted(SENDS) == {"queued": 1}
    room.provider.answers.append(NoCredentials("none"))
    run = await room.workers.courier().run()
    assert run is not None and run.stop_reason is StopReason.CREDENTIALS
    assert await room.counted(SENDS) == {"queued": 1} and await SENDING.waiting().length(room.valkey) == 1
    assert (await room.send())["accepted"] == 1


async def test_smtp_counts_what_was_taken_as_delivered(room: Room) -> None:
    room.provider.reports, room.provider.delivers = False, True
    await room.queue()
    await room.send()
    assert await room.reconcile() == {"attempted": 1, "succeeded_and_found": 1}
    await room.run_jobs()
    assert len(room.succeeded) == 1 and await room.pending() == {}


# -- unsubscribing -----------------------------------------------------------------------------------------------------


async def test_bulk_email_has_one_click_headers_and_a_code_has_none(room: Room) -> None:
    await room.queue(lane="high")
    await room.send()
    assert room.provider.sent[-1].headers == ()
    for lane in ("normal", "low"):
        await room.queue(lane=lane)
        await room.send()
        headers = dict(room.provider.sent[-1].headers)
        assert headers["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
        link = headers["List-Unsubscribe"]
        assert link.startswith("<https://app.example.com/api/1/emails/unsubscribe?token=") and link.endswith(">")


# -- answers that were lost --------------------------------------------------------------------------------------------


async def test_a_lost_answer_is_cleared_up_by_news_that_carry_our_uid(room: Room) -> None:
    room.provider.answers.append(LOST)
    uid = await room.queue()
    counts = await room.send()
    assert counts["attempted"] == 0, "nothing is known yet, so nothing is counted"
    assert await room.jobs() == [] and await room.pending() == {}
    await room.tell("m-0", Delivery(), uid=uid)
    room.later(6)
    assert await room.reconcile() == {}, "laid aside"
    room.later(60)
    assert (await room.send())["accepted"] == 1
    assert len(room.provider.sent) == 1, "it was not sent again"
    room.later(5)
    await room.sweep()
    assert await room.reconcile() == {"attempted": 1, "succeeded_and_found": 1}
    await room.run_jobs()
    assert [told.email.uid for told in room.succeeded] == [uid] and room.failed == []
    assert await EARLY.size(room.valkey) == 0
    assert await room.counted(SENDS) == {"queued": 1, "attempted": 1, "templated": 1, "accepted": {"code": 1}}
    assert await room.counted(EVENTS) == {"attempted": {"found": 1}, "succeeded": {"found": 1}}


async def test_a_lost_answer_without_news_counts_as_failed_after_ten_minutes_and_is_sent_again(room: Room) -> None:
    room.provider.answers.append(LOST)
    uid = await room.queue()
    await room.send()
    for _ in range(9):
        room.later(60)
        assert (await room.send())["attempted"] == 0
    assert len(room.provider.sent) == 1
    room.later(61)
    counts = await room.send()
    assert (counts["attempted"], counts["templated"], counts["failed_transiently"]) == (1, 1, 1)
    assert not await UNANSWERED.at(uid).is_raised(room.valkey)
    await room.run_jobs()
    room.later(31)
    assert (await room.send())["accepted"] == 1
    assert [mail.uid for mail in room.provider.sent] == [uid, uid]
    assert await room.counted(SENDS) == {
        "queued": 1, "attempted": 2, "templated": 2, "failed_transiently": {"ses:ConnectionError": 1}, "retried": 1,
        "accepted": {"code": 1},
    }


async def test_an_email_whose_every_answer_is_lost_is_given_up_after_four_tries(room: Room) -> None:
    """It used to be sent every ten minutes for ever, and its callback never ran."""
    room.provider.answers.extend([LOST] * 50)
    uid = await room.queue()
    for _ in range(80):
        await room.send()
        await room.run_jobs()
        room.later(120)
    assert [mail.uid for mail in room.provider.sent] == [uid] * 4
    assert [after for _, after in room.failed] == [AfterFailure.RETRY] * 3 + [AfterFailure.ABANDON]
    assert (await room.counted(SENDS))["abandoned"] == 1


async def test_where_it_may_not_be_sent_twice_a_lost_answer_is_a_failure_for_good(
    server: Valkey, database: Database
) -> None:
    room = Room(server, database, on_ambiguous="drop")
    room.provider.answers.append(LOST)
    await room.queue()
    assert (await room.send())["failed_permanently"] == 1
    await room.run_jobs()
    ((failure, after),) = room.failed
    assert (failure.info.error_identifier, after) == ("SESNetworkError", AfterFailure.NOTHING)
    room.later(7200)
    await room.send()
    assert len(room.provider.sent) == 1


async def test_where_nobody_reports_a_lost_answer_is_a_failure_like_others(room: Room) -> None:
    room.provider.reports = False
    room.provider.answers.append(LOST)
    await room.queue()
    assert (await room.send())["failed_transiently"] == 1
    await room.run_jobs()
    assert room.failed[0][1] is AfterFailure.RETRY


# -- couriers that died ------------------------------------------------------------------------------------------------


async def item_of(room: Room) -> OutgoingEmail:
    await room.queue()
    return (await SENDING.waiting().range(room.valkey))[0]


async def test_an_intent_without_news_is_waited_on_and_then_counts_as_not_sent(room: Room) -> None:
    item = await item_of(room)
    sender = room.workers.sender()
    await SENDING.intent(item.uid).set(room.valkey, "0 courier")
    assert await sender.verify(item) is Verdict.WAIT
    intent = SENDING.intent(item.uid).name(room.valkey.layout)
    await room.valkey.run(("EXPIRE", intent, 86_400 - 601), bool)
    assert await sender.verify(item) is Verdict.NOT_SENT


async def test_early_news_of_any_kind_prove_that_it_was_sent(room: Room) -> None:
    for news in (Delivery(), Bounce(BounceReason("Permanent", "General"))):
        item = await item_of(room)
        await SENDING.intent(item.uid).set(room.valkey, "0 courier")
        await room.tell(f"x-{item.uid}", news, uid=item.uid)
        room.later(6)
        await room.reconcile()
        found = await room.workers.sender().verify(item)
        assert not isinstance(found, Verdict) and found.counts == {"attempted": 1, "templated": 1, "accepted": 1}
        await SENDING.waiting().pop_left(room.valkey)


async def test_an_email_that_is_dropped_unsure_fails_for_good(room: Room) -> None:
    carried = room.workers.sender().drop(await item_of(room))
    assert carried.counts == {"attempted": 1, "templated": 1, "failed_permanently": 1}


async def test_what_is_queued_by_another_program_and_does_not_decode_stops_nobody(room: Room) -> None:
    await SENDING.work.push_raw(room.valkey, b"not an email")
    await room.queue()
    assert (await room.send())["accepted"] == 1
    assert await SENDING.work.dead.length(room.valkey) == 1
