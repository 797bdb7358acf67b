"""What a cache family says, and where one value of it lies."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from keystead.keys import Codec, Layout
from keystead.patterns.cache_frames import Push, PushCodec

T = TypeVar("T")

MARKER: Final = b"1"


@dataclass(frozen=True, slots=True)
class Family(Generic[T]):
    """The declared rules of a family; ``Cache`` explains them."""

    name: str
    codec: Codec[T]
    shared_seconds: float | None
    sliding: bool
    local_seconds: float | None
    jitter_seconds: float
    stale_seconds: float
    negative_seconds: float
    lock_seconds: float
    wait_seconds: float
    poll_seconds: float
    marked: bool
    pushes: PushCodec[Any] | None
    collab: bool
    staleness_seconds: float
    version_seconds: float
    recent_seconds: float

    @property
    def stale_ms(self) -> int:
        """For scripts: from which remaining time a value is too old; -1 without a value on the server."""
        return -1 if self.shared_seconds is None else round(self.stale_seconds * 1000)

    @property
    def needs_channel(self) -> bool:
        """Whether what a process holds may only be used while the channel is heard."""
        return self.collab and self.pushes is not None


@dataclass(frozen=True, slots=True)
class Place:
    """The logical name of a value and the physical names of its keys."""

    key: str
    arguments: Mapping[str, str]
    version: bytes
    recent: bytes
    lock: bytes
    value: bytes

    @property
    def keys(self) -> tuple[bytes, bytes, bytes, bytes]:
        return self.version, self.recent, self.lock, self.value


def sending(pushes: PushCodec[Any] | None, channel: bytes, layout: Layout, push: Push) -> tuple[str, bytes, bytes]:
    """How scripts publish: the command, the channel and the frame; all empty where nothing is to be sent."""
    if pushes is None or (push.raw is None and not pushes.purges):
        return "", b"", b""
    return ("PUBLISH" if layout is Layout.PLAIN else "SPUBLISH"), channel, pushes.encode(push)
