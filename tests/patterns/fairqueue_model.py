"""A fair queue in plain Python: what the scripts must do, written once more without a server.

Times are unix milliseconds. ``woken`` is what the last wake put into the ring, in no promised order.
"""

import math
from collections import Counter
from dataclasses import dataclass, field

LAPSE_MS = 60_000


@dataclass
class Item:
    id: str
    stored: int
    cost: int
    priority: int
    value: str
    attempts: int = 0
    place: str = "ready"  # ready, delayed, leased, parked, dead
    until: int = 0  # delayed: due; leased: when to look; parked: deadline
    token: str = ""
    alive_until: int = 0
    park: str = ""

    @property
    def order(self) -> tuple[int, str]:
        return (9 - self.priority) * 2**42 + self.stored - 1577836800000, self.id


@dataclass
class Model:
    quantum: int
    cap: int
    lease: int
    max_attempts: int
    shards: dict[str, dict[str, Item]] = field(default_factory=dict)
    marks: set[str] = field(default_factory=set)
    ring: list[str] = field(default_factory=list)
    credit: dict[str, float] = field(default_factory=dict)
    debts: dict[str, tuple[float, int]] = field(default_factory=dict)
    asleep: dict[str, int] = field(default_factory=dict)
    turn: str | None = None
    blocked: dict[str, dict[str, int]] = field(default_factory=dict)
    weights: dict[str, int] = field(default_factory=dict)
    caps: dict[str, int] = field(default_factory=dict)
    epochs: Counter = field(default_factory=Counter)
    events: Counter = field(default_factory=Counter)

    def everything(self) -> list[tuple[str, Item]]:
        return [(shard, item) for shard, items in self.shards.items() for item in items.values()]

    def of(self, shard: str, place: str) -> list[Item]:
        found = [item for item in self.shards.get(shard, {}).values() if item.place == place]
        return sorted(found, key=lambda item: item.order if place == "ready" else (item.until, item.id))

    def where(self, item_id: str) -> tuple[str, Item] | None:
        return next(((shard, items[item_id]) for shard, items in self.shards.items() if item_id in items), None)

    def turn_of(self, shard: str) -> int:
        return self.quantum * self.weights.get(shard, 1)

    def is_blocked(self, shard: str, now: int) -> int | None:
        ends = [end for end in self.blocked.get(shard, {}).values() if end > now]
        return max(ends) if ends else None

    # -- where a shard belongs

    def rest(self, shard: str, blocked_until: int | None = None) -> None:
        looks = [items[0].until for place in ("leased", "delayed") if (items := self.of(shard, place))]
        look = min([*looks, *([blocked_until] if blocked_until else [])], default=None)
        self.asleep.pop(shard, None)
        if look is not None:
            self.asleep[shard] = look

    def place(self, shard: str, now: int) -> None:
        if shard in self.credit:
            return
        if not self.of(shard, "ready"):
            self.rest(shard)
            return
        owed, lapses = self.debts.pop(shard, (0, 0))
        self.credit[shard] = owed if lapses > now else 0
        self.ring.append(shard)
        self.asleep.pop(shard, None)

    # -- moves

    def produce(self, shard: str, item: Item, now: int, delay: int) -> str:
        if item.id in self.marks or item.id in self.shards.get(shard, {}):
            return "DUP"
        if item.cost > self.turn_of(shard):
            return "TOO_BIG"
        self.marks.add(item.id)
        if delay:
            item.place, item.until = "delayed", now + delay
        self.shards.setdefault(shard, {})[item.id] = item
        self.events["produced"] += 1
        self.place(shard, now)
        return "OK"

    def take(self, most: int, now: int) -> list[tuple[str, str, int]]:
        given: list[tuple[str, str, int]] = []
        first = True
        while self.ring and len(given) < most:
            shard = self.ring[0]
            ends = self.is_blocked(shard, now)
            held = self.of(shard, "leased")
            room = 0 if ends else max(0, self.caps.get(shard, self.cap) - len(held))
            credit = self.credit[shard] + (0 if first and self.turn == shard else self.turn_of(shard))
            first = False
            taken = 0
            ready = self.of(shard, "ready")
            for item in ready:
                if len(given) == most or taken == room or item.cost > credit:
                    break
                credit -= item.cost
                taken += 1
                item.place, item.until, item.alive_until = "leased", now + self.lease, now + self.lease
                given.append((shard, item.id, item.attempts))
            full = len(given) == most
            looks = [item.until for item in (*held, *self.of(shard, "delayed"))]
            due = any(look <= now for look in looks)
            self.turn = None
            if taken == len(ready) or taken == room or (due and not full):
                del self.credit[self.ring.pop(0)]
                if credit < 0 or due:
                    self.debts[shard] = credit, now + LAPSE_MS
                self.rest(shard, ends)
            else:
                self.credit[shard] = credit
                if full:
                    self.turn = shard
                else:
                    self.ring.append(self.ring.pop(0))
        return given

    def restore(self, now: int) -> tuple[int, list[tuple[str, str]]]:
        count, died = 0, []
        due = [shard for shard, look in self.asleep.items() if look <= now]
        for shard in due:
            for item in self.of(shard, "leased"):
                if item.until > now:
                    continue
                if item.alive_until > now:
                    item.until = item.alive_until
                    continue
                item.attempts += 1
                if item.attempts > self.max_attempts:
                    item.place, item.until = "dead", now
                    died.append((shard, item.id))
                else:
                    item.place = "ready"
                    self.events["redelivered"] += 1
                    count += 1
            self.place(shard, now)
        for shard in [shard for shard, look in self.asleep.items() if look <= now]:
            for item in self.of(shard, "delayed"):
                if item.until <= now:
                    item.place = "ready"
                    count += 1
            self.place(shard, now)
        for shard, items in self.shards.items():
            for item in items.values():
                if item.place == "parked" and item.until <= now:
                    item.place, item.park = "ready", ""
                    count += 1
                    self.place(shard, now)
        for shard, (_, lapses) in list(self.debts.items()):
            if lapses <= now:
                del self.debts[shard]
        return count, died

    def holds(self, item_id: str, token: str, now: int) -> tuple[str, Item] | None:
        found = self.where(item_id)
        if found and found[1].place == "leased" and found[1].token == token and found[1].alive_until > now:
            return found
        return None

    def finish(self, held: list[tuple[str, str, float | None]], now: int) -> list[bool]:
        answers, saved = [], {}
        for item_id, token, actual in held:
            found = self.holds(item_id, token, now)
            answers.append(found is not None)
            if found:
                shard, item = found
                saved[shard] = saved.get(shard, 0) + (0 if actual is None else item.cost - actual)
                del self.shards[shard][item_id]
                self.events["acked"] += 1
        for shard, correction in saved.items():
            if correction:
                inside = shard in self.credit
                owed = self.credit[shard] if inside else self.debts.get(shard, (0, 0))[0]
                turn = self.turn_of(shard)
                becomes = max(-4 * turn, min(owed + correction, max(owed, turn if inside else 0)))
                if inside:
                    self.credit[shard] = becomes
                elif becomes != owed:
                    self.debts[shard] = becomes, now + LAPSE_MS
            self.place(shard, now)
        return answers

    def requeue(self, item_id: str, token: str, now: int, delay: int, tries: int) -> str:
        found = self.holds(item_id, token, now)
        if not found:
            return "stale"
        shard, item = found
        item.attempts += tries
        if delay < 0 or (tries and item.attempts > self.max_attempts):
            item.place, item.until, answer = "dead", now, "dead"
        elif delay:
            item.place, item.until, answer = "delayed", now + delay, "delayed"
        else:
            item.place, answer = "ready", "ready"
        self.place(shard, now)
        return answer

    def park(self, item_id: str, token: str, park: str, now: int, deadline: int, seen: int) -> str:
        found = self.holds(item_id, token, now)
        if not found:
            return "STALE"
        shard, item = found
        if seen >= 0 and seen != self.epochs[park]:
            item.place, answer = "ready", "REQUEUED"
        else:
            item.place, item.park, item.until, answer = "parked", park, now + deadline, "PARKED"
        self.place(shard, now)
        return answer

    def wake(self, park: str, most: int, now: int) -> tuple[int, int]:
        self.epochs[park] += 1
        waiting = [(shard, item) for shard, item in self.everything() if item.park == park]
        return self._move_parked(waiting, most, now)

    def _move_parked(self, waiting: list[tuple[str, Item]], most: int, now: int) -> tuple[int, int]:
        for shard, item in waiting[:most]:
            item.place, item.park = "ready", ""
            self.place(shard, now)
        return min(most, len(waiting)), max(0, len(waiting) - most)

    def remove(self, value: str, now: int) -> set[tuple[str, str]]:
        gone = {(shard, item.id) for shard, item in self.everything() if item.value == value}
        for shard, item_id in gone:
            del self.shards[shard][item_id]
            if shard not in self.credit:
                self.asleep[shard] = now
        return gone

    def move(self, shard: str, item_id: str, target: str, now: int) -> bool:
        item = self.shards.get(shard, {}).get(item_id)
        if item is None or item.place not in ("ready", "delayed"):
            return False
        if shard != target:
            del self.shards[shard][item_id]
            self.shards.setdefault(target, {})[item_id] = item
            self.place(shard, now)
            self.place(target, now)
        return True

    def retry(self, shard: str, item_id: str, now: int) -> int:
        item = self.shards.get(shard, {}).get(item_id)
        retried = int(item is not None and item.place == "dead")
        if retried:
            item.place, item.attempts = "ready", 0
        self.place(shard, now)
        return retried

    def clear(self, shard: str, value: str, now: int) -> None:
        self.blocked.get(shard, {}).pop(value, None)
        self.place(shard, now)

    def counts(self) -> dict[str, int]:
        places = Counter(item.place for items in self.shards.values() for item in items.values())
        return {place: places[place] for place in ("ready", "delayed", "leased", "parked", "dead")} | {
            event: self.events[event] for event in ("produced", "acked", "redelivered")}

    def next_look(self) -> float:
        return min(self.asleep.values(), default=math.inf)
