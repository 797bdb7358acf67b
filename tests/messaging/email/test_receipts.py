"""News of email: each ends one wait, once; what comes too early waits; what nobody waits for is counted as that."""

import asyncio
import contextlib
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
import pytest_asyncio

from keystead.engine import Valkey
from keystead.messaging.email.keys import EARLY, NEWS, RECEIPT_PENDING, SENDING
from keystead.messaging.email.models import Bounce, BounceReason, Complaint, Delivery, EmailEvent
from keystead.messaging.email.stats import EVENTS
from keystead.messaging.sending import traced
from keystead.store import Database
from keystead.telemetry import span
from tests.messaging.sending.mortal import Died, lives
from tests.tracing_at_hand import Listener

from .room import ADA, Room, on_sqlite

pytestmark = on_sqlite


@pytest_asyncio.fixture
async def room(server: Valkey, database: Database) -> Room:
    """On one server, and on the cluster."""
    return Room(server, database)


HARD = Bounce(BounceReason("Permanent", "General"), [ADA], [ADA])
SOFT = Bounce(BounceReason("Transient", "MailboxFull"), [ADA], [ADA])
SPAM = Complaint("abuse", [ADA], [ADA])


async def sent(room: Room) -> str:
    uid = await room.queue()
    await room.send()
    return uid


async def test_a_delivery_runs_the_success_job_once(room: Room) -> None:
    uid = await sent(room)
    await room.tell("m-0", Delivery(), uid=uid)
    assert await room.reconcile() == {"attempted": 1, "succeeded_and_found": 1}
    assert await room.pending() == {}
    assert await room.run_jobs() == ["test.ok"]
    (told,) = room.succeeded
    assert (told.email.uid, told.email.message_id) == (uid, "m-0")
    assert told.info.delivery_received_at == room.clock.now()
    assert await room.counted(EVENTS) == {"attempted": {"found": 1}, "succeeded": {"found": 1}}
    assert "receipt" in [entry.what for entry in await traced(room.valkey, uid)]


@pytest.mark.parametrize(("news", "identifier", "extra", "counted"), [
    (HARD, "Bounce", "Permanent/General", ("bounced", "found:Permanent:General")),
    (SPAM, "Complaint", "abuse", ("complaint", "found:abuse")),
    (Complaint(), "Complaint", None, ("complaint", "found:None")),
    (Bounce(BounceReason("Permanent", "Brand:New")), "Bounce", "Permanent/Brand:New",
     ("bounced", "found:Permanent:Brand:New")),
])
async def test_bad_news_run_the_failure_job_and_are_not_retryable(
    room: Room, news: Any, identifier: str, extra: str | None, counted: tuple[str, str]
) -> None:
    await sent(room)
    await room.tell("m-0", news)
    await room.reconcile()
    await room.run_jobs()
    ((failure, _),) = room.failed
    assert (failure.info.step, failure.info.error_identifier, failure.info.extra, failure.info.retryable) == (
        "receipt", identifier, extra, False)
    assert (await room.counted(EVENTS))[counted[0]] == {counted[1]: 1}


async def test_found_news_are_counted_on_the_day_the_email_was_queued_on(room: Room) -> None:
    queued_at = room.clock.now()
    await sent(room)
    room.later(20 * 3600)
    await room.tell("m-0", Delivery())
    await room.reconcile()
    assert await room.counted(EVENTS, queued_at) == {"attempted": {"found": 1}, "succeeded": {"found": 1}}
    assert await room.counted(EVENTS) == {}


@pytest.mark.parametrize(("news", "counted", "run"), [
    (Delivery(), {"succeeded": {"abandoned": 1}}, "succeeded_but_abandoned"),
    (HARD, {"bounced": {"abandoned:Permanent:General": 1}}, "bounced_but_abandoned"),
    (SPAM, {"complaint": {"abandoned:abuse": 1}}, "complaint_and_abandoned"),
])
async def test_news_that_nobody_waits_for_are_counted_as_abandoned(
    room: Room, news: Any, counted: dict[str, Any], run: str
) -> None:
    """A bounce that nobody waited for used to be counted as found."""
    await room.tell("unknown", news)
    room.later(6)
    assert await room.reconcile() == {"attempted": 1, run: 1}
    assert await room.counted(EVENTS) == {"attempted": {"abandoned": 1}, **counted}
    ran = await room.run_jobs()
    assert ran == ([] if isinstance(news, Delivery) else ["abandoned_email_callback"])
    assert await room.suppression.emails([ADA]) == (set() if isinstance(news, Delivery) else {ADA})


async def test_a_complaint_after_the_delivery_runs_the_abandoned_callback_only(room: Room) -> None:
    uid = await sent(room)
    await room.tell("m-0", Delivery(), uid=uid)
    await room.reconcile()
    await room.tell("m-0", SPAM, uid=uid)
    assert await room.reconcile() == {"attempted": 1, "complaint_and_abandoned": 1}, "known at once, without waiting"
    assert await room.run_jobs() == ["test.ok", "abandoned_email_callback"]
    assert len(room.succeeded) == 1 and room.failed == []
    assert await room.suppression.emails([ADA]) == {ADA}


@pytest.mark.parametrize("order", list(permutations((Delivery(), HARD, SPAM), 2)), ids=str)
async def test_two_news_of_one_email_at_once_give_one_callback(room: Room, order: tuple[Any, Any]) -> None:
    await sent(room)
    for news in order:
        await room.tell("m-0", news)
    room.later(6)
    await asyncio.gather(room.workers.reconciliation().run(), room.workers.reconciliation(hostname="b").run())
    await room.reconcile()
    await room.run_jobs()
    assert len(room.succeeded) + len(room.failed) == 1


async def test_the_same_notification_counts_once_a_day(room: Room) -> None:
    await sent(room)
    assert await room.tell("m-0", Delivery(), sns_id="same")
    assert not await room.tell("m-0", Delivery(), sns_id="same")
    assert await NEWS.length(room.valkey) == 1


# -- news that come too early ------------------------------------------------------------------------------------------


async def test_news_that_beat_the_senders_own_note_are_applied(room: Room) -> None:
    """The provider tells of the delivery before it answers the request; a worker is at it at once."""
    stop = asyncio.Event()

    async def tell(mail: Any, message_id: str) -> None:
        await room.tell(message_id, Delivery(), uid=mail.uid)
        await asyncio.sleep(0.5)  # the worker looks for it meanwhile, and does not find it

    room.provider.before_answer = tell
    async with asyncio.TaskGroup() as group:
        group.create_task(room.workers.reconciliation().work(stop))
        await room.queue()
        assert (await room.send())["accepted"] == 1
        async with asyncio.timeout(30):
            while await RECEIPT_PENDING.size(room.valkey):
                await asyncio.sleep(0.02)
        stop.set()
    assert await room.run_jobs() == ["test.ok"]
    assert await room.counted(EVENTS) == {"attempted": {"found": 1}, "succeeded": {"found": 1}}


async def test_news_without_our_uid_are_looked_for_during_five_seconds(room: Room) -> None:
    await room.tell("m-0", Delivery())

    async def write_late() -> None:
        await asyncio.sleep(0.3)
        await sent(room)

    run, _ = await asyncio.gather(room.reconcile(), write_late())
    assert run == {"attempted": 1, "succeeded_and_found": 1}


async def test_news_of_an_email_under_way_are_laid_aside_and_none_of_them_is_lost(room: Room) -> None:
    uid = await room.queue()
    await SENDING.intent(uid).set(room.valkey, "0 courier")
    for news in (Delivery(), SPAM):
        await room.tell("m-9", news, uid=uid)
    room.later(6)
    assert await room.reconcile() == {} and await EARLY.size(room.valkey) == 2
    room.later(60)
    await room.sweep()
    assert await room.reconcile() == {}, "still under way"
    await SENDING.intent(uid).delete(room.valkey)
    room.later(60)
    await room.sweep()
    assert await EARLY.size(room.valkey) == 0
    assert await room.reconcile() == {
        "attempted": 2, "succeeded_but_abandoned": 1, "complaint_and_abandoned": 1}


# -- crashes -----------------------------------------------------------------------------------------------------------


async def crash_through(room: Room, news: Any, known: bool) -> None:
    """Die between any two commands of a run, then let another one finish: one callback, one count."""
    async for mortal in lives(room.valkey):
        for node in await room.valkey.nodes():
            await node.call(("FLUSHALL",))
        await room.suppression.lift_email(ADA)
        room.suppressed.forget(ADA)
        room.provider.sent.clear()
        if known:
            await sent(room)
        message_id = "m-0" if known else "nobody"
        await NEWS.push(room.valkey, EmailEvent(message_id, news, room.clock.now() - 10, "", "sns-1"))
        dying: Any = replace(room.workers, valkey=mortal).reconciliation(hostname="dying")  # type: ignore[arg-type]
        with contextlib.suppress(Died, BaseExceptionGroup):
            await dying._run()
        await room.reconcile()
        names = await room.run_jobs()
        wanted = {(Delivery, True): ["test.ok"], (Bounce, True): ["test.bad", "email.unreachable"],
                  (Delivery, False): [], (Bounce, False): ["abandoned_email_callback"]}[type(news), known]
        assert sorted(names) == sorted(wanted), mortal._left
        found = "found" if known else "abandoned"
        assert (await room.counted(EVENTS))["attempted"] == {found: 1}
        assert await room.pending() == {}
        if not mortal.dead:
            return


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("news", [Delivery(), HARD], ids=lambda news: type(news).__name__)
async def test_a_run_that_dies_at_any_point_loses_nothing_and_doubles_nothing(
    room: Room, news: Any, known: bool
) -> None:
    await crash_through(room, news, known)


async def test_news_that_cannot_be_read_stop_nobody(room: Room) -> None:
    await NEWS.push_raw(room.valkey, b"{}")
    await sent(room)
    await room.tell("m-0", Delivery())
    assert await room.reconcile() == {"attempted": 1, "succeeded_and_found": 1}
    assert await NEWS.dead.length(room.valkey) == 1
    assert await RECEIPT_PENDING.size(room.valkey) == 0


async def test_news_join_the_trace_of_the_email(room: Room) -> None:
    with Listener() as listener:
        with span("request", kind="server"):
            uid = await room.queue()
        await room.send()
        await room.tell("m-0", Delivery(), uid=uid)
        await room.reconcile()
    by_name = {one.name: one for one in listener.spans}
    request, news_of_it = by_name["request"], by_name["news of email"]
    assert news_of_it.context.trace_id == request.context.trace_id
    assert news_of_it.attributes["keystead.told"] == "Delivery" and ADA not in news_of_it.to_json()
