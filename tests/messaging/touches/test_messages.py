"""Messages are stored the same way each time, and made into words."""

import base64
import gzip
import json
import zlib

import pytest

from keystead.errors import Corrupt
from keystead.messaging.touches.messages import MOST_BYTES, Messages, SmsMessage, etag_of, pack, rendered, unpack
from keystead.messaging.touches.points_builtin import BUILT_IN

(REMINDER,) = BUILT_IN


def test_stored_messages_are_base85_of_gzip_of_json():
    text = pack(REMINDER.messages)
    document = json.loads(gzip.decompress(base64.b85decode(text)))
    assert set(document) == {"sms", "push", "email"}
    assert unpack(text) == REMINDER.messages
    assert pack(unpack(text)) == text and etag_of(text) == etag_of(pack(REMINDER.messages))


def test_what_others_stored_with_further_fields_is_read():
    raw = json.dumps({"sms": [{"priority": 1, "uid": "a", "body_format": "x", "body_parameters": [], "new": 1}]})
    assert unpack(base64.b85encode(gzip.compress(raw.encode())).decode()).sms[0].uid == "a"


@pytest.mark.parametrize("text", [
    "", "not base85 \x00", base64.b85encode(b"no gzip").decode(), base64.b85encode(gzip.compress(b"{")).decode(),
    base64.b85encode(gzip.compress(b'{"sms": 3}')).decode(), base64.b85encode(gzip.compress(b"{}")[:-3]).decode(),
    base64.b85encode(zlib.compress(b"{}")).decode(), base64.b85encode(gzip.compress(b" " * (MOST_BYTES + 1))).decode(),
], ids=lambda text: f"{len(text)} letters")  # the texts hold the time of day, and names of tests must not
def test_anything_else_is_corrupt(text):
    with pytest.raises(Corrupt):
        unpack(text)


def test_messages_are_sorted_by_priority_and_equals_keep_their_order():
    messages = [SmsMessage(priority=priority, uid=uid, body_format="x")
                for uid, priority in (("a", 2), ("b", 1), ("c", 2), ("d", 1))]
    assert [message.uid for message in Messages(sms=messages).in_order().sms] == ["b", "d", "a", "c"]


def test_the_same_words_have_the_same_digest():
    one, other = (SmsMessage(priority=1, uid=uid, body_format="{name}", body_parameters=["name"]) for uid in "ab")
    assert rendered(one, {"name": "Ada"}).digest == rendered(other, {"name": "Ada"}).digest
    assert rendered(one, {"name": "Ada"}).digest != rendered(one, {"name": "Bob"}).digest


def test_optional_words_are_left_out_where_the_event_lacks_them():
    (email,) = REMINDER.messages.email
    bare = rendered(email, {"name": "Ada", "url": "https://example.com/l/a"}).shown["template_parameters"]
    assert bare == {"name": "Ada", "url": "https://example.com/l/a"}
    full = rendered(email, REMINDER.schema["example"]).shown["template_parameters"]
    assert full == REMINDER.schema["example"]


def test_every_built_in_message_can_be_made_of_its_example():
    for message in REMINDER.messages:
        assert rendered(message, REMINDER.schema["example"]).shown
