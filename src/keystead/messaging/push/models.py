"""What lies in Valkey of push messages, and what their callbacks are told. New fields have defaults."""

from enum import StrEnum
from typing import Any, Literal

import msgspec

from keystead.jobs import JobRef
from keystead.keys import Sealed


class PushContents(msgspec.Struct, frozen=True):
    """The words. ``channel_id`` is the notification channel of Android."""

    title: str
    body: str
    channel_id: str = "default"


class OutgoingPush(msgspec.Struct, frozen=True, kw_only=True, tag_field="aud", tag="send"):
    """A push message to be sent to one device. ``retry``: how often it was sent before."""

    uid: str
    initially_queued_at: float
    retry: int = 0
    last_queued_at: float
    push_token: Sealed[str]
    contents: Sealed[PushContents]
    failure_job: JobRef
    success_job: JobRef
    user_sub: str = ""
    lane: str = "normal"
    trace: str | msgspec.UnsetType = msgspec.UNSET  # where in a trace it was queued, as a W3C traceparent


class PushTicket(msgspec.Struct, frozen=True):
    """The provider's word that it took a message (``ok``, with an id), or did not (``error``, or what else it says)."""

    status: str
    id: str | None = None
    message: str | None = None
    details: dict[str, Any] | None = None


class PushReceipt(msgspec.Struct, frozen=True):
    """The provider's word on whether the device's own service took it; whatever is not ``ok`` means that it did not."""

    status: str
    message: str | None = None
    details: dict[str, Any] | None = None


class PushCheck(msgspec.Struct, frozen=True, kw_only=True, tag_field="aud", tag="check"):
    """A message whose receipt is to be asked for. ``retry``: how often that was done before; ``send_retry``: how often
    it had been sent before the ticket was got."""

    uid: str
    attempt_initially_queued_at: float
    initially_queued_at: float
    retry: int = 0
    last_queued_at: float
    push_ticket: PushTicket
    push_ticket_created_at: float
    push_token: Sealed[str]
    contents: Sealed[PushContents]
    failure_job: JobRef
    success_job: JobRef
    user_sub: str = ""
    lane: str = "normal"
    send_retry: int = 0
    given_up: bool = False  # it was a dead letter, and its message was ended then

    @classmethod
    def of(cls, push: OutgoingPush, ticket: PushTicket, now: float) -> "PushCheck":
        """What is kept of a message that the provider just took."""
        return cls(
            uid=push.uid, attempt_initially_queued_at=push.initially_queued_at, initially_queued_at=now,
            last_queued_at=now, push_ticket=ticket, push_ticket_created_at=now, push_token=push.push_token,
            contents=push.contents, failure_job=push.failure_job, success_job=push.success_job,
            user_sub=push.user_sub, lane=push.lane, send_retry=push.retry,
        )

    def outgoing(self) -> OutgoingPush:
        """The message as it was sent."""
        return OutgoingPush(
            uid=self.uid, initially_queued_at=self.attempt_initially_queued_at, retry=self.send_retry,
            last_queued_at=self.initially_queued_at, push_token=self.push_token, contents=self.contents,
            failure_job=self.failure_job, success_job=self.success_job, user_sub=self.user_sub, lane=self.lane,
        )


# -- what callbacks are told -------------------------------------------------------------------------------------------


class Identifier(StrEnum):
    """Kinds of failures."""

    NETWORK = "NetworkError"
    CLIENT_429 = "ClientError429"
    SERVER = "ServerError"
    CLIENT_OTHER = "ClientErrorOther"
    INTERNAL = "InternalError"
    DEVICE_GONE = "DeviceNotRegistered"
    TOO_BIG = "MessageTooBig"
    RATE_EXCEEDED = "MessageRateExceeded"
    MISMATCHED_SENDER = "MismatchSenderId"
    CREDENTIALS = "InvalidCredentials"
    NOT_READY = "NotReadyYet"


class FailureInfo(msgspec.Struct, frozen=True):
    """Why a message failed. If it is ``retryable``, the failure job sends or checks it again, or abandons it."""

    action: Literal["send", "check"]
    identifier: Identifier
    retryable: bool = False
    ticket: PushTicket | None = None
    receipt: PushReceipt | None = None
    extra: str | None = None
    retry_after_seconds: float = 0.0  # the provider asked to be left alone for so long


class PushFailure(msgspec.Struct, frozen=True):
    """What a failure job is told."""

    attempt: OutgoingPush | PushCheck
    failure_info: FailureInfo


class SentPush(msgspec.Struct, frozen=True, kw_only=True, tag_field="aud", tag="success"):
    """A message that the device's own service took."""

    uid: str
    initially_queued_at: float
    push_token: str
    contents: PushContents
    user_sub: str = ""


class SuccessInfo(msgspec.Struct, frozen=True):
    """When it was taken, and when that was confirmed."""

    ticket_created_at: float
    ticket: PushTicket
    receipt_checked_at: float
    receipt: PushReceipt


class PushSuccess(msgspec.Struct, frozen=True):
    """What a success job is told."""

    attempt: SentPush
    result: SuccessInfo
