"""Binary frames: fixed parts in a fixed order, integers unsigned and big-endian.

A frame is declared as the parts it consists of and the type that holds them::

    TRANSCRIPT = Frame(TranscriptPush, Sized("uid", "u32", str), Sized("body", "u64", bytes), trailing=Trailing.IGNORED)

A frame that ends too early, promises more bytes than it has, or holds bytes that no part accounts for (unless the
declaration says they are ignored) is refused whole: there are no half-read frames.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final, Generic, TypeVar

from keystead.errors import DeclarationError
from keystead.keys.codecs import Codec, Of, Undecodable, codec_of

T = TypeVar("T")

_WIDTHS: Final[Mapping[str, int]] = {"u8": 1, "u16": 2, "u32": 4, "u64": 8}
When = Callable[[Mapping[str, Any]], bool]


class Trailing(Enum):
    """What to do with bytes behind the last part."""

    REFUSED = "refused"
    IGNORED = "ignored"


class Integer:
    """One number. ``width`` is u8, u16, u32 or u64."""

    def __init__(self, name: str, width: str, *, when: When | None = None) -> None:
        self.name, self.when = name, when
        self._bytes = _width(name, width)
        self.says = f"{width} {name}"

    def write(self, value: Any) -> bytes:
        return _number(self.name, value, self._bytes)

    def read(self, raw: bytes, at: int) -> tuple[Any, int]:
        end = at + self._bytes
        if end > len(raw):
            raise Undecodable(f"frame ends inside {self.name}", len(raw))
        return int.from_bytes(raw[at:end], "big"), end


class Sized(Generic[T]):
    """A part behind its own length in bytes. ``of`` is a type or codec as for any value."""

    def __init__(self, name: str, width: str, of: Of[T], *, when: When | None = None) -> None:
        self.name, self.when = name, when
        self._length = Integer(f"length of {name}", width)
        self._codec = codec_of(of)
        self.says = f"{width} length, {name} as {self._codec.name}"

    def write(self, value: Any) -> bytes:
        raw = self._codec.encode(value)
        return self._length.write(len(raw)) + raw

    def read(self, raw: bytes, at: int) -> tuple[Any, int]:
        length, start = self._length.read(raw, at)
        if length > len(raw) - start:
            raise Undecodable(f"{self.name} should have {length} bytes, the frame has {len(raw) - start} left", start)
        return _decoded(self._codec, raw, start, start + length), start + length


class Rest(Generic[T]):
    """Everything up to the end of the frame, possibly nothing."""

    def __init__(self, name: str, of: Of[T], *, when: When | None = None) -> None:
        self.name, self.when = name, when
        self._codec = codec_of(of)
        self.says = f"the rest: {name} as {self._codec.name}"

    def write(self, value: Any) -> bytes:
        return self._codec.encode(value)

    def read(self, raw: bytes, at: int) -> tuple[Any, int]:
        return _decoded(self._codec, raw, at, len(raw)), len(raw)


FramePart = Integer | Sized[Any] | Rest[Any]


class Frame(Generic[T]):
    """The codec of one kind of frame.

    ``of`` is called with the parts by name. A part with ``when`` is there only if that says so of the parts before
    it; otherwise its value is None.
    """

    def __init__(self, of: type[T], *parts: FramePart, trailing: Trailing = Trailing.REFUSED) -> None:
        if not parts:
            raise DeclarationError("a frame needs at least one part")
        for part in parts[:-1]:
            if isinstance(part, Rest) and part.when is None:
                raise DeclarationError(f"frame part {part.name} takes the rest, so it must come last")
        self.of = of
        self.parts = parts
        self.trailing = trailing
        ending = "" if trailing is Trailing.REFUSED else "; anything after is ignored"
        self.name = f"frame {of.__name__} ({'; '.join(part.says for part in parts)}{ending})"

    def encode(self, value: T, /) -> bytes:
        before: dict[str, Any] = {}
        raw: list[bytes] = []
        for part in self.parts:
            before[part.name] = held = getattr(value, part.name)
            if part.when is None or part.when(before):
                raw.append(part.write(held))
            elif held is not None:
                raise DeclarationError(f"frame part {part.name} has no place beside the parts before it; leave it None")
        return b"".join(raw)

    def decode(self, raw: bytes, /) -> T:
        found: dict[str, Any] = {}
        at = 0
        for part in self.parts:
            if part.when is not None and not part.when(found):
                found[part.name] = None
                continue
            found[part.name], at = part.read(raw, at)
        if at < len(raw) and self.trailing is Trailing.REFUSED:
            raise Undecodable(f"{len(raw) - at} bytes after the end of the frame", at)
        try:
            return self.of(**found)
        except (TypeError, ValueError) as error:
            raise Undecodable(f"the parts do not fit together ({type(error).__name__})") from None


def _width(name: str, width: str) -> int:
    if width not in _WIDTHS:
        raise DeclarationError(f"frame part {name}: width {width!r} is not one of {', '.join(_WIDTHS)}")
    return _WIDTHS[width]


def _number(name: str, value: Any, width: int) -> bytes:
    if not isinstance(value, int) or not 0 <= value < 1 << (8 * width):
        raise DeclarationError(f"frame part {name} must be a whole number that fits {width} bytes")
    return value.to_bytes(width, "big")


def _decoded(codec: Codec[T], raw: bytes, start: int, end: int) -> T:
    try:
        return codec.decode(raw[start:end])
    except Undecodable as error:
        raise Undecodable(error.reason, None if error.offset is None else start + error.offset) from None
