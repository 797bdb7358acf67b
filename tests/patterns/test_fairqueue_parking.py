"""Items that wait for a signal outside the queue."""

import itertools
import json
from typing import Any

import pytest

from keystead.engine import Valkey
from keystead.errors import DeclarationError, Invalid
from keystead.patterns.fairqueue_values import Leased, Parked, Woken

from .fairqueue_rooms import REQUESTS, TASKS
from .test_fairqueue import NOW, fill

SIGNATURE = ("acme", "batch", "app1", "user1", "0" * 32)


async def take(server: Valkey, shard: str = "acme", now: float = NOW, **more: Any) -> Leased[bytes]:
    await fill(server, TASKS, shard, 1, now=now, **more)
    item = await TASKS.take_most_urgent(server, "w", now=now)
    assert item
    return item


async def test_parked_item_waits_outside_and_comes_back_with_the_signal(server: Valkey) -> None:
    item = await take(server, fields={"request_id": "r1"})
    park = TASKS.parking.at("signature", *SIGNATURE)
    assert await TASKS.parking.park(server, item, park, now=NOW) is Parked.PARKED
    assert not await TASKS.beat(server, item) and not await TASKS.finish(server, item, now=NOW)
    counts = await TASKS.length(server)
    assert (counts.leased, counts.parked) == (0, 1), "no in-flight slot is used"
    kept = await server.hgetall(park.name(server.layout))
    assert json.loads(kept[item.id.encode()]) == {
        "shard": "acme", "token_attempt": 0, "parked_at": NOW * 1000, "deadline": (NOW + 300) * 1000, "prio": 5}
    assert 890_000 < await server.pttl(park.name(server.layout)) <= 900_000
    assert await TASKS.take_most_urgent(server, "w", now=NOW) is None
    woken = await TASKS.parking.wake_returning(server, park, "request_id", now=NOW)
    assert woken == Woken(1, 0, ("r1",))
    again = await TASKS.take_most_urgent(server, "w", now=NOW)
    assert again and (again.id, again.attempt) == (item.id, 0), "not counted as an attempt"


@pytest.mark.parametrize("order", sorted(set(itertools.permutations(["read", "park", "signal"]))))
async def test_no_order_of_park_and_signal_loses_the_item(valkey: Valkey, order: tuple[str, ...]) -> None:
    """The item ends ready, or the signal came before the epoch was read and the item waits for the next."""
    item, park, seen = await take(valkey), TASKS.parking.at("session", "s1"), 0
    for step in order:
        if step == "read":
            seen = await TASKS.parking.epoch(valkey, park)
        elif step == "signal":
            await TASKS.parking.wake(valkey, park, now=NOW)
        else:
            answer = await TASKS.parking.park_or_requeue(valkey, item, park, seen, now=NOW)
    signal_before_read = order.index("signal") < order.index("read")
    found = await TASKS.take_most_urgent(valkey, "w", now=NOW)
    if order.index("park") < order.index("read"):
        assert found or answer is Parked.PARKED  # parked on a stale epoch of 0, which a real worker never does
    elif signal_before_read:
        assert answer is Parked.PARKED and found is None
    else:
        assert found and found.id == item.id


async def test_park_ends_at_its_deadline(valkey: Valkey, moving_clock: Any) -> None:
    now = moving_clock.now
    item = await take(valkey, now=now())
    await TASKS.parking.park(valkey, item, TASKS.parking.at("session", "s1"), now=now(), deadline_seconds=100)
    batch = await TASKS.take_batch(valkey, 1, "w", now=now())
    assert not batch.items and batch.look_at == pytest.approx(now() + 100, abs=0.01)
    moving_clock.advance(101)
    again = await TASKS.take_most_urgent(valkey, "w", now=now())
    assert again and (again.id, again.attempt) == (item.id, 0)
    assert (await TASKS.length(valkey)).parked == 0
    with pytest.raises(DeclarationError, match="deadline"):
        TASKS.parking.park(valkey, again, TASKS.parking.at("session", "s1"), now=now(), deadline_seconds=901)


async def test_crowded_park_sends_the_item_round_again(valkey: Valkey) -> None:
    park = TASKS.parking.at("session", "s1")
    async with valkey.pipeline(transaction=False) as pipeline:
        for number in range(1001):
            pipeline.hset(park.name(valkey.layout), f"x{number}", json.dumps({"shard": "x", "parked_at": 1}))
        await pipeline.execute()
    item = await take(valkey)
    assert await TASKS.parking.park(valkey, item, park, now=NOW) is Parked.DELAYED
    assert await TASKS.take_most_urgent(valkey, "w", now=NOW) is None
    assert await TASKS.take_most_urgent(valkey, "w", now=NOW + 1)


async def test_signal_moves_the_longest_waiting_first(server: Valkey) -> None:
    park, ids = TASKS.parking.at("session", "s1"), []
    for number in range(3):
        item = await take(server, f"s{number}")
        await TASKS.parking.park(server, item, park, now=NOW + number)
        ids.append(item.id)
    assert await TASKS.parking.wake(server, park, 2, now=NOW) == Woken(2, 1)
    assert [item.id for item in (await TASKS.take_batch(server, 10, "w", now=NOW)).items] == ids[:2]
    assert await TASKS.parking.wake(server, park, 0, now=NOW) == Woken(0, 1), "only a signal"


async def test_parks_go_on_when_someone_deleted_what_is_parked(server: Valkey) -> None:
    park = TASKS.parking.at("session", "s1")
    for shard in ("a", "b"):
        await TASKS.parking.park(server, await take(server, shard), park, now=NOW, deadline_seconds=10)
    names = TASKS.keys.names(server.layout)
    await server.delete(names.items % b"a")
    assert (await TASKS.parking.wake(server, park, now=NOW)).moved == 1
    assert [item.shard for item in (await TASKS.take_batch(server, 10, "w", now=NOW)).items] == ["b"]
    restored = await TASKS.upkeep.restore(server, now=NOW + 11)
    assert restored.items == 0 and await server.zcard(names.parked) == await server.zcard(names.order) == 0


async def test_park_with_an_old_token_does_nothing(server: Valkey) -> None:
    item = await take(server)
    await TASKS.requeue(server, [item], now=NOW)
    assert await TASKS.parking.park(server, item, TASKS.parking.at("session", "s1"), now=NOW) is Parked.STALE
    with pytest.raises(Invalid, match="declares no park"):
        REQUESTS.parking.at("session", "s1")
