"""Every key of texts. What is counted of them is in ``stats.py``."""

from typing import Final

from keystead.keys import Exactly, Keyspace, Personal, SortedSetKey, StringKey
from keystead.messaging.sending import Channel
from keystead.messaging.sms.models import OutgoingSms, PendingRecord, SmsEvent
from keystead.patterns import PendingIndex, SmartLock, WorkList

SMS = Keyspace("messaging.sms", tag="msg", laned=True)

# A text that may have been sent is looked for among messages; by then it is known which are others'.
OWNER_SECONDS: Final = 86_400

_ROOM: Final = ("messaging.sms",)
_RECEIPTS: Final = ("messaging.sms.receipts",)
_POLLING: Final = ("messaging.sms.polling",)
_PERSON: Final = Personal(field="user_sub")

# -- on the way to the provider ----------------------------------------------------------------------------------------

SENDING: Channel[OutgoingSms] = Channel(
    SMS, "sms", queue="sms:to_send", of=OutgoingSms, purgatory="sms:send_purgatory", lock="sms:send_job:lock",
    personal=_PERSON, purpose="texts to be sent", writers=_ROOM, readers=("messaging.sms.sender",),
)
TWILIO_LOCK = SmartLock(
    SMS, "twilio:lock", purpose="one request to the provider at a time, where the jobs run one by one",
    writers=("messaging.sms.gateway",), readers=("messaging.sms.gateway",),
)

# -- with the provider -------------------------------------------------------------------------------------------------

PENDING: PendingIndex[PendingRecord] = PendingIndex(
    SMS, "sms:pending", record="sms:pending:{sid}", of=PendingRecord, member="sid of a message resource",
    score="unix time when, without news, the failure job is called", failures="num_failures",
    called_at="failure_job_last_called_at", personal=_PERSON, writers=_ROOM, readers=_ROOM,
    purpose="texts that the provider took and has not settled",
)
OWNER: StringKey[str] = StringKey(
    SMS, "sms:owner:{sid}", str, ttl=Exactly(OWNER_SECONDS), purpose="uid of the text that a message resource is",
    writers=("messaging.sms.sender",), readers=("messaging.sms.sender",),
)
NEWS: WorkList[SmsEvent] = WorkList(
    SMS, "sms:event", SmsEvent, purgatory="sms:event:purgatory", most_dead=10_000,
    purpose="news of texts, from the provider's calls and from polling", writers=_ROOM, readers=_RECEIPTS,
)
EARLY: SortedSetKey[SmsEvent] = SortedSetKey(
    SMS, "sms:event:early", SmsEvent, member="news", score="unix time when it is looked at again",
    purpose="news of texts whose sending is not noted yet", writers=_RECEIPTS, readers=_RECEIPTS,
    scripts=("delayed/move_due.lua",), dead_letter=NEWS.dead_key,
)
RECOVERY: WorkList[str] = WorkList(
    SMS, "sms:recovery", str, purgatory="sms:recovery_purgatory", most_dead=10_000,
    purpose="sids of messages that the provider is asked about", writers=_ROOM, readers=_POLLING,
)

# -- single runs -------------------------------------------------------------------------------------------------------

STALE_LOCK = SmartLock(
    SMS, "sms:receipt_stale_detection_job:lock", purpose="one run at a time finds texts without news", writers=_POLLING,
    readers=_POLLING,
)
RECOVERY_LOCK = SmartLock(
    SMS, "sms:receipt_recovery_job:lock", purpose="one run at a time asks what became of texts", writers=_POLLING,
    readers=_POLLING,
)
RECONCILIATION_LOCK = SmartLock(
    SMS, "sms:receipt_reconciliation_job:lock", purpose="one run at a time works off news of texts",
    writers=_RECEIPTS, readers=_RECEIPTS,
)
