"""Callbacks: what they are told arrives as it was, and nothing else is believed."""

import base64
import contextlib
import gzip
import json
import zlib
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from keystead.engine import Valkey
from keystead.errors import Invalid
from keystead.jobs.callbacks import (
    MOST_BYTES,
    MOST_TEXT,
    STANDARD_POLICY,
    AfterFailure,
    FailurePolicy,
    callback_record,
    check_callback,
    closed,
    decode_data_raw,
    encode_data_raw,
    opened,
)
from keystead.jobs.keys import Queue
from keystead.jobs.models import JobRef
from keystead.jobs.progress import Progress
from keystead.keys import sealing
from keystead.testing.clock import MovableClock

unhurried = settings(deadline=None, max_examples=100, suppress_health_check=list(HealthCheck))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20,
)


@unhurried
@given(JSON)
@example({"sub": "ä", "n": [1, 2.5, None]})
def test_what_is_told_arrives_as_it_was(value: Any) -> None:
    assert decode_data_raw(encode_data_raw(value)) == value


def test_text_is_what_others_can_read_and_write() -> None:
    value = {"message": {"to": "+1555"}, "outcome": "delivered"}
    assert json.loads(gzip.decompress(base64.urlsafe_b64decode(encode_data_raw(value)))) == value
    theirs = base64.urlsafe_b64encode(gzip.compress(json.dumps(value).encode())).decode()
    assert decode_data_raw(theirs) == value
    assert encode_data_raw(value) == encode_data_raw(value)


class Outcome(msgspec.Struct, frozen=True):
    uid: str
    retryable: bool


def test_outcome_is_read_as_its_type() -> None:
    assert decode_data_raw(encode_data_raw(Outcome("m1", True)), Outcome) == Outcome("m1", True)
    with pytest.raises(Invalid, match="uid"):
        decode_data_raw(encode_data_raw({"retryable": True}), Outcome)


def packed(raw: bytes) -> str:
    return base64.urlsafe_b64encode(gzip.compress(raw, mtime=0)).decode()


@pytest.mark.parametrize(
    "text",
    ["", "no base64!", "é", "AAAA", packed(b"{}")[:-8], packed(b"{"), packed(b""), packed(b"\xff"), "+/+/",
     base64.urlsafe_b64encode(zlib.compress(b"{}")).decode(),
     base64.urlsafe_b64encode(gzip.compress(b"{}", mtime=0) + b"more").decode()],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        decode_data_raw(text)


@unhurried
@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda raw: base64.urlsafe_b64encode(raw).decode()))
def test_no_text_raises_anything_but_a_refusal(text: str) -> None:
    with contextlib.suppress(Invalid):
        decode_data_raw(text)


def test_small_text_that_unpacks_to_much_is_refused() -> None:
    bomb = packed(b'"' + b"a" * (MOST_BYTES + 1) + b'"')
    assert len(bomb) < 10_000
    with pytest.raises(Invalid, match="unpacks to more than"):
        decode_data_raw(bomb)


def test_too_long_text_is_refused_unread_and_unwritten() -> None:
    with pytest.raises(Invalid, match="at most"):
        decode_data_raw("A" * (MOST_TEXT + 1))
    noise = "".join(f"{number * 2654435761 % 2**32:08x}" for number in range(80_000))
    with pytest.raises(Invalid, match="tell it less"):
        encode_data_raw(noise)
    with pytest.raises(Invalid, match="tell it less"):
        encode_data_raw("a" * (MOST_BYTES + 1))
    with pytest.raises(Invalid, match="JSON"):
        encode_data_raw(object())


def test_record_has_the_stored_arguments_and_what_happened() -> None:
    record = callback_record(JobRef("runners.sent", {"touch": 7}), {"status": "ok"}, queued_at=12.5, uid="u1")
    assert (record.name, record.queued_at, record.uid) == ("runners.sent", 12.5, "u1")
    assert record.kwargs["touch"] == 7 and decode_data_raw(record.kwargs["data_raw"]) == {"status": "ok"}


def test_callback_that_has_the_argument_already_is_refused() -> None:
    callback = JobRef("runners.sent", {"data_raw": "x"})
    with pytest.raises(Invalid, match="data_raw"):
        check_callback(callback)
    with pytest.raises(Invalid, match=r"runners\.sent"):
        callback_record(callback, None, queued_at=1.0)


async def test_callback_is_queued_in_the_transaction_of_what_it_follows(server: Valkey) -> None:
    record = callback_record(JobRef("runners.sent"), {"status": "ok"}, queued_at=1.0)
    async with server.pipeline(transaction=True) as pipeline:
        Progress("jp_1", MovableClock()).succeeded(pipeline)
        Queue().work.push(pipeline, record)
        await pipeline.execute()
    assert await Queue().work.queue.range(server) == [record]


@pytest.mark.parametrize(
    ("retryable", "retries", "age", "expected"),
    [(False, 0, 0, AfterFailure.NOTHING), (False, 9, 10**6, AfterFailure.NOTHING),
     (True, 0, 0, AfterFailure.RETRY), (True, 2, 43_200, AfterFailure.RETRY),
     (True, 3, 0, AfterFailure.ABANDON), (True, 0, 43_201, AfterFailure.ABANDON)],
)
def test_standard_policy(retryable: bool, retries: int, age: float, expected: AfterFailure) -> None:
    decided = STANDARD_POLICY.decide(retryable=retryable, retries=retries, first_queued_at=1000.0, now=1000.0 + age)
    assert decided is expected


def test_policy_of_ones_own() -> None:
    policy = FailurePolicy(most_retries=0)
    assert policy.decide(retryable=True, retries=0, first_queued_at=0, now=0) is AfterFailure.ABANDON


@pytest.mark.parametrize("queue", ["a:b", "x{y}", "{x}", "sp ace\n"])
def test_a_callback_into_a_queue_that_cannot_be_is_refused(queue):
    with pytest.raises(Invalid, match="no queue can be called"):
        check_callback(JobRef("shop.done", {}, queue))
    check_callback(JobRef("shop.done", {}, "mails"))
    check_callback(JobRef("shop.done", {}))


def test_what_callbacks_are_told_is_sealed_where_the_process_seals() -> None:
    with sealing("1" * 32):
        text = encode_data_raw({"to": "ada@example.com"})
        assert text == encode_data_raw({"to": "ada@example.com"})
        assert decode_data_raw(text) == {"to": "ada@example.com"}
        argument = closed("token")
        assert argument != "token" and opened(argument) == "token"
    with pytest.raises(Invalid, match="not among the payload keys"):
        decode_data_raw(text)
    with pytest.raises(Invalid, match="says that it is sealed"):
        decode_data_raw("sealed.nothing")
    assert closed("token") == opened("token") == "token"
