"""One declaration of every type, for the tests of references."""

from enum import Enum

import msgspec

from keystead.keys import (
    Channel,
    FlagKey,
    GeoKey,
    IntegerKey,
    Keyspace,
    ListKey,
    LockKey,
    LockKind,
    MapKey,
    RecordKey,
    SetKey,
    SortedSetKey,
    StreamKey,
    StringKey,
)


class State(Enum):
    SENT = "sent"
    FAILED = "failed"


class Sms(msgspec.Struct, frozen=True):
    sid: str
    attempts: int = 0
    due_at: float = 0.0
    urgent: bool = False
    state: State = State.SENT
    note: str | None = None
    tries: list[int] = []
    raw: bytes = b""


HERE = Keyspace("tests")
NAME = StringKey(HERE, "name:{user_sub}", Sms, purpose="t")
COUNT = IntegerKey(HERE, "count:{x}", purpose="t")
SEEN = FlagKey(HERE, "seen:{x}", purpose="t")
LOCK = LockKey(HERE, "lock:{x}", LockKind.SMART, purpose="t")
RECORD = RecordKey(HERE, "record:{x}", Sms, purpose="t")
COUNTS = MapKey(HERE, "counts:{x}", int, fields=("attempted", "failed:{reason}"), purpose="t")
RATES = MapKey(HERE, "rates:{x}", float, purpose="t")
QUEUE = ListKey(HERE, "queue:{x}", Sms, purpose="t")
NAMES = SetKey(HERE, "names:{x}", str, purpose="t")
DUE = SortedSetKey(HERE, "due:{x}", str, member="sid", score="when due", purpose="t")
LOG = StreamKey(HERE, "log:{x}", Sms, most_items=2, purpose="t")
PLACES = GeoKey(HERE, "places:{x}", str, member="event", purpose="t")
NEWS = Channel(HERE, "news:{x}", Sms, purpose="t")
