"""What waits in the room, and how its jobs last ran: for people who look after it."""

from dataclasses import dataclass
from typing import Any, Final

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.keys import ListRef, RecordKey, Undecodable
from keystead.messaging.sending import latest_run
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
        found = []
        for lane in self._valkey.lanes:
            first = await self._first(lane, TO_SEND.queue)
            found.append(QueueInfo(await TO_SEND.length(lane), None if first is None else first.queued_at))
        return _together(found)

    async def to_log(self) -> QueueInfo:
        """Rows that wait to be written."""
        found = []
        for lane in self._valkey.lanes:
            first = await self._first(lane, TO_LOG.queue)
            at = first.fields.get("created_at", first.fields.get("queued_at")) if first is not None else None
            found.append(QueueInfo(await TO_LOG.length(lane), at if isinstance(at, int | float) else None))
        return _together(found)

    async def pending(self) -> QueueInfo:
        """Touches that wait for news; those that wait for too long are overdue."""
        found = []
        for lane in self._valkey.lanes:
            oldest = await PENDING.index.range(lane, 0, 0)
            late = await PENDING.index.count(lane, most=self._clock.now() - STALE_SECONDS)
            found.append(QueueInfo(await PENDING.size(lane), oldest[0][1] if oldest else None, late))
        return _together(found)

    async def last_run(self, name: str) -> dict[str, Any]:
        """What the hash of a run says, and how many items its workers hold now; of several lanes the latest run."""
        key, work = _RUNS[name]
        facts = latest_run([await key.at().get(lane) for lane in self._valkey.lanes])
        if work is not None:
            held = 0
            for lane in self._valkey.lanes:
                held += sum([await place.length(lane) for place in await purgatories(lane, work)])
            facts["in_purgatory"] = held
        return facts

    async def _first(self, lane: Valkey, place: ListRef[Any]) -> Any:
        raw = await lane.run(("LINDEX", place.name(lane.layout), 0), _as_it_is, repeat=True)
        try:
            return None if raw is None else place.codec.decode(raw)
        except Undecodable:
            return None


def _together(lanes: list[QueueInfo]) -> QueueInfo:
    oldest = min((one.oldest_at for one in lanes if one.oldest_at is not None), default=None)
    return QueueInfo(sum(one.length for one in lanes), oldest, sum(one.overdue for one in lanes))


def _as_it_is(reply: Any) -> Any:
    return reply
