"""What lies in values, from a bounded look at a few of them: ``json object: id integer, name text`` and the like."""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from keystead.inventory.values import recognise
from keystead.keys import Command, Reply

SAMPLE_BYTES = 8 * 1024
ELEMENTS = 3
FIELDS = 25
# A collection this large is not read at all: a few of its elements could be all of it.
LARGEST_READ_BYTES = 4 * 1024 * 1024
MOST_FIELDS = 12

_MAGIC = (
    (b"HYLL", "hyperloglog"), (b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"\x80\x04", "pickle"),
    (b"\x80\x05", "pickle"), (b"\xac\xed\x00\x05", "java object"), (b"\x89PNG", "png"), (b"\xff\xd8\xff", "jpeg"),
)


def probe(raw_key: bytes, type: str, memory_bytes: int) -> Command | None:
    """The command that reads a little of a value; None where even that could be too much."""
    if type == "string":
        return ("GETRANGE", raw_key, 0, SAMPLE_BYTES - 1)
    if memory_bytes > LARGEST_READ_BYTES:
        return None
    commands: dict[str, Command] = {
        "hash": ("HSCAN", raw_key, 0, "COUNT", FIELDS),
        "list": ("LRANGE", raw_key, 0, ELEMENTS - 1),
        "set": ("SRANDMEMBER", raw_key, ELEMENTS),
        "zset": ("ZRANGE", raw_key, 0, ELEMENTS - 1),
        "stream": ("XREVRANGE", raw_key, "+", "-", "COUNT", 1),
    }
    return commands.get(type)


def shape(type: str, replies: Iterable[Reply]) -> str:
    """What the samples of one pattern have in common; empty if nothing was read."""
    held = [reply for reply in replies if reply is not None and not isinstance(reply, Exception)]
    if type == "string":
        return _together(_value(reply) for reply in held if reply)
    if type == "hash":
        return _fields(dict(_pairs(reply[1])) for reply in held)
    if type == "stream":
        return _fields(dict(_pairs(fields)) for reply in held for _, fields in reply)
    if type in ("list", "set", "zset"):
        inner = _together(_value(raw) for reply in held for raw in reply)
        return f"elements: {inner}" if inner else ""
    return ""


def _value(raw: bytes) -> str:
    for magic, name in _MAGIC:
        if raw.startswith(magic):
            return name
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        # The sample may end in the middle of a letter.
        if len(raw) < SAMPLE_BYTES or error.start < len(raw) - 4:
            return "binary"
        text = raw[: error.start].decode()
    if text[:1] in ("{", "["):
        return _json(raw, text)
    return _scalar(text)


def _scalar(text: str) -> str:
    if not text:
        return "empty"
    kind = recognise(text) if len(text) <= 200 else ""
    return "text" if kind in ("", "query", "duration", "domain") else kind


def _json(raw: bytes, text: str) -> str:
    try:
        value = msgspec.json.decode(raw)
    except msgspec.DecodeError:
        return f"json {'object' if text[0] == '{' else 'array'}, large" if len(raw) >= SAMPLE_BYTES else "text"
    if isinstance(value, dict):
        return "json object: " + ", ".join(f"{name} {_of(each)}" for name, each in list(value.items())[:MOST_FIELDS])
    return "json array" + (f" of {_of(value[0])}" if isinstance(value, list) and value else "")


def _of(value: object) -> str:
    if isinstance(value, str):
        return _scalar(value)
    names = {bool: "boolean", int: "integer", float: "number", dict: "object", list: "array", type(None): "null"}
    return names.get(type(value), "text")


def _together(found: Iterable[str]) -> str:
    """The most frequent description; fields of JSON objects are united."""
    counted = Counter(found)
    if not counted:
        return ""
    objects = [each for each in counted if each.startswith("json object: ")]
    if objects and sum(counted[each] for each in objects) * 2 > counted.total():
        fields: dict[str, str] = {}
        for each in objects:
            for part in each.removeprefix("json object: ").split(", "):
                name, _, kind = part.rpartition(" ")
                fields[name] = kind if fields.get(name) in (None, "null") else fields[name]
        return "json object: " + ", ".join(f"{name} {kind}" for name, kind in list(fields.items())[:MOST_FIELDS])
    first, *others = [each for each, _ in counted.most_common(3)]
    return first if not others else " or ".join([first, *others])


def _fields(records: Iterable[Mapping[bytes, bytes]]) -> str:
    seen: dict[str, Counter[str]] = {}
    records = list(records)
    for record in records:
        for raw_name, raw in record.items():
            name = raw_name[:60].decode(errors="backslashreplace")
            seen.setdefault(name, Counter())[_value(raw).partition(":")[0]] += 1
    if not seen:
        return ""
    # Names that hardly two values share are data themselves.
    if len(seen) > MOST_FIELDS and len(records) > 1 and len(seen) > 0.6 * sum(map(len, records)):
        return f"fields: {_together(map(_scalar, seen))} to {_together(k for c in seen.values() for k in c)}"
    listed = [f"{name} {counts.most_common(1)[0][0]}" for name, counts in list(seen.items())[:MOST_FIELDS]]
    return "fields: " + ", ".join(listed) + (", …" if len(seen) > MOST_FIELDS else "")


def _pairs(reply: Reply) -> list[tuple[bytes, bytes]]:
    """Name and value pairs, however the protocol version spells them."""
    if isinstance(reply, dict):
        return list(reply.items())
    if reply and isinstance(reply[0], list | tuple):
        return [(first, second) for first, second in reply]
    return list(zip(reply[::2], reply[1::2], strict=True))
