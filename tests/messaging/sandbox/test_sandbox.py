"""The whole: faults befall every provider in its own words, and what was accepted is kept whatever they do."""

import asyncio

import pytest

from keystead.errors import Invalid
from keystead.messaging.sandbox.http import Asked

from .conftest import AWS, BASIC, MAIL, MESSAGES, PUSH

REQUESTS = {
    "push": Asked("POST", PUSH, body=b'[{"to":"ExponentPushToken[a]"}]'),
    "sms": Asked("POST", MESSAGES, headers=BASIC, body=b"To=%2B15550001&Body=x&From=%2B15550002"),
    "email": Asked("POST", MAIL, headers=AWS, body=(
        b'{"FromEmailAddress":"a@b.c","Destination":{"ToAddresses":["d@e.f"]},'
        b'"Content":{"Simple":{"Subject":{"Data":"s"},"Body":{"Text":{"Data":"t"}}}}}')),
}


@pytest.mark.parametrize("channel", REQUESTS)
async def test_a_throttled_request_says_when_to_come_back(sandbox, channel):
    await sandbox.faults.change(channel, {"throttle": 1.0, "retry_after_seconds": 7})
    answer = await sandbox.handle(REQUESTS[channel])
    assert (answer.status, answer.headers["retry-after"]) == (429, "7")
    assert {"push": b"TOO_MANY_REQUESTS", "sms": b"20429", "email": b"rate exceeded"}[channel] in answer.body
    assert await sandbox.outbox.counts() == {f"{channel}:throttled": 1}


@pytest.mark.parametrize("channel", REQUESTS)
async def test_a_broken_provider_answers_as_it_does(sandbox, channel):
    await sandbox.faults.change(channel, {"server_error": 1.0})
    answer = await sandbox.handle(REQUESTS[channel])
    assert answer.status >= 500
    assert await sandbox.outbox.counts() == {f"{channel}:server_errors": 1}


@pytest.mark.parametrize("channel", REQUESTS)
async def test_a_connection_cut_before_leaves_nothing_and_one_cut_after_leaves_the_message(sandbox, channel):
    await sandbox.faults.change(channel, {"cut_before": 1.0})
    assert await sandbox.handle(REQUESTS[channel]) is None
    assert [message async for message in sandbox.outbox.all()] == []
    await sandbox.faults.change(channel, {"cut_before": 0, "cut_after": 1.0})
    assert await sandbox.handle(REQUESTS[channel]) is None
    assert len([message async for message in sandbox.outbox.all()]) == 1
    assert await sandbox.outbox.counts() == {f"{channel}:cut_before": 1, f"{channel}:accepted": 1,
                                             f"{channel}:cut_after": 1}


async def test_a_rate_throttles_only_what_is_beyond_it(sandbox, clock):
    await sandbox.faults.change("sms", {"rate_per_second": 4})
    statuses = [(await sandbox.handle(REQUESTS["sms"])).status for _ in range(4)]
    assert statuses == [201, 201, 429, 429]
    clock.at += 1
    assert (await sandbox.handle(REQUESTS["sms"])).status == 201
    assert (await sandbox.handle(REQUESTS["push"])).status == 200


async def test_faults_of_one_provider_leave_the_others_alone(sandbox):
    await sandbox.faults.change("email", {"server_error": 1.0})
    assert (await sandbox.handle(REQUESTS["push"])).status == 200
    assert (await sandbox.handle(REQUESTS["sms"])).status == 201


async def test_latency_is_waited_for(sandbox):
    await sandbox.faults.change("sms", {"latency_ms": 300_000})
    asking = asyncio.ensure_future(sandbox.handle(REQUESTS["sms"]))
    await asyncio.wait((asking,), timeout=0.2)
    assert not asking.done()
    asking.cancel()


async def test_faults_are_set_and_read_over_http(asking, sandbox):
    status, found, _ = await asking.json("POST", "/faults", {"channel": "sms", "throttle": 0.25})
    assert (status, found["sms"]["throttle"], found["push"]["throttle"]) == (200, 0.25, 0.0)
    assert (await asking.json("POST", "/faults", {"latency_ms": 3}))[1]["email"]["latency_ms"] == 3
    assert (await asking.json("GET", "/faults"))[1]["sms"]["throttle"] == 0.25
    for bad in ({"channel": "fax"}, {"throttle": 2}, {"nonsense": 1}, [], b"{"):
        status, found, _ = await asking.json("POST", "/faults", bad)
        assert status == 400 and found["message"]
    assert (await asking.json("DELETE", "/faults"))[1]["sms"]["throttle"] == 0.0


async def test_the_outbox_can_be_read_over_http(asking):
    await asking.text(body="hello")
    found = (await asking.json("GET", "/outbox"))[1]
    (each,) = found["recipients"]
    assert (each["channel"], each["to"], each["messages"]) == ("sms", "+15550001", 1)
    found = (await asking.json("GET", "/outbox?channel=sms&to=%2B15550001"))[1]
    assert [each["text"] for each in found["messages"]] == ["hello"]
    assert (await asking.json("GET", "/counts"))[1] == {"sms:accepted": 1}


async def test_nobody_can_reply_to_one_who_does_not_listen(asking, sandbox):
    with pytest.raises(Invalid, match="inbound_url"):
        await sandbox.reply("+15550001", "hi")
    assert (await asking.json("POST", "/reply", {"from": "+15550001", "body": "hi"}))[0] == 400


async def test_a_reply_needs_a_number_and_words(sandbox):
    sandbox._inbound_url = "http://127.0.0.1:1/x"
    for number, words in (("", "hi"), ("ada", "hi"), ("+15550001", " ")):
        with pytest.raises(Invalid, match="a reply needs"):
            await sandbox.reply(number, words)


async def test_the_sandbox_has_nothing_elsewhere(asking):
    for path in ("/", "", "/else", "/expo"):
        assert (await asking.json("GET", path))[0] == 404


def test_it_says_where_the_channels_find_it(sandbox):
    assert sandbox.push_url == "http://127.0.0.1:1/sandbox/expo"
    assert sandbox.sms_url == "http://127.0.0.1:1/sandbox/twilio"
    assert sandbox.email_url == "http://127.0.0.1:1/sandbox/ses"
    assert sandbox.certificate_url.endswith(".pem")
