"""Each channel gives the same answers to the same questions."""

import pytest

from keystead.errors import Invalid
from keystead.ids import UserSub
from keystead.jobs import JobRef, encode_data_raw
from keystead.messaging.email.keys import RECEIPT_PENDING
from keystead.messaging.email.models import EmailFailure, PendingEmail
from keystead.messaging.email.models import FailureInfo as EmailInfo
from keystead.messaging.push.keys import COLD
from keystead.messaging.push.models import FailureInfo as PushInfo
from keystead.messaging.push.models import Identifier, PushCheck, PushFailure, PushTicket
from keystead.messaging.sending import TraceEntry
from keystead.messaging.sms.keys import PENDING as SMS_PENDING
from keystead.messaging.sms.models import MessageResource, PendingRecord
from keystead.messaging.sms.statuses import Status
from keystead.messaging.touches.models import CHANNELS
from keystead.messaging.touches.outlets import After, Prepared
from keystead.patterns import Writes

from .room import NOON, Room, on_sqlite

pytestmark = on_sqlite
TOKEN = "ExponentPushToken[abcdefghij]"
ADDRESSES = {"sms": "+15005550001", "email": "ada@example.com", "push": TOKEN}
SHOWN = {
    "sms": {"body": "Hi"}, "push": {"title": "T", "body": "B", "channel_id": "c"},
    "email": {"subject": "S", "template": "notice", "template_parameters": {}},
}
JOB = JobRef("touch.nothing")


def prepared(channel: str, **changes) -> Prepared:
    facts = {"uid": f"{channel}_1", "address": ADDRESSES[channel], "shown": SHOWN[channel], "success": JOB,
             "failure": JOB, "user_sub": "ada", "lane": "normal", "now": NOON, **changes}
    return Prepared(**facts)


async def test_addresses_are_those_of_the_channel(room: Room):
    await room.person("ada", phones=["+15005550001"], emails=["ada@example.com"], tokens=[TOKEN])
    for channel in CHANNELS:
        found = await room.outlets[channel].addresses([UserSub("ada"), UserSub("nobody")])
        assert found.get(UserSub("ada")) == [ADDRESSES[channel]] and not found.get(UserSub("nobody"))


async def test_a_message_is_queued_with_its_count(room: Room):
    for channel in CHANNELS:
        outlet, writes = room.outlets[channel], Writes(room.valkey.layout)
        outlet.queue(writes, prepared(channel))
        assert writes and outlet.channel == channel and outlet.work.queue == outlet.waiting[0]
        assert len(outlet.waiting) == len(outlet.retrying) == 3


@pytest.mark.parametrize("channel, shown", [
    ("sms", {"body": "x" * 1601}), ("sms", {"body": " "}),
    ("push", {"title": "x" * 5000, "body": "", "channel_id": "c"}),
    ("email", {"subject": "a\nb", "template": "notice", "template_parameters": {}}),
])
async def test_words_that_the_channel_cannot_carry_are_refused(room: Room, channel, shown):
    with pytest.raises(Invalid):
        room.outlets[channel].queue(Writes(room.valkey.layout), prepared(channel, shown=shown))


async def test_failures_of_email_and_push_are_settled_by_their_rooms(room: Room):
    email = room.email.outgoing("ada@example.com", "S", "notice")
    push = room.push.outgoing(TOKEN, title="T", body="B")
    told = {
        "email": [encode_data_raw(EmailFailure(email, EmailInfo("send", "SESNetworkError", retryable)))
                  for retryable in (True, False)],
        "push": [encode_data_raw(PushFailure(push, PushInfo("send", Identifier.NETWORK, retryable=retryable)))
                 for retryable in (True, False)],
    }
    for channel, (passing, lasting) in told.items():
        outlet = room.outlets[channel]
        assert [(await outlet.failed(passing)).after for _ in range(2)] == [After.RETRIED] * 2
        failed = await outlet.failed(lasting)
        assert (failed.after, failed.destination) == (After.FINAL, ADDRESSES[channel]) and failed.info


async def test_what_the_provider_has_is_known_by_what_was_noted(room: Room):
    sms, email = room.sms.outgoing("+15005550001", "Hi"), room.email.outgoing("ada@example.com", "S", "notice")
    push, sid = room.push.outgoing(TOKEN, title="T", body="B"), "SM" + "0" * 32
    noted = {"sms": TraceEntry("sent", NOON, {"sid": sid}), "email": TraceEntry("sent", NOON, {"message_id": "m1"}),
             "push": TraceEntry("sent", NOON, {"ticket": "t1"})}
    messages = {"sms": sms, "email": email, "push": push}

    async def known() -> list[bool]:
        return [await room.outlets[channel].is_with_provider(room.valkey, messages[channel].uid, [noted[channel]])
                for channel in CHANNELS]

    assert await known() == [False] * 3
    resource = MessageResource(sid, Status.QUEUED)
    await SMS_PENDING.open(room.valkey, sid, PendingRecord.of(sms, resource, NOON), NOON)
    await RECEIPT_PENDING.open(room.valkey, "m1", PendingEmail.of(email, "m1", NOON), NOON)
    await COLD.at().add(room.valkey, PushCheck.of(push, PushTicket("ok", "t1"), NOON), NOON)
    assert await known() == [True] * 3
    for channel in CHANNELS:
        assert not await room.outlets[channel].is_with_provider(room.valkey, messages[channel].uid, [])


async def test_for_an_erased_person_whatever_fails_is_given_up(room: Room):
    push = room.push.outgoing(TOKEN, title="T", body="B")
    told = encode_data_raw(PushFailure(push, PushInfo("send", Identifier.NETWORK, retryable=True)))
    assert (await room.outlets["push"].failed(told, give_up=True)).after is After.ABANDONED
    assert (await room.outlets["push"].failed(told)).after is After.ABANDONED, "the answer stays the same"
