"""Parking: an item that waits for something (a session, a resource) outside the queue, without a worker or a slot.

A worker that finds no resource reads the park's epoch *before* it asks, and parks the item only if nothing was
signalled since. Whoever frees the resource signals. So no wake-up is missed, whatever the order; and every park has a
deadline at which the item returns by itself.
"""

from collections.abc import Awaitable
from typing import Any, Final

from keystead.engine.scripts import Script, ScriptRunner
from keystead.errors import Invalid
from keystead.keys import Executor, MapRef
from keystead.patterns.fairqueue_keys import PARK_SECONDS, QueueKeys
from keystead.patterns.fairqueue_values import Leased, Parked, Woken

_PARK = Script("keystead.patterns", "scripts/fairqueue/park.lua")
_WAKE = Script("keystead.patterns", "scripts/fairqueue/wake_parked.lua")
_DEADLINE_SECONDS: Final = 300.0
_CROWDED_MS: Final = 1000


class Parking:
    """The parked items of one queue. ``queue.parking.at("session", sid)`` is a declared park with its variables."""

    def __init__(self, keys: QueueKeys) -> None:
        self._keys = keys

    def at(self, park: str, *variables: str) -> MapRef[bytes]:
        """The park hash of this name (a key of the queue's ``parks``) for these variables."""
        if park not in self._keys.parks:
            known = ", ".join(self._keys.parks) or "none"
            raise Invalid(f"{self._keys.name} declares no park {park!r}; it has {known}")
        return self._keys.parks[park].at(*variables)

    def epoch(self, on: Executor, park: MapRef[bytes]) -> Awaitable[int]:
        """How often the park was signalled. Read it before asking for the resource."""
        return on.run(("HGET", park.name(on.layout), "!epoch"), lambda raw: int(raw or 0), repeat=True)

    def park(
        self, on: ScriptRunner, item: Leased[Any], park: MapRef[bytes], *, now: float,
        deadline_seconds: float = _DEADLINE_SECONDS,
    ) -> Awaitable[Parked]:
        """Let a leased item wait for the next signal, whatever was signalled before. Not counted as an attempt."""
        return self._park(on, item, park, now, deadline_seconds, -1)

    def park_or_requeue(
        self, on: ScriptRunner, item: Leased[Any], park: MapRef[bytes], seen_epoch: int, *, now: float,
        deadline_seconds: float = _DEADLINE_SECONDS,
    ) -> Awaitable[Parked]:
        """Park the item if nothing was signalled since ``seen_epoch`` was read; else make it ready again."""
        return self._park(on, item, park, now, deadline_seconds, seen_epoch)

    def wake(self, on: ScriptRunner, park: MapRef[bytes], most: int = 50, *, now: float) -> Awaitable[Woken]:
        """Signal the park, and move up to ``most`` items that wait there back to their shards, with their old age.

        The longest waiting first, at most 100 in one call.
        """
        return self.wake_returning(on, park, "", most, now=now)

    def wake_returning(
        self, on: ScriptRunner, park: MapRef[bytes], field: str, most: int = 50, *, now: float
    ) -> Awaitable[Woken]:
        """The same; gives the value of a declared field of each item that was moved."""
        names = self._keys.names(on.layout)
        return _WAKE(
            on, keys=[*names.base, names.parked, park, names.order],
            args=[*names.at(now), names.park, most, field, PARK_SECONDS * 1000, park.logical],
            decode=lambda reply: Woken(reply[0], reply[1], tuple(each.decode() for each in reply[2])),
        )

    def _park(self, on: ScriptRunner, item: Leased[Any], park: MapRef[bytes], now: float, deadline_seconds: float,
              seen_epoch: int) -> Awaitable[Parked]:
        names = self._keys.names(on.layout)
        return _PARK(
            on, keys=[*names.base, names.parked, park, names.keepalive(item.id), names.order],
            args=[*names.at(now), item.shard, item.id, item.token, park.logical,
                  round(deadline_seconds * 1000), seen_epoch, PARK_SECONDS * 1000, _CROWDED_MS],
            decode=lambda reply: Parked(reply.decode()),
        )
