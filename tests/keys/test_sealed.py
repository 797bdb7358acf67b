"""Sealed fields: what is written under a key, what is read back, and what is refused."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keystead.errors import Invalid
from keystead.keys import Sealed, Undecodable, codec_of, sealing
from keystead.keys.records import RecordCodec
from keystead.keys.sealed import lacks_key

ONE, TWO = "1" * 32, "2" * 32


class Words(msgspec.Struct, frozen=True):
    text: str


class Letter(msgspec.Struct, frozen=True, kw_only=True, tag_field="aud", tag="send"):
    uid: str
    to: Sealed[str]
    words: Sealed[Words]
    more: Sealed[dict[str, Any]] = {}
    note: Sealed[str | None] = None
    lane: str = "normal"


LETTER = Letter(uid="l1", to="ada@example.com", words=Words("hello"), more={"sealed": "12345678.abc"})
JSON, RECORD = codec_of(Letter), RecordCodec(Letter)


def test_without_a_key_it_is_plain():
    assert JSON.encode(LETTER) == msgspec.json.encode(LETTER)
    assert RECORD.encode(LETTER)["to"] == b"ada@example.com"


def test_with_a_key_only_the_other_fields_can_be_read():
    with sealing(ONE):
        raw = JSON.encode(LETTER)
        seen = msgspec.json.decode(raw)
        assert list(seen) == ["aud", "uid", "lane", "sealed"]
        assert JSON.decode(raw) == LETTER
        fields = RECORD.encode(LETTER)
        assert fields["uid"] == b"l1" and b"ada" not in fields["to"] and "note" not in fields
        assert RECORD.decode({name.encode(): value for name, value in fields.items()}) == LETTER


def test_the_same_value_is_the_same_bytes_and_fields_of_hashes_are_not():
    with sealing(ONE):
        assert JSON.encode(LETTER) == JSON.encode(LETTER)
        assert RECORD.encode(LETTER)["to"] != RECORD.encode(LETTER)["to"]
        other = msgspec.structs.replace(LETTER, uid="l2")
        tails = [JSON.encode(each).rpartition(b".")[2] for each in (LETTER, other)]
        assert tails[0] != tails[1], "that two letters say the same must not show"


@given(st.text(), st.dictionaries(st.text(), st.text() | st.none()), st.booleans(), st.booleans())
def test_whatever_was_written_is_read(text, more, written_sealed, read_sealed):
    letter = Letter(uid=text, to=text, words=Words(text), more=more, note=text or None, lane=text)
    with sealing(ONE if written_sealed else ""):
        raw = JSON.encode(letter)
    with sealing([TWO, ONE] if read_sealed or written_sealed else ""):
        assert JSON.decode(raw) == letter


def test_plain_json_that_looks_sealed_is_read_as_it_is():
    class Sealing(msgspec.Struct, frozen=True):
        to: Sealed[str]
        last: dict[str, str]

    value = Sealing("a", {"x": "y", "sealed": "12345678.AAAA"})
    codec = codec_of(Sealing)
    assert codec.decode(codec.encode(value)) == value


def test_without_its_key_the_reason_is_said_and_nothing_else():
    with sealing(ONE):
        raw, fields = JSON.encode(LETTER), RECORD.encode(LETTER)
    with sealing(TWO), pytest.raises(Undecodable, match="not among the payload keys") as refused:
        JSON.decode(raw)
    assert lacks_key(refused.value)
    with pytest.raises(Undecodable, match="field to: sealed with the key"):
        RECORD.decode({name.encode(): value for name, value in fields.items()})


@pytest.mark.parametrize("change", [
    lambda raw: raw.replace(b'"uid":"l1"', b'"uid":"l2"'),
    lambda raw: raw.replace(b'"lane":"normal"', b'"lane":"high"'),
    lambda raw: raw[:-6] + (b"AAAA" if raw[-6:-2] != b"AAAA" else b"BBBB") + raw[-2:],
    lambda raw: raw[:-12] + raw[-2:],
])
def test_what_was_changed_does_not_open(change):
    with sealing(ONE):
        raw = JSON.encode(LETTER)
        assert change(raw) != raw
        with pytest.raises(Undecodable, match="changed since") as refused:
            JSON.decode(change(raw))
        assert not lacks_key(refused.value)


def test_a_field_does_not_open_as_another():
    with sealing(ONE):
        fields = {name.encode(): value for name, value in RECORD.encode(LETTER).items()}
        with pytest.raises(Undecodable, match="changed since"):
            RECORD.decode(fields | {b"note": fields[b"to"]})


def test_keys_are_those_of_the_innermost_block_and_end_with_it():
    with sealing(ONE):
        with sealing(f" {TWO} , {ONE},"):
            assert b"sealed" in JSON.encode(LETTER)
            raw = JSON.encode(LETTER)
        with pytest.raises(Undecodable):
            JSON.decode(raw)
    assert JSON.encode(LETTER) == msgspec.json.encode(LETTER)


def test_a_key_that_can_be_guessed_is_refused():
    with pytest.raises(Invalid, match="32 characters"), sealing("secret"):
        pass
