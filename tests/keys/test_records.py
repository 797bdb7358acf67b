"""A struct comes back from its hash fields, whatever its fields are."""

from datetime import UTC, date, datetime
from enum import Enum
from typing import Annotated, Literal, NewType
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keystead.errors import DeclarationError
from keystead.keys import Undecodable
from keystead.keys.records import RecordCodec

Sub = NewType("Sub", str)


class Colour(Enum):
    RED = "red"


class Level(Enum):
    LOW = 1


class Inner(msgspec.Struct, frozen=True):
    x: int


class Wide(msgspec.Struct, frozen=True):
    text: str
    sub: Sub
    number: int
    rate: float
    yes: bool
    raw: bytes
    colour: Colour
    level: Level
    choice: Literal["a", "b"]
    at: datetime
    day: date
    uid: UUID
    inner: Inner
    many: list[str]
    short: Annotated[str, msgspec.Meta(max_length=100)]
    either: int | str
    maybe: int | None
    maybe_text: str | None = None


TEXT = st.text(st.characters(exclude_categories=("Cs",)))
WIDE = st.builds(
    Wide, text=TEXT, sub=TEXT, number=st.integers(-(2**60), 2**60),
    rate=st.floats(allow_nan=False, allow_infinity=False),
    yes=st.booleans(), raw=st.binary(), colour=st.sampled_from(Colour), level=st.sampled_from(Level),
    choice=st.sampled_from(["a", "b"]), at=st.datetimes(timezones=st.just(UTC)), day=st.dates(), uid=st.uuids(),
    inner=st.builds(Inner, st.integers(0, 9)), many=st.lists(TEXT), short=st.text("abc", max_size=100),
    either=st.integers(0, 9) | TEXT, maybe=st.none() | st.integers(0, 9), maybe_text=st.none() | TEXT,
)


@given(WIDE)
def test_any_struct_comes_back(wide: Wide) -> None:
    codec = RecordCodec(Wide)
    stored = {name.encode(): raw for name, raw in codec.encode(wide).items()}
    assert codec.decode(stored) == wide


def test_text_numbers_and_answers_are_stored_plainly() -> None:
    codec = RecordCodec(Wide)
    fields = codec.encode_fields(
        {"text": "5", "number": 5, "yes": False, "colour": Colour.RED, "level": Level.LOW, "maybe": None, "either": "5"}
    )
    assert fields == {
        "text": b"5", "number": b"5", "yes": b"0", "colour": b"red", "level": b"1", "either": b'"5"',
    }


@pytest.mark.parametrize(
    ("name", "raw"),
    [("number", b"x"), ("rate", b""), ("yes", b"yes"), ("colour", b"blue"), ("choice", b"c"), ("at", b"now"),
     ("uid", b"1"), ("inner", b"{}"), ("many", b"[1]"), ("short", b"x" * 101), ("text", b"\xff")],
)
def test_a_field_that_does_not_decode_is_named_and_not_quoted(name: str, raw: bytes) -> None:
    with pytest.raises(Undecodable, match=f"field {name}") as caught:
        RecordCodec(Wide).decode_field(name, raw)
    assert "blue" not in caught.value.reason


def test_an_empty_field_that_may_be_none_is_none() -> None:
    """Other programs write None as an empty string; where that is a value of its own it stays one."""
    codec = RecordCodec(Wide)
    assert codec.decode_field("maybe", b"") is None and codec.decode_field("maybe_text", b"") == ""
    with pytest.raises(Undecodable, match="field maybe"):
        codec.decode_field("maybe", b"x")


def test_unknown_fields_cannot_be_written() -> None:
    with pytest.raises(DeclarationError, match="has no field nonsense"):
        RecordCodec(Wide).encode_fields({"nonsense": 1})


def test_renamed_fields_are_stored_under_their_new_name() -> None:
    class Renamed(msgspec.Struct, frozen=True, rename="camel"):
        acquired_at: int

    codec = RecordCodec(Renamed)
    assert codec.encode(Renamed(5)) == {"acquiredAt": b"5"}
    assert codec.decode({b"acquiredAt": b"5"}) == Renamed(5)


def test_a_struct_that_checks_itself_is_heard() -> None:
    class Checked(msgspec.Struct, frozen=True):
        low: int
        high: int

        def __post_init__(self) -> None:
            if self.low > self.high:
                raise ValueError(f"{self.low} is a secret")

    with pytest.raises(Undecodable, match="do not fit together") as caught:
        RecordCodec(Checked).decode({b"low": b"5", b"high": b"1"})
    assert "secret" not in caught.value.reason
