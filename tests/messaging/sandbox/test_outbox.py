"""Who was written to, and what they got."""

from keystead.messaging.sandbox.ledger import Ledger
from keystead.messaging.sandbox.models import Message, Step
from keystead.messaging.sandbox.outbox import Feed, Outbox, Recipient

from .conftest import HandClock


async def fill(server):
    clock = HandClock()
    ledger = Ledger(server, clock)
    for number, (channel, to) in enumerate([("sms", "+15550001"), ("email", "Ada@example.com"), ("sms", "+15550001"),
                                            ("push", "ExponentPushToken[a:b]")]):
        clock.at = 1000.0 + number
        await ledger.accept(channel, [Message(f"m{number}", channel, to, clock.at, (Step("queued", clock.at),))])
    return Outbox(server)


async def test_recipients_are_listed_the_latest_first(server):
    outbox = await fill(server)
    push, text, mail = await outbox.recipients()
    assert push == Recipient("push", "ExponentPushToken[a:b]", 1003.0, 1)
    assert text == Recipient("sms", "+15550001", 1002.0, 2)
    assert mail == Recipient("email", "Ada@example.com", 1001.0, 1)
    assert await outbox.recipients(most=1) == [push]
    assert await outbox.recipients(channel="sms") == [text]
    assert await outbox.recipients(like="ada@") == [mail]
    assert await outbox.recipients(like="nobody") == []


async def test_messages_of_a_recipient_are_newest_first(server):
    outbox = await fill(server)
    assert [message.id for message in await outbox.messages("sms", "+15550001")] == ["m2", "m0"]
    assert [message.id for message in await outbox.messages("sms", "+15550001", most=1)] == ["m2"]
    assert await outbox.messages("email", "+15550001") == []
    assert sorted([message.id async for message in outbox.all()]) == ["m0", "m1", "m2", "m3"]


async def test_a_feed_shows_every_message_once_in_the_order_in_which_it_was_taken(server):
    outbox = await fill(server)
    first = await outbox.feed(most=3)
    assert [(number, message.id) for number, message in first.messages] == [(1, "m0"), (2, "m1"), (3, "m2")]
    rest = await outbox.feed(first.last, most=3)
    assert [message.id for _, message in rest.messages] == ["m3"] and rest.last == 4
    assert await outbox.feed(rest.last) == Feed((), 4)
    texts = await outbox.feed(channel="sms")
    assert [message.id for _, message in texts.messages] == ["m0", "m2"] and texts.last == 4
    assert [number for number, _ in (await outbox.feed(channel="sms", most=1)).messages] == [1]
    assert [message.id for _, message in (await outbox.feed(1, address="+15550001")).messages] == ["m2"]
    assert (await outbox.feed(address="+15550001", channel="email")).messages == ()
    assert (await outbox.feed(address="no\nbody")).messages == ()
    assert "all:numbered" not in await outbox.counts()


async def test_a_message_taken_twice_has_one_number(server):
    outbox = await fill(server)
    again = Message("m0", "sms", "+15550001", 1000.0, (Step("queued", 1000.0),))
    await Ledger(server, HandClock()).accept("sms", [again])
    assert [number for number, _ in (await outbox.feed()).messages] == [1, 2, 3, 4]
