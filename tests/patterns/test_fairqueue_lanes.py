"""One queue over several slots."""

from collections import Counter

import pytest

from keystead.engine import Valkey
from keystead.errors import DeclarationError
from keystead.keys import Keyspace, Layout, Registry
from keystead.patterns.fairqueue_keys import Keepalives
from keystead.patterns.fairqueue_lanes import FairLanes, lane_names
from keystead.testing.clock import MovableClock

NOW = 1_790_000_000.0
ROOM = Keyspace("lanes")
KEEPALIVES = Keepalives(ROOM, lane_names("work", 3))
LANES = FairLanes(ROOM, "work", lanes=3, item=bytes, keepalives=KEEPALIVES, quantum=1, purpose="work",
                  parks={"session": "work:park:{lane}:{session_id}"})


async def test_lanes_act_as_one_fair_queue(server: Valkey) -> None:
    shards = [f"t{number}" for number in range(40)]
    for shard in shards:
        for _ in range(5):
            queue = LANES.of(shard)
            await queue.produce(server, shard, queue.new_id(NOW), b"x", now=NOW)
    first: dict[str, int] = {}
    served: Counter[str] = Counter()
    while True:
        queue, batch = await LANES.take_batch(server, 2, "w", now=NOW)
        if not batch.items:
            break
        for item in batch.items:
            assert queue is LANES.of(item.shard)
            first.setdefault(item.shard, served.total())
            served[item.shard] += 1
        await queue.finish_all(server, batch.items, now=NOW)
    assert served == dict.fromkeys(shards, 5)
    assert max(first.values()) <= 40 * 1.5 * LANES.imbalance(), "every tenant has its first item early"
    registry = Registry([ROOM], server.layout)
    keys = [key for node in await server.nodes() for key in await node.keys("*")]
    assert keys and all(registry.resolve(key) for key in keys)
    if server.layout is Layout.TAGGED:
        assert {key.partition(b"}")[0] for key in keys} == {b"{work#0", b"{work#1", b"{work#2"}


async def test_lanes_without_items_still_tell_of_their_dead_and_their_next_moment(
    valkey: Valkey, moving_clock: MovableClock
) -> None:
    """Whichever lane is visited last: what the others said must not be forgotten."""
    space, now = Keyspace("lanes"), moving_clock.now
    lanes = FairLanes(space, "few", lanes=3, item=bytes, max_attempts=0, lease_seconds=60, purpose="work")
    by_lane = {lanes.of(f"t{number}").name: f"t{number}" for number in range(40)}
    ids = []
    for queue in lanes.lanes:
        ids.append((by_lane[queue.name], queue.new_id(now())))
        await queue.produce(valkey, *ids[-1], b"x", now=now())
        assert (await queue.take_batch(valkey, 1, "w", now=now())).items
    moving_clock.advance(61)
    _, batch = await lanes.take_batch(valkey, 1, "w", now=now())
    assert sorted(batch.dead) == sorted(ids), "its holder is gone, and no further attempt is allowed"
    for place, queue in enumerate(lanes.lanes):
        shard = by_lane[queue.name]
        await queue.produce(valkey, shard, queue.new_id(now()), b"x", now=now(), delay_seconds=10 + place)
    for _ in range(6):
        _, batch = await lanes.take_batch(valkey, 1, "w", now=now())
        assert batch.look_at == pytest.approx(now() + 10, abs=0.5)


def test_what_lanes_cannot_be_is_refused() -> None:
    with pytest.raises(DeclarationError, match="lanes"):
        FairLanes(Keyspace("x"), "work", lanes=1, item=bytes)
    with pytest.raises(DeclarationError, match="lane"):
        FairLanes(Keyspace("x"), "work", lanes=2, item=bytes, parks={"session": "work:park:{session_id}"})
