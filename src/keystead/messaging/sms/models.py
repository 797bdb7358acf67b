"""What lies in Valkey of texts, and what their callbacks are told. New fields have defaults."""

from enum import StrEnum
from typing import Literal

import msgspec

from keystead.jobs import JobRef
from keystead.keys import Sealed
from keystead.messaging.sms.statuses import Status


class OutgoingSms(msgspec.Struct, frozen=True, kw_only=True, tag_field="aud", tag="send"):
    """A text to be sent. ``retry``: how often it failed before for reasons that pass."""

    uid: str
    initially_queued_at: float
    retry: int = 0
    last_queued_at: float
    phone_number: Sealed[str]
    body: Sealed[str]
    failure_job: JobRef
    success_job: JobRef
    user_sub: str = ""
    lane: str = "normal"
    trace: str | msgspec.UnsetType = msgspec.UNSET  # where in a trace it was queued, as a W3C traceparent


class MessageResource(msgspec.Struct, frozen=True):
    """A message as the provider keeps it. ``date_updated`` in unix seconds."""

    sid: str
    status: Status
    error_code: str | None = None
    date_updated: float | None = None


class PendingSms(msgspec.Struct, frozen=True, kw_only=True, tag_field="aud", tag="pending"):
    """A text that the provider took and has not settled, as callbacks see it."""

    uid: str
    send_initially_queued_at: float
    message_resource_created_at: float
    message_resource_last_updated_at: float
    message_resource: MessageResource
    failure_job_last_called_at: float | None
    num_failures: int
    num_changes: int
    phone_number: str
    body: str
    failure_job: JobRef
    success_job: JobRef
    user_sub: str = ""


class PendingRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The same as a flat hash.

    ``num_failures`` counts how often no news came in time, ``num_changes`` every change: whoever changes the record
    says which number it saw.
    """

    aud: Literal["pending"] = "pending"
    uid: str
    send_initially_queued_at: float
    message_resource_created_at: float
    message_resource_last_updated_at: float
    message_resource_sid: str
    message_resource_status: Status
    message_resource_error_code: str | None = None
    message_resource_date_updated: float | None = None
    failure_job_last_called_at: float | None = None
    num_failures: int = 0
    num_changes: int = 0
    phone_number: Sealed[str]
    body: Sealed[str]
    failure_job: JobRef
    success_job: JobRef
    user_sub: str = ""
    trace: str | None = None  # that of the text, for whoever brings news of it; only while somebody listens

    @classmethod
    def of(cls, sms: OutgoingSms, resource: MessageResource, now: float) -> "PendingRecord":
        """What is kept of a text that the provider just took."""
        return cls(
            uid=sms.uid, send_initially_queued_at=sms.initially_queued_at, message_resource_created_at=now,
            message_resource_last_updated_at=now, message_resource_sid=resource.sid,
            message_resource_status=resource.status, message_resource_error_code=resource.error_code,
            message_resource_date_updated=resource.date_updated, phone_number=sms.phone_number, body=sms.body,
            failure_job=sms.failure_job, success_job=sms.success_job, user_sub=sms.user_sub,
            trace=sms.trace or None,
        )

    def nested(self) -> PendingSms:
        """As callbacks see it."""
        return PendingSms(
            uid=self.uid, send_initially_queued_at=self.send_initially_queued_at,
            message_resource_created_at=self.message_resource_created_at,
            message_resource_last_updated_at=self.message_resource_last_updated_at,
            message_resource=MessageResource(
                self.message_resource_sid, self.message_resource_status, self.message_resource_error_code or None,
                self.message_resource_date_updated,
            ),
            failure_job_last_called_at=self.failure_job_last_called_at, num_failures=self.num_failures,
            num_changes=self.num_changes, phone_number=self.phone_number, body=self.body,
            failure_job=self.failure_job, success_job=self.success_job, user_sub=self.user_sub,
        )


class SmsEvent(msgspec.Struct, frozen=True, kw_only=True):
    """News of a message. ``uid`` is our own name of the text, where the provider's call carried it."""

    sid: str
    status: Status
    error_code: str | None = None
    error_message: Sealed[str | None] = None
    date_updated: float | None = None
    information_received_at: float
    received_via: Literal["webhook", "poll"]
    uid: str = ""


# -- what callbacks are told -------------------------------------------------------------------------------------------


class Identifier(StrEnum):
    """Kinds of failures."""

    NETWORK = "NetworkError"
    SERVER = "ServerError"
    CLIENT_429 = "ClientError429"
    CLIENT_OTHER = "ClientErrorOther"
    INTERNAL = "InternalError"
    RATELIMIT = "ApplicationErrorRatelimit"
    APPLICATION = "ApplicationErrorOther"
    STUCK = "StuckPending"


class FailureInfo(msgspec.Struct, frozen=True):
    """Why a text failed. If it is ``retryable``, the failure job sends it again or abandons it, and counts which."""

    action: Literal["send", "pending"]
    identifier: Identifier
    subidentifier: str | None = None
    retryable: bool = False
    extra: str | None = None
    retry_after_seconds: float = 0.0  # the provider asked to be left alone for so long


class SmsFailure(msgspec.Struct, frozen=True):
    """What a failure job is told."""

    sms: OutgoingSms | PendingSms
    failure_info: FailureInfo


class SentSms(msgspec.Struct, frozen=True, kw_only=True, tag_field="aud", tag="success"):
    """A text that arrived, or at least left."""

    uid: str
    initially_queued_at: float
    phone_number: str
    body: str
    user_sub: str = ""


class SuccessInfo(msgspec.Struct, frozen=True):
    """When it was taken, and when it was known to have succeeded."""

    message_resource_created_at: float
    message_resource_succeeded_at: float
    message_resource: MessageResource


class SmsSuccess(msgspec.Struct, frozen=True):
    """What a success job is told."""

    sms: SentSms
    result: SuccessInfo


class Unreachable(msgspec.Struct, frozen=True):
    """What the job that suppresses a number is told."""

    phone_number: str
    details: dict[str, str | None]
