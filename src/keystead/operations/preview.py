"""A bounded look at a stored value, decoded as its declaration says.

However large the value is, only its first elements and bytes are fetched: a preview costs the server about the same
for a counter and for a list of millions.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from keystead.engine import Valkey
from keystead.keys import Codec, Command, Declaration, Reply, Undecodable, spell_key

PREVIEW_BYTES = 64 * 1024
PREVIEW_ELEMENTS = 20
PREVIEW_FIELDS = 100
# Elements on average larger than this are not fetched at all: one of them could be the whole memory of the server.
LARGEST_ELEMENT_BYTES = 4 * 1024 * 1024
SHOWN_CHARACTERS = 2000


@dataclass(frozen=True, slots=True)
class Preview:
    """``value`` can be written as JSON. ``length`` counts bytes of a string, elements of everything else.

    ``problem`` says why (a part of) the value does not decode; what did not is shown as it is stored. ``note`` says
    why there is nothing to show.
    """

    value: object = None
    length: int | None = None
    truncated: bool = False
    problem: str | None = None
    note: str | None = None


async def read_preview(
    valkey: Valkey, raw_key: bytes, server_type: str, declaration: Declaration | None, memory_bytes: int | None
) -> Preview:
    """Read the beginning of a value of the given server type; decode it if ``declaration`` is of that type."""
    reader = _READERS.get(server_type)
    if reader is None:
        return Preview(note=f"values of type {server_type} cannot be shown")
    (length,) = await valkey.call_block([(reader.length, raw_key)], repeat=True)
    if isinstance(length, Exception):
        return Preview(note=_unreadable(length))
    most = _elements(server_type, length, memory_bytes)
    if most == 0 and length:
        return Preview(length=length, truncated=True, note="its elements are too large to be shown")
    (reply,) = await valkey.call_block([reader.command(raw_key, most)], repeat=True)
    if isinstance(reply, Exception):
        return Preview(length=length, note=_unreadable(reply))
    fits = declaration is not None and declaration.server_type == server_type
    reading = _Reading(declaration if fits else None, most)
    value = reader.read(reading, reply)
    return Preview(value, length, reading.truncated or length > _taken(server_type, value, reply), reading.problem)


def _elements(server_type: str, length: int, memory_bytes: int | None) -> int:
    if server_type == "string":
        return PREVIEW_BYTES
    average = (memory_bytes or 0) / max(1, length)
    if average > LARGEST_ELEMENT_BYTES:
        return 0
    most = PREVIEW_FIELDS if server_type == "hash" else PREVIEW_ELEMENTS
    return max(1, min(most, int(PREVIEW_BYTES * 4 / max(1.0, average))))


def _taken(server_type: str, value: object, reply: Reply) -> int:
    return len(reply) if server_type == "string" else len(value) if isinstance(value, list | dict) else 0


class _Reading:
    """Turns raw parts into what can be shown, and remembers what went wrong on the way."""

    def __init__(self, declaration: Declaration | None, most: int) -> None:
        self.declaration = declaration
        self.most = most
        self.truncated = False
        self.problem: str | None = None

    def one(self, raw: bytes, where: str = "", codec: Codec[Any] | None = None) -> object:
        """One decoded value, or its stored spelling if it does not decode."""
        codec = codec or (self.declaration.codec if self.declaration is not None else None)
        if codec is None:
            return self._cut(spell_key(raw))
        try:
            return self._plain(codec.decode(raw))
        except Undecodable as error:
            self.fail(error, where)
            return self._cut(spell_key(raw))

    def fields(self, raw: Mapping[bytes, bytes], where: str = "") -> object:
        """The fields of a record or map: a record as a whole if it decodes, otherwise field by field."""
        record = getattr(self.declaration, "record", None)
        if record is None:
            return {self._cut(spell_key(name)): self.one(held, f"{where}field {spell_key(name)}: ")
                    for name, held in raw.items()}
        try:
            known = self._plain(record.decode(raw))
            if isinstance(known, dict):
                unknown = {spell_key(name): spell_key(held) for name, held in raw.items()
                           if not record.knows(name.decode("utf-8", "replace"))}
                return {**known, **unknown}
            return known
        except Undecodable as error:
            self.fail(error, where)
            return {spell_key(name): self._cut(spell_key(held)) for name, held in raw.items()}

    def fail(self, error: Undecodable, where: str) -> None:
        place = f" at byte {error.offset}" if error.offset is not None else ""
        self.problem = self.problem or f"{where}{error.reason}{place}"

    def first(self, items: Iterable[Any]) -> list[Any]:
        kept = list(items)
        self.truncated = self.truncated or len(kept) > self.most
        return kept[: self.most]

    def _plain(self, value: object) -> object:
        return self._without_bytes(msgspec.to_builtins(value, builtin_types=(bytes,), enc_hook=str, str_keys=True))

    def _without_bytes(self, value: object) -> object:
        if isinstance(value, bytes | bytearray | memoryview):
            return self._cut(spell_key(bytes(value)))
        if isinstance(value, str):
            return self._cut(value)
        if isinstance(value, dict):
            return {str(name): self._without_bytes(held) for name, held in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self._without_bytes(held) for held in value]
        return value

    def _cut(self, text: str) -> str:
        if len(text) <= SHOWN_CHARACTERS:
            return text
        self.truncated = True
        return text[:SHOWN_CHARACTERS] + "…"


def _read_string(reading: _Reading, reply: Reply) -> object:
    if len(reply) < PREVIEW_BYTES:
        return reading.one(reply)
    # A part of a value cannot be decoded, so it is shown as it is stored.
    reading.declaration = None
    return reading.one(reply)


def _read_hash(reading: _Reading, reply: Reply) -> object:
    cursor, held = reply
    pairs = reading.first(_pairs(held))
    if int(cursor) != 0 or reading.truncated:
        return _some_fields(reading, pairs)
    return reading.fields(dict(pairs))


def _some_fields(reading: _Reading, pairs: list[tuple[bytes, bytes]]) -> object:
    """Fields of a hash too large to be read whole: a record is then decoded field by field."""
    reading.truncated = True
    record = getattr(reading.declaration, "record", None)
    if record is None:
        return reading.fields(dict(pairs))
    shown: dict[str, object] = {}
    for raw_name, raw in pairs:
        name = spell_key(raw_name)
        try:
            shown[name] = reading._plain(record.decode_field(name, raw)) if record.knows(name) else spell_key(raw)
        except Undecodable as error:
            reading.fail(error, "")
            shown[name] = spell_key(raw)
    return shown


def _read_elements(reading: _Reading, reply: Reply) -> object:
    return [reading.one(raw, f"element {number}: ") for number, raw in enumerate(reading.first(reply), 1)]


def _read_set(reading: _Reading, reply: Reply) -> object:
    return [reading.one(raw, "a member: ") for raw in reading.first(reply[1])]


def _read_scored(reading: _Reading, reply: Reply) -> object:
    return [{"member": reading.one(member, "a member: "), "score": float(score)}
            for member, score in reading.first(_pairs(reply))]


def _read_stream(reading: _Reading, reply: Reply) -> object:
    return [{"id": uid.decode(), "fields": reading.fields(dict(_pairs(held)), f"entry {uid.decode()}: ")}
            for uid, held in reading.first(reply)]


def _pairs(reply: Reply) -> list[tuple[Any, Any]]:
    """Name and value pairs, however the protocol version spells them."""
    if isinstance(reply, dict):
        return list(reply.items())
    if reply and isinstance(reply[0], list | tuple):
        return [(first, second) for first, second in reply]
    return list(zip(reply[::2], reply[1::2], strict=True))


def _unreadable(error: Exception) -> str:
    """A right that is missing, or a key that became something else between two questions."""
    return f"the server does not show it: {error}"


@dataclass(frozen=True, slots=True)
class _Reader:
    length: str
    command: Callable[[bytes, int], Command]
    read: Callable[[_Reading, Reply], object]


_READERS: dict[str, _Reader] = {
    "string": _Reader("STRLEN", lambda key, most: ("GETRANGE", key, 0, most - 1), _read_string),
    "hash": _Reader("HLEN", lambda key, most: ("HSCAN", key, 0, "COUNT", most), _read_hash),
    "list": _Reader("LLEN", lambda key, most: ("LRANGE", key, 0, most - 1), _read_elements),
    "set": _Reader("SCARD", lambda key, most: ("SSCAN", key, 0, "COUNT", most), _read_set),
    "zset": _Reader("ZCARD", lambda key, most: ("ZRANGE", key, 0, most - 1, "WITHSCORES"), _read_scored),
    "stream": _Reader("XLEN", lambda key, most: ("XREVRANGE", key, "+", "-", "COUNT", most), _read_stream),
}
