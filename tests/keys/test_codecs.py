"""Codecs bring back what they wrote, and refuse everything else without quoting it."""

import builtins
import gzip
import math
import tracemalloc
from enum import Enum

import msgspec
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from keystead.errors import DeclarationError
from keystead.keys import FLOAT, INTEGER, RAW, TEXT, Codec, Gzip, JsonCodec, Undecodable, Zstd, codec_of


class Colour(Enum):
    RED = "red"


class Text(msgspec.Struct, frozen=True):
    number: int
    body: str = ""
    colour: Colour = Colour.RED


@given(st.text(st.characters(exclude_categories=("Cs",))))
def test_text_comes_back(value: str) -> None:
    assert TEXT.decode(TEXT.encode(value)) == value


@given(st.integers(-(2**63), 2**63 - 1))
def test_integers_come_back(value: int) -> None:
    assert INTEGER.decode(INTEGER.encode(value)) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_come_back(value: float) -> None:
    assert math.isclose(FLOAT.decode(FLOAT.encode(value)), value, rel_tol=0, abs_tol=0)


@given(st.integers(-(2**60), 2**60), st.text(st.characters(exclude_categories=("Cs",))))
def test_structs_come_back(number: int, body: str) -> None:
    codec = JsonCodec(Text)
    assert codec.decode(codec.encode(Text(number, body))) == Text(number, body)


@pytest.mark.parametrize("wrapper", [Gzip, Zstd])
@given(value=st.binary(max_size=5000))
def test_compressed_bytes_come_back(wrapper: type, value: bytes) -> None:
    codec = wrapper(RAW)
    assert codec.decode(codec.encode(value)) == value


@pytest.mark.parametrize(
    ("codec", "raw", "offset"),
    [
        (TEXT, b"ab\xff", 2),
        (INTEGER, b"", 0), (INTEGER, b"1.5", 0), (INTEGER, b" 1", 0), (INTEGER, b"9223372036854775808", 0),
        (INTEGER, b"\xd9\xa3", 0), (INTEGER, b"07", 0),
        (FLOAT, b"x", 0), (FLOAT, b"nan", 0), (FLOAT, b"inf", 0),
        (JsonCodec(Text), b"", None), (JsonCodec(Text), b'{"number": x}', 11),
        (JsonCodec(Text), b'{"number": "a"}', None),
        (Gzip(TEXT), b"nope", None), (Gzip(TEXT), gzip.compress(b"abc", mtime=0)[:-3], 20),
        (Gzip(TEXT), gzip.compress(b"abc", mtime=0) + b"zz", 23), (Gzip(TEXT), b"", 0),
        (Zstd(TEXT), b"nope", None), (Zstd(TEXT), zstandard.compress(b"abc")[:-1], 11),
        (Zstd(TEXT), zstandard.compress(b"abc") + b"zz", 12), (Zstd(TEXT), b"", 0),
        (Zstd(TEXT), zstandard.compress(b"abc") + b"z" * 200, 12),
    ],
)
def test_what_does_not_decode_is_refused_with_its_place(codec: Codec[object], raw: bytes, offset: int | None) -> None:
    with pytest.raises(Undecodable) as caught:
        codec.decode(raw)
    assert caught.value.offset == offset


def test_the_reason_does_not_quote_the_value() -> None:
    with pytest.raises(Undecodable) as caught:
        JsonCodec(Text).decode(b'{"number": 1, "colour": "a secret"}')
    assert "secret" not in caught.value.reason
    assert "$.colour" in caught.value.reason


def test_a_missing_field_is_named() -> None:
    with pytest.raises(Undecodable, match="number"):
        JsonCodec(Text).decode(b"{}")


@pytest.mark.parametrize("wrapper", [Gzip, Zstd])
def test_a_bomb_is_refused_before_it_fills_the_memory(wrapper: type) -> None:
    bombs = {
        Gzip: [gzip.compress(bytes(200_000_000), 9)],
        Zstd: [zstandard.compress(bytes(200_000_000)), _zstd_without_size(200_000_000)],
    }[wrapper]
    for bomb in bombs:
        tracemalloc.start()
        with pytest.raises(Undecodable, match=r"more than 1000000 bytes|not zstd"):
            wrapper(RAW, most_bytes=1_000_000).decode(bomb)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 20_000_000


def _zstd_without_size(length: int) -> bytes:
    compressor = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    return b"".join(compressor.compress(bytes(1_000_000)) for _ in range(length // 1_000_000)) + compressor.flush()


def test_zstd_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: object, **named: object) -> object:
        if name == "zstandard":
            raise ImportError(name)
        return real(name, *rest, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(DeclarationError, match=r"keystead\[zstd\]"):
        Zstd(TEXT).encode("a")


@pytest.mark.parametrize(
    ("codec", "value"), [(TEXT, "\ud800"), (INTEGER, 2**63), (FLOAT, float("nan")), (FLOAT, float("inf"))]
)
def test_what_cannot_be_stored_is_refused_at_once(codec: Codec[object], value: object) -> None:
    with pytest.raises(DeclarationError):
        codec.encode(value)


def test_a_type_stands_for_its_usual_codec() -> None:
    assert [codec_of(of) for of in (str, int, float, bytes)] == [TEXT, INTEGER, FLOAT, RAW]
    assert codec_of(Text).name == "JSON Text"
    assert codec_of(list[int]).decode(b"[1,2]") == [1, 2]
    assert codec_of(TEXT) is TEXT
