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
