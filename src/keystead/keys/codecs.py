"""How a value becomes bytes and comes back.

A codec knows nothing of keys. What it cannot decode it answers with ``Undecodable``, which the reference that asked
turns into ``Corrupt`` with the key and declaration. A reason never quotes the value itself: it may be personal.
"""

import math
import re
import zlib
from typing import Any, Final, Generic, Protocol, TypeVar, cast, runtime_checkable

import msgspec

from keystead.errors import DeclarationError

T = TypeVar("T")

_BYTE: Final = re.compile(r"\(byte (\d+)\)")
_QUOTED: Final = re.compile(r"'[^']*'")
_INTEGER: Final = re.compile(rb"0|-?[1-9][0-9]{0,18}")
_MOST_BYTES: Final = 32 * 1024 * 1024
_WINDOW_BYTES: Final = 8 * 1024 * 1024


class Undecodable(ValueError):
    """Bytes are not what the codec expects. ``offset`` is the first byte that is wrong, where that is known."""

    def __init__(self, reason: str, offset: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.offset = offset


@runtime_checkable
class Codec(Protocol[T]):
    """Both directions of one representation. ``name`` is what documents call it."""

    @property
    def name(self) -> str: ...

    def encode(self, value: T, /) -> bytes: ...

    def decode(self, raw: bytes, /) -> T: ...


class TextCodec:
    """UTF-8 text."""

    name = "text"

    def encode(self, value: str, /) -> bytes:
        try:
            return value.encode()
        except UnicodeEncodeError as error:
            raise DeclarationError(f"text cannot be written as UTF-8: {error.reason} at {error.start}") from None

    def decode(self, raw: bytes, /) -> str:
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise Undecodable(f"not UTF-8: {error.reason}", error.start) from None


class IntegerCodec:
    """A whole number of 64 bits in decimal digits, as INCR keeps it."""

    name = "integer"

    def encode(self, value: int, /) -> bytes:
        if not -(2**63) <= value < 2**63:
            raise DeclarationError("an integer on the server has 64 bits; this one needs more")
        return b"%d" % value

    def decode(self, raw: bytes, /) -> int:
        if _INTEGER.fullmatch(raw) is None or not -(2**63) <= int(raw) < 2**63:
            raise Undecodable("not a whole number of 64 bits in decimal digits", 0)
        return int(raw)


class FloatCodec:
    """A finite number in decimal digits."""

    name = "float"

    def encode(self, value: float, /) -> bytes:
        if not math.isfinite(value):
            raise DeclarationError("only finite numbers can be stored")
        return repr(float(value)).encode()

    def decode(self, raw: bytes, /) -> float:
        try:
            value = float(raw)
        except ValueError:
            raise Undecodable("not a number", 0) from None
        if not math.isfinite(value):
            raise Undecodable("not a finite number", 0)
        return value


class RawCodec:
    """Bytes as they are."""

    name = "bytes"

    def encode(self, value: bytes, /) -> bytes:
        return bytes(value)

    def decode(self, raw: bytes, /) -> bytes:
        return raw


class JsonCodec(Generic[T]):
    """JSON of one type, usually a ``msgspec.Struct``; checked field by field when it is read."""

    def __init__(self, of: type[T]) -> None:
        self.of = of
        self.name = f"JSON {getattr(of, '__name__', str(of))}"
        self._encoder = msgspec.json.Encoder()
        self._decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(of)

    def encode(self, value: T, /) -> bytes:
        return self._encoder.encode(value)

    def decode(self, raw: bytes, /) -> T:
        try:
            return self._decoder.decode(raw)
        except msgspec.DecodeError as error:
            reason = _QUOTED.sub("'...'", str(error))
            found = _BYTE.search(reason)
            raise Undecodable(reason, int(found.group(1)) if found else None) from None


class Gzip(Generic[T]):
    """Another codec's bytes, compressed with gzip. Never inflates to more than ``most_bytes``."""

    def __init__(self, inner: Codec[T], *, most_bytes: int = _MOST_BYTES, level: int = 6) -> None:
        self.inner = inner
        self.name = f"gzip of {inner.name}"
        self._most_bytes = most_bytes
        self._level = level

    def encode(self, value: T, /) -> bytes:
        compressor = zlib.compressobj(self._level, wbits=31)
        return compressor.compress(self.inner.encode(value)) + compressor.flush()

    def decode(self, raw: bytes, /) -> T:
        inflater = zlib.decompressobj(wbits=31)
        try:
            plain = inflater.decompress(raw, self._most_bytes + 1)
        except zlib.error as error:
            raise Undecodable(f"not gzip: {error}") from None
        if len(plain) > self._most_bytes:
            raise Undecodable(f"inflates to more than {self._most_bytes} bytes")
        if not inflater.eof:
            raise Undecodable("gzip ends too early", len(raw))
        if inflater.unused_data:
            raise Undecodable("bytes after the end of gzip", len(raw) - len(inflater.unused_data))
        return self.inner.decode(plain)


class Zstd(Generic[T]):
    """Another codec's bytes, compressed with zstd. Needs the extra ``keystead[zstd]``; bounded as ``Gzip`` is."""

    def __init__(self, inner: Codec[T], *, most_bytes: int = _MOST_BYTES, level: int = 3) -> None:
        self.inner = inner
        self.name = f"zstd of {inner.name}"
        self._most_bytes = most_bytes
        self._level = level

    def encode(self, value: T, /) -> bytes:
        return cast(bytes, _zstandard().ZstdCompressor(level=self._level).compress(self.inner.encode(value)))

    def decode(self, raw: bytes, /) -> T:
        zstandard = _zstandard()
        inflater = zstandard.ZstdDecompressor(max_window_size=max(_WINDOW_BYTES, self._most_bytes)).decompressobj()
        plain = bytearray()
        # A block of a few bytes can stand for 128 KiB, so the input goes in by small pieces.
        for at in range(0, len(raw), 64):
            try:
                plain += inflater.decompress(raw[at : at + 64])
            except zstandard.ZstdError as error:
                raise Undecodable(f"not zstd: {error}") from None
            if len(plain) > self._most_bytes:
                raise Undecodable(f"inflates to more than {self._most_bytes} bytes")
            if inflater.eof:
                break
        if not inflater.eof:
            raise Undecodable("zstd ends too early", len(raw))
        after = len(inflater.unused_data) + max(0, len(raw) - at - 64)
        if after:
            raise Undecodable("bytes after the end of zstd", len(raw) - after)
        return self.inner.decode(bytes(plain))


def _zstandard() -> Any:
    try:
        import zstandard
    except ImportError:
        raise DeclarationError("zstd values need the zstandard package: pip install 'keystead[zstd]'") from None
    return zstandard


# What a declaration accepts: a codec, or a type whose usual codec is meant.
Of = type[T] | Codec[T]

TEXT: Final = TextCodec()
INTEGER: Final = IntegerCodec()
FLOAT: Final = FloatCodec()
RAW: Final = RawCodec()

_BY_TYPE: Final[dict[object, Codec[Any]]] = {str: TEXT, int: INTEGER, float: FLOAT, bytes: RAW}


def codec_of(of: Of[T]) -> Codec[T]:
    """The codec itself, or the usual one of a type: text, integer, float, bytes, and JSON for everything else."""
    from keystead.keys.sealed import SealedJson, sealed_fields  # stands on this module

    if not isinstance(of, type) and isinstance(of, Codec):
        return of
    known = _BY_TYPE.get(of)
    if known is not None:
        return known
    return SealedJson(of) if sealed_fields(of) else JsonCodec(of)
