"""Notifications of email: only to those who confirmed, signed with a certificate that can be fetched."""

import asyncio
import json

import aiohttp
import msgspec
import pytest

from keystead.clock import SystemClock
from keystead.messaging.sandbox.keys import DUE, KEY_PAIR, SUBSCRIPTIONS
from keystead.messaging.sandbox.models import Message, Step, Subscription
from keystead.messaging.sandbox.sandbox import Sandbox
from keystead.messaging.sandbox.sns import TOPIC_ARN, Sns, event
from keystead.messaging.signatures import is_signed_by_sns, sns_key

from .conftest import ACCOUNT, Asking, until


async def nothing_due(valkey):
    return await DUE.size(valkey) == 0


async def confirmed(served, listener, valkey):
    """Subscribe and confirm as the email room does: check, then fetch the address that was given."""
    await served.subscribe(listener.url + "/sns")
    await until(lambda: nothing_due(valkey))
    _, headers, body = listener.got.pop()
    message = json.loads(body)
    async with aiohttp.ClientSession() as http:
        async with http.get(message["SigningCertURL"]) as response:
            key = sns_key(await response.read())
            assert "max-age" in response.headers["cache-control"]
        assert message["SigningCertURL"] == served.certificate_url
        assert is_signed_by_sns(key, message)
        assert headers["x-amz-sns-message-type"] == "SubscriptionConfirmation" == message["Type"]
        async with http.get(message["SubscribeURL"]) as response:
            assert response.status == 200
            assert "<SubscriptionArn>" in await response.text()
    return key


async def test_a_subscriber_that_confirmed_is_told_signed(served, listener, valkey):
    key = await confirmed(served, listener, valkey)
    _, made, _ = await Asking(served).mail()
    await until(lambda: nothing_due(valkey))
    ((_, headers, body),) = listener.got
    message = json.loads(body)
    assert is_signed_by_sns(key, message)
    assert headers["x-amz-sns-topic-arn"] == message["TopicArn"] == served.topic_arn == TOPIC_ARN
    assert headers["x-amz-sns-message-id"] == message["MessageId"]
    assert headers["content-type"] == "text/plain; charset=UTF-8"
    told = json.loads(message["Message"])
    assert told["notificationType"] == "Delivery"
    assert told["mail"]["messageId"] == made["MessageId"]
    assert told["mail"]["destination"] == ["ada@example.com"] == told["delivery"]["recipients"]
    assert told["mail"]["tags"] == {"uid": ["em_1"]}


async def test_a_notification_that_comes_twice_has_one_id(served, listener, valkey):
    await confirmed(served, listener, valkey)
    await served.faults.change("email", {"duplicated": 1.0})
    await Asking(served).mail()
    await until(lambda: nothing_due(valkey))
    first, second = (headers["x-amz-sns-message-id"] for _, headers, _ in listener.got)
    assert first == second


async def test_nobody_is_told_before_they_confirm_and_then_nothing_is_missing(served, listener, valkey):
    await served.subscribe(listener.url + "/sns")
    await until(lambda: nothing_due(valkey))
    message = json.loads(listener.got.pop()[2])
    await Asking(served).mail()

    async def tried():
        return (await served.outbox.counts()).get("email:webhooks_failed", 0) >= 1

    await until(tried)
    assert not listener.got
    async with aiohttp.ClientSession() as http, http.get(message["SubscribeURL"]) as response:
        assert response.status == 200
    await until(lambda: nothing_due(valkey))
    assert len(listener.got) == 1


async def test_one_who_unsubscribed_is_left_alone(served, listener, valkey):
    await confirmed(served, listener, valkey)
    await Asking(served).mail()
    await until(lambda: nothing_due(valkey))
    message = json.loads(listener.got.pop()[2])
    async with aiohttp.ClientSession() as http, http.get(message["UnsubscribeURL"]) as response:
        assert response.status == 200
    await Asking(served).mail()
    await until(lambda: nothing_due(valkey))
    assert not listener.got


async def test_a_wrong_token_confirms_nothing(served, listener, valkey):
    await served.subscribe(listener.url + "/sns")
    async with aiohttp.ClientSession() as http, http.get(
            served.base_url + "/sns/?Action=ConfirmSubscription&Token=wrong") as response:
        assert response.status == 400
    await until(lambda: nothing_due(valkey))


async def test_all_processes_and_restarts_share_one_key(valkey, clock):
    first, second = (Sns(valkey, clock, "http://127.0.0.1:1/sandbox", key_bits=1024) for _ in range(2))
    assert (await first._own()).certificate == (await second._own()).certificate
    assert (await KEY_PAIR.at().get(valkey)).private.startswith("-----BEGIN PRIVATE KEY")


def mail(status, **tags):
    return Message("id.1", "email", "ada@example.com", 100.0, (Step("Send", 100.0), Step(status, 101.5)),
                   sender="a@b.c", title="Hi", tags={"ses:message-id": "id", **tags})


@pytest.mark.parametrize(("status", "kind", "primary"), [("Permanent", "Bounce", "Permanent"),
                                                         ("Transient", "Bounce", "Transient")])
def test_a_bounce_says_who_and_how(status, kind, primary):
    told = event(mail(status), 1)
    assert told["notificationType"] == kind
    assert (told["bounce"]["bounceType"], told["bounce"]["bounceSubType"]) == (primary, "General")
    assert told["bounce"]["bouncedRecipients"][0]["emailAddress"] == "ada@example.com"
    assert told["mail"]["messageId"] == "id"


def test_a_complaint_a_delivery_and_something_unknown():
    told = event(mail("Complaint"), 1)
    assert told["complaint"]["complaintFeedbackType"] == "abuse"
    assert told["complaint"]["complainedRecipients"] == [{"emailAddress": "ada@example.com"}]
    assert event(mail("Delivery"), 1)["delivery"]["processingTimeMillis"] == 1500
    assert event(mail("DeliveryDelay"), 1)["notificationType"] == "DeliveryDelay"


def test_with_a_configuration_set_it_is_an_event():
    told = event(mail("Delivery", **{"ses:configuration-set": "mine"}), 1)
    assert told["eventType"] == "Delivery" and "notificationType" not in told
    assert told["mail"]["tags"] == {"ses:configuration-set": ["mine"]}


async def test_an_endpoint_that_is_known_from_the_start_is_asked_again_when_it_was_forgotten(valkey, listener):
    sandbox = Sandbox(valkey, SystemClock(), url="http://127.0.0.1:1", account=ACCOUNT, key_bits=1024,
                      events_url=listener.url + "/events")
    stop = asyncio.Event()

    async def asked_to_confirm():
        return any(headers["x-amz-sns-message-type"] == "SubscriptionConfirmation" for _, headers, _ in listener.got)

    async with asyncio.TaskGroup() as group:
        group.create_task(sandbox.work(stop))
        await until(asked_to_confirm)
        listener.got.clear()
        await valkey.flushall()
        await until(asked_to_confirm)
        stop.set()


async def test_one_subscriber_out_of_reach_does_not_make_the_others_hear_twice(served, listener, valkey):
    await confirmed(served, listener, valkey)
    await SUBSCRIPTIONS.at().set(valkey, "http://127.0.0.1:9/gone", Subscription("t", "arn:gone", confirmed=True))

    async def known():
        return len(await served._sns.subscribers()) == 2

    await until(known)
    await Asking(served).mail()

    async def waits_for_one():
        due = await DUE.due.range(valkey)
        return [delivery.to for delivery, _ in due] == ["http://127.0.0.1:9/gone"]

    await until(waits_for_one)

    async def tried_again():
        return (await served.outbox.counts()).get("email:webhooks_failed", 0) >= 1

    await until(tried_again)
    assert len(listener.got) == 1


async def test_who_was_out_of_reach_for_an_hour_is_forgotten(sandbox, valkey, clock):
    await SUBSCRIPTIONS.at().set(valkey, "http://127.0.0.1:9/gone", Subscription("t", "arn:gone", confirmed=True))
    await Asking(sandbox).mail()
    ((delivery, _),) = await DUE.due.range(valkey)
    message = (await sandbox.outbox.messages("email", "ada@example.com"))[0]
    delivery = msgspec.structs.replace(delivery, to="http://127.0.0.1:9/gone")
    clock.at += 60
    assert await sandbox._caller.call(delivery, message) == "failed"
    assert await DUE.due_at(valkey, delivery) > clock.at
    clock.at += 3600
    assert await sandbox._caller.call(delivery, message) == "failed"
    assert await DUE.due_at(valkey, delivery) is None
    assert await sandbox._sns.subscribers() == {}
    await sandbox.aclose()
