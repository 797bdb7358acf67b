"""What lies in the server is spelled as documented, and read however other programs spell it."""

import msgspec
import pytest

from keystead.errors import Invalid
from keystead.jobs import JobRef
from keystead.jobs.callbacks import encode_data_raw
from keystead.messaging.email.keys import NEWS, RECEIPT_PENDING, SENDING
from keystead.messaging.email.models import (
    Bounce,
    BounceReason,
    Complaint,
    Delivery,
    DeliveryInfo,
    EmailEvent,
    EmailFailure,
    EmailSuccess,
    FailureInfo,
    OutgoingEmail,
    PendingEmail,
    read_failure,
    read_success,
)

DOCUMENTED = (
    b'{"aud":"send","uid":"oseh_em_x","email":"a@example.com","subject":"Hi","template":"code","template_parameters":'
    b'{"code":1},"initially_queued_at":1.5,"retry":2,"last_queued_at":2.5,"failure_job":{"name":"f","kwargs":{}},'
    b'"success_job":{"name":"s","kwargs":{"codes":[]}},"some_day":"a new field"}'
)
SENT = OutgoingEmail(
    uid="oseh_em_x", email="a@example.com", subject="Hi", template="code", template_parameters={"code": 1},
    initially_queued_at=1.5, retry=2, last_queued_at=2.5, failure_job=JobRef("f"),
    success_job=JobRef("s", {"codes": []}),
)


def test_an_email_in_the_queue_has_the_documented_fields() -> None:
    codec = SENDING.work.queue_key.codec
    assert codec.decode(DOCUMENTED) == SENT
    written = msgspec.json.decode(codec.encode(SENT))
    assert {"aud", "uid", "email", "subject", "template", "template_parameters", "initially_queued_at", "retry",
            "last_queued_at", "failure_job", "success_job"} <= set(written)
    assert written["success_job"] == {"name": "s", "kwargs": {"codes": []}}, "an empty list stays one"


def test_an_email_that_waits_has_the_documented_fields() -> None:
    record = RECEIPT_PENDING.record_key.record
    pending = PendingEmail.of(SENT, "m-1", 9.0)
    fields = record.encode(pending)
    assert set(fields) == {
        "aud", "uid", "message_id", "email", "subject", "template", "template_parameters", "send_initially_queued_at",
        "send_accepted_at", "failure_job", "success_job", "user_sub",
    }
    assert fields["aud"] == b"pending" and fields["template_parameters"] == b'{"code":1}'
    assert record.decode({name.encode(): raw for name, raw in fields.items()}) == pending


@pytest.mark.parametrize(("raw", "news"), [
    (b'{"type":"Delivery"}', Delivery()), (b'{"type":"delivery"}', Delivery()),
    (b'{"type":"BOUNCE","reason":{"primary":"Transient","secondary":"Whatever"},"destination":["a@example.com"],'
     b'"bounced_recipients":["a@example.com"]}',
     Bounce(BounceReason("Transient", "Whatever"), ["a@example.com"], ["a@example.com"])),
    (b'{"type":"Complaint","feedback_type":null,"destination":[],"complained_recipients":[]}', Complaint()),
])
def test_news_are_read_in_any_case_and_with_unknown_subtypes(raw: bytes, news: object) -> None:
    found = NEWS.queue_key.codec.decode(b'{"message_id":"m","notification":' + raw + b',"received_at":5}')
    assert found == EmailEvent("m", news, 5.0)  # type: ignore[arg-type]
    assert NEWS.queue_key.codec.decode(NEWS.queue_key.codec.encode(found)) == found


@pytest.mark.parametrize("raw", [b"{}", b"[]", b'{"message_id":"m","notification":{"type":"Other"},"received_at":5}'])
def test_what_are_no_news_do_not_decode(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        NEWS.queue_key.codec.decode(raw)


def test_callbacks_can_read_what_they_are_told() -> None:
    for email in (SENT, PendingEmail.of(SENT, "m-1", 9.0)):
        failure = EmailFailure(email, FailureInfo("send", "SESServerError", True, "503"))
        assert read_failure(encode_data_raw(failure)) == failure
    success = EmailSuccess(PendingEmail.of(SENT, "m-1", 9.0), DeliveryInfo(10.0))
    assert read_success(encode_data_raw(success)) == success
    with pytest.raises(Invalid):
        read_failure(encode_data_raw({"email": {"aud": "send"}, "info": msgspec.to_builtins(failure.info)}))
