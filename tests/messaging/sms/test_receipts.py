"""News of texts: applied in whatever order it comes, once, with exactly one callback for each text."""

import asyncio
import itertools
import random

import msgspec
import pytest

from keystead.engine import Valkey
from keystead.messaging.sms import Settled
from keystead.messaging.sms.keys import EARLY, NEWS, PENDING
from keystead.messaging.sms.models import FailureInfo, Identifier, PendingSms, SmsEvent
from keystead.messaging.sms.receipts import Receipts
from keystead.messaging.sms.stats import EVENTS
from keystead.messaging.sms.statuses import Status
from keystead.telemetry import span
from tests.tracing_at_hand import Listener

from .room import NOON, NUMBER, Room


async def sent(room: Room) -> str:
    await room.queue()
    await room.send()
    return next(reversed(room.provider.messages))


def news(sid: str, status: str, at: float, **more: object) -> SmsEvent:
    return SmsEvent(sid=sid, status=Status(status), information_received_at=at, received_via="webhook", **more)  # type: ignore[arg-type]


async def test_a_new_state_is_noted_and_the_text_waits_anew(server: Valkey) -> None:
    room = Room(server)
    sid = await sent(room)
    room.clock.advance(100)
    await room.tell(sid, "sending", "30001")
    counts = await room.reconcile()
    assert (counts["found"], counts["updated"], counts["pending"]) == (1, 1, 1)
    record = (await room.pending())[sid]
    assert (record.message_resource_status, record.num_changes, record.message_resource_error_code) == (
        Status.SENDING, 1, "30001"
    )
    assert record.message_resource_last_updated_at == NOON + 100 and await room.due() == {sid: NOON + 1000}
    assert await room.counted(EVENTS) == {
        "attempted": {"sending": 1}, "received_via_webhook": {"sending": 1}, "pending": {"sending": 1}, "found": 1,
        "updated": {"accepted:sending": 1},
    }


async def test_the_end_is_noted_once_with_its_callback(server: Valkey) -> None:
    room = Room(server)
    sid = await sent(room)
    for _ in range(3):
        await room.tell(sid, "delivered", uid="known")
    counts = await room.reconcile()
    assert (counts["attempted"], counts["removed"], counts["found"]) == (3, 1, 1) and await room.pending() == {}
    await room.run_jobs()
    (success,) = room.succeeded
    assert success.result.message_resource_created_at == NOON and success.sms.phone_number == NUMBER
    assert success.result.message_resource.status is Status.DELIVERED
    assert await room.counted(EVENTS) == {
        "attempted": {"delivered": 3}, "received_via_webhook": {"delivered": 3}, "succeeded": {"delivered": 3},
        "found": 1, "removed": {"accepted:delivered": 1}, "unknown": {"delivered": 2},
    }


async def test_a_failure_says_why_and_suppresses_whom_it_must(server: Valkey) -> None:
    room = Room(server)
    sid = await sent(room)
    await room.tell(sid, "undelivered", "30005")
    await room.reconcile()
    await room.run_jobs(times=2)
    (failure, settled), _ = room.failed
    assert settled is Settled.FINAL
    assert failure.failure_info == FailureInfo("pending", Identifier.APPLICATION, "30005")
    assert isinstance(failure.sms, PendingSms) and failure.sms.num_failures == 1
    assert failure.sms.message_resource.status is Status.UNDELIVERED
    assert list(room.numbers.listed) == [NUMBER]


async def test_a_failure_of_the_carrier_suppresses_nobody(valkey: Valkey) -> None:
    """Defect 11."""
    room = Room(valkey)
    await room.tell(await sent(room), "undelivered", "30003")
    await room.reconcile()
    await room.run_jobs()
    assert len(room.failed) == 1 and room.numbers.listed == {}


async def test_what_is_older_or_the_same_changes_nothing(server: Valkey) -> None:
    room = Room(server)
    sid = await sent(room)
    await room.tell(sid, "sending")
    await room.reconcile()
    before = await room.pending()
    for status in ("queued", "accepted", "sending"):
        await room.tell(sid, status)
    await NEWS.push(server, news(sid, "delivered", NOON, date_updated=NOON - 10))
    counts = await room.reconcile()
    assert (counts["out_of_order"], counts["duplicate"], counts["found"]) == (3, 1, 4)
    assert await room.pending() == before
    assert (await room.counted(EVENTS))["out_of_order"] == {
        "sending:queued": 1, "sending:accepted": 1, "sending:delivered": 1
    }


# -- news that nobody waits for ----------------------------------------------------------------------------------------


async def test_news_of_an_unknown_message_is_kept_for_a_minute(server: Valkey) -> None:
    room = Room(server)
    await room.tell("SM77", "sent")
    for _ in range(3):
        assert (await room.reconcile())["attempted"] == 0 and await EARLY.at().size(server) == 1
        room.clock.advance(15)
    assert await room.counted(EVENTS) == {}
    room.clock.advance(16)
    assert (await room.reconcile())["attempted"] == 1
    assert (await room.counted(EVENTS))["unknown"] == {"sent": 1} and await EARLY.at().size(server) == 0


async def test_news_of_a_text_that_is_known_to_be_settled_is_not_kept(server: Valkey) -> None:
    room = Room(server)
    await room.tell("SM77", "sent", uid="sms_settled")
    assert (await room.reconcile())["attempted"] == 1
    assert (await room.counted(EVENTS))["unknown"] == {"sent": 1} and await EARLY.at().size(server) == 0


async def test_early_news_finds_its_text_in_the_next_look(server: Valkey) -> None:
    room = Room(server)
    await room.tell("SM0", "delivered")
    await room.reconcile()
    await sent(room)
    assert (await room.reconcile())["attempted"] == 0
    room.clock.advance(2)
    assert (await room.reconcile())["removed"] == 1
    await room.run_jobs()
    assert len(room.succeeded) == 1


async def test_a_record_that_does_not_decode_stops_no_other_news(valkey: Valkey) -> None:
    room = Room(valkey)
    first, second = await sent(room), await sent(room)
    await valkey.hset(PENDING.record(first).name(valkey.layout), "num_changes", "many")
    for sid in (first, second):
        await room.tell(sid, "delivered")
    await NEWS.push_raw(valkey, b"no news")
    assert (await room.reconcile())["removed"] == 1
    await room.run_jobs()
    errors = sorted(letter.error for letter in await NEWS.dead_letters(valkey))
    assert len(room.succeeded) == 1 and len(errors) == 2
    assert "num_changes" in errors[1], "news of the first can be replayed once its record is mended"


# -- orders ------------------------------------------------------------------------------------------------------------

GOOD = ("accepted", "queued", "sending", "sent", "delivered")
SAD = ("accepted", "queued", "sending", "undelivered")


async def through(room: Room, orders: list[tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Feed each order to a text of its own, all at once."""
    by_sid = {}
    for order in orders:
        by_sid[await sent(room)] = order
    longest = max(map(len, orders))
    for place in range(longest):
        for sid, order in by_sid.items():
            if place < len(order):
                code = "30003" if order[place] == "undelivered" else ""
                await NEWS.push(room.valkey, news(sid, order[place], room.clock.now(), error_code=code or None))
        room.clock.advance(1)
        if place % 2:
            await room.reconcile()
            await room.pending()
    await room.reconcile()
    room.clock.advance(61)
    await room.reconcile()
    assert await room.pending() == {}
    await room.run_jobs()
    await room.check_all()
    return by_sid


async def test_every_order_of_a_good_life_ends_in_one_success(valkey: Valkey) -> None:
    """Acceptance 3, with duplicates."""
    room = Room(valkey)
    rng = random.Random(5)
    orders = [*itertools.permutations(GOOD), *(tuple(rng.sample(GOOD * 2, 10)) for _ in range(40))]
    by_sid = await through(room, orders)
    assert len(room.succeeded) == len(orders) and not room.failed
    assert {success.result.message_resource.sid for success in room.succeeded} == set(by_sid)


async def test_every_order_of_a_sad_life_ends_in_one_failure(valkey: Valkey) -> None:
    """Acceptance 3, with duplicates."""
    room = Room(valkey)
    rng = random.Random(6)
    orders = [*itertools.permutations(SAD), *(tuple(rng.sample(SAD * 2, 8)) for _ in range(20))]
    by_sid = await through(room, orders)
    assert len(room.failed) == len(orders) and not room.succeeded
    assert {failure.failure_info.subidentifier for failure, _ in room.failed} == {"30003"}
    sids = [failure.sms.message_resource.sid for failure, _ in room.failed if isinstance(failure.sms, PendingSms)]
    assert sorted(sids) == sorted(by_sid)


async def test_several_at_once_call_back_once(server: Valkey) -> None:
    room = Room(server)
    sids = [await sent(room) for _ in range(10)]
    receipts = Receipts(server, room.clock, room.workers.settings)
    told = [news(sid, status, NOON) for sid in sids for status in ("queued", "sending", "sent", "delivered")] * 2
    random.Random(1).shuffle(told)
    applied = await asyncio.gather(*(receipts.apply(event) for event in told))
    assert sum(one.counts.get("removed", 0) for one in applied) == 10
    await room.run_jobs()
    assert len(room.succeeded) == 10 and await room.pending() == {}


@pytest.mark.parametrize("status", ["read", "partially_delivered", "received"])
async def test_states_that_were_not_known_before_settle_a_text(valkey: Valkey, status: str) -> None:
    """Defect 6: such a state could not be read."""
    room = Room(valkey)
    await room.tell(await sent(room), status)
    await room.reconcile()
    await room.run_jobs()
    assert [success.result.message_resource.status.value for success in room.succeeded] == [status]


async def test_kept_samples_of_news_can_be_read(valkey: Valkey) -> None:
    room = Room(valkey)
    sid = await sent(room)
    sample = {"sid": sid, "status": "sent", "error_code": None, "error_message": None, "date_updated": NOON + 5,
              "information_received_at": NOON + 6, "received_via": "poll", "new_field": 1}
    await NEWS.push_raw(valkey, msgspec.json.encode(sample))
    assert (await room.reconcile())["removed"] == 1


async def test_news_join_the_trace_of_the_text_and_what_follows_does_too(server: Valkey) -> None:
    room = Room(server)
    with Listener() as listener:
        with span("request", kind="server"):
            await room.queue()
        await room.send()
        sid = next(reversed(room.provider.messages))
        await room.tell(sid, "delivered", uid="known")
        await room.reconcile()
        (job,) = await room.jobs()
    by_name = {one.name: one for one in listener.spans}
    request, news_of_it = by_name["request"], by_name["news of sms"]
    assert news_of_it.context.trace_id == request.context.trace_id
    assert news_of_it.attributes["keystead.status"] == "delivered" and NUMBER not in news_of_it.to_json()
    assert f"{request.context.trace_id:032x}" in job.trace


async def test_while_nobody_listens_nothing_of_a_trace_is_kept(server: Valkey) -> None:
    room = Room(server)
    sid = await sent(room)
    assert (await room.pending())[sid].trace is None
