"""What lies in Valkey of texts is what is documented, and what was written yesterday can be read."""

import msgspec

from keystead.jobs import JobRef, decode_data_raw, encode_data_raw
from keystead.keys import Registry
from keystead.messaging.sms.keys import PENDING, SMS
from keystead.messaging.sms.models import (
    FailureInfo,
    Identifier,
    MessageResource,
    OutgoingSms,
    PendingRecord,
    PendingSms,
    SentSms,
    SmsEvent,
    SmsFailure,
    SmsSuccess,
    SuccessInfo,
)
from keystead.messaging.sms.statuses import Status

SENT = (
    b'{"aud":"send","uid":"oseh_sms_x","initially_queued_at":1.5,"retry":0,"last_queued_at":2,'
    b'"phone_number":"+14155550100","body":"Hello","failure_job":{"name":"runners.sms.default_failure","kwargs":{}},'
    b'"success_job":{"name":"runners.sms.default_success","kwargs":{"a":[1]}},"surprise":[1]}'
)
EVENT = (
    b'{"sid":"SM1","status":"sending","error_code":null,"error_message":null,"date_updated":7,'
    b'"information_received_at":8.25,"received_via":"poll"}'
)


def outgoing() -> OutgoingSms:
    return msgspec.json.decode(SENT, type=OutgoingSms)


def test_texts_of_another_program_are_read() -> None:
    sms = outgoing()
    assert (sms.uid, sms.retry, sms.lane, sms.user_sub) == ("oseh_sms_x", 0, "normal", "")
    assert sms.success_job == JobRef("runners.sms.default_success", {"a": [1]})
    written = msgspec.json.decode(msgspec.json.encode(sms))
    assert written["aud"] == "send" and set(written) == {
        "aud", "uid", "initially_queued_at", "retry", "last_queued_at", "phone_number", "body", "failure_job",
        "success_job", "user_sub", "lane",
    }


def test_events_of_another_program_are_read() -> None:
    event = msgspec.json.decode(EVENT, type=SmsEvent)
    assert (event.status, event.date_updated, event.uid) == (Status.SENDING, 7.0, "")


def test_the_hash_of_a_pending_text_has_the_documented_fields() -> None:
    documented = {
        "aud", "uid", "send_initially_queued_at", "message_resource_created_at", "message_resource_last_updated_at",
        "message_resource_sid", "message_resource_status", "message_resource_error_code",
        "message_resource_date_updated", "failure_job_last_called_at", "num_failures", "num_changes", "phone_number",
        "body", "failure_job", "success_job",
    }
    assert set(PENDING.fields) - documented == {"trace", "user_sub"} and documented <= set(PENDING.fields)
    record = PendingRecord.of(outgoing(), MessageResource("SM1", Status.ACCEPTED, None, 9.0), 10.0)
    raw = PENDING.record_key.record.encode(record)
    assert raw["aud"] == b"pending" and raw["message_resource_status"] == b"accepted"
    assert msgspec.json.decode(raw["success_job"]) == {"name": "runners.sms.default_success", "kwargs": {"a": [1]}}
    held = {name.encode(): value for name, value in raw.items()}
    assert PENDING.record_key.record.decode(held) == record


def test_a_pending_text_of_another_program_is_read() -> None:
    """None is an empty string there."""
    job = b'{"name":"runners.sms.default_failure","kwargs":{}}'
    raw = {
        b"aud": b"pending", b"uid": b"oseh_sms_x", b"send_initially_queued_at": b"1.5",
        b"message_resource_created_at": b"2", b"message_resource_last_updated_at": b"3.25",
        b"message_resource_sid": b"SM1", b"message_resource_status": b"queued", b"message_resource_error_code": b"",
        b"message_resource_date_updated": b"", b"failure_job_last_called_at": b"", b"num_failures": b"0",
        b"num_changes": b"0", b"phone_number": b"+14155550100", b"body": b"Hello", b"failure_job": job,
        b"success_job": job,
    }
    record = PENDING.record_key.record.decode(raw)
    assert (record.message_resource_date_updated, record.failure_job_last_called_at) == (None, None)
    assert record.nested().message_resource == MessageResource("SM1", Status.QUEUED)


def test_callbacks_are_told_what_is_documented() -> None:
    sms = outgoing()
    record = PendingRecord.of(sms, MessageResource("SM1", Status.SENDING, None, 9.0), 10.0)
    info = FailureInfo("pending", Identifier.STUCK, None, True, None)
    told = decode_data_raw(encode_data_raw(SmsFailure(record.nested(), info)))
    assert told["failure_info"] == {
        "action": "pending", "identifier": "StuckPending", "subidentifier": None, "retryable": True, "extra": None,
        "retry_after_seconds": 0.0,
    }
    assert told["sms"]["aud"] == "pending" and told["sms"]["message_resource"] == {
        "sid": "SM1", "status": "sending", "error_code": None, "date_updated": 9.0
    }
    for text, of in ((sms, OutgoingSms), (record.nested(), PendingSms)):
        failure = SmsFailure(text, info)
        read = decode_data_raw(encode_data_raw(failure), SmsFailure)
        assert read == failure and isinstance(read.sms, of)
    sent = SentSms(uid="u", initially_queued_at=1.0, phone_number="+1", body="b")
    success = SmsSuccess(sent, SuccessInfo(1.0, 2.0, MessageResource("SM1", Status.SENT)))
    assert decode_data_raw(encode_data_raw(success))["sms"]["aud"] == "success"
    assert decode_data_raw(encode_data_raw(success), SmsSuccess) == success


def test_every_documented_key_is_declared() -> None:
    patterns = {declaration.pattern: declaration.type for declaration in Registry([SMS])}
    documented = {
        "sms:to_send": "list", "sms:send_purgatory": "list", "sms:pending": "zset", "sms:pending:{sid}": "hash",
        "sms:recovery": "list", "sms:recovery_purgatory": "list", "sms:event": "list", "sms:event:purgatory": "list",
        "sms:send_job:lock": "lock", "sms:receipt_stale_detection_job:lock": "lock",
        "sms:receipt_recovery_job:lock": "lock", "sms:receipt_reconciliation_job:lock": "lock", "twilio:lock": "lock",
    }
    assert documented.items() <= patterns.items()
