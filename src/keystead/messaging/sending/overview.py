"""What waits in a room, and how its jobs last ran: for people who look after it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.keys import ListRef, RecordKey, SortedSetRef, Undecodable
from keystead.keys.executor import Reply
from keystead.patterns import DelayedSet, WorkList


@dataclass(frozen=True, slots=True)
class WatchedSet:
    """Members by time. Those due ``late_seconds`` ago should have been dealt with; None: that says nothing."""

    index: SortedSetRef[Any]
    late_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class WatchedRun:
    """The last run of a job, and where its workers hold what they took."""

    runs: RecordKey[Any]
    source: WorkList[Any] | DelayedSet[Any] | None = None


@dataclass(frozen=True, slots=True)
class Overview:
    """What can be asked about a room, by the names under which HTTP asks. ``since``: fields that say how old one is."""

    room: str
    lists: Mapping[str, ListRef[Any]] = field(default_factory=dict)
    sets: Mapping[str, WatchedSet] = field(default_factory=dict)
    runs: Mapping[str, WatchedRun] = field(default_factory=dict)
    since: tuple[str, ...] = ("last_queued_at", "information_received_at", "received_at")

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.lists, *self.sets, *self.runs)


class OverviewReader:
    """Answers. Each answer costs a few commands for each lane, however much waits: it speaks of all of them."""

    def __init__(self, valkey: Valkey, clock: Clock) -> None:
        self._valkey, self._clock = valkey, clock

    async def read(self, overview: Overview, name: str) -> dict[str, Any]:
        """What there is to say about one of ``overview.names``."""
        if name in overview.lists:
            place = overview.lists[name]
            lanes = self._valkey.lanes_of(place.declaration)
            return _together([await self._list(lane, place, overview.since) for lane in lanes])
        if name in overview.sets:
            watched = overview.sets[name]
            return _together([await self._set(lane, watched) for lane in self._valkey.lanes_of(
                watched.index.declaration)])
        return await self._run(overview.runs[name])

    async def _list(self, valkey: Valkey, place: ListRef[Any], since: tuple[str, ...]) -> dict[str, Any]:
        raw = await valkey.run(("LINDEX", place.name(valkey.layout), 0), _as_it_is, repeat=True)
        try:
            first = None if raw is None else place.codec.decode(raw)
        except Undecodable:
            first = None
        found = (getattr(first, name, None) for name in since)
        oldest_at = next((at for at in found if isinstance(at, int | float)), None)
        return {"length": await place.length(valkey), "oldest_at": oldest_at}

    async def _set(self, valkey: Valkey, watched: WatchedSet) -> dict[str, Any]:
        index = watched.index
        async with valkey.pipeline(transaction=False) as pipeline:
            length, first = index.size(pipeline), index.lowest_score(pipeline)
            late = None if watched.late_seconds is None else index.count(
                pipeline, most=self._clock.now() - watched.late_seconds)
            await pipeline.execute()
        shown = {"length": await length, "oldest_at": await first}
        return shown if late is None else {**shown, "num_overdue": await late}

    async def _run(self, watched: WatchedRun) -> dict[str, Any]:
        lanes = self._valkey.lanes_of(watched.runs)
        facts = latest_run([await watched.runs.at().get(lane) for lane in lanes])
        if watched.source is not None:
            facts["in_purgatory"] = sum([await self._held(lane, watched.source) for lane in lanes])
        return facts

    async def _held(self, valkey: Valkey, source: WorkList[Any] | DelayedSet[Any]) -> int:
        workers = await source.workers_key.at().members(valkey)
        places = [source.purgatory_key.at(), *(source.worker_key.at(worker) for worker in workers)]
        return sum([await (place.length(valkey) if isinstance(place, ListRef) else place.size(valkey))
                    for place in places])


def latest_run(found: Iterable[Any]) -> dict[str, Any]:
    """Of the last runs of a job in each lane the one that began last; empty if none ever ran."""
    latest = max((one for one in found if one is not None), key=lambda one: one.started_at or 0.0, default=None)
    return {} if latest is None else dict(msgspec.to_builtins(latest))


def _together(lanes: list[dict[str, Any]]) -> dict[str, Any]:
    """Sums, and the oldest of all."""
    oldest = [one["oldest_at"] for one in lanes if one["oldest_at"] is not None]
    sums = {name: sum(one[name] for one in lanes) for name in lanes[0] if name != "oldest_at"}
    return {**sums, "oldest_at": min(oldest, default=None)}


def _as_it_is(reply: Reply) -> Reply:
    return reply
