"""Who a person is, in bytes."""

import gzip
import zlib

import pytest

from keystead.custody.person import Person, unpack
from keystead.errors import Invalid


def test_identifier_must_stand_alone_in_a_text() -> None:
    ann = Person(["user-47"])
    for text in (b'{"u":"user-47"}', b"user-47", b"a user-47, and", b"USER-47:x"):
        assert ann.is_in(text)
    assert not ann.is_in(b"user-471") and not ann.is_in(b"superuser-47") and not ann.is_in(b"user-4")


def test_identifier_may_touch_other_bytes_where_it_is_no_text() -> None:
    assert Person(["user-47"]).is_in(b"\x81\xa1u\xa7user-47A\xff")


def test_longer_identifier_of_somebody_else_in_other_bytes_is_not_theirs() -> None:
    ann = Person(["user-47"])
    for raw in (b"\x81\xa1u\xa8user-471\xff", b"\xff\x0bsuperuser-47\x00"):
        assert not ann.is_in(raw) and ann.may_be_in(raw)


def test_address_that_goes_on_is_somebody_elses() -> None:
    ann = Person(["ann@example.com"])
    for text in (b"mary-ann@example.com", b"jo.ann@example.com", b"x+ann@example.com", b"ann@example.com.au",
                 b"m=jo%2Eann%40example.com"):
        assert not ann.is_in(text) and ann.may_be_in(text), text
    for text in (b"write to ann@example.com.", b"<ann@example.com>", b"mailto:ann@example.com?x", b"ann@example.com"):
        assert ann.is_in(text), text


def test_escape_before_an_identifier_is_no_letter_of_it() -> None:
    ann = Person(["ann47"])
    for text in (b"to=%2Fusers%2Fann47", b"id%3Dann47%26x", b'"hello\\nann47 said"', b"\\u0022ann47\\u0022"):
        assert ann.is_in(text), text
    assert not ann.is_in(b"joann47") and not ann.may_be_in(b"joann47")


def test_short_numbers_are_told_from_names() -> None:
    both = Person(["1234", "ann@example.com"]).names
    assert both is not None and both.ids == ("ann@example.com",)
    assert Person(["1234"]).names is None and Person(["491701234567"]).names is not None


def test_spellings_of_urls_and_json_are_known() -> None:
    ann = Person(["ann+x@example.com", "Zoë"])
    assert ann.is_in(b"/u?m=ann%2Bx%40example.com") and ann.is_in(b'"Zo\\u00eb"') and ann.is_in("Zoë".encode())


def test_packed_values_are_opened() -> None:
    ann = Person(["user-47"])
    half = gzip.compress(b"user-47" + bytes(range(256)) * 100)[:150]
    assert ann.is_in(half), "what there is of a packed value"
    assert ann.is_in(gzip.compress(b"user-47")) and ann.is_in(zlib.compress(b"user-47"))
    zstandard = pytest.importorskip("zstandard")
    assert ann.is_in(zstandard.compress(b"user-47"))
    assert unpack(b"\x1f\x8bbroken") is None and unpack(b"\x28\xb5\x2f\xfdbroken") is None


def test_no_identifier_or_a_short_one_is_refused() -> None:
    with pytest.raises(Invalid, match="--person"):
        Person(["  "])
    with pytest.raises(Invalid, match="too short"):
        Person(["7"])


def test_variable_must_be_the_whole_identifier() -> None:
    assert Person(["Ann@x.io"]).is_value("ann@x.io") and not Person(["ann"]).is_value("anna")
