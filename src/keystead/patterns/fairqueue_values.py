"""What the operations of a fair queue answer."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

from keystead.errors import Corrupt
from keystead.keys import Codec, Undecodable
from keystead.telemetry import counts

T = TypeVar("T")


class Produced(Enum):
    """What became of an item that was to be produced."""

    OK = "OK"
    DUPLICATE = "DUP"  # the id was accepted before; nothing was stored again
    PAUSED = "PAUSED"  # the gate is not open
    FULL = "FULL"  # the shard or the queue holds as much as the gate allows
    TOO_BIG = "TOO_BIG"  # the body is larger than the gate allows, or the cost than one turn of the shard pays for


class Requeued(Enum):
    """Where a leased item went when it was handed back."""

    READY = "ready"
    DELAYED = "delayed"
    DEAD = "dead"
    STALE = "stale"  # it was not the caller's any more; nothing was done


class Parked(Enum):
    """What became of an item that was to be parked."""

    PARKED = "PARKED"
    REQUEUED = "REQUEUED"  # the signal came since the epoch was read: the item is ready again
    DELAYED = "DELAYED"  # no room to park: the item comes again shortly
    STALE = "STALE"  # it was not the caller's any more; nothing was done


@dataclass(frozen=True, slots=True)
class Leased(Generic[T]):
    """An item in the caller's hands until its lease ends. ``token`` proves it; ``attempt`` counts from 0."""

    shard: str
    id: str
    token: str
    attempt: int
    stored_at: float
    cost: int
    raw_body: bytes
    codec: Codec[T]

    @property
    def value(self) -> T:
        """The decoded body. ``Corrupt`` if it does not decode: ``bury`` the item then, so that a person sees it."""
        try:
            return self.codec.decode(self.raw_body)
        except Undecodable as error:
            counts.add("keys_undecodable", declaration="fairqueue items")
            place = f" at byte {error.offset}" if error.offset is not None else ""
            raise Corrupt(f"the body of item {self.id} of {self.shard} does not decode{place}: {error.reason}",
                          key=self.id, offset=error.offset) from None


@dataclass(frozen=True, slots=True)
class LeasedBatch(Generic[T]):
    """What one take brought.

    ``look_at`` is when something sleeping is next worth a look (unix seconds; infinity if nothing sleeps), ``steps``
    how many shards were visited, ``again`` that the visit ended at its step limit with shards left to see. ``dead``
    are (shard, id) of items that were given up on this occasion: tell their owners.
    """

    items: tuple[Leased[T], ...]
    look_at: float = math.inf
    steps: int = 0
    again: bool = False
    dead: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Restored:
    """What a sweep brought back to ready, and what it gave up, as (shard, id)."""

    items: int
    dead: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Counts:
    """How many items are where, and how many events there were. Of one shard, events and parked are not counted."""

    ready: int = 0
    delayed: int = 0
    leased: int = 0
    parked: int = 0
    dead: int = 0
    produced: int = 0
    acked: int = 0
    redelivered: int = 0


@dataclass(frozen=True, slots=True)
class Woken:
    """What a signal moved back to ready, how many still wait, and the values of the field that was asked for."""

    moved: int
    left: int
    values: tuple[str, ...] = ()


def pairs(flat: Sequence[bytes]) -> tuple[tuple[str, str], ...]:
    """(shard, id) of a flat reply."""
    texts = [each.decode() for each in flat]
    return tuple(zip(texts[::2], texts[1::2], strict=True))


def batch_of(reply: Any, consumer: str, codec: Codec[T]) -> LeasedBatch[T]:
    """Read the reply of ``take.lua``."""
    look, steps, again, items = reply
    prefix = consumer + ":"
    return LeasedBatch(
        tuple(
            Leased(shard.decode(), item_id.decode(), prefix + (tried := attempt.decode()), int(tried),
                   int(stored_ms) / 1000, cost, body, codec)
            for shard, item_id, attempt, stored_ms, cost, body in items
        ),
        float(look) / 1000, steps, bool(again),
    )
