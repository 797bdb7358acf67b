"""Push as Expo does it."""

import gzip
import json

import pytest

from .conftest import PUSH, RECEIPTS

ADA, BOB = "ExponentPushToken[ada]", "ExpoPushToken[bob]"


async def test_tickets_have_the_order_of_the_messages(asking, sandbox):
    tickets = await asking.push(ADA, "nonsense", BOB, "ExponentPushToken[unregistered-1]")
    assert [ticket["status"] for ticket in tickets] == ["ok", "error", "ok", "error"]
    assert tickets[3]["details"]["error"] == "DeviceNotRegistered"
    assert tickets[3]["message"] == (
        '"ExponentPushToken[unregistered-1]" is not a registered push notification recipient')
    (message,) = await sandbox.outbox.messages("push", ADA)
    assert (message.id, message.title, message.text) == (tickets[0]["id"], "T", "B")
    assert message.data == {"channelId": "default"}
    assert await sandbox.outbox.counts() == {"push:accepted": 2}


async def test_a_body_may_be_packed(asking):
    packed = gzip.compress(json.dumps([{"to": ADA, "body": "x"}]).encode())
    status, found, answer = await asking.json("POST", PUSH, packed, **{"content-encoding": "gzip"})
    assert (status, found["data"][0]["status"]) == (200, "ok")
    assert answer.headers["content-type"] == "application/json; charset=utf-8"


async def test_one_message_alone_has_one_ticket_alone(asking):
    assert (await asking.json("POST", PUSH, {"to": ADA}))[1]["data"]["status"] == "ok"


async def test_receipts_come_when_it_is_time(asking, sandbox, clock):
    tickets = await asking.push(ADA, "ExponentPushToken[gone-1]", "ExponentPushToken[silent-1]")
    ids = [ticket["id"] for ticket in tickets]
    assert (await asking.json("POST", RECEIPTS, {"ids": ids}))[1] == {"data": {}}
    clock.at += 1.0
    status, found, _ = await asking.json("POST", RECEIPTS, {"ids": [*ids, "unknown", "a:b", "\n"]})
    assert status == 200
    assert found["data"] == {
        ids[0]: {"status": "ok"},
        ids[1]: {"status": "error", "message": "The device cannot receive push notifications anymore.",
                 "details": {"error": "DeviceNotRegistered", "expoPushToken": "ExponentPushToken[gone-1]"}},
    }


@pytest.mark.parametrize(("token", "error"), [
    ("ExponentPushToken[big-1]", "MessageTooBig"), ("ExponentPushToken[rate-1]", "MessageRateExceeded"),
    ("ExponentPushToken[sender-1]", "MismatchSenderId"), ("ExponentPushToken[credentials-1]", "InvalidCredentials"),
])
async def test_tokens_can_ask_for_an_error(asking, clock, token, error):
    (ticket,) = await asking.push(token)
    clock.at += 1.0
    receipts = (await asking.json("POST", RECEIPTS, {"ids": [ticket["id"]]}))[1]["data"]
    assert receipts[ticket["id"]]["details"]["error"] == error


async def test_a_payload_over_four_kilobytes_is_too_big(asking, clock):
    (ticket,) = await asking.push(ADA, data={"x": "y" * 4096})
    clock.at += 1.0
    receipts = (await asking.json("POST", RECEIPTS, {"ids": [ticket["id"]]}))[1]["data"]
    assert receipts[ticket["id"]]["details"]["error"] == "MessageTooBig"


async def test_named_tokens_are_not_registered(asking, sandbox):
    await sandbox.faults.change("push", {"unregistered_tokens": [BOB]})
    assert [ticket["status"] for ticket in await asking.push(ADA, BOB)] == ["ok", "error"]


@pytest.mark.parametrize(("body", "code"), [
    ([{"to": ADA}] * 101, "PUSH_TOO_MANY_NOTIFICATIONS"), ([], "VALIDATION_ERROR"),
    ([{"title": "x"}], "VALIDATION_ERROR"),
    ([{"to": []}], "VALIDATION_ERROR"), ([7], "VALIDATION_ERROR"), (b"{", "VALIDATION_ERROR"),
])
async def test_a_request_that_is_wrong_as_a_whole_is_refused(asking, sandbox, body, code):
    status, found, _ = await asking.json("POST", PUSH, body)
    assert status == 400
    assert found["errors"][0]["code"] == code
    assert await sandbox.outbox.counts() == {}


async def test_too_many_receipts_are_refused(asking):
    status, found, _ = await asking.json("POST", RECEIPTS, {"ids": ["a"] * 1001})
    assert (status, found["errors"][0]["code"]) == (400, "PUSH_TOO_MANY_RECEIPTS")
    assert (await asking.json("POST", RECEIPTS, {"ids": "a"}))[0] == 400


async def test_other_paths_and_methods_are_unknown(asking):
    assert (await asking.json("POST", "/expo/else"))[0] == 404
    assert (await asking.json("GET", PUSH))[0] == 405
