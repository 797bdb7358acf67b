"""Lanes: one queue over several slots, for more than one core of a server can serve.

A shard always lies in the same lane. Each lane is a fair queue of its own, ``Q#0`` to ``Q#n``; a consumer visits them
in proportion to their active shards, so that fairness between shards of different lanes is off by no more than the
lanes are uneven (``imbalance`` tells by how much).
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Generic, TypeVar
from zlib import crc32

from keystead.engine.client import Valkey
from keystead.errors import DeclarationError
from keystead.keys import Keyspace
from keystead.keys.codecs import Of
from keystead.patterns.fairqueue import FairQueue
from keystead.patterns.fairqueue_keys import Keepalives
from keystead.patterns.fairqueue_values import LeasedBatch

T = TypeVar("T")
_WEIGH_EVERY = 16


def lane_names(name: str, lanes: int) -> tuple[str, ...]:
    """What the queues of the lanes are called; ``Keepalives`` needs them all."""
    return tuple(f"{name}#{lane}" for lane in range(lanes))


class FairLanes(Generic[T]):
    """Several fair queues that act as one. Takes what ``FairQueue`` takes; park patterns must hold ``{lane}``."""

    def __init__(self, keyspace: Keyspace, name: str, *, lanes: int, item: Of[T], keepalives: Keepalives | None = None,
                 parks: Mapping[str, str] | None = None, **more: Any) -> None:
        if not 2 <= lanes <= 64:
            raise DeclarationError(f"{name}: between 2 and 64 lanes; with one a plain FairQueue is enough")
        for pattern in (parks or {}).values():
            if "{lane}" not in pattern:
                raise DeclarationError(f"{name}: park pattern {pattern} needs {{lane}}: each lane has its own tag")
        self.name = name
        names = lane_names(name, lanes)
        shared = keepalives or Keepalives(
            keyspace, names, writers=more.get("writers", ()), readers=more.get("readers", ()))
        self.lanes: tuple[FairQueue[T], ...] = tuple(
            FairQueue(keyspace, each, item=item, keepalives=shared,
                      parks={park: text.replace("{lane}", str(lane)) for park, text in (parks or {}).items()}, **more)
            for lane, each in enumerate(names)
        )
        self._active = [1] * lanes
        self._due = [0] * lanes
        self._visits = 0

    def of(self, shard: str) -> FairQueue[T]:
        """The lane of a shard: produce, move, blacklist and configure there."""
        return self.lanes[crc32(shard.encode()) % len(self.lanes)]

    def imbalance(self) -> float:
        """The busiest lane's active shards over the mean, as last seen: 1.0 is even."""
        return max(self._active) * len(self._active) / max(1, sum(self._active))

    async def take_batch(
        self, valkey: Valkey, most: int, consumer: str, *, now: float, lease_seconds: float | None = None
    ) -> tuple[FairQueue[T], LeasedBatch[T]]:
        """Lease from the lane whose visit is due, or the next that has something. Says which lane it was.

        ``look_at``, ``again`` and ``dead`` of the batch speak of all lanes that were visited.
        """
        if self._visits % _WEIGH_EVERY == 0:
            await self._weigh(valkey)
        self._visits += 1
        seen: list[LeasedBatch[T]] = []
        for lane in self._order():
            queue = self.lanes[lane]
            seen.append(await queue.take_batch(valkey, most, consumer, now=now, lease_seconds=lease_seconds))
            if seen[-1].items:
                break
        return queue, LeasedBatch(
            seen[-1].items, min(batch.look_at for batch in seen), sum(batch.steps for batch in seen),
            any(batch.again for batch in seen), tuple(item for batch in seen for item in batch.dead),
        )

    def _order(self) -> list[int]:
        """Smooth weighted round robin: the lane furthest behind its share first."""
        self._due = [due + active for due, active in zip(self._due, self._active, strict=True)]
        order = sorted(range(len(self.lanes)), key=lambda lane: -self._due[lane])
        self._due[order[0]] -= sum(self._active)
        return order

    async def _weigh(self, valkey: Valkey) -> None:
        rings = [queue.keys.names(valkey.layout).base[0] for queue in self.lanes]
        lengths = await asyncio.gather(*(valkey.run(("LLEN", ring), int, repeat=True) for ring in rings))
        self._active = [max(1, length) for length in lengths]
