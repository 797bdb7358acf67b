"""Hashes: a struct with one field per hash field, or a map from declared fields to values of one kind."""

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import msgspec

from keystead.errors import Corrupt, DeclarationError
from keystead.keys.codecs import Codec, FloatCodec, IntegerCodec, Undecodable
from keystead.keys.executor import Argument, Command, Executor, Reply
from keystead.keys.records import RecordCodec
from keystead.keys.references import KeyReference

if TYPE_CHECKING:
    from keystead.keys.declarations import MapKey, RecordKey

R = TypeVar("R", bound=msgspec.Struct)
T = TypeVar("T")


class RecordRef(KeyReference, Generic[R]):
    """A struct, field by field."""

    __slots__ = ()

    @property
    def record(self) -> RecordCodec[R]:
        return cast("RecordKey[R]", self.declaration).record

    def get(self, executor: Executor) -> Awaitable[R | None]:
        """The whole record, or None if there is none."""
        return self._use(executor, ("HGETALL", self.name(executor.layout)), self._read)

    def set(self, executor: Executor, value: R) -> Awaitable[None]:
        """Write the whole record in one step; fields that are None disappear, the expiry starts anew."""
        fields = self.record.encode(value)
        gone = [name for name in self.record.field_names if name not in fields]
        return self._write_all(executor, self._commands(executor, fields, gone), _nothing, value=value, whole=True)

    def update(self, executor: Executor, **changes: Any) -> Awaitable[None]:
        """Change some fields; a None removes the field. Makes a record of only these fields if there was none."""
        fields = self.record.encode_fields(changes)
        gone = [name for name in changes if name not in fields]
        return self._write_all(executor, self._commands(executor, fields, gone), _nothing, value=changes)

    def _commands(self, executor: Executor, fields: Mapping[str, bytes], gone: list[str]) -> list[Command]:
        key = self.name(executor.layout)
        if not fields and not gone:
            raise DeclarationError(f"{self.declaration.pattern}: an update must change something")
        commands: list[Command] = []
        if fields:
            commands.append(("HSET", key, *_flat(fields)))
        elif len(gone) == len(self.record.field_names):
            raise DeclarationError(f"{self.declaration.pattern}: a record of which every field is None cannot be kept")
        if gone:
            commands.append(("HDEL", key, *gone))
        return commands

    def _read(self, reply: Reply) -> R | None:
        fields = as_dict(reply)
        if not fields:
            return None
        try:
            return self.record.decode(fields)
        except Undecodable as error:
            corrupt = self.corrupt(error)
            if self._misses():
                return None
            raise corrupt from None


class MapRef(KeyReference, Generic[T]):
    """A map whose fields are checked against the declared ones."""

    __slots__ = ()

    @property
    def codec(self) -> Codec[T]:
        return cast("Codec[T]", self.declaration.codec)

    def get(self, executor: Executor, field: str) -> Awaitable[T | None]:
        """The value of one field, or None."""
        return self._use(executor, ("HGET", self.name(executor.layout), self._field(field)),
                         lambda reply: None if reply is None else self._value(field, reply))

    def set(self, executor: Executor, field: str, value: T) -> Awaitable[None]:
        return self.set_many(executor, {field: value})

    def set_many(self, executor: Executor, values: Mapping[str, T]) -> Awaitable[None]:
        """Write several fields in one step; the others stay."""
        if not values:
            raise DeclarationError(f"{self.declaration.pattern}: there is no field to write")
        fields = {self._field(field): self.codec.encode(value) for field, value in values.items()}
        command = ("HSET", self.name(executor.layout), *_flat(fields))
        return self._write(executor, command, _nothing, value=dict(values))

    def increment(self, executor: Executor, field: str, by: float = 1) -> Awaitable[T]:
        """Add to a field of numbers, starting from zero, and return the sum."""
        if isinstance(self.codec, IntegerCodec):
            command = "HINCRBY"
            if by != int(by):
                raise DeclarationError(f"{self.declaration.pattern} holds integers; {by} is none")
            by = int(by)
        elif isinstance(self.codec, FloatCodec):
            command = "HINCRBYFLOAT"
        else:
            raise DeclarationError(f"{self.declaration.pattern} holds {self.codec.name}, which cannot be added to")
        return self._write(executor, (command, self.name(executor.layout), self._field(field), by), self._number)

    def all(self, executor: Executor) -> Awaitable[dict[str, T]]:
        """Every field. Where undecodable values are declared a miss, they are left out and counted."""
        return self._use(executor, ("HGETALL", self.name(executor.layout)), self._values)

    def remove(self, executor: Executor, *fields: str) -> Awaitable[int]:
        """Remove fields; says how many were there."""
        command: Command = ("HDEL", self.name(executor.layout), *(self._field(field) for field in fields))
        return self._use(executor, command, int, repeat=False)

    def size(self, executor: Executor) -> Awaitable[int]:
        return self._use(executor, ("HLEN", self.name(executor.layout)), int)

    def _field(self, field: str) -> str:
        declaration = cast("MapKey[T]", self.declaration)
        if not declaration.has_field(field):
            known = ", ".join(declaration.field_patterns)
            raise DeclarationError(f"{declaration.pattern}: {field[:60]!r} is not a declared field ({known})")
        return field

    def _number(self, reply: Reply) -> T:
        return cast(T, int(reply) if isinstance(self.codec, IntegerCodec) else float(reply))

    def _value(self, field: str, raw: bytes) -> T | None:
        try:
            return self._decoded(self.codec, raw, where=f", field {field},")
        except Corrupt:
            if self._misses():
                return None
            raise

    def _values(self, reply: Reply) -> dict[str, T]:
        found: dict[str, T] = {}
        for raw_field, raw in as_dict(reply).items():
            field = raw_field.decode(errors="backslashreplace")
            value = self._value(field, raw)
            if value is not None:
                found[field] = value
        return found


def as_dict(reply: Reply) -> dict[bytes, bytes]:
    """A map reply of either protocol."""
    if isinstance(reply, dict):
        return reply
    return dict(zip(reply[::2], reply[1::2], strict=True))


def _flat(fields: Mapping[str, bytes]) -> tuple[Argument, ...]:
    return tuple(item for pair in fields.items() for item in pair)


def _nothing(reply: Reply) -> None:
    return None
