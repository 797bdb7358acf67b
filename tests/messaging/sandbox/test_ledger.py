"""What was accepted is there, whole, once."""

from keystead.keys import Registry
from keystead.messaging.sandbox.keys import DUE, MESSAGES, SANDBOX
from keystead.messaging.sandbox.ledger import INBOX_MESSAGES, Ledger
from keystead.messaging.sandbox.models import Delivery, Message, Step
from keystead.messaging.sandbox.outbox import Outbox


def message(id="m1", to="+15550001", at=100.0, ends=110.0):
    return Message(id, "sms", to, at, (Step("queued", at), Step("delivered", ends)), text="hello")


async def test_accepting_keeps_the_message_its_webhooks_and_the_count(server, clock):
    ledger, webhook = Ledger(server, clock), Delivery("status", "m1", 105.0, 1)
    await ledger.accept("sms", [message(), message("m2", "+15550002")], [webhook])
    assert await ledger.find(["m2", "none", "m1"]) == [message("m2", "+15550002"), None, message()]
    assert await ledger.of("sms", "+15550001") == [message()]
    assert await DUE.due_at(server, webhook) == 105.0
    assert await Outbox(server).counts() == {"sms:accepted": 2}


async def test_accepting_again_after_a_lost_answer_changes_nothing(server, clock):
    ledger = Ledger(server, clock)
    for _ in range(2):
        await ledger.accept("sms", [message()], [Delivery("status", "m1", 105.0, 1)])
    assert await Outbox(server).counts() == {"sms:accepted": 1}
    assert await DUE.size(server) == 1


async def test_everything_kept_is_declared_and_everything_but_the_webhooks_expires(valkey, clock):
    await Ledger(valkey, clock).accept("sms", [message()], [Delivery("status", "m1", 105.0, 1)])
    await Ledger(valkey, clock).count("sms", "throttled")
    registry = Registry([SANDBOX], valkey.layout)
    keys = await valkey.keys("*")
    assert len(keys) == 7
    for key in keys:
        match = registry.resolve(key)
        assert match is not None, key
        left = await valkey.ttl(key)
        assert match.declaration.ttl.check(None if left < 0 else left) is None, key


async def test_an_inbox_keeps_the_newest(valkey, clock):
    ledger = Ledger(valkey, clock)
    for start in range(0, INBOX_MESSAGES + 100, 100):
        clock.at += 1
        await ledger.accept("sms", [message(f"m{start + n}") for n in range(100)])
    found = await ledger.of("sms", "+15550001", 5000)
    assert len(found) == INBOX_MESSAGES
    assert "m0" not in {each.id for each in found}


async def test_beyond_the_kept_number_what_ended_long_ago_is_dropped(server, clock):
    ledger = Ledger(server, clock, keep_messages=2)
    await ledger.accept("sms", [message("old", ends=1.0), message("older", ends=0.5), message("new", ends=clock.at),
                                message("newer", ends=clock.at + 5)])
    assert await ledger.drop_old() == 2
    assert [each and each.id for each in await ledger.find(["old", "older", "new", "newer"])] == [
        None, None, "new", "newer"]
    await ledger.accept("sms", [message("newest", ends=clock.at)])
    assert await ledger.drop_old() == 0, "what ended just now stays"
    assert await MESSAGES.at().size(server) == 3
