"""Streams, places on a map, and channels."""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar, cast

import msgspec

from keystead.errors import Corrupt
from keystead.keys.codecs import Codec, Undecodable
from keystead.keys.executor import Command, Executor, Reply
from keystead.keys.layout import Layout
from keystead.keys.records import RecordCodec
from keystead.keys.references import KeyReference, Reference
from keystead.keys.references_collections import ElementsRef
from keystead.keys.references_hashes import as_dict

if TYPE_CHECKING:
    from keystead.keys.declarations import StreamKey

R = TypeVar("R", bound=msgspec.Struct)
T = TypeVar("T")


class StreamRef(KeyReference, Generic[R]):
    """A stream whose entries are structs, field by field."""

    __slots__ = ()

    @property
    def record(self) -> RecordCodec[R]:
        return cast("StreamKey[R]", self.declaration).record

    def append(self, executor: Executor, value: R) -> Awaitable[str]:
        """Add an entry and return its id; the oldest leave once there are about as many as declared."""
        most = cast("StreamKey[R]", self.declaration).most_items
        bound = () if most is None else ("MAXLEN", "~", most)
        fields = tuple(item for pair in self.record.encode(value).items() for item in pair)
        command: Command = ("XADD", self.name(executor.layout), *bound, "*", *fields)
        return self._write(executor, command, bytes.decode, value=value)

    def range(
        self, executor: Executor, first: str = "-", last: str = "+", *, limit: int | None = None
    ) -> Awaitable[list[tuple[str, R]]]:
        """Entries with their ids, oldest first, both ends included."""
        bound = () if limit is None else ("COUNT", limit)
        return self._use(executor, ("XRANGE", self.name(executor.layout), first, last, *bound), self._entries)

    def length(self, executor: Executor) -> Awaitable[int]:
        return self._use(executor, ("XLEN", self.name(executor.layout)), int)

    def _entries(self, reply: Reply) -> list[tuple[str, R]]:
        found: list[tuple[str, R]] = []
        for raw_id, fields in reply:
            entry = raw_id.decode()
            try:
                found.append((entry, self.record.decode(as_dict(fields))))
            except Undecodable as error:
                corrupt = self.corrupt(error, where=f", entry {entry},")
                if not self._misses():
                    raise corrupt from None
        return found


@dataclass(frozen=True, slots=True)
class Place(Generic[T]):
    """A member of a geo set that a search found."""

    member: T
    metres: float
    longitude: float
    latitude: float


class GeoRef(ElementsRef[T]):
    """Members with a position on the earth."""

    __slots__ = ()

    def add(self, executor: Executor, member: T, *, longitude: float, latitude: float) -> Awaitable[bool]:
        """Put the member there, or move it; says whether it was new."""
        command = ("GEOADD", self.name(executor.layout), longitude, latitude, self.codec.encode(member))
        return self._write(executor, command, bool)

    def remove(self, executor: Executor, *members: T) -> Awaitable[int]:
        """Remove; says how many were there."""
        return self._use(executor, ("ZREM", self.name(executor.layout), *self._encoded(members)), int, repeat=False)

    def position(self, executor: Executor, member: T) -> Awaitable[tuple[float, float] | None]:
        """Longitude and latitude, to about half a metre."""
        command = ("GEOPOS", self.name(executor.layout), self.codec.encode(member))
        return self._use(executor, command, lambda reply: _position(reply[0]))

    def within(
        self, executor: Executor, *, longitude: float, latitude: float, metres: float, limit: int | None = None
    ) -> Awaitable[list[Place[T]]]:
        """Members at most so far away, nearest first."""
        search: Command = ("GEOSEARCH", self.name(executor.layout), "FROMLONLAT", longitude, latitude)
        bound = () if limit is None else ("COUNT", limit)
        command = (*search, "BYRADIUS", metres, "m", "ASC", *bound, "WITHCOORD", "WITHDIST")
        return self._use(executor, command, self._places)

    def _places(self, reply: Reply) -> list[Place[T]]:
        found: list[Place[T]] = []
        for raw, distance, at in reply:
            position = _position(at)
            assert position is not None
            found.extend(Place(member, float(distance), *position) for member in self._elements([raw]))
        return found


class ChannelRef(Reference, Generic[T]):
    """A channel: to the whole server under the plain layout, to its shard under the tagged one."""

    __slots__ = ()

    @property
    def codec(self) -> Codec[T]:
        return cast("Codec[T]", self.declaration.codec)

    def publish(self, executor: Executor, value: T) -> Awaitable[int]:
        """Send to whoever listens now; says how many listeners the answering server knows."""
        verb = "PUBLISH" if executor.layout is Layout.PLAIN else "SPUBLISH"
        return executor.run((verb, self.name(executor.layout), self.codec.encode(value)), int)

    def decode(self, raw: bytes) -> T:
        """What a message holds; ``Corrupt`` if it does not decode."""
        return self._decoded(self.codec, raw, removed=True)

    def decode_or_none(self, raw: bytes) -> T | None:
        """What a message holds, or None, counted, if it does not decode."""
        try:
            return self.decode(raw)
        except Corrupt:
            return None


def _position(reply: Reply) -> tuple[float, float] | None:
    return None if reply is None else (float(reply[0]), float(reply[1]))
