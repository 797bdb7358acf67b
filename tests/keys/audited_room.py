"""Declarations whose keys the audit tests observe."""

import msgspec

from keystead.keys import (
    Exactly,
    FlagKey,
    GeoKey,
    IntegerKey,
    Keyspace,
    ListKey,
    MapKey,
    OpaqueNamespace,
    RecordKey,
    Registry,
    SetKey,
    SortedSetKey,
    StreamKey,
    StringKey,
)


class Sms(msgspec.Struct, frozen=True):
    sid: str
    attempts: int = 0


HERE = Keyspace("sms", tag="msg")
TEXT = StringKey(HERE, "text:{x}", Sms, purpose="t")
COUNT = IntegerKey(HERE, "count:{ip}", ttl=Exactly(60), purpose="t")
FLAG = FlagKey(HERE, "flag:{x}", purpose="t")
RECORD = RecordKey(HERE, "sms:pending:{sid}", Sms, purpose="t")
PENDING = SortedSetKey(HERE, "sms:pending", str, member="sid", score="when due", pairs_with=RECORD, purpose="t")
MAP = MapKey(HERE, "map:{x}", int, fields=("known",), purpose="t")
LIST = ListKey(HERE, "list:{x}", Sms, purpose="t")
SET = SetKey(HERE, "set:{x}", int, purpose="t")
STREAM = StreamKey(HERE, "stream:{x}", Sms, most_items=9, purpose="t")
GEO = GeoKey(HERE, "geo:{x}", int, member="number", purpose="t")
OTHERS = OpaqueNamespace(HERE, "asynq:*", purpose="another program's")
REGISTRY = Registry([HERE])
