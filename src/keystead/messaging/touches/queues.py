"""What waits in the room, and how its jobs last ran: for people who look after it."""

from dataclasses import dataclass
from typing import Any, Final

import msgspec

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.keys import ListRef, RecordKey, Undecodable
from keystead.messaging.touches.keys import PENDING, TO_LOG, TO_SEND
from keystead.messaging.touches.places import purgatories
from keystead.messaging.touches.stale import STALE_SECONDS
from keystead.messaging.touches.stats import DETECTION_RUN, LOG_RUN, SEND_RUN
from keystead.patterns import WorkList

_RUNS: Final[dict[str, tuple[RecordKey[Any], WorkList[Any] | None]]] = {
    "last_send_job": (SEND_RUN, TO_SEND),
    "last_log_job": (LOG_RUN, TO_LOG),
    "last_stale_detection_job": (DETECTION_RUN, None),
}
RUNS: Final = tuple(_RUNS)


@dataclass(frozen=True, slots=True)
class QueueInfo:
    """How much waits. ``oldest_at``: since when the oldest does; None if nothing does, or it does not say."""

    length: int
    oldest_at: float | None = None
    overdue: int = 0


class Queues:
    """Reads them."""

    def __init__(self, valkey: Valkey, clock: Clock) -> None:
        self._valkey, self._clock = valkey, clock

    async def to_send(self) -> QueueInfo:
        """Touches that wait to be made into messages."""
        first = await self._first(TO_SEND.queue)
        return QueueInfo(await TO_SEND.length(self._valkey), None if first is None else first.queued_at)

    async def to_log(self) -> QueueInfo:
        """Rows that wait to be written."""
        first = await self._first(TO_LOG.queue)
        at = first.fields.get("created_at", first.fields.get("queued_at")) if first is not None else None
        return QueueInfo(await TO_LOG.length(self._valkey), at if isinstance(at, int | float) else None)

    async def pending(self) -> QueueInfo:
        """Touches that wait for news; those that wait for too long are overdue."""
        oldest = await PENDING.index.range(self._valkey, 0, 0)
        late = await PENDING.index.count(self._valkey, most=self._clock.now() - STALE_SECONDS)
        return QueueInfo(await PENDING.size(self._valkey), oldest[0][1] if oldest else None, late)

    async def last_run(self, name: str) -> dict[str, Any]:
        """What the hash of a run says, and how many items its workers hold now."""
        key, work = _RUNS[name]
        found = await key.at().get(self._valkey)
        facts: dict[str, Any] = {} if found is None else msgspec.to_builtins(found)
        if work is not None:
            places = await purgatories(self._valkey, work)
            facts["in_purgatory"] = sum([await place.length(self._valkey) for place in places])
        return facts

    async def _first(self, place: ListRef[Any]) -> Any:
        raw = await self._valkey.run(("LINDEX", place.name(self._valkey.layout), 0), _as_it_is, repeat=True)
        try:
            return None if raw is None else place.codec.decode(raw)
        except Undecodable:
            return None


def _as_it_is(reply: Any) -> Any:
    return reply
