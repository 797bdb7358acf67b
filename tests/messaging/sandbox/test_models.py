"""What lies in the server can be read tomorrow."""

import msgspec

from keystead.messaging.sandbox.models import Delivery, Faults, Message, Step

SAMPLE = (b'{"id":"SM1","channel":"sms","to":"+15550001","at":100.0,"steps":[{"status":"queued","at":100.0},'
          b'{"status":"undelivered","at":110.0,"code":30003}],"text":"hello","later":"unknown"}')


def test_a_kept_message_is_read():
    message = msgspec.json.decode(SAMPLE, type=Message)
    assert message.steps[1] == Step("undelivered", 110.0, 30003)
    assert (message.recipient, message.ends_at) == ("sms:+15550001", 110.0)


def test_a_message_stands_where_the_clock_is():
    message = msgspec.json.decode(SAMPLE, type=Message)
    assert [message.step_at(now).status for now in (0, 100, 109.9, 110, 9999)] == [
        "queued", "queued", "queued", "undelivered", "undelivered"]


def test_a_kept_webhook_and_kept_faults_are_read():
    assert msgspec.json.decode(b'{"kind":"status","of":"SM1","due_at":1.0}', type=Delivery).copy == 0
    assert msgspec.json.decode(b'{"throttle":0.5}', type=Faults) == Faults(throttle=0.5)
