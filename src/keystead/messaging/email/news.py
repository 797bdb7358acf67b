"""News of email: what a notification of SNS tells, and how it gets to whoever waits for it."""

from dataclasses import dataclass
from typing import Final

import msgspec

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.messaging.email.gateway import LANE_TAG, UID_HEADER, UID_TAG
from keystead.messaging.email.keys import NEWS, RECEIPT_PENDING, SNS_SEEN
from keystead.messaging.email.models import Bounce, BounceReason, Complaint, Delivery, EmailEvent, Notification
from keystead.messaging.email.sns import MESSAGE_ID, Believed
from keystead.messaging.email.stats import WEBHOOKS
from keystead.patterns import Once, Writes, once

NOT_NEEDED: Final = frozenset((
    "Click", "DeliveryDelay", "Open", "Reject", "Rendering Failure", "Send", "Subscription",
))


class News:
    """Takes notifications in for one lane: what is counted and what is queued are one step."""

    def __init__(self, valkey: Valkey, clock: Clock) -> None:
        self._valkey, self._clock = valkey, clock

    async def take(self, told: "Told", message: Believed) -> bool:
        """Queue it; False if the same notification was taken within a day, or is not needed: nothing changes then."""
        if told.news is None:
            await self.puzzle()
            return False
        now = self._clock.now()
        writes = Writes(self._valkey.layout)
        tally = WEBHOOKS.tally(now).incr("received", at=now).incr("verified", at=now).incr("accepted", at=now)
        tally.store(writes)
        event = EmailEvent(told.message_id, told.news, now, told.uid, message.message_id)
        NEWS.queue.push_right(writes, event)
        return await once(self._valkey, SNS_SEEN.at(message.message_id), writes) is Once.DONE

    async def refuse(self, counted: str) -> None:
        """Count a call that was not believed."""
        now = self._clock.now()
        await WEBHOOKS.tally(now).incr("received", at=now).incr(counted, at=now).store(self._valkey)

    async def puzzle(self) -> None:
        """Count a call that was believed and cannot be used."""
        now = self._clock.now()
        tally = WEBHOOKS.tally(now).incr("received", at=now).incr("verified", at=now)
        await tally.incr("unprocessable", at=now).store(self._valkey)

    async def knows(self, message_id: str) -> bool:
        """Whether an email with this id waits for news here."""
        return await RECEIPT_PENDING.record(message_id).exists(self._valkey)


@dataclass(frozen=True, slots=True)
class Told:
    """What a notification tells. ``uid`` and ``lane`` are ours, where the provider told them back.

    ``news`` None: SES publishes more events than we need, and this is one of them.
    """

    message_id: str
    news: Notification | None
    uid: str = ""
    lane: str = ""


class _Recipient(msgspec.Struct):
    emailAddress: str


class _Bounce(msgspec.Struct):
    bounceType: str
    bounceSubType: str = "Undetermined"
    bouncedRecipients: list[_Recipient] = []


class _Complaint(msgspec.Struct):
    complaintFeedbackType: str | None = None
    complainedRecipients: list[_Recipient] = []


class _Header(msgspec.Struct):
    name: str
    value: str


class _Mail(msgspec.Struct):
    messageId: str
    destination: list[str] = []
    tags: dict[str, list[str]] = {}
    headers: list[_Header] = []


class _Told(msgspec.Struct):
    mail: _Mail
    notificationType: str = ""
    eventType: str = ""
    bounce: _Bounce | None = None
    complaint: _Complaint | None = None


def read_notification(message: Believed) -> Told | None:
    """The news that a notification brings; None if it brings none that we understand."""
    try:
        told = msgspec.json.decode(str(message.fields.get("Message", "")), type=_Told)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    news, mail = _news(told), told.mail
    if (news is None and told.eventType not in NOT_NEEDED) or MESSAGE_ID.fullmatch(mail.messageId) is None:
        return None
    uid = _first(mail.tags.get(UID_TAG)) or _first([each.value for each in mail.headers if each.name == UID_HEADER])
    return Told(mail.messageId, news, uid, _first(mail.tags.get(LANE_TAG)))


def _first(values: list[str] | None) -> str:
    return values[0] if values and MESSAGE_ID.fullmatch(values[0]) else ""


def _news(told: _Told) -> Notification | None:
    kind, to = told.notificationType or told.eventType, told.mail.destination
    if kind == "Delivery":
        return Delivery()
    if kind == "Bounce" and told.bounce is not None:
        bounced = told.bounce
        reason = BounceReason(bounced.bounceType, bounced.bounceSubType)
        return Bounce(reason, to, [each.emailAddress for each in bounced.bouncedRecipients])
    if kind == "Complaint" and told.complaint is not None:
        complained = told.complaint
        return Complaint(complained.complaintFeedbackType, to,
                         [each.emailAddress for each in complained.complainedRecipients])
    return None
