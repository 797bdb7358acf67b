"""Random arrivals, weights, costs, blacklists, crashes, clock moves, parks and signals, beside a plain Python model."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keystead.engine import Valkey, connect
from keystead.patterns.fairqueue_values import Leased
from keystead.testing.clock import MovableClock

from .fairqueue_model import Item, Model
from .fairqueue_rooms import TASKS
from .fairqueue_state import check_invariants, read_state

# Everything happens on a grid much coarser than the time a test takes, so that real time changes nothing.
GRID = 20_000
SHARDS = ["a", "b", "c", "d"]
VALUES = ["red", "green"]
OPERATIONS = (
    *("produce", "take") * 3, *("finish", "advance") * 2, "crash", "beat", "requeue", "bury", "park", "signal",
    "remove", "blacklist", "clear", "move", "retry", "weigh", "repeat", "recount",
)


class World:
    """The queue on a server and its model, moved together."""

    def __init__(self, valkey: Valkey, clock: MovableClock) -> None:
        self.valkey = valkey
        self.clock = clock
        self.model = Model(quantum=8, cap=3, lease=60_000, max_attempts=2)
        self.held: list[Leased[bytes]] = []
        self.lost: list[Leased[bytes]] = []  # tokens of consumers that died: must never work again
        self.produced: list[tuple[str, str]] = []
        self.epochs: dict[str, int] = {}
        self.acked: set[str] = set()

    @property
    def now(self) -> float:
        return self.clock.now()

    @property
    def ms(self) -> int:
        return round(self.clock.now() * 1000)

    def pick(self, number: int) -> Leased[bytes] | None:
        return self.held.pop(number % len(self.held)) if self.held else None

    def park(self, number: int) -> Any:
        return TASKS.parking.at("session", f"s{number % 2}")

    async def produce(self, number: int) -> None:
        shard, cost = SHARDS[number % 4], 1 + number // 4 % 9
        priority, delay = (5, 5, 9, 0)[number // 40 % 4], (0, 0, 0, 1, 3)[number // 160 % 5] * GRID
        value = VALUES[number // 800 % 2]
        item_id = TASKS.new_id(self.now) if number % 3 else f"r_{TASKS.new_id(self.now)}.1"
        answer = await TASKS.produce(self.valkey, shard, item_id, b"body", now=self.now, cost=cost, priority=priority,
                                     delay_seconds=delay / 1000, fields={"request_id": value})
        item = Item(item_id, self.ms, cost, priority, value)
        assert answer.value == self.model.produce(shard, item, self.ms, delay)
        self.produced.append((shard, item_id))

    async def repeat(self, number: int) -> None:
        """A producer that never heard the answer asks again."""
        if self.produced:
            shard, item_id = self.produced[number % len(self.produced)]
            if item_id in self.model.marks:
                answer = await TASKS.produce(self.valkey, shard, item_id, b"again", now=self.now)
                assert answer.value == "DUP"

    async def take(self, number: int) -> None:
        await self.restore()
        most = (1, 2, 5, 20)[number % 4]
        async with self.valkey.pipeline(transaction=False) as pipeline:
            taken = TASKS.take_batch(pipeline, most, f"worker{number % 3}", now=self.now)
            await pipeline.execute()
        batch = await taken
        assert [(item.shard, item.id, item.attempt) for item in batch.items] == self.model.take(most, self.ms)
        for item in batch.items:
            self.model.shards[item.shard][item.id].token = item.token
            assert item.value == b"body"
        self.held += batch.items

    async def restore(self) -> None:
        before = list(self.model.ring)
        restored = await TASKS.upkeep.restore(self.valkey, now=self.now)
        count, died = self.model.restore(self.ms)
        assert (restored.items, sorted(restored.dead)) == (count, sorted(died))
        ring = [each.decode() for each in await self.valkey.lrange(TASKS.keys.names(self.valkey.layout).base[0], 0, -1)]
        assert ring[: len(before)] == before
        assert sorted(ring) == sorted(self.model.ring)
        self.model.ring = ring  # several that wake at one moment may come in any order

    async def finish(self, number: int) -> None:
        done = [item for item in (self.pick(number), self.pick(number // 7)) if item]
        if not done:
            return
        costs = {item.id: item.cost + (number // 3 % 30) - 5 for item in done} if number % 2 else {}
        answers = await TASKS.finish_all(self.valkey, done, now=self.now, actual_costs=costs)
        assert answers == self.model.finish([(item.id, item.token, costs.get(item.id)) for item in done], self.ms)
        for item, accepted in zip(done, answers, strict=True):
            assert not (accepted and item.id in self.acked), "an id is finished at most once"
            if accepted:
                self.acked.add(item.id)

    async def crash(self, number: int) -> None:
        self.lost += self.held
        self.held = []

    async def advance(self, number: int) -> None:
        self.clock.advance((1, 1, 2, 4)[number % 4] * GRID / 1000)

    async def beat(self, number: int) -> None:
        item = self.pick(number)
        if item:
            found = self.model.holds(item.id, item.token, self.ms)
            assert await TASKS.beat(self.valkey, item) == (found is not None)
            if found:
                found[1].alive_until = self.ms + 60_000
                self.held.append(item)

    async def requeue(self, number: int) -> None:
        item = self.pick(number)
        if item:
            delay, tries = (0, 2)[number // 2 % 2] * GRID, number % 2
            [answer] = await TASKS.requeue(self.valkey, [item], now=self.now, delay_seconds=delay / 1000,
                                           count_attempt=bool(tries))
            assert answer.value == self.model.requeue(item.id, item.token, self.ms, delay, tries)

    async def bury(self, number: int) -> None:
        item = self.pick(number)
        if item:
            [answer] = await TASKS.bury(self.valkey, [item], now=self.now)
            assert answer.value == self.model.requeue(item.id, item.token, self.ms, -1, 0)

    async def park_one(self, number: int) -> None:
        item, park = self.pick(number), self.park(number)
        seen = self.epochs.setdefault(park.logical, await TASKS.parking.epoch(self.valkey, park))
        if item is None:
            self.epochs[park.logical] = await TASKS.parking.epoch(self.valkey, park)
            return
        deadline = (1, 5)[number // 2 % 2] * GRID
        if number % 3:
            answer = await TASKS.parking.park_or_requeue(self.valkey, item, park, seen, now=self.now,
                                                         deadline_seconds=deadline / 1000)
        else:
            seen = -1
            answer = await TASKS.parking.park(self.valkey, item, park, now=self.now, deadline_seconds=deadline / 1000)
        assert answer.value == self.model.park(item.id, item.token, park.logical, self.ms, deadline, seen)

    async def signal(self, number: int) -> None:
        park, before = self.park(number), len(self.model.ring)
        woken = await TASKS.parking.wake_returning(self.valkey, park, "request_id", 100, now=self.now)
        assert (woken.moved, woken.left) == self.model.wake(park.logical, 100, self.ms)
        assert len(woken.values) == woken.moved
        await self.same_new_tail(before)

    async def same_new_tail(self, before: int) -> None:
        ring = [each.decode() for each in await self.valkey.lrange(TASKS.keys.names(self.valkey.layout).base[0], 0, -1)]
        assert ring[:before] == self.model.ring[:before]
        assert sorted(ring) == sorted(self.model.ring)
        self.model.ring = ring

    async def remove(self, number: int) -> None:
        if number % 3 == 0:
            value = VALUES[number % 2]
            remove: Callable[..., Any] = TASKS.remove_by_value if number % 2 else TASKS.remove_by_prefix
            gone = await remove(self.valkey, "request_id", value if number % 2 else value[:3], now=self.now, most=1000)
            assert set(gone) == self.model.remove(value, self.ms)

    async def blacklist(self, number: int) -> None:
        shard, value, length = SHARDS[number % 4], ("quota", "admin")[number // 4 % 2], (1, 3)[number // 8 % 2] * GRID
        await TASKS.blacklist.add(self.valkey, [(shard, value, length / 1000)], now=self.now)
        self.model.blocked.setdefault(shard, {})[value] = self.ms + length
        reasons = await TASKS.blacklist.of(self.valkey, shard, now=self.now)
        assert {each.value for each in reasons} == {
            name for name, end in self.model.blocked[shard].items() if end > self.ms}

    async def clear(self, number: int) -> None:
        shard, value = SHARDS[number % 4], ("quota", "admin")[number // 4 % 2]
        await TASKS.blacklist.clear(self.valkey, shard, value, now=self.now)
        self.model.clear(shard, value, self.ms)

    async def move(self, number: int) -> None:
        if self.produced:
            shard, item_id = self.produced[number % len(self.produced)]
            target = SHARDS[number // 7 % 4]
            moved = await TASKS.move(self.valkey, shard, item_id, target, now=self.now)
            assert moved == self.model.move(shard, item_id, target, self.ms)

    async def retry(self, number: int) -> None:
        dead = [(shard, item.id) for shard in SHARDS for item in self.model.of(shard, "dead")]
        if dead:
            shard, item_id = dead[number % len(dead)]
            assert await TASKS.upkeep.retry_dead(self.valkey, shard, [item_id], now=self.now) == self.model.retry(
                shard, item_id, self.ms)

    async def weigh(self, number: int) -> None:
        shard, weight, cap = SHARDS[number % 4], 1 + number // 4 % 3, 2 + number // 12 % 4
        await TASKS.weigh(self.valkey, shard, weight=weight, cap=cap)
        self.model.weights[shard], self.model.caps[shard] = weight, cap

    async def recount(self, number: int) -> None:
        counts = await TASKS.upkeep.recount(self.valkey)
        assert counts is not None
        real, model = await TASKS.length(self.valkey), self.model.counts()
        assert {name: getattr(real, name) for name in model} == model

    async def compare(self) -> None:
        state = await read_state(self.valkey, TASKS, SHARDS)
        check_invariants(state)
        model = self.model
        assert state.ring == model.ring
        assert state.credit == pytest.approx(model.credit)
        assert state.turn == model.turn
        assert {name for name in state.asleep if not name.startswith("~")} == set(model.asleep)
        assert state.places == {shard: {item.id: item.place for item in model.shards.get(shard, {}).values()}
                                for shard in SHARDS}
        assert {name: owed for name, (owed, lapses) in state.debts.items() if lapses > self.ms} == pytest.approx(
            {name: owed for name, (owed, lapses) in model.debts.items() if lapses > self.ms})
        for shard in SHARDS:
            # A cap lowered at run time takes nothing away from holders, so only fresh leases are bound by it.
            assert len(model.of(shard, "leased")) <= 5
        for item in self.lost:
            found = model.holds(item.id, item.token, self.ms)
            assert found is None or found[1].token == item.token

    async def run(self, operations: list[tuple[str, int]]) -> None:
        for name, number in operations:
            await getattr(self, "park_one" if name == "park" else name)(number)
            await self.compare()
        await self.drain()

    async def drain(self) -> None:
        """After quiet nothing is left: every item is finished or removed, and the counts are true."""
        self.clock.advance(500)
        for shard in SHARDS:
            for value in ("quota", "admin"):
                await TASKS.blacklist.clear(self.valkey, shard, value, now=self.now)
        for _ in range(200):
            batch = await TASKS.take_batch(self.valkey, 20, "last", now=self.now)
            if not batch.items and not batch.again:
                break
            assert all(await TASKS.finish_all(self.valkey, batch.items, now=self.now))
            self.acked |= {item.id for item in batch.items}
        for item in self.lost:
            assert not await TASKS.beat(self.valkey, item), "the token of a dead consumer must not work"
        for shard in SHARDS:
            dead = [item_id for item_id, _ in await TASKS.upkeep.dead(self.valkey, shard)]
            if dead:
                await TASKS.upkeep.retry_dead(self.valkey, shard, dead, now=self.now)
        while (batch := await TASKS.take_batch(self.valkey, 20, "last", now=self.now)).items:
            await TASKS.finish_all(self.valkey, batch.items, now=self.now)
        self.clock.advance(600_000)
        await TASKS.upkeep.restore(self.valkey, now=self.now)
        left = await read_state(self.valkey, TASKS, SHARDS)
        check_invariants(left)
        assert not any(left.places.values()) and not left.ring and not left.asleep and not left.debts
        assert not any(left.stat.get(place) for place in ("ready", "delayed", "leased", "parked", "dead"))


programs = st.lists(st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 10_000)), min_size=15, max_size=100)


async def _one_example(url: str, clock: MovableClock, flush: Callable[[], None],
                       operations: list[tuple[str, int]]) -> None:
    flush()
    valkey = await connect(url)
    try:
        await World(valkey, clock).run(operations)
    finally:
        await valkey.aclose()


@given(programs)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_queue_behaves_like_its_model(valkey_server: Any, operations: list[tuple[str, int]]) -> None:
    valkey_server.ensure_running()
    clock = MovableClock([valkey_server], now=1_790_000_000.0)
    asyncio.run(_one_example(valkey_server.url, clock, lambda: valkey_server.call("FLUSHALL"), operations))


@pytest.mark.cluster
@pytest.mark.xdist_group("cluster")
@given(programs)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
def test_queue_behaves_like_its_model_on_a_cluster(valkey_cluster: Any, operations: list[tuple[str, int]]) -> None:
    valkey_cluster.heal()
    clock = MovableClock(valkey_cluster.primaries(), now=1_790_000_000.0)
    asyncio.run(_one_example(valkey_cluster.url, clock, valkey_cluster.flush, operations))
