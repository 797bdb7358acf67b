"""What waits in the room, and how its jobs last ran: for people who look after it."""

from dataclasses import dataclass
from typing import Any, Final

import msgspec

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.keys import RecordKey, SortedSetRef
from keystead.messaging.links.keys import BUFFER, DELAYED, LEAKED, TO_PERSIST
from keystead.messaging.links.models import DEFAULTS
from keystead.messaging.links.stats import DELAYED_CLICKS_RUN, LEAK_RUN, PERSIST_RUN
from keystead.patterns import DelayedSet
from keystead.settings import LinksSettings

_RUNS: Final[dict[str, tuple[RecordKey[Any], DelayedSet[str] | None]]] = {
    "last_persist_link_job": (PERSIST_RUN, TO_PERSIST),
    "last_delayed_click_persist_job": (DELAYED_CLICKS_RUN, DELAYED),
    "last_leaked_link_detection_job": (LEAK_RUN, None),
}
RUNS: Final = tuple(_RUNS)


@dataclass(frozen=True, slots=True)
class SetInfo:
    """How much waits, the earliest time among it, and how much of it should have been dealt with by now."""

    length: int
    oldest_at: float | None
    overdue: int


class LinkQueues:
    """Reads them."""

    def __init__(self, valkey: Valkey, clock: Clock, *, settings: LinksSettings = DEFAULTS) -> None:
        self._valkey, self._clock, self._settings = valkey, clock, settings

    async def buffered(self) -> SetInfo:
        """Links that are not in the database; those that leaked are overdue."""
        return await self._info(BUFFER.at(), self._clock.now() - self._settings.leak_seconds)

    async def persistable(self) -> SetInfo:
        """Links that wait to be stored."""
        return await self._info(TO_PERSIST.due, self._clock.now())

    async def delayed_clicks(self) -> SetInfo:
        """Clicks that wait to be stored after their link."""
        return await self._info(DELAYED.due, self._clock.now())

    async def last_run(self, name: str) -> dict[str, Any]:
        """What the hash of a run says, and how much its workers hold now. ``name`` is one of ``RUNS``."""
        key, source = _RUNS[name]
        found = await key.at().get(self._valkey)
        facts: dict[str, Any] = {} if found is None else msgspec.to_builtins(found)
        facts["in_purgatory"] = await LEAKED.at().size(self._valkey) if source is None else await self._held(source)
        return facts

    async def _info(self, index: SortedSetRef[str], late: float) -> SetInfo:
        async with self._valkey.pipeline(transaction=False) as pipeline:
            length, first, overdue = (
                index.size(pipeline), index.range(pipeline, 0, 0), index.count(pipeline, most=late)
            )
            await pipeline.execute()
        oldest = await first
        return SetInfo(await length, oldest[0][1] if oldest else None, await overdue)

    async def _held(self, source: DelayedSet[str]) -> int:
        workers = await source.workers_key.at().members(self._valkey)
        places = [source.purgatory_key.at(), *(source.worker_key.at(worker) for worker in workers)]
        return sum([await place.size(self._valkey) for place in places])
