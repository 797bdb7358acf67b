"""With payload keys, whoever reads all of the server finds no address, no token and no words, wherever messages are."""

import base64
import re
import zlib

import pytest

from keystead.engine import Valkey
from keystead.errors import Invalid
from keystead.keys import sealing
from keystead.messaging.email.keys import EARLY, RECEIPT_PENDING
from keystead.messaging.email.keys import NEWS as EMAIL_NEWS
from keystead.messaging.email.models import Bounce, BounceReason, Delivery, EarlyEvent, EmailEvent, parked_as
from keystead.messaging.email.receipts import return_early
from keystead.messaging.push.keys import SENDING as PUSHES
from keystead.messaging.sms.keys import NEWS as TEXT_NEWS
from keystead.messaging.sms.keys import PENDING as PENDING_TEXTS
from keystead.messaging.sms.keys import SENDING as TEXTS
from keystead.messaging.sms.models import FailureInfo, Identifier
from keystead.messaging.touches.keys import TO_LOG, TO_SEND
from tests.messaging.email import room as email_room
from tests.messaging.push import room as push_room
from tests.messaging.sms import room as sms_room
from tests.messaging.touches import room as touch_room

OLD, NEW = "o" * 40, "n" * 40
NUMBER, WORDS = "+14155550177", "the words of a private letter"
ADDRESS, TOKEN = "grace@letters.example", "ExponentPushToken[grace-secret-device]"
PERSONAL = tuple(text.encode() for text in (NUMBER, WORDS, ADDRESS, TOKEN))
on_sqlite = touch_room.on_sqlite

_READS = {
    b"string": ("GET",), b"list": ("LRANGE", 0, -1), b"hash": ("HGETALL",), b"set": ("SMEMBERS",),
    b"zset": ("ZRANGE", 0, -1),
}


async def everything(valkey: Valkey) -> dict[bytes, bytes]:
    """All keys of all nodes with all that is in them, and what is packed there unpacked."""
    found = {}
    for node in await valkey.nodes():
        for key in await node.call(("KEYS", "*")):
            if (kind := await node.call(("TYPE", key))) == b"none":  # it has gone meanwhile
                continue
            command, *rest = _READS[kind]
            held = await node.call((command, key, *rest))
            parts = [held] if isinstance(held, bytes) else [
                part for each in (held.items() if isinstance(held, dict) else held)
                for part in (each if isinstance(each, tuple | list) else (each,))
            ]
            whole = b"\n".join(part for part in parts if isinstance(part, bytes))
            found[key] = key + b"\n" + whole + b"".join(_unpacked(whole))
    return found


def _unpacked(raw: bytes) -> list[bytes]:
    found = []
    for text in re.findall(rb"[A-Za-z0-9_=-]{40,}", raw):
        try:
            found.append(zlib.decompress(base64.urlsafe_b64decode(text), 16 + zlib.MAX_WBITS))
        except (ValueError, zlib.error):
            continue
    return found


class Reader:
    """Looks at everything, and remembers where it found something."""

    def __init__(self, valkey: Valkey) -> None:
        self.valkey = valkey
        self.seen: set[str] = set()

    async def look(self) -> None:
        self.seen |= {
            f"{text.decode()} in {key.decode()}" for key, whole in (await everything(self.valkey)).items()
            for text in PERSONAL if text in whole
        }


async def _text(valkey: Valkey, reader: Reader) -> None:
    """A text waits, is tried again, is with the provider, fails; another is dead."""
    room = sms_room.Room(valkey)
    room.provider.answers.append(FailureInfo("send", Identifier.NETWORK, None, True, f"cannot reach {NUMBER}"))
    await room.queue(WORDS, NUMBER, lane="high")
    await reader.look()
    await room.send()
    await reader.look()  # its failure job waits
    await room.run_jobs()
    assert await TEXTS.retrying("high").size(valkey) == 1
    await reader.look()
    room.clock.advance(3600)
    await TEXTS.move_due(valkey, "high", now=room.clock.now())
    await room.send()
    assert (await room.pending())["SM0"].body == WORDS
    await reader.look()
    await room.tell("SM0", "failed", "30006")
    await reader.look()
    await room.reconcile()
    await reader.look()
    await room.run_jobs()
    assert room.failed[-1][0].sms.phone_number == NUMBER
    await room.queue(WORDS, NUMBER)
    worker = TEXTS.work.worker("w")
    for _ in range(3):
        taken = (await worker.take(valkey, 1, now=room.clock.now())).items
        await reader.look()
        await worker.fail(valkey, taken[0], error="no", now=room.clock.now())
    (letter,) = await TEXTS.work.dead_letters(valkey)
    await reader.look()
    assert await TEXTS.work.replay_chosen(valkey, TEXTS.work.dead_key.codec.encode(letter)) == 1
    assert (await TEXTS.waiting().range(valkey))[0].body == WORDS


async def _push(valkey: Valkey, reader: Reader) -> None:
    """A push message waits for its ticket, then for its receipt; the device is gone."""
    room = push_room.Room(valkey)
    room.provider.fates[TOKEN] = "DeviceNotRegistered"
    await room.push.queue(TOKEN, title="Hello", body=WORDS, success=push_room.OK, failure=push_room.BAD)
    await reader.look()
    await room.send()
    await reader.look()
    room.clock.advance(3600)
    assert await room.move() == 1
    await reader.look()
    await room.check()
    await reader.look()
    await room.run_jobs()
    assert room.tokens.forgotten == [(TOKEN, "receipt")]
    assert await PUSHES.waiting().length(valkey) == 0


async def _email(valkey: Valkey, database, reader: Reader) -> None:
    """An email waits, is with the provider, and bounces; news of another come that nobody waits for."""
    room = email_room.Room(valkey, database)
    await room.queue(ADDRESS, "notice", parameters={"title": "Hi", "message": WORDS})
    await reader.look()
    await room.send()
    assert len(room.provider.sent) == 1 and room.provider.sent[0].to == ADDRESS
    await reader.look()
    bounce = Bounce(BounceReason("Permanent", "General"), [ADDRESS], [ADDRESS])
    await room.tell("m-0", bounce)
    await room.tell("m-unknown", bounce)
    await reader.look()
    await room.reconcile()
    await reader.look()
    await room.run_jobs()
    assert await room.suppression.emails([ADDRESS]) == {ADDRESS}


async def _touch(valkey: Valkey, database, reader: Reader) -> None:
    """A touch waits, becomes a text, arrives, and is on its way to the log."""
    room = touch_room.Room(valkey, database)
    sub = await room.person("user_grace", phones=[NUMBER])
    await room.point()
    await room.send(sub, parameters={"name": WORDS})
    await reader.look()
    await room.dispatcher.run()
    await reader.look()
    (sms,) = await room.texts()
    assert WORDS in sms.body
    await room.succeed(sms)
    assert await TO_LOG.queue.length(valkey) > 0
    await reader.look()
    await room.log_job.run()
    assert (await room.touched())[0].destination == NUMBER


@on_sqlite
@pytest.mark.parametrize("walk", [_text, _push, _email, _touch])
async def test_no_place_holds_what_can_be_read(server, database, walk):
    arguments = (server, database) if walk in (_email, _touch) else (server,)
    with sealing(NEW):
        reader = Reader(server)
        await walk(*arguments, reader)
        assert reader.seen == set()


@on_sqlite
async def test_the_reader_would_find_it(valkey, database):
    """Without keys all of it is found, so that the test above can fail."""
    reader = Reader(valkey)
    for walk in (_text, _push):
        await walk(valkey, reader)
    await _email(valkey, database, reader)
    await valkey.flushall()
    await _touch(valkey, database, reader)
    places = " ".join(reader.seen)
    assert all(text.decode() in places for text in PERSONAL)
    for place in ("touch:to_send", "sms:to_send", "sms:retry", "sms:pending:SM0", "push:push_tickets:cold",
                  "email:receipt_pending:m-0", "email:event", "touch:to_log", "jobs:"):
        assert place in places


async def test_old_keys_are_read_while_the_new_one_is_written(valkey):
    room = sms_room.Room(valkey)
    await room.queue("plain")
    with sealing(OLD):
        await room.queue("under the old key")
    with sealing(f"{NEW}, {OLD}"):
        await room.queue("under the new key")
        assert [each.body for each in await TEXTS.waiting().range(valkey)] == [
            "plain", "under the old key", "under the new key"]
        assert (await room.send())["pending"] == 3
    with sealing(NEW):  # all that was under the old key is with the provider, under the new one
        assert {each.body for each in (await room.pending()).values()} == {
            "plain", "under the old key", "under the new key"}


async def test_what_no_key_opens_is_a_dead_letter_and_stops_nobody(valkey):
    room = sms_room.Room(valkey)
    with sealing(OLD):
        await room.queue("whose key is lost")
    await room.queue("another")
    with sealing(NEW):
        assert (await room.send())["pending"] == 1
        (letter,) = await TEXTS.work.dead_letters(valkey)
        assert "which is not among the payload keys" in letter.error and "lost" not in letter.error
    with sealing([NEW, OLD]):  # the key is found
        assert await TEXTS.work.replay(valkey, 10) == 1
        assert (await room.send())["pending"] == 1
    with sealing(NEW):
        assert {each.body for each in (await _readable(valkey))} == {"another", "whose key is lost"}


async def _readable(valkey: Valkey) -> list:
    return [(await PENDING_TEXTS.get(valkey, sid)).record for sid, _ in await PENDING_TEXTS.index.range(valkey)]


async def test_a_callback_that_no_key_opens_is_refused_with_a_reason(valkey):
    room = sms_room.Room(valkey)
    with sealing(OLD):
        await room.queue(WORDS, NUMBER)
        room.provider.answers.append("delivered")
        await room.send()
        (job,) = await room.jobs()
    with sealing(NEW), pytest.raises(Invalid, match="not among the payload keys"):
        await room.book.jobs[job.name](**job.kwargs)


@on_sqlite
async def test_a_touch_that_no_key_opens_is_a_dead_letter(valkey, database):
    room = touch_room.Room(valkey, database)
    sub = await room.person("user_grace", phones=[NUMBER])
    await room.point()
    with sealing(OLD):
        await room.send(sub, parameters={"name": WORDS})
    await room.send(sub)
    await room.dispatcher.run()
    assert len(await room.texts()) == 1
    (letter,) = await TO_SEND.dead_letters(valkey)
    assert "not among the payload keys" in letter.error


@on_sqlite
async def test_a_person_is_erased_whose_messages_are_sealed(valkey, database):
    with sealing(NEW):
        room = touch_room.Room(valkey, database)
        sub = await room.person("user_grace", phones=[NUMBER])
        await room.point()
        await room.send(sub)
        await room.dispatcher.run()
        assert (await room.erasure.erase(sub)).messages == 1
        assert await room.texts() == []


async def test_news_of_a_text_that_no_key_opens_wait_for_the_key(valkey):
    room = sms_room.Room(valkey)
    with sealing(OLD):
        await room.queue(WORDS, NUMBER)
        await room.send()
    await room.tell("SM0", "delivered")
    await room.reconcile()
    (letter,) = await TEXT_NEWS.dead_letters(valkey)
    assert "not among the payload keys" in letter.error
    room.clock.advance(10_000)
    assert await room.find_stale() == 0
    with sealing([NEW, OLD]):
        assert await TEXT_NEWS.replay(valkey, 10) == 1
        await room.reconcile()
        await room.run_jobs()
    assert [told.sms.body for told in room.succeeded] == [WORDS]


@on_sqlite
async def test_news_of_an_email_that_no_key_opens_wait_for_the_key(valkey, database):
    room = email_room.Room(valkey, database)
    with sealing(OLD):
        await room.queue(ADDRESS)
        await room.send()
    await room.tell("m-0", Delivery())
    await room.reconcile()
    (letter,) = await EMAIL_NEWS.dead_letters(valkey)
    assert "not among the payload keys" in letter.error
    room.clock.advance(100_000)
    assert await room.sweep() == 0
    assert await RECEIPT_PENDING.size(valkey) == 1
    with sealing([NEW, OLD]):
        assert await EMAIL_NEWS.replay(valkey, 10) == 1
        await room.reconcile()
        await room.run_jobs()
    assert [told.email.email for told in room.succeeded] == [ADDRESS]


@on_sqlite
async def test_early_news_that_no_key_opens_are_kept(valkey, database):
    room = email_room.Room(valkey, database)
    with sealing(OLD):
        event = EmailEvent("m-0", Delivery(), room.clock.now(), uid="em_1")
        await EARLY.open(valkey, parked_as("em_1", "Delivery"), EarlyEvent(event, room.clock.now()), room.clock.now())
    assert await return_early(valkey, room.clock.now()) == 0
    assert await EARLY.size(valkey) == 1
    with sealing(OLD):
        assert await return_early(valkey, room.clock.now() + 3600) == 1
