"""Structs as hash fields, so that someone can read a record with HGETALL.

Text stays text, numbers are digits, yes and no are 1 and 0, None is an absent field, and everything else is JSON.
"""

import types
import typing
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import inspect as shapes

from keystead.errors import DeclarationError
from keystead.keys.codecs import RAW, Codec, JsonCodec, TextCodec, Undecodable, codec_of
from keystead.keys.sealed import SealedField, is_sealed, unmarked

T = TypeVar("T", bound=msgspec.Struct)

_TEXTUAL = (shapes.StrType, shapes.DateTimeType, shapes.DateType, shapes.TimeType, shapes.UUIDType)


class RecordCodec(Generic[T]):
    """The fields of one struct type. Fields that the type does not know are left alone and ignored."""

    def __init__(self, of: type[T]) -> None:
        self.of = of
        self.name = f"record {of.__name__}"
        self._fields = {field.encode_name: field for field in msgspec.structs.fields(of)}
        self._codecs = {name: _field_codec(field.type, name) for name, field in self._fields.items()}

    @property
    def field_names(self) -> tuple[str, ...]:
        return tuple(self._fields)

    def field_payloads(self) -> dict[str, str]:
        """What each field holds, in words."""
        return {name: codec.name for name, codec in self._codecs.items()}

    def encode(self, value: T) -> dict[str, bytes]:
        """The fields that are present; a None is not."""
        return self.encode_fields({name: getattr(value, field.name) for name, field in self._fields.items()})

    def encode_fields(self, values: Mapping[str, Any]) -> dict[str, bytes]:
        unknown = [name for name in values if name not in self._codecs]
        if unknown:
            raise DeclarationError(f"{self.name} has no field {', '.join(unknown)}")
        return {name: self._codecs[name].encode(value) for name, value in values.items() if value is not None}

    def decode(self, raw: Mapping[bytes, bytes]) -> T:
        values: dict[str, Any] = {}
        for name, field in self._fields.items():
            held = raw.get(name.encode())
            if held is not None:
                values[field.name] = self.decode_field(name, held)
            elif field.required:
                if not _is_optional(field.type):
                    raise Undecodable(f"field {name} is missing")
                values[field.name] = None
        try:
            return self.of(**values)
        except (TypeError, ValueError) as error:
            raise Undecodable(f"the fields do not fit together ({type(error).__name__})") from None

    def decode_field(self, name: str, raw: bytes) -> Any:
        try:
            return self._codecs[name].decode(raw)
        except Undecodable as error:
            if not raw and _is_optional(self._fields[name].type):
                return None  # so do other programs write it
            raise Undecodable(f"field {name}: {error.reason}", error.offset) from None

    def knows(self, name: str) -> bool:
        return name in self._codecs


class _Textual:
    """A type whose JSON is a string, stored without the quotes."""

    def __init__(self, of: Any) -> None:
        self._of = of
        self._text = TextCodec()
        self.name = "text"

    def encode(self, value: Any, /) -> bytes:
        return self._text.encode(msgspec.to_builtins(value))

    def decode(self, raw: bytes, /) -> Any:
        text = self._text.decode(raw)
        try:
            return msgspec.convert(text, self._of)
        except msgspec.ValidationError:
            raise Undecodable(f"not a value of {getattr(self._of, '__name__', self._of)}", 0) from None


class _YesNo:
    name = "1 or 0"

    def encode(self, value: bool, /) -> bytes:
        return b"1" if value else b"0"

    def decode(self, raw: bytes, /) -> bool:
        if raw in (b"1", b"true"):
            return True
        if raw in (b"0", b"false"):
            return False
        raise Undecodable("neither 1 nor 0", 0)


def _field_codec(annotation: Any, name: str) -> Codec[Any]:
    if is_sealed(annotation):
        return SealedField(_field_codec(unmarked(annotation), name), name)
    plain = _without_none(annotation)
    shape = shapes.type_info(plain)
    if isinstance(shape, shapes.BytesType):
        return RAW
    if isinstance(shape, shapes.BoolType):
        return _YesNo()
    if isinstance(shape, _TEXTUAL) or _all_text(shape):
        return _Textual(plain)
    codec: Codec[Any] = codec_of(plain) if isinstance(shape, shapes.StructType) else JsonCodec(plain)
    return codec


def _all_text(shape: shapes.Type) -> bool:
    if isinstance(shape, shapes.EnumType):
        return all(isinstance(member.value, str) for member in shape.cls)
    return isinstance(shape, shapes.LiteralType) and all(isinstance(value, str) for value in shape.values)


def _is_optional(annotation: Any) -> bool:
    return type(None) in typing.get_args(unmarked(annotation))


def _without_none(annotation: Any) -> Any:
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        others = [argument for argument in typing.get_args(annotation) if argument is not type(None)]
        return others[0] if len(others) == 1 else typing.Union[tuple(others)]  # noqa: UP007
    return annotation
