"""Binary frames: exact bytes, round trips, and nothing half-read."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keystead.errors import DeclarationError
from keystead.keys import Frame, Integer, Rest, Sized, Trailing, Undecodable


class Head(msgspec.Struct, frozen=True):
    uid: str
    have_updated: bool = True


class Fill(msgspec.Struct, frozen=True):
    head: Head
    blocks: bytes | None


class Change(msgspec.Struct, frozen=True):
    fill: int
    uid: str
    value: bytes | None


class Transcript(msgspec.Struct, frozen=True):
    uid: str
    body: Head


class Numbers(msgspec.Struct, frozen=True):
    a: int
    b: int
    c: int
    d: int


FILL = Frame(Fill, Sized("head", "u32", Head), Rest("blocks", bytes, when=lambda parts: parts["head"].have_updated))
CHANGE = Frame(
    Change,
    Integer("fill", "u8"), Sized("uid", "u32", str), Rest("value", bytes, when=lambda parts: parts["fill"] == 1),
    trailing=Trailing.IGNORED,
)
TRANSCRIPT = Frame(Transcript, Sized("uid", "u32", str), Sized("body", "u64", Head), trailing=Trailing.IGNORED)
NUMBERS = Frame(Numbers, Integer("a", "u8"), Integer("b", "u16"), Integer("c", "u32"), Integer("d", "u64"))


def test_integers_are_big_endian() -> None:
    raw = NUMBERS.encode(Numbers(1, 2, 3, 4))
    assert raw == b"\x01" + b"\0\x02" + b"\0\0\0\x03" + b"\0\0\0\0\0\0\0\x04"
    assert NUMBERS.decode(raw) == Numbers(1, 2, 3, 4)


def test_exact_bytes_of_sized_parts() -> None:
    assert CHANGE.encode(Change(1, "ab", b"xyz")) == b"\x01\0\0\0\x02abxyz"
    assert CHANGE.encode(Change(0, "ab", None)) == b"\x00\0\0\0\x02ab"
    assert TRANSCRIPT.encode(Transcript("u", Head("u", False))) == (
        b"\0\0\0\x01u" + (32).to_bytes(8, "big") + b'{"uid":"u","have_updated":false}'
    )


@given(st.integers(0, 255), st.integers(0, 65535), st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1))
def test_numbers_come_back(a: int, b: int, c: int, d: int) -> None:
    assert NUMBERS.decode(NUMBERS.encode(Numbers(a, b, c, d))) == Numbers(a, b, c, d)


@given(st.text(st.characters(exclude_categories=("Cs",))), st.booleans(), st.binary())
def test_parts_come_back(uid: str, updated: bool, blocks: bytes) -> None:
    fill = Fill(Head(uid, updated), blocks if updated else None)
    assert FILL.decode(FILL.encode(fill)) == fill


@pytest.mark.parametrize(
    ("frame", "raw", "least"),
    [
        (NUMBERS, NUMBERS.encode(Numbers(1, 2, 3, 4)), 15),
        (FILL, FILL.encode(Fill(Head("uid", False), None)), None),
        (CHANGE, CHANGE.encode(Change(1, "uid", b"")), None),
        (TRANSCRIPT, TRANSCRIPT.encode(Transcript("uid", Head("uid"))), None),
    ],
    ids=["numbers", "fill", "change", "transcript"],
)
def test_a_frame_cut_at_any_byte_is_refused(frame: Frame[object], raw: bytes, least: int | None) -> None:
    frame.decode(raw)
    assert least is None or least == len(raw)
    for length in range(len(raw)):
        with pytest.raises(Undecodable):
            frame.decode(raw[:length])


def test_a_length_beyond_the_frame_is_refused() -> None:
    with pytest.raises(Undecodable, match="should have 4294967295 bytes, the frame has 1 left") as caught:
        CHANGE.decode(b"\x01\xff\xff\xff\xffa")
    assert caught.value.offset == 5


def test_trailing_bytes_are_refused_unless_the_frame_says_otherwise() -> None:
    assert TRANSCRIPT.decode(TRANSCRIPT.encode(Transcript("u", Head("u"))) + b"more") == Transcript("u", Head("u"))
    assert CHANGE.decode(b"\x00\0\0\0\x01uignored") == Change(0, "u", None)
    with pytest.raises(Undecodable, match="1 bytes after the end") as caught:
        NUMBERS.decode(NUMBERS.encode(Numbers(1, 2, 3, 4)) + b"x")
    assert caught.value.offset == 15
    with pytest.raises(Undecodable, match="after the end"):
        FILL.decode(FILL.encode(Fill(Head("u", False), None)) + b"x")


def test_an_offset_counts_from_the_start_of_the_frame() -> None:
    with pytest.raises(Undecodable) as caught:
        CHANGE.decode(b"\x01\0\0\0\x02a\xff")
    assert caught.value.offset == 6


@pytest.mark.parametrize("numbers", [Numbers(256, 0, 0, 0), Numbers(-1, 0, 0, 0), Numbers(0, 65536, 0, 0)])
def test_a_number_that_does_not_fit_is_refused(numbers: Numbers) -> None:
    with pytest.raises(DeclarationError, match="fits"):
        NUMBERS.encode(numbers)


def test_a_part_that_would_be_lost_is_refused() -> None:
    with pytest.raises(DeclarationError, match="value has no place"):
        CHANGE.encode(Change(0, "u", b"lost"))


def test_a_frame_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(DeclarationError, match="u12"):
        Integer("a", "u12")
    with pytest.raises(DeclarationError, match="at least one"):
        Frame(Head)
    with pytest.raises(DeclarationError, match="must come last"):
        Frame(Head, Rest("uid", str), Integer("have_updated", "u8"))
