"""The types a key can be declared as.

Each takes its keyspace and pattern, what it holds, and the facts that ``Declaration`` lists. ``at(...)`` fills in the
variables, in the order of the pattern or by name, and gives the reference that operations hang on.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Generic, TypeVar, Unpack

import msgspec

from keystead.errors import DeclarationError
from keystead.keys.codecs import INTEGER, Codec, Of, codec_of
from keystead.keys.keyspace import Declaration, Facts, Keyspace
from keystead.keys.records import RecordCodec
from keystead.keys.references_collections import ListRef, SetRef, SortedSetRef
from keystead.keys.references_hashes import MapRef, RecordRef
from keystead.keys.references_streams import GeoRef, StreamRef
from keystead.keys.references_values import FlagRef, IntegerRef, LockRef, StringRef
from keystead.keys.sampling import (
    ElementsSampling,
    MapSampling,
    RecordSampling,
    ScoredSampling,
    SetSampling,
    StreamSampling,
    ValueSampling,
)
from keystead.keys.template import Template
from keystead.keys.ttl import NO_TTL, NoTtl
from keystead.keys.variables import Value

T = TypeVar("T")
R = TypeVar("R", bound=msgspec.Struct)
StructType = type[R]


class StringKey(ValueSampling, Declaration, Generic[T]):
    """One value of a type (text, bytes, numbers, a struct as JSON) or of a codec."""

    type = "string"
    server_type = "string"

    def __init__(self, keyspace: Keyspace, pattern: str, of: Of[T], **facts: Unpack[Facts]) -> None:
        self.codec: Codec[T] = codec_of(of)
        super().__init__(keyspace, pattern, **facts)

    def at(self, *variables: Value, **named: Value) -> StringRef[T]:
        return StringRef(self, self.template.bind(variables, named))

    def reference(self, arguments: Mapping[str, str]) -> StringRef[T]:
        return self.at(**arguments)


class IntegerKey(ValueSampling, Declaration):
    """A counter."""

    type = "integer"
    server_type = "string"

    def __init__(self, keyspace: Keyspace, pattern: str, **facts: Unpack[Facts]) -> None:
        self.codec: Codec[int] = INTEGER
        super().__init__(keyspace, pattern, **facts)

    def at(self, *variables: Value, **named: Value) -> IntegerRef:
        return IntegerRef(self, self.template.bind(variables, named))

    def reference(self, arguments: Mapping[str, str]) -> IntegerRef:
        return self.at(**arguments)


class FlagKey(Declaration):
    """Something that is there or not; the value carries no meaning."""

    type = "flag"
    server_type = "string"

    def __init__(self, keyspace: Keyspace, pattern: str, **facts: Unpack[Facts]) -> None:
        super().__init__(keyspace, pattern, **facts)

    def at(self, *variables: Value, **named: Value) -> FlagRef:
        return FlagRef(self, self.template.bind(variables, named))

    def reference(self, arguments: Mapping[str, str]) -> FlagRef:
        return self.at(**arguments)


class LockKind(Enum):
    """How a lock is kept."""

    SMART = "smart: says who holds it since when; no expiry until contested"
    LEASED = "leased: says who holds it; expires unless the holder renews it"
    PLAIN = "plain: the value 1 and an expiry"


class LockKey(Declaration):
    """A lock of one kind. Only the lock pattern takes and frees it."""

    type = "lock"
    server_type = "string"

    def __init__(self, keyspace: Keyspace, pattern: str, lock: LockKind, **facts: Unpack[Facts]) -> None:
        self.lock = lock
        if lock is not LockKind.SMART and isinstance(facts.get("ttl", NO_TTL), NoTtl):
            raise DeclarationError(f"{pattern}: a {lock.name.lower()} lock needs an expiry, or nobody frees it")
        super().__init__(keyspace, pattern, **facts)

    @property
    def payload(self) -> str:
        return self.lock.value

    def at(self, *variables: Value, **named: Value) -> LockRef:
        return LockRef(self, self.template.bind(variables, named))

    def reference(self, arguments: Mapping[str, str]) -> LockRef:
        return self.at(**arguments)


class RecordKey(RecordSampling, Declaration, Generic[R]):
    """A hash that holds a struct, one field each."""

    type = "hash"
    server_type = "hash"

    def __init__(self, keyspace: Keyspace, pattern: str, of: StructType[R], **facts: Unpack[Facts]) -> None:
        self.record: RecordCodec[R] = RecordCodec(of)
        super().__init__(keyspace, pattern, **facts)

    @property
    def payload(self) -> str:
        fields = ", ".join(f"{name} {what}" for name, what in self.record.field_payloads().items())
        return f"{self.record.name} ({fields})"

    def payload_fields(self) -> frozenset[str] | None:
        return frozenset(self.record.field_names)

    def at(self, *variables: Value, **named: Value) -> RecordRef[R]:
        return RecordRef(self, self.template.bind(variables, named))

    def reference(self, arguments: Mapping[str, str]) -> RecordRef[R]:
        return self.at(**arguments)


class MapKey(MapSampling, Declaration, Generic[T]):
    """A hash from fields to values of one type. ``fields`` are patterns, such as ``failed:{reason}``."""

    type = "hash"
    server_type = "hash"

    def __init__(
        self, keyspace: Keyspace, pattern: str, of: Of[T], *, fields: tuple[str, ...] = ("{field:text}",),
        **facts: Unpack[Facts],
    ) -> None:
        self.codec: Codec[T] = codec_of(of)
        self._fields = tuple(Template(field) for field in fields)
        self._plain_fields = frozenset(field.spelling for field in self._fields if not field.names)
        super().__init__(keyspace, pattern, **facts)

    @property
    def field_patterns(self) -> tuple[str, ...]:
        return tuple(field.spelling for field in self._fields)

    @property
    def payload(self) -> str:
        return f"{', '.join(self.field_patterns)} → {self.codec.name}"

    def has_field(self, field: str) -> bool:
        return field in self._plain_fields or any(pattern.match(field) is not None for pattern in self._fields)

    def at(self, *variables: Value, **named: Value) -> MapRef[T]:
        return MapRef(self, self.template.bind(variables, named))

    def reference(self, arguments: Mapping[str, str]) -> MapRef[T]:
        return self.at(**arguments)


class ListKey(ElementsSampling, Declaration, Generic[T]):
    """A list of elements of one type."""

    type = "list"
    server_type = "list"

    def __init__(self, keyspace: Keyspace, pattern: str, of: Of[T], **facts: Unpack[Facts]) -> None:
        self.codec: Codec[T] = codec_of(of)
        super().__init__(keyspace, pattern, **facts)

    def at(self, *variables: Value, **named: Value) -> ListRef[T]:
        return ListRef(self, self.template.bind(variables, named))

    def reference(self, arguments: Mapping[str, str]) -> ListRef[T]:
        return self.at(**arguments)


class SetKey(SetSampling, Declaration, Generic[T]):
    """A set of members of one type. ``member`` says what a member is."""

    type = "set"
    server_type = "set"

    def __init__(
        self, keyspace: Keyspace, pattern: str, of: Of[T], *, member: str = "", **facts: Unpack[Facts]
    ) -> None:
        self.codec: Codec[T] = codec_of(of)
        self.member = member
        super().__init__(keyspace, pattern, **facts)

    @property
    def payload(self) -> str:
        return f"{self.member} ({self.codec.name})" if self.member else self.codec.name

    def at(self, *variables: Value, **named: Value) -> SetRef[T]:
        return SetRef(self, self.template.bind(variables, named))

    def reference(self, arguments: Mapping[str, str]) -> SetRef[T]:
        return self.at(**arguments)


class SortedSetKey(ScoredSampling, Declaration, Generic[T]):
    """A sorted set. ``member`` and ``score`` say what they mean."""

    type = "zset"
    server_type = "zset"

    def __init__(
        self, keyspace: Keyspace, pattern: str, of: Of[T], *, member: str, score: str,
        **facts: Unpack[Facts],
    ) -> None:
        self.codec: Codec[T] = codec_of(of)
        self.member, self.score = member, score
        super().__init__(keyspace, pattern, **facts)

    @property
    def payload(self) -> str:
        return f"{self.member} ({self.codec.name}) by {self.score}"

    def at(self, *variables: Value, **named: Value) -> SortedSetRef[T]:
        return SortedSetRef(self, self.template.bind(variables, named))

    def reference(self, arguments: Mapping[str, str]) -> SortedSetRef[T]:
        return self.at(**arguments)


class StreamKey(StreamSampling, Declaration, Generic[R]):
    """A stream of structs, kept to about ``most_items``; None keeps everything."""

    type = "stream"
    server_type = "stream"

    def __init__(
        self, keyspace: Keyspace, pattern: str, of: StructType[R], *, most_items: int | None, **facts: Unpack[Facts]
    ) -> None:
        self.record: RecordCodec[R] = RecordCodec(of)
        self.most_items = most_items
        super().__init__(keyspace, pattern, **facts)

    @property
    def payload(self) -> str:
        kept = "all are kept" if self.most_items is None else f"about {self.most_items} are kept"
        return f"entries: {self.record.name}; {kept}"

    def payload_fields(self) -> frozenset[str] | None:
        return frozenset(self.record.field_names)

    def at(self, *variables: Value, **named: Value) -> StreamRef[R]:
        return StreamRef(self, self.template.bind(variables, named))

    def reference(self, arguments: Mapping[str, str]) -> StreamRef[R]:
        return self.at(**arguments)


class GeoKey(ScoredSampling, Declaration, Generic[T]):
    """Members with a position; the server keeps it as a sorted set."""

    type = "geo"
    server_type = "zset"

    def __init__(
        self, keyspace: Keyspace, pattern: str, of: Of[T], *, member: str, **facts: Unpack[Facts]
    ) -> None:
        self.codec: Codec[T] = codec_of(of)
        self.member = member
        super().__init__(keyspace, pattern, **facts)

    @property
    def payload(self) -> str:
        return f"{self.member} ({self.codec.name}) by position"

    def at(self, *variables: Value, **named: Value) -> GeoRef[T]:
        return GeoRef(self, self.template.bind(variables, named))

    def reference(self, arguments: Mapping[str, str]) -> GeoRef[T]:
        return self.at(**arguments)
