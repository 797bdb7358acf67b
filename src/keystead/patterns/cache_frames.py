"""What travels over a cache's channel: a fill with the value, or a purge."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from keystead.errors import DeclarationError
from keystead.keys import Codec, Frame, Integer, Rest, Sized, Undecodable

F = TypeVar("F")


@dataclass(frozen=True, slots=True)
class Push:
    """One message. ``raw`` is the value of a fill; None purges.

    ``arguments`` are variables of the family's pattern; a purge that leaves some out means every value of those.
    ``version`` is unix microseconds: of a fill, when the read of the source began; of a purge, when it was made; 0
    where the frame has no place for it. ``until`` (unix seconds) ends a fill earlier than its family would.
    """

    arguments: Mapping[str, str]
    raw: bytes | None
    version: int = 0
    until: float | None = None


class PushCodec(Generic[F]):
    """The documented frame of a channel, as pushes.

    ``frame`` is the codec of the bytes; ``pack`` turns a push into what that codec encodes, ``unpack`` back. A channel
    that has no form for purges says so with ``purges=False``: then only fills are sent.
    """

    def __init__(
        self, frame: Codec[F], *, pack: Callable[[Push], F], unpack: Callable[[F], Push], purges: bool = True
    ) -> None:
        self.frame = frame
        self.name = frame.name
        self.purges = purges
        self._pack, self._unpack = pack, unpack

    def encode(self, value: Push, /) -> bytes:
        if value.raw is None and not self.purges:
            raise DeclarationError(f"{self.name}: this frame has no form for a purge")
        return self.frame.encode(self._pack(value))

    def decode(self, raw: bytes, /) -> Push:
        return self._unpack(self.frame.decode(raw))


def seconds_of(version: int) -> float:
    """A version as the unix seconds that frames with ``min_checked_at`` carry."""
    return version / 1_000_000


def version_of(unix_seconds: float) -> int:
    """The version that ``seconds_of`` wrote."""
    return round(unix_seconds * 1_000_000)


@dataclass(frozen=True, slots=True)
class _Plain:
    """The frame of a family that documents none."""

    is_fill: int
    version: int
    until_ms: int
    arguments: str
    raw: bytes | None

    def __post_init__(self) -> None:
        if self.is_fill not in (0, 1):
            raise ValueError("the first byte of a push is 0 or 1")


def _pack(push: Push) -> _Plain:
    arguments = json.dumps(dict(push.arguments), separators=(",", ":"))
    until_ms = 0 if push.until is None else max(1, round(push.until * 1000))
    return _Plain(int(push.raw is not None), push.version, until_ms, arguments, push.raw)


def _unpack(frame: _Plain) -> Push:
    try:
        arguments = json.loads(frame.arguments)
    except ValueError:
        raise Undecodable("the arguments of a push are not JSON") from None
    if not isinstance(arguments, dict) or not all(isinstance(value, str) for value in arguments.values()):
        raise Undecodable("the arguments of a push are not texts by name")
    return Push(arguments, frame.raw, frame.version, frame.until_ms / 1000 if frame.until_ms else None)


def plain_pushes() -> PushCodec[_Plain]:
    """u8 fill or purge, u64 version, u64 until, arguments as JSON behind their u32 length, then the value of a fill."""
    parts = (
        Integer("is_fill", "u8"), Integer("version", "u64"), Integer("until_ms", "u64"), Sized("arguments", "u32", str),
        Rest("raw", bytes, when=lambda before: before["is_fill"] == 1),
    )
    return PushCodec(Frame(_Plain, *parts), pack=_pack, unpack=_unpack)
