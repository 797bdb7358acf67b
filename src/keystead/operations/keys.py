"""Every key of operations: alerts, what reaches somebody of them, and the census."""

from typing import Final

from keystead.keys import (
    KINDS,
    AtMost,
    Exactly,
    FlagKey,
    Keyspace,
    ListKey,
    MapKey,
    NoneUntilEnded,
    OnCorrupt,
    RecordKey,
    SortedSetKey,
    StringKey,
)
from keystead.operations.models import Alert, AlertDelivery, AlertEvent, DeadSeen, KeptCensus
from keystead.patterns import DelayedSet, LeasedLock

OPERATIONS = Keyspace("operations", tag="ops")

# A change is guarded by a mark that outlives whoever could still try to make the same one, and is gone long before the
# record of a cleared alert is, from which versions would begin anew.
STEP_SECONDS: Final = 3600
CLEARED_SECONDS: Final = 7 * 86400
DELIVERY_TRIES: Final = 12

_ALERTS: Final = ("operations.alerts",)
_READERS: Final = ("operations.alerts", "operations.delivery")

ALERT: RecordKey[Alert] = RecordKey(
    OPERATIONS, "alerts:alert:{kind}:{subject}", Alert, kinds={"subject": KINDS["text"]},
    ttl=NoneUntilEnded(CLEARED_SECONDS),
    purpose="one alert; it ends a week after it cleared", writers=_ALERTS, readers=_READERS,
    scripts=("guarded/once.lua",),
)
OPEN: SortedSetKey[str] = SortedSetKey(
    OPERATIONS, "alerts:open", str, member="kind and subject of an alert, with a space between",
    score="unix time when it opened", purpose="alerts that are open", writers=_ALERTS, readers=_READERS,
    scripts=("guarded/once.lua",),
)
STEP = FlagKey(
    OPERATIONS, "alerts:step:{version}:{kind}:{subject}", kinds={"subject": KINDS["text"]}, ttl=AtMost(STEP_SECONDS),
    purpose="a change of an alert that was made, so that no other process makes it too", writers=_ALERTS,
    readers=_ALERTS, scripts=("guarded/once.lua",),
)
RECENT: ListKey[AlertEvent] = ListKey(
    OPERATIONS, "alerts:recent", AlertEvent, purpose="the last 200 changes of alerts, newest first", writers=_ALERTS,
    readers=_READERS, scripts=("guarded/once.lua",),
)
ROUND = FlagKey(
    OPERATIONS, "alerts:round", ttl=AtMost(3600), purpose="while it is there, another process looks or has just looked",
    writers=("operations.patrol",), readers=("operations.patrol",),
)
DEAD_SEEN: MapKey[DeadSeen] = MapKey(
    OPERATIONS, "alerts:dead_seen", DeadSeen, fields=("{place:text}",),
    purpose="how many dead letters each place had, so that more of them can be told", writers=("operations.watchers",),
    readers=("operations.watchers",),
)
DELIVERIES: DelayedSet[AlertDelivery] = DelayedSet(
    OPERATIONS, "alerts:deliveries", AlertDelivery, member="an event of an alert, and the way it is to go",
    tries=DELIVERY_TRIES, most_dead=200, purpose="what is to reach somebody of alerts, by the time it is next tried",
    writers=("operations.alerts", "operations.delivery"), readers=("operations.delivery",),
)
TRIED: SortedSetKey[str] = SortedSetKey(
    OPERATIONS, "alerts:tried", str, member="way and uid of an event that was being handed over, with a space between",
    score="unix time when that was begun", purpose="what may have reached somebody though nobody knows, so that it is "
    "told when it is brought again", writers=("operations.delivery",), readers=("operations.delivery",),
)
HEARTBEAT = FlagKey(
    OPERATIONS, "alerts:heartbeat", ttl=AtMost(3600),
    purpose="while it is there, another process calls the address of the heartbeat or has just called it",
    writers=("operations.heartbeat",), readers=("operations.heartbeat",),
)
CENSUS: StringKey[KeptCensus] = StringKey(
    OPERATIONS, "census:{digest:word}", KeptCensus, ttl=Exactly(86400), dead_letter=OnCorrupt.MISS,
    purpose="keys and memory by pattern at the end of the last walk; the digest is that of the declared patterns",
    writers=("operations.census",), readers=("operations.census",),
)
CENSUS_TURN = LeasedLock(
    OPERATIONS, "census:{digest:word}:turn", lease_seconds=30.0,
    purpose="one process of an installation walks at a time", writers=("operations.census",),
    readers=("operations.census",),
)
