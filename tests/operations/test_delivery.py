"""Whoever is to be told is told, at least once, several things in one message."""

import asyncio
import hashlib
import hmac
import json

import pytest

from keystead.errors import Invalid
from keystead.jobs import ROOMS_QUEUE
from keystead.jobs.keys import Queue
from keystead.operations import MAIL_JOB, AlertRules, Alerts, Delivery, Webhook
from keystead.operations.delivery import SIGNATURE_HEADER
from keystead.operations.keys import DELIVERIES, DELIVERY_TRIES, TRIED
from keystead.telemetry import counts
from keystead.testing.clock import MovableClock

from .receiver import receiving


def pair(valkey, clock, *ways, **options) -> tuple[Alerts, Delivery]:
    alerts = Alerts(valkey, clock, AlertRules(3600.0, ways or ("webhook",)))
    return alerts, Delivery(valkey, clock, alerts, **options)


async def test_a_webhook_gets_signed_json_and_is_not_told_again(server):
    clock = MovableClock(now=1_700_000_000.0)
    async with receiving() as receiver:
        alerts, delivery = pair(server, clock, webhook=Webhook(receiver.url, "shared secret"))
        await alerts.raise_("queue_stuck", "jobs hot", "12 wait", "critical")
        assert await delivery.deliver() == 1
        assert await delivery.deliver() == 0
    [(headers, raw)] = receiver.requests
    body = json.loads(raw)
    [event] = body["events"]
    assert (event["event"], event["kind"], event["subject"], event["severity"]) == (
        "opened", "queue_stuck", "jobs hot", "critical")
    assert "12 wait" in body["text"], "a chat shows it as it is"
    at, _, signed = headers[SIGNATURE_HEADER].partition(",v1=")
    assert at == "t=1700000000"
    assert signed == hmac.new(b"shared secret", b"1700000000." + raw, hashlib.sha256).hexdigest()


async def test_much_trouble_at_once_is_one_message(valkey):
    clock = MovableClock(now=1000.0)
    async with receiving() as receiver:
        alerts, delivery = pair(valkey, clock, webhook=Webhook(receiver.url))
        for number in range(40):
            await alerts.raise_("queue_stuck", f"queue {number}", "stuck")
        while await delivery.deliver():
            pass
    [(headers, raw)] = receiver.requests
    assert len(json.loads(raw)["events"]) == 40
    assert SIGNATURE_HEADER not in headers


@pytest.mark.parametrize("status", [302, 404, 500])
async def test_a_refusal_is_tried_again_later_and_told_once_it_works(valkey, status):
    clock = MovableClock(now=1000.0)
    async with receiving() as receiver:
        receiver.status = status
        alerts, delivery = pair(valkey, clock, webhook=Webhook(receiver.url))
        await alerts.raise_("sql_away", "database", "away")
        assert await delivery.deliver() == 1
        assert await delivery.deliver() == 0, "not at once"
        receiver.status = 200
        clock.advance(60)
        assert await delivery.deliver() == 1
        assert len(receiver.requests) == 2
        clock.advance(86400)
        assert await delivery.deliver() == 0


async def test_what_nobody_takes_for_long_is_given_up_and_said(valkey):
    clock = MovableClock(now=1000.0)
    alerts, delivery = pair(valkey, clock, "webhook", "log", webhook=Webhook("http://127.0.0.1:9/nobody"))
    failed = counts.value("alert_deliveries", way="webhook", outcome="failed")
    await alerts.raise_("sql_away", "database", "away")
    for _ in range(DELIVERY_TRIES):
        await delivery.deliver()
        clock.advance(1000)
    assert counts.value("alert_deliveries", way="webhook", outcome="failed") - failed >= DELIVERY_TRIES
    assert ("alert_undelivered", "webhook") in {(alert.kind, alert.subject) for alert in await alerts.open()}
    [letter] = await DELIVERIES.dead_letters(valkey)
    assert "cannot be reached" in (letter.error or "")
    async with receiving() as receiver:
        mended = Delivery(valkey, clock, alerts, webhook=Webhook(receiver.url))
        clock.advance(1000)
        assert await mended.deliver()
    assert "alert_undelivered" not in {alert.kind for alert in await alerts.open()}, "it is over when a way works again"


async def test_mail_is_a_job_for_the_room_that_writes_it(valkey):
    clock = MovableClock(now=1000.0)
    alerts, delivery = pair(valkey, clock, "mail", mail_to="operator@example.com")
    await alerts.raise_("provider_down", "sms", "all failed")
    await delivery.deliver()
    [job] = await Queue(ROOMS_QUEUE).work.queue.range(valkey)
    assert job.name == MAIL_JOB
    assert job.kwargs["to"] == "operator@example.com" and "provider_down" in job.kwargs["subject"]
    assert "all failed" in job.kwargs["text"]


async def test_a_process_that_died_with_deliveries_leaves_them_to_the_next(valkey, valkey_server):
    clock = MovableClock(now=1000.0)
    async with receiving() as receiver:
        alerts, dead = pair(valkey, clock, webhook=Webhook(receiver.url))
        await alerts.raise_("sql_away", "database", "away")
        taken = await dead._worker.take(valkey, 10, now=clock.now())
        assert len(taken) == 1, "and here it dies"
        _, other = pair(valkey, clock, webhook=Webhook(receiver.url))
        assert await other.deliver() == 0, "it may live yet"
        await dead._worker.leave(valkey)
        valkey_server.call("DEL", DELIVERIES.alive_key.at(dead._worker.name).name(valkey.layout).decode())
        await DELIVERIES.adopt(valkey, now=clock.now())
        assert await other.deliver() == 1
    assert len(receiver.requests) == 1


@pytest.mark.parametrize("url", ["ftp://x/y", "file:///etc/passwd", "http://", "hook", "http://[x", "http://x:99999"])
def test_an_address_that_is_no_webhook_is_refused(url):
    with pytest.raises(Invalid, match="webhook_url"):
        Webhook(url)


async def test_what_may_have_been_told_says_so_when_it_is_brought_again(server):
    clock = MovableClock(now=1_700_000_000.0)
    async with receiving() as receiver:
        alerts, delivery = pair(server, clock, webhook=Webhook(receiver.url))
        await alerts.raise_("queue_stuck", "jobs hot", "12 wait", "critical")
        receiver.status = 500
        await delivery.deliver()
        receiver.status = 204
        clock.advance(60)
        await delivery.deliver()
        assert [event["perhaps_told"] for _, raw in receiver.requests for event in json.loads(raw)["events"]] == [
            False, False], "whoever refuses was not told"
        await alerts.raise_("queue_stuck", "jobs cold", "12 wait", "critical")
        receiver.answers.clear()
        async with asyncio.TaskGroup() as group:
            cut = group.create_task(delivery.deliver())
            await receiver.until(3)
            cut.cancel()  # as a process that is killed: the receiver has it, and nobody knows
        receiver.answers.set()
        assert await pair(server, clock, webhook=Webhook(receiver.url))[1].deliver() == 0, "it is not theirs yet"
        assert await delivery.deliver() == 1
        assert await TRIED.at().size(server) == 0
    said = [json.loads(raw) for _, raw in receiver.requests[2:]]
    assert [one["events"][0]["perhaps_told"] for one in said] == [False, True]
    assert said[0]["events"][0]["uid"] == said[1]["events"][0]["uid"]
    assert "perhaps told before" not in said[0]["text"] and "perhaps told before" in said[1]["text"]


async def test_a_refusal_does_not_make_forget_that_an_earlier_try_may_have_told(valkey):
    clock = MovableClock(now=1000.0)
    async with receiving() as receiver:
        alerts, delivery = pair(valkey, clock, webhook=Webhook(receiver.url))
        await alerts.raise_("queue_stuck", "jobs cold", "12 wait", "critical")
        receiver.answers.clear()
        async with asyncio.TaskGroup() as group:
            cut = group.create_task(delivery.deliver())
            await receiver.until(1)
            cut.cancel()  # the receiver has it, and nobody knows
        receiver.answers.set()
        receiver.status = 503
        assert await delivery.deliver() == 1, "refused: this try told nobody, the first may have"
        receiver.status = 204
        clock.advance(60)
        assert await delivery.deliver() == 1
        assert await TRIED.at().size(valkey) == 0
    said = [json.loads(raw)["events"][0]["perhaps_told"] for _, raw in receiver.requests]
    assert said == [False, True, True]
