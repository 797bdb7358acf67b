"""Webhooks: signed, when they are due, again until somebody took them, also after a restart."""

import asyncio
from urllib.parse import parse_qsl

import aiohttp
from aiohttp import web

from keystead.clock import SystemClock
from keystead.messaging.sandbox import caller
from keystead.messaging.sandbox.keys import DUE, STOPPED
from keystead.messaging.sandbox.sandbox import Sandbox
from keystead.messaging.signatures import is_signed_by_twilio

from .conftest import ACCOUNT, Asking, until


def form(got):
    return dict(parse_qsl(got[2].decode(), keep_blank_values=True))


async def nothing_due(valkey):
    return await DUE.size(valkey) == 0


async def test_status_callbacks_come_in_order_and_signed(served, listener, valkey):
    callback = listener.url + "/status?uid=sms_1&lane=0"
    _, made = await Asking(served).text(StatusCallback=callback)
    await until(lambda: nothing_due(valkey))
    assert [form(got)["MessageStatus"] for got in listener.got] == ["queued", "sending", "sent", "delivered"]
    for url, headers, body in listener.got:
        assert url == callback
        assert headers["content-type"] == "application/x-www-form-urlencoded; charset=UTF-8"
        fields = form((url, headers, body))
        assert fields["MessageSid"] == fields["SmsSid"] == made["sid"]
        assert fields["AccountSid"] == "AC0" and fields["To"] == "+15550001" and fields["MessagingServiceSid"] == "MG0"
        assert is_signed_by_twilio("secret", callback, fields, headers["x-twilio-signature"])
    assert (await served.outbox.counts())["sms:webhooks_called"] == 4


async def test_a_failure_tells_its_code(served, listener, valkey):
    await Asking(served).text("+15005553005", StatusCallback=listener.url)
    await until(lambda: nothing_due(valkey))
    assert [form(got).get("ErrorCode") for got in listener.got] == [None, None, "30005"]


async def test_a_webhook_that_failed_is_called_again_and_one_that_was_refused_is_not(served, listener, valkey):
    await served.faults.change("sms", {"final_only": True})
    listener.answers = [web.Response(status=503), web.Response(status=403)]
    await Asking(served).text(StatusCallback=listener.url)
    await until(lambda: nothing_due(valkey))
    assert len(listener.got) == 2
    counts = await served.outbox.counts()
    assert (counts["sms:webhooks_failed"], counts["sms:webhooks_refused"]) == (1, 1)


async def test_a_webhook_that_was_owed_when_the_sandbox_died_is_called_by_the_next_one(valkey, listener):
    """The first one accepts and never works."""
    first = Sandbox(valkey, SystemClock(), url="http://127.0.0.1:1", account=ACCOUNT)
    await first.faults.change("sms", {"receipt_seconds": 0, "final_only": True})
    await Asking(first).text(StatusCallback=listener.url)
    assert not listener.got
    stop = asyncio.Event()
    next_one = Sandbox(valkey, SystemClock(), url="http://127.0.0.1:1", account=ACCOUNT)
    async with asyncio.TaskGroup() as group:
        group.create_task(next_one.work(stop))
        await until(lambda: nothing_due(valkey))
        stop.set()
    assert [form(got)["MessageStatus"] for got in listener.got] == ["delivered"]


async def test_two_sandboxes_on_one_server_call_a_webhook_once(valkey, listener):
    both = [Sandbox(valkey, SystemClock(), url="http://127.0.0.1:1", account=ACCOUNT) for _ in range(2)]
    await both[0].faults.change("sms", {"receipt_seconds": 0, "final_only": True})
    for number in range(20):
        await Asking(both[0]).text(f"+1555000{number:02}", StatusCallback=listener.url)
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for each in both:
            group.create_task(each.work(stop))
        await until(lambda: nothing_due(valkey))
        stop.set()
    assert len(listener.got) == 20


async def test_an_early_webhook_comes_before_the_answer(served, listener, valkey):
    await served.faults.change("sms", {"early": 1.0, "final_only": True, "receipt_seconds": 60})
    _, made = await Asking(served).text(StatusCallback=listener.url)
    assert [form(got)["MessageSid"] for got in listener.got] == [made["sid"]]
    assert await nothing_due(valkey)


async def test_somebody_who_answers_stop_is_told_and_no_longer_written_to(served, listener, valkey):
    listener.answers = [web.Response(
        text="<?xml version='1.0'?><Response><Message>Bye &amp; thanks</Message></Response>", content_type="text/xml")]
    async with aiohttp.ClientSession() as http, http.post(
            served.base_url + "/reply", json={"from": "+15550001", "body": " Stop "}) as response:
        assert response.status == 202
        sid = (await response.json())["sid"]
    await until(lambda: nothing_due(valkey))
    ((url, headers, body),) = listener.got
    fields = form((url, headers, body))
    assert url == listener.url + "/inbound?x=1"
    assert (fields["From"], fields["Body"]) == ("+15550001", " Stop ")
    assert (fields["OptOutType"], fields["FromCity"]) == ("STOP", "")
    assert is_signed_by_twilio("secret", url, fields, headers["x-twilio-signature"])
    status, found = await Asking(served).text()
    assert (status, found["code"]) == (400, 21610)
    replies = await served.outbox.messages("sms", "+15550001")
    assert {(each.id == sid, each.direction, each.text) for each in replies} == {
        (True, "inbound", " Stop "), (False, "outbound-reply", "Bye & thanks")}
    await served.reply("+15550001", "START")
    await until(lambda: nothing_due(valkey))
    assert await STOPPED.at().members(valkey) == []
    assert (await Asking(served).text())[0] == 201


async def test_other_words_have_no_effect(served, listener, valkey):
    await served.reply("+15550001", "I can't stop smiling")
    await until(lambda: nothing_due(valkey))
    assert "OptOutType" not in form(listener.got[0])
    assert (await Asking(served).text())[0] == 201



async def test_one_that_owes_nothing_for_long_looks_less_often_until_it_owes_something(valkey, listener):
    sandbox = Sandbox(valkey, SystemClock(), url="http://127.0.0.1:1", account=ACCOUNT)
    async with asyncio.TaskGroup() as group:
        pauses = [await sandbox._caller._begin(group, set()) for _ in range(caller.QUIET_LOOKS)]
        assert set(pauses[:-1]) == {caller.LOOK_SECONDS} and pauses[-1] == caller.IDLE_SECONDS
        await sandbox.faults.change("sms", {"receipt_seconds": 0, "final_only": True})
        await Asking(sandbox).text(StatusCallback=listener.url)
        assert await sandbox._caller._begin(group, set()) == caller.PAUSE_SECONDS
    assert len(listener.got) == 1
    async with asyncio.TaskGroup() as group:
        assert await sandbox._caller._begin(group, set()) == caller.LOOK_SECONDS
    await sandbox._caller.aclose()
