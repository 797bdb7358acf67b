"""Wire values: what other programs and yesterday's version wrote can be read."""

import msgspec

from keystead.jobs import JobRef
from keystead.messaging.push.models import (
    FailureInfo,
    Identifier,
    OutgoingPush,
    PushCheck,
    PushContents,
    PushFailure,
    PushTicket,
)

SEND = (
    b'{"aud":"send","uid":"oseh_pma_x","initially_queued_at":1.5,"retry":1,"last_queued_at":2.5,'
    b'"push_token":"ExponentPushToken[a]","contents":{"title":"T","body":"B","channel_id":"daily"},'
    b'"failure_job":{"name":"f","kwargs":{"a":[]}},"success_job":{"name":"s","kwargs":{}},"unknown":1}'
)
CHECK = (
    b'{"aud":"check","uid":"oseh_pma_x","attempt_initially_queued_at":1.5,"initially_queued_at":3,"retry":0,'
    b'"last_queued_at":3,"push_ticket":{"status":"ok","id":"t","message":null,"details":null},'
    b'"push_ticket_created_at":3,"push_token":"ExponentPushToken[a]",'
    b'"contents":{"title":"T","body":"B","channel_id":"daily"},'
    b'"failure_job":{"name":"f","kwargs":{}},"success_job":{"name":"s","kwargs":{}}}'
)


def test_a_kept_message_is_read_and_written_back_with_its_documented_fields():
    push = msgspec.json.decode(SEND, type=OutgoingPush)
    assert push.contents == PushContents("T", "B", "daily") and push.failure_job == JobRef("f", {"a": []})
    assert (push.lane, push.user_sub) == ("normal", "")
    assert set(msgspec.json.decode(SEND)) - {"unknown"} <= set(msgspec.json.decode(msgspec.json.encode(push)))


def test_a_kept_ticket_is_read_and_gives_back_its_message():
    check = msgspec.json.decode(CHECK, type=PushCheck)
    assert check.push_ticket == PushTicket("ok", "t")
    again = check.outgoing()
    assert (again.uid, again.retry, again.initially_queued_at) == ("oseh_pma_x", 0, 1.5)
    assert msgspec.structs.replace(PushCheck.of(again, check.push_ticket, 3.0)) == check


def test_a_failure_says_by_its_attempt_what_failed():
    push, check = msgspec.json.decode(SEND, type=OutgoingPush), msgspec.json.decode(CHECK, type=PushCheck)
    for attempt, action in ((push, "send"), (check, "check")):
        failure = PushFailure(attempt, FailureInfo(action, Identifier.NETWORK, True))
        told = msgspec.json.encode(failure)
        assert msgspec.json.decode(told, type=PushFailure) == failure
        assert msgspec.json.decode(told)["attempt"]["aud"] == action
        assert set(msgspec.json.decode(told)["failure_info"]) >= {
            "action", "ticket", "receipt", "identifier", "retryable", "extra"
        }
