"""Every key of email. What is counted of it is in ``stats.py``."""

from typing import Final

from keystead.keys import AtMost, FlagKey, Keyspace, Personal, StringKey
from keystead.messaging.email.models import EarlyEvent, EmailEvent, EventCodec, OutgoingEmail, PendingEmail
from keystead.messaging.sending import Channel
from keystead.patterns import PendingIndex, SmartLock, WorkList

EMAIL = Keyspace("messaging.email", tag="msg", laned=True)

DAY_SECONDS: Final = 86_400
RECONCILED_SECONDS: Final = 3600
_PERSON: Final = Personal(field=("user_sub", "email"))
_SENT: Final = ("messaging.email.sender",)
_JOBS: Final = ("messaging.email.jobs",)

# -- sending ---------------------------------------------------------------------------------------------------------

SENDING: Channel[OutgoingEmail] = Channel(
    EMAIL, "email", queue="email:to_send", of=OutgoingEmail, purgatory="email:send_purgatory",
    lock="email:send_job:lock", purpose="email on its way to the provider", personal=_PERSON,
    writers=("messaging.email", "messaging.touches"), readers=("messaging.sending", "messaging.email"),
)
UNANSWERED = FlagKey(
    EMAIL, "email:unanswered:{uid}", ttl=AtMost(DAY_SECONDS),
    purpose="the provider was asked and its answer was lost, so the email may have been sent",
    writers=_SENT, readers=("messaging.email.sender", "messaging.email.receipts"),
)

# -- what the provider tells -----------------------------------------------------------------------------------------

RECEIPT_PENDING: PendingIndex[PendingEmail] = PendingIndex(
    EMAIL, "email:receipt_pending", record="email:receipt_pending:{message_id}", of=PendingEmail,
    member="the provider's message id", score="unix time when it was accepted", changes=None,
    purpose="email that was accepted and waits for news", personal=_PERSON, writers=_SENT,
    readers=("messaging.email.receipts", "messaging.email.stale"),
)
NEWS: WorkList[EmailEvent] = WorkList(
    EMAIL, "email:event", EventCodec(), purgatory="email:reconciliation_purgatory", purpose="news of email",
    personal=True, writers=("messaging.email.routes",), readers=("messaging.email.receipts",),
)
EARLY: PendingIndex[EarlyEvent] = PendingIndex(
    EMAIL, "email:early", record="email:early:{parked}", of=EarlyEvent, member="uid of an email and kind of news",
    score="unix time when it is looked at again", changes=None, personal=True,
    purpose="news of email of which we do not know yet whether it was sent",
    writers=("messaging.email.receipts",), readers=("messaging.email.sender", "messaging.email.stale"),
)
RECONCILED: StringKey[str] = StringKey(
    EMAIL, "email:reconciled:{message_id}", str, ttl=AtMost(RECONCILED_SECONDS),
    purpose="which news ended the wait for an email; the same news, seen again after a crash, changes nothing",
    writers=("messaging.email.receipts",), readers=("messaging.email.receipts",),
)
SNS_SEEN = FlagKey(
    EMAIL, "email:sns:{sns_message_id}", ttl=AtMost(DAY_SECONDS),
    purpose="a notification of SNS was taken, and is not to be taken again", writers=("messaging.email.routes",),
    readers=("messaging.email.routes",), scripts=("guarded/once.lua",),
)

# -- single-run mode --------------------------------------------------------------------------------------------------

RECONCILIATION_LOCK = SmartLock(
    EMAIL, "email:reconciliation_job:lock", purpose="one run at a time works off news of email", writers=_JOBS,
    readers=_JOBS,
)
STALE_LOCK = SmartLock(
    EMAIL, "email:stale_receipt_job:lock", purpose="one run at a time gives up on email without news", writers=_JOBS,
    readers=_JOBS,
)
