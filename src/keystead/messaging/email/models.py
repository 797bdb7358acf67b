"""What lies in Valkey or is told to jobs. New fields have defaults, so that yesterday's queue can be read today."""

from typing import Any, Final, Literal

import msgspec

from keystead.errors import Invalid
from keystead.jobs import JobRef
from keystead.jobs.callbacks import decode_data_raw
from keystead.keys import Codec, Sealed, Undecodable, codec_of

Step = Literal["template", "send", "receipt"]


class OutgoingEmail(msgspec.Struct, frozen=True, kw_only=True):
    """An email that waits to be rendered and sent. ``retry`` counts how often it was put back."""

    aud: Literal["send"] = "send"
    uid: str
    email: Sealed[str]
    subject: Sealed[str]
    template: str
    template_parameters: Sealed[dict[str, Any]] = {}
    initially_queued_at: float
    retry: int = 0
    last_queued_at: float
    failure_job: JobRef
    success_job: JobRef
    user_sub: str = ""
    lane: str = "normal"
    asked_at: float = 0.0  # the provider was asked then, and its answer was lost
    trace: str | msgspec.UnsetType = msgspec.UNSET  # where in a trace it was queued, as a W3C traceparent


class PendingEmail(msgspec.Struct, frozen=True, kw_only=True):
    """An email that the provider accepted and nothing more is known of."""

    aud: Literal["pending"] = "pending"
    uid: str
    message_id: str
    email: Sealed[str]
    subject: Sealed[str]
    template: str
    template_parameters: Sealed[dict[str, Any]] = {}
    send_initially_queued_at: float
    send_accepted_at: float
    failure_job: JobRef
    success_job: JobRef
    user_sub: str = ""
    trace: str | None = None  # that of the email, for whoever brings news of it; only while somebody listens

    @classmethod
    def of(cls, sent: OutgoingEmail, message_id: str, accepted_at: float) -> "PendingEmail":
        return cls(
            uid=sent.uid, message_id=message_id, email=sent.email, subject=sent.subject, template=sent.template,
            template_parameters=sent.template_parameters, send_initially_queued_at=sent.initially_queued_at,
            send_accepted_at=accepted_at, failure_job=sent.failure_job, success_job=sent.success_job,
            user_sub=sent.user_sub, trace=sent.trace or None,
        )


# -- news of the provider ---------------------------------------------------------------------------------------------


class Delivery(msgspec.Struct, frozen=True, tag_field="type", tag="Delivery"):
    """It reached the mailbox."""


class BounceReason(msgspec.Struct, frozen=True):
    """Known: ``Undetermined``, ``Permanent`` and ``Transient`` with more words; others are kept as they are."""

    primary: str
    secondary: str


class Bounce(msgspec.Struct, frozen=True, tag_field="type", tag="Bounce"):
    """It did not reach these mailboxes."""

    reason: BounceReason
    destination: list[str] = []
    bounced_recipients: list[str] = []


class Complaint(msgspec.Struct, frozen=True, tag_field="type", tag="Complaint"):
    """Somebody called it spam."""

    feedback_type: str | None = None
    destination: list[str] = []
    complained_recipients: list[str] = []


Notification = Delivery | Bounce | Complaint
TYPES: Final = ("Delivery", "Bounce", "Complaint")


class EmailEvent(msgspec.Struct, frozen=True):
    """News of one message. ``uid`` is ours, where the provider told it back. ``event_id`` tells two news apart."""

    message_id: str
    notification: Sealed[Notification]
    received_at: float
    uid: str = ""
    event_id: str = ""


class EarlyEvent(msgspec.Struct, frozen=True):
    """News that came before we knew that the email was sent; ``event`` waits until that is settled."""

    event: EmailEvent
    parked_at: float


def parked_as(uid: str, kind: str) -> str:
    """Under which name news wait: one of each kind for an email."""
    return f"{uid}.{kind}"


class EventCodec:
    """JSON, in which other programs may spell the type of a notification with other capitals."""

    name = "JSON EmailEvent"

    def __init__(self) -> None:
        self._plain: Codec[EmailEvent] = codec_of(EmailEvent)

    def encode(self, value: EmailEvent, /) -> bytes:
        return self._plain.encode(value)

    def decode(self, raw: bytes, /) -> EmailEvent:
        try:
            return self._plain.decode(raw)
        except Undecodable:
            return self._plain.decode(_with_usual_capitals(raw))


def _with_usual_capitals(raw: bytes) -> bytes:
    try:
        event = msgspec.json.decode(raw)
        notification = event["notification"]
        notification["type"] = str(notification["type"]).capitalize()
        return msgspec.json.encode(event)
    except (msgspec.DecodeError, UnicodeDecodeError, LookupError, TypeError):
        return raw


# -- what callbacks are told -----------------------------------------------------------------------------------------


class FailureInfo(msgspec.Struct, frozen=True):
    """Why an email failed. ``retryable``: the callback must put it back or give it up; otherwise neither."""

    step: Step
    error_identifier: str
    retryable: bool
    extra: str | None = None
    retry_after_seconds: float = 0.0


class EmailFailure(msgspec.Struct, frozen=True):
    """Told to a failure job. The email is as it was sent, or as it waited for news."""

    email: OutgoingEmail | PendingEmail
    info: FailureInfo


class DeliveryInfo(msgspec.Struct, frozen=True):
    """When we heard that it was delivered."""

    delivery_received_at: float


class EmailSuccess(msgspec.Struct, frozen=True):
    """Told to a success job."""

    email: PendingEmail
    info: DeliveryInfo


class _Audience(msgspec.Struct, frozen=True):
    aud: str


class _RawFailure(msgspec.Struct, frozen=True):
    email: msgspec.Raw
    info: FailureInfo


def read_failure(data_raw: str) -> EmailFailure:
    """What a failure job was told. Anything else is ``Invalid``."""
    raw = decode_data_raw(data_raw, _RawFailure)
    try:
        audience = msgspec.json.decode(raw.email, type=_Audience).aud
        if audience == "pending":
            return EmailFailure(msgspec.json.decode(raw.email, type=PendingEmail), raw.info)
        return EmailFailure(msgspec.json.decode(raw.email, type=OutgoingEmail), raw.info)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Invalid(f"what failed is not an email: {error}") from None


def read_success(data_raw: str) -> EmailSuccess:
    """What a success job was told. Anything else is ``Invalid``."""
    return decode_data_raw(data_raw, EmailSuccess)
