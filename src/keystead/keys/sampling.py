"""How an audit looks into a value: one cheap command per key, and a judgement of its reply.

Each class is mixed into the declarations whose server type it knows. What is too big for the sample is not judged.
"""

from typing import Any

from keystead.keys.codecs import Codec, Undecodable
from keystead.keys.executor import Command, Reply
from keystead.keys.keyspace import SAMPLE_BYTES
from keystead.keys.records import RecordCodec
from keystead.keys.references_hashes import as_dict

_ELEMENTS = 3


class ValueSampling:
    """A string value, read up to ``SAMPLE_BYTES``."""

    codec: Codec[Any]

    def probe(self, raw_key: bytes) -> Command | None:
        return ("GETRANGE", raw_key, 0, SAMPLE_BYTES)

    def judge_sample(self, reply: Reply) -> str | None:
        # An absent key reads as empty, and one longer than the sample was cut.
        return None if not reply or len(reply) > SAMPLE_BYTES else _reason(self.codec, reply)


class ElementsSampling:
    """The first elements of a list."""

    codec: Codec[Any]

    def probe(self, raw_key: bytes) -> Command | None:
        return ("LRANGE", raw_key, 0, _ELEMENTS - 1)

    def judge_sample(self, reply: Reply) -> str | None:
        return next((reason for raw in reply if (reason := _reason(self.codec, raw)) is not None), None)

    def sample_members(self, reply: Reply) -> list[str]:
        return [str(self.codec.decode(raw)) for raw in reply if _reason(self.codec, raw) is None]


class SetSampling(ElementsSampling):
    """Some members of a set."""

    def probe(self, raw_key: bytes) -> Command | None:
        return ("SRANDMEMBER", raw_key, _ELEMENTS)


class ScoredSampling(ElementsSampling):
    """The first members of a sorted set."""

    def probe(self, raw_key: bytes) -> Command | None:
        return ("ZRANGE", raw_key, 0, _ELEMENTS - 1)


class RecordSampling:
    """The fields of a record; a hash too big for one step of HSCAN is judged by the fields that came."""

    record: RecordCodec[Any]

    def probe(self, raw_key: bytes) -> Command | None:
        return ("HSCAN", raw_key, 0, "COUNT", 100)

    def judge_sample(self, reply: Reply) -> str | None:
        cursor, fields = reply[0], as_dict(reply[1])
        try:
            if int(cursor) == 0:
                if fields:
                    self.record.decode(fields)
                return None
            for raw_name, raw in fields.items():
                name = raw_name.decode(errors="replace")
                if self.record.knows(name):
                    self.record.decode_field(name, raw)
        except Undecodable as error:
            return error.reason
        return None


class MapSampling:
    """Some fields of a map: each must be declared, and its value must decode."""

    codec: Codec[Any]

    def has_field(self, field: str) -> bool:
        raise NotImplementedError

    def probe(self, raw_key: bytes) -> Command | None:
        return ("HSCAN", raw_key, 0, "COUNT", 10)

    def judge_sample(self, reply: Reply) -> str | None:
        for raw_field, raw in as_dict(reply[1]).items():
            field = raw_field.decode(errors="backslashreplace")
            if not self.has_field(field):
                return f"field {field[:60]!r} is not declared"
            reason = _reason(self.codec, raw)
            if reason is not None:
                return f"field {field[:60]!r}: {reason}"
        return None


class StreamSampling:
    """The newest entries of a stream."""

    record: RecordCodec[Any]

    def probe(self, raw_key: bytes) -> Command | None:
        return ("XREVRANGE", raw_key, "+", "-", "COUNT", 2)

    def judge_sample(self, reply: Reply) -> str | None:
        for _, fields in reply:
            try:
                self.record.decode(as_dict(fields))
            except Undecodable as error:
                return error.reason
        return None


def _reason(codec: Codec[Any], raw: bytes) -> str | None:
    try:
        codec.decode(raw)
    except Undecodable as error:
        return error.reason if error.offset is None else f"{error.reason} (byte {error.offset})"
    return None
