"""FairQueue: one queue for many tenants, served by deficit round robin.

Every shard (tenant) with something to serve stands once in a ring. In its turn it gets credit (``quantum`` x weight)
and pays for each item with the item's cost; who has been served goes to the end of the ring. A shard with nothing to
serve now is not in the ring and costs nothing. Bounds: two shards with a backlog differ by at most one quantum and two
costs in what they got per weight; a shard that becomes active waits at most for one turn of each other; no shard has
more items in consumers' hands than its cap, ever.

An item is leased with a keepalive key that expires by itself. Whoever holds the token may renew, finish, hand back or
park the item; with a token that is not the present one nothing happens. What a dead consumer held comes back with one
more attempt, and dies after too many.

    QUEUES = ("reporting:ReportRequests", "reporting:TaskRequests")
    KEEPALIVES = Keepalives(REPORTING, QUEUES)
    REQUESTS = FairQueue(REPORTING, QUEUES[0], shard="{tenant_id}", item=ReportRequest, keepalives=KEEPALIVES, ...)

Operations take the connection or a pipeline first, and the time as ``now`` (unix seconds). Further parts hang on the
queue: ``parking``, ``blacklist``, ``shards`` and ``upkeep``; ``FairConsumer`` runs a worker.
"""

import itertools
import uuid
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar, Unpack

from keystead.engine.pipeline import Pipeline
from keystead.engine.scripts import Script, ScriptRunner
from keystead.errors import DeclarationError, Invalid
from keystead.keys import Codec, Executor, Keyspace, codec_of
from keystead.keys.codecs import Of
from keystead.patterns.facts import PatternFacts
from keystead.patterns.fairqueue_blacklist import Blacklist
from keystead.patterns.fairqueue_keys import ITEM_ID, SHARD, Keepalives, QueueGate, QueueKeys
from keystead.patterns.fairqueue_parking import Parking
from keystead.patterns.fairqueue_shards import Shards
from keystead.patterns.fairqueue_upkeep import Upkeep
from keystead.patterns.fairqueue_values import Counts, Leased, LeasedBatch, Produced, Requeued, batch_of, pairs

T = TypeVar("T")

MOST_ITEMS: Final = 100
_PRODUCE = Script("keystead.patterns", "scripts/fairqueue/produce.lua")
_TAKE = Script("keystead.patterns", "scripts/fairqueue/take.lua")
_FINISH = Script("keystead.patterns", "scripts/fairqueue/finish.lua")
_BEAT = Script("keystead.patterns", "scripts/fairqueue/beat.lua")
_REQUEUE = Script("keystead.patterns", "scripts/fairqueue/requeue.lua")
_MOVE = Script("keystead.patterns", "scripts/fairqueue/move.lua")
_REMOVE_BY = Script("keystead.patterns", "scripts/fairqueue/remove_by.lua")
_COUNTED = ("ready", "delayed", "leased", "parked", "dead", "produced", "acked", "redelivered")
# Makes the token of every take different, so that a consumer cannot mistake an old lease of its own for a new one.
_TAKES = itertools.count(1)
_IDS = itertools.count()


class FairQueue(Generic[T]):
    """A queue of ``item`` values, fair between shards.

    ``shard`` names the variable that stands for the tenant in patterns. ``fields`` are what items can be found and
    removed by. ``parks`` maps a name to the pattern of park hashes. ``mark_seconds`` is how long an id is remembered
    after it was accepted or finished. ``quantum``, ``cap`` (items of one shard in consumers' hands), ``lease_seconds``
    and ``max_attempts`` are what holds until ``configure`` says otherwise.
    """

    def __init__(
        self, keyspace: Keyspace, name: str, *, item: Of[T], shard: str = "{shard_id}",
        keepalives: Keepalives | None = None, parks: Mapping[str, str] | None = None, fields: tuple[str, ...] = (),
        mark_seconds: float = 3600, quantum: int = 8, cap: int = 1000, lease_seconds: float = 60, max_attempts: int = 5,
        **facts: Unpack[PatternFacts],
    ) -> None:
        if quantum < 1 or cap < 1 or max_attempts < 0:
            raise DeclarationError(f"{name}: quantum and cap must be at least 1, max_attempts at least 0")
        if any(not field.isidentifier() for field in fields):
            raise DeclarationError(f"{name}: fields must be plain names, got {', '.join(fields)}")
        self.name = name
        self.codec: Codec[T] = codec_of(item)
        self.quantum, self.cap, self.max_attempts = quantum, cap, max_attempts
        self.lease_ms = _ms(lease_seconds)
        self.mark_ms = _ms(mark_seconds)
        self.keys = QueueKeys(
            keyspace, name, shard=shard, parks=parks or {}, fields=fields, mark_seconds=mark_seconds, facts=facts,
            keepalives=keepalives or Keepalives(keyspace, (name,), writers=facts.get("writers", ()),
                                                readers=facts.get("readers", ())),
        )
        self.blacklist = Blacklist(self.keys)
        self.parking = Parking(self.keys)
        self.shards = Shards(self.keys)
        self.upkeep = Upkeep(self.keys, max_attempts)

    def __repr__(self) -> str:
        return f"<fair queue {self.name}>"

    def new_id(self, now: float) -> str:
        """A fresh id: a UUID of version 7 that ends with the queue's number. Ids made by one process keep their order,
        so that items of one moment are served in the order in which they were named."""
        place = next(_IDS) & 0xFFF
        bits = (_ms(now) << 80) | (7 << 76) | (place << 64) | (2 << 62) | (uuid.uuid4().int & (1 << 62) - 1)
        return str(uuid.UUID(int=bits >> 8 << 8 | self.keys.number))

    # -- into the queue ----------------------------------------------------------------------------------------------

    def produce(
        self, on: ScriptRunner, shard: str, item_id: str, value: T, *, now: float, cost: int = 1, priority: int = 5,
        delay_seconds: float = 0.0, fields: Mapping[str, str] | None = None,
    ) -> Awaitable[Produced]:
        """Store an item, ready now or after a delay. Any number of repeats with one id stores it once.

        Priority 0..9, 9 first, orders items within a shard. ``cost`` is what the item takes of its shard's turn.
        """
        return self._produce(on, shard, item_id, value, now, cost, priority, delay_seconds, fields, "", 0, Produced)

    def store_and_consume(
        self, on: ScriptRunner, shard: str, item_id: str, value: T, consumer: str, *, now: float, cost: int = 1,
        priority: int = 5, fields: Mapping[str, str] | None = None, lease_seconds: float | None = None,
    ) -> "Awaitable[Leased[T] | Produced]":
        """Store an item that the caller holds at once, if nobody waits in the queue and the shard is below its cap.

        Otherwise a plain produce: it never overtakes. Safe if the caller dies: its lease lapses like any other.
        """
        holder = _holder(consumer)
        raw = self.codec.encode(value)

        def read(reply: bytes) -> Leased[T] | Produced:
            if reply != b"LEASED":
                return Produced(reply.decode())
            return Leased(shard, item_id, holder + ":0", 0, now, cost, raw, self.codec)

        lease_ms = self.lease_ms if lease_seconds is None else _ms(lease_seconds)
        return self._produce(on, shard, item_id, value, now, cost, priority, 0.0, fields, holder, lease_ms, read)

    def _produce(
        self, on: ScriptRunner, shard: str, item_id: str, value: T, now: float, cost: int, priority: int,
        delay_seconds: float, fields: Mapping[str, str] | None, consumer: str, lease_ms: int, read: Any,
    ) -> Awaitable[Any]:
        names = self.keys.names(on.layout)
        self._check(shard, item_id)
        raw_id = item_id.encode()
        packed = "".join(f"{name}\0{text}\0" for name, text in (fields or {}).items())
        for name, text in (fields or {}).items():
            if name not in self.keys.fields or "\0" in text or len(text) > 512:
                raise Invalid(f"{self.name}: {name} is not a declared field, or its value is too long or holds NUL")
        return _PRODUCE(
            on,
            keys=[*names.base, names.conf, names.gate, names.mark % raw_id, names.keepalive(item_id),
                  names.blacklist % shard.encode()],
            args=[*names.at(now), names.index, shard, item_id, self.codec.encode(value), cost, priority,
                  _ms(delay_seconds), self.mark_ms, self.quantum, self.cap, consumer, lease_ms, packed],
            decode=read if consumer else lambda reply: read(reply.decode()),
        )

    # -- out of the queue --------------------------------------------------------------------------------------------

    def take_batch(
        self, on: ScriptRunner, most: int, consumer: str, *, now: float, lease_seconds: float | None = None
    ) -> Awaitable[LeasedBatch[T]]:
        """Lease up to ``most`` items (at most 100, and about 1 MB of bodies) of the shards whose turn it is.

        Never empty while an unblocked shard below its cap has something ready. On a pipeline, what is due is woken
        first; on a connection only when something is, in a second round trip.
        """
        if isinstance(on, Pipeline):
            self.upkeep.restore(on, now=now)
            return self._take(on, most, consumer, now, lease_seconds)
        return self._take_and_wake(on, most, consumer, now, lease_seconds)

    async def take_most_urgent(
        self, on: ScriptRunner, consumer: str, *, now: float, lease_seconds: float | None = None
    ) -> Leased[T] | None:
        """Lease one item: the most urgent of the shard whose turn it is. Takes a connection, not a pipeline."""
        while True:
            batch = await self.take_batch(on, 1, consumer, now=now, lease_seconds=lease_seconds)
            if batch.items or not batch.again:
                return batch.items[0] if batch.items else None

    async def _take_and_wake(
        self, on: ScriptRunner, most: int, consumer: str, now: float, lease_seconds: float | None
    ) -> LeasedBatch[T]:
        batch = await self._take(on, most, consumer, now, lease_seconds)
        if batch.look_at > now:
            return batch
        restored = await self.upkeep.restore(on, now=now)
        left = most - len(batch.items)
        if not left:
            return LeasedBatch(batch.items, batch.look_at, batch.steps, batch.again, restored.dead)
        more = await self._take(on, left, consumer, now, lease_seconds)
        items, steps = (*batch.items, *more.items), batch.steps + more.steps
        return LeasedBatch(items, more.look_at, steps, more.again, restored.dead)

    def _take(
        self, on: ScriptRunner, most: int, consumer: str, now: float, lease_seconds: float | None
    ) -> Awaitable[LeasedBatch[T]]:
        names = self.keys.names(on.layout)
        holder = _holder(consumer)
        return _TAKE(
            on, keys=[*names.base, names.conf, names.parked, names.listed],
            args=[*names.at(now), names.alive, names.queue, names.number, names.blacklist, most, holder,
                  0 if lease_seconds is None else _ms(lease_seconds), self.lease_ms, self.quantum, self.cap],
            decode=lambda reply: batch_of(reply, holder, self.codec),
        )

    # -- what a holder may do ----------------------------------------------------------------------------------------

    def finish(
        self, on: ScriptRunner, item: Leased[T], *, now: float, actual_cost: float | None = None
    ) -> Awaitable[bool]:
        """End an item for good. False if it is not the caller's any more: then its results must not be used.

        ``actual_cost`` corrects what the shard paid, so that shares are fair in time spent, not only in items.
        """
        actual = {} if actual_cost is None else {item.id: actual_cost}
        return self._finish(on, [item], now, actual, lambda reply: reply == [1])

    def finish_all(
        self, on: ScriptRunner, items: Sequence[Leased[T]], *, now: float,
        actual_costs: Mapping[str, float] | None = None,
    ) -> Awaitable[list[bool]]:
        """``finish`` for up to 100 items in one step; one answer for each. ``actual_costs`` are by item id."""
        if not 1 <= len(items) <= MOST_ITEMS or len({(item.id, item.token) for item in items}) < len(items):
            raise Invalid(f"{self.name}: finish between 1 and {MOST_ITEMS} different items at once, got {len(items)}")
        return self._finish(on, items, now, actual_costs or {}, lambda reply: [each == 1 for each in reply])

    def _finish(self, on: ScriptRunner, items: Sequence[Leased[T]], now: float, actual: Mapping[str, float],
                read: Any) -> Awaitable[Any]:
        names = self.keys.names(on.layout)
        keys: list[bytes] = [*names.base, names.conf]
        index = names.index if self.keys.fields else b""
        args: list[Any] = [*names.at(now), index, names.mark, self.quantum, self.mark_ms]
        # The mark must outlive the item; of one that was stored lately enough is left.
        old = now - self.mark_ms / 2000
        for item in items:
            keys.append(names.keepalive(item.id))
            args += (item.shard, item.id, item.token, str(actual[item.id]) if item.id in actual else "",
                     "1" if item.stored_at < old else "")
        return _FINISH(on, keys=keys, args=args, decode=read)

    def beat(self, on: ScriptRunner, item: Leased[T], *, lease_seconds: float | None = None) -> Awaitable[bool]:
        """Renew the lease. False if the item is gone or someone else's: stop working on it."""
        names = self.keys.names(on.layout)
        lease_ms = self.lease_ms if lease_seconds is None else _ms(lease_seconds)
        return _BEAT(on, keys=[names.keepalive(item.id)], args=[item.token, lease_ms], decode=bool)

    def requeue(
        self, on: ScriptRunner, items: Sequence[Leased[T]], *, now: float, delay_seconds: float = 0.0,
        count_attempt: bool = True,
    ) -> Awaitable[list[Requeued]]:
        """Hand items back. A clean stop passes ``count_attempt=False``; counted too often, an item dies."""
        return self._requeue(on, items, now, _ms(delay_seconds), count_attempt)

    def bury(self, on: ScriptRunner, items: Sequence[Leased[T]], *, now: float) -> Awaitable[list[Requeued]]:
        """Give items up at once, whatever their attempts: their bodies do not decode, or no retry can help."""
        return self._requeue(on, items, now, -1, False)

    def _requeue(self, on: ScriptRunner, items: Sequence[Leased[T]], now: float, delay_ms: int,
                 count_attempt: bool) -> Awaitable[list[Requeued]]:
        names = self.keys.names(on.layout)
        of_each = [text for item in items for text in (item.shard, item.id, item.token)]
        return _REQUEUE(
            on, keys=[*names.base, names.conf, *(names.keepalive(item.id) for item in items)],
            args=[*names.at(now), names.dead, delay_ms, int(count_attempt), self.max_attempts, *of_each],
            decode=lambda reply: [Requeued(each.decode()) for each in reply],
        )

    # -- from outside ------------------------------------------------------------------------------------------------

    def length(self, on: Executor, shard: str | None = None) -> Awaitable[Counts]:
        """How many items are where: in all (from the counts), or of one shard (counted)."""
        names = self.keys.names(on.layout)
        if shard is None:
            return on.run(("HMGET", names.base[3], *_COUNTED),
                          lambda reply: Counts(*(int(each or 0) for each in reply)), repeat=True)
        self._check(shard)
        places = (names.ready, names.delayed, names.leased, names.dead)
        return on.run_block(
            [("ZCARD", place % shard.encode()) for place in places],
            lambda found: Counts(ready=found[0], delayed=found[1], leased=found[2], dead=found[3]), repeat=True,
        )

    def move(self, on: ScriptRunner, shard: str, item_id: str, target: str, *, now: float) -> Awaitable[bool]:
        """Give an item that is ready or delayed to another shard; it keeps priority, attempts and age.

        False if it is not waiting there. Between queues: produce on the target with the same id, then finish here.
        """
        self._check(shard, item_id)
        self._check(target)
        names = self.keys.names(on.layout)
        return _MOVE(on, keys=[*names.base, names.mark % item_id.encode()], decode=bool,
                     args=[*names.at(now), names.index, shard, item_id, target])

    def remove_by_value(
        self, on: ScriptRunner, field: str, value: str, *, now: float, most: int = 50
    ) -> Awaitable[tuple[tuple[str, str], ...]]:
        """Remove up to ``most`` items whose field has this value, wherever they are: ready, delayed, parked, dead, or
        leased (the holder's next beat is refused). Gives (shard, id) of each; call again until none comes."""
        return self._remove(on, field, f"{value}\0".encode(), now, most)

    def remove_by_prefix(
        self, on: ScriptRunner, field: str, prefix: str, *, now: float, most: int = 50
    ) -> Awaitable[tuple[tuple[str, str], ...]]:
        """The same for every value that begins with ``prefix``."""
        return self._remove(on, field, prefix.encode(), now, most)

    def _remove(self, on: ScriptRunner, field: str, lower: bytes, now: float, most: int) -> Awaitable[Any]:
        if field not in self.keys.fields or len(lower) < 2:
            raise Invalid(f"{self.name}: remove by a declared field ({', '.join(self.keys.fields)}) and a value")
        names = self.keys.names(on.layout)
        return _REMOVE_BY(
            on, keys=[*names.base, names.parked, names.index % field.encode(), names.order],
            args=[*names.at(now), names.alive, names.queue, names.number, names.index, names.dead,
                  names.park, b"[" + lower, b"[" + lower + b"\xff", most],
            decode=pairs,
        )

    def configure(
        self, on: Executor, *, quantum: int | None = None, cap: int | None = None, lease_seconds: float | None = None,
        max_attempts: int | None = None,
    ) -> Awaitable[None]:
        """Change settings at run time, for every process at once. The lease holds for takes that name none."""
        given = {"quantum": quantum, "cap": cap, "max_attempts": max_attempts,
                 "lease_ms": None if lease_seconds is None else _ms(lease_seconds)}
        return self._configure(on, given)

    def weigh(self, on: Executor, shard: str, *, weight: int | None = None, cap: int | None = None) -> Awaitable[None]:
        """Give one shard a weight (its share is that many times as large) or a cap of its own."""
        self._check(shard)
        return self._configure(on, {f"w:{shard}": weight, f"cap:{shard}": cap})

    def _configure(self, on: Executor, given: Mapping[str, int | None]) -> Awaitable[None]:
        changes = {name: value for name, value in given.items() if value is not None}
        if not changes or any(value < (0 if name == "max_attempts" else 1) for name, value in changes.items()):
            raise Invalid(f"{self.name}: give at least one setting, each at least 1")
        flat = [each for pair in changes.items() for each in pair]
        return on.run(("HSET", self.keys.names(on.layout).conf, *flat), _nothing, repeat=True)

    def set_gate(self, on: Executor, gate: QueueGate) -> Awaitable[None]:
        """Open or close the queue to producers, and set how much it may hold. Consumers are not affected."""
        if gate.state not in ("open", "paused", "drain"):
            raise Invalid(f"{self.name}: the gate is open, paused or drain, not {gate.state}")
        return self.keys.gate.at().set(on, gate)

    def _check(self, shard: str, item_id: str | None = None) -> None:
        if not SHARD.accepts(shard):
            raise Invalid(f"{self.name}: a shard is {SHARD.says}, got {shard!r}")
        if item_id is not None and not ITEM_ID.accepts(item_id):
            raise Invalid(f"{self.name}: an item id is {ITEM_ID.says}, got {item_id!r}")


def _holder(consumer: str) -> str:
    if not consumer or ":" in consumer:
        raise Invalid(f"a consumer needs a name without colons, got {consumer!r}")
    return f"{consumer}~{next(_TAKES):x}"


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _nothing(reply: object) -> None:
    return None
