"""Push messages on their way to the provider."""

import pytest

from keystead.messaging.push.gateway import NOT_CONNECTED
from keystead.messaging.push.keys import COLD
from keystead.messaging.push.models import FailureInfo, Identifier, PushTicket
from keystead.messaging.push.stats import SEND_RUN, TICKETS
from keystead.messaging.sending import traced

from .room import NOON, TOKEN, Room


async def test_a_ticket_goes_to_the_cold_set_in_the_step_that_counts_it(server):
    room = Room(server)
    await room.queue(uid="pma_1", lane="low")
    room.clock.advance(5)
    assert await room.send() == {"num_messages_attempted": 1, "num_succeeded": 1}
    ((check, score),) = await COLD.at().range(server)
    assert score == check.initially_queued_at == check.last_queued_at == check.push_ticket_created_at == NOON + 5
    assert (check.attempt_initially_queued_at, check.retry, check.push_ticket) == (NOON, 0, PushTicket("ok", "t0"))
    assert await room.counted(TICKETS) == {"queued": 1, "succeeded": 1}
    assert await room.jobs() == []
    assert [entry.what for entry in await traced(server, "pma_1")] == ["queued", "taken up", "asked the provider"]
    record = await SEND_RUN.at().get(server)
    assert record is not None and record.num_succeeded == 1
    await room.check_all()


async def test_messages_travel_a_hundred_at_a_time(valkey):
    room = Room(valkey)
    for _ in range(250):
        await room.queue()
    assert (await room.send())["num_succeeded"] == 250
    assert max(room.provider.requests) == 100 and sum(room.provider.requests) == 250
    assert len(room.provider.requests) <= 4
    await room.check_all()


@pytest.mark.parametrize(
    ("answer", "counted", "identifier", "retryable"),
    [
        (FailureInfo("send", Identifier.NETWORK, True), "network_error", "NetworkError", True),
        (FailureInfo("send", Identifier.CLIENT_429, True, retry_after_seconds=7), "client_error_429",
         "ClientError429", True),
        (FailureInfo("send", Identifier.SERVER, True), "server_error", "ServerError", True),
        (FailureInfo("send", Identifier.CLIENT_OTHER), "client_error_other", "ClientErrorOther", False),
        (FailureInfo("send", Identifier.INTERNAL), "internal_error", "InternalError", False),
        ([PushTicket("ok")], "internal_error", "InternalError", False),
        ([PushTicket("maybe", "t")], "internal_error", "InternalError", False),
        ([PushTicket("error", None, "no", {"error": "SomethingNew"})], "internal_error", "InternalError", False),
        ([PushTicket("error", None, "no")], "internal_error", "InternalError", False),
        ([PushTicket("error", None, "gone", {"error": "DeviceNotRegistered"})], "device_not_registered",
         "DeviceNotRegistered", False),
    ],
)
async def test_each_failure_is_counted_once_and_told_once(valkey, answer, counted, identifier, retryable):
    room = Room(valkey)
    await room.queue(uid="pma_1")
    room.provider.answers.append(answer)
    outcome = "num_failed_transiently" if retryable else "num_failed_permanently"
    assert await room.send() == {"num_messages_attempted": 1, outcome: 1}
    assert await room.counted(TICKETS) == {"queued": 1, f"failed_due_to_{counted}": 1}
    await room.run_jobs()
    ((failure, _),) = room.failed
    assert failure.attempt.uid == "pma_1" and failure.failure_info.action == "send"
    assert (failure.failure_info.identifier, failure.failure_info.retryable) == (identifier, retryable)
    gone = identifier == "DeviceNotRegistered"
    assert room.tokens.forgotten == ([(TOKEN, "ticket")] if gone else [])
    assert await room.places() == ({"retry": ["pma_1"]} if retryable else {})
    await room.check_all()


async def test_one_bad_device_fails_alone(valkey):
    room = Room(valkey)
    for number in range(3):
        await room.queue(uid=f"pma_{number}")
    room.provider.answers.append([
        PushTicket("ok", "x0"), PushTicket("error", None, "gone", {"error": "DeviceNotRegistered"}),
        PushTicket("ok", "x2"),
    ])
    await room.send()
    await room.run_jobs()
    assert (await room.places())["cold"] == ["pma_0", "pma_2"]
    assert [failure.attempt.uid for failure, _ in room.failed] == ["pma_1"]
    await room.check_all()


async def test_a_message_that_may_have_been_sent_is_dropped_where_that_is_set(valkey):
    from keystead.messaging.push.keys import SENDING

    room = Room(valkey, on_ambiguous="drop")
    await room.queue(uid="pma_1")
    await SENDING.intent("pma_1").set(valkey, "0 courier_who_died")
    await room.send()
    await room.run_jobs()
    assert room.provider.sent == []
    ((failure, settled),) = room.failed
    assert not failure.failure_info.retryable and settled.is_over
    await room.check_all()


@pytest.mark.parametrize(("on_ambiguous", "extra", "sent"), [
    ("drop", "ServerDisconnectedError", 1), ("drop", NOT_CONNECTED, 2), ("verify", "ServerDisconnectedError", 2),
])
async def test_whether_a_lost_answer_may_mean_a_second_message_is_a_setting(valkey, on_ambiguous, extra, sent):
    room = Room(valkey, on_ambiguous=on_ambiguous)
    await room.queue(uid="pma_1")
    room.provider.answers.append(FailureInfo("send", Identifier.NETWORK, True, extra=extra))
    await room.send()
    await room.run_jobs()
    room.clock.advance(7200)
    await room.send()
    assert room.provider.sent == ["pma_1"] * sent
    assert [settled.is_over for _, settled in room.failed] == [sent == 1]
    await room.check_all()
