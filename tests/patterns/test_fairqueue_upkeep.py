"""Sweeps, the dead, and true counts."""

from typing import Any

import pytest

from keystead.engine import Valkey
from keystead.patterns.fairqueue_upkeep import Upkeep
from keystead.patterns.fairqueue_values import Counts

from .fairqueue_rooms import REQUESTS, TASKS
from .test_fairqueue import NOW, fill


async def test_sweep_brings_back_what_is_due_when_nobody_takes(valkey: Valkey, moving_clock: Any) -> None:
    now = moving_clock.now
    await fill(valkey, TASKS, "lapsed", 2, now=now())
    await TASKS.take_batch(valkey, 2, "dies", now=now())
    await fill(valkey, TASKS, "delayed", 3, now=now(), delay_seconds=10)
    await fill(valkey, TASKS, "parked", 1, now=now())
    item = await TASKS.take_most_urgent(valkey, "w", now=now())
    assert item
    await TASKS.parking.park(valkey, item, TASKS.parking.at("session", "s1"), now=now(), deadline_seconds=20)
    assert (await TASKS.upkeep.restore(valkey, now=now())).items == 0
    moving_clock.advance(61)
    assert (await TASKS.upkeep.restore(valkey, now=now())).items == 6
    assert (await TASKS.length(valkey)).ready == 6
    assert (await TASKS.upkeep.restore(valkey, now=now())).items == 0


async def test_a_sweep_does_a_bounded_amount_and_the_rest_next_time(valkey: Valkey) -> None:
    await fill(valkey, REQUESTS, "late", 500, delay_seconds=10)
    assert (await REQUESTS.upkeep.restore(valkey, now=NOW + 20)).items == 100
    served = 0
    while batch := (await REQUESTS.take_batch(valkey, 3, "w", now=NOW + 20)).items:
        served += sum(await REQUESTS.finish_all(valkey, batch, now=NOW + 20))
    assert served == 500


async def test_dead_are_kept_a_week_and_at_most_a_thousand(valkey: Valkey, moving_clock: Any) -> None:
    now = moving_clock.now
    await REQUESTS.weigh(valkey, "a", cap=2000)
    ids = await fill(valkey, REQUESTS, "a", 1050, now=now(), fields={"sig": "s"})
    while (batch := await REQUESTS.take_batch(valkey, 100, "w", now=now())).items:
        await REQUESTS.bury(valkey, batch.items, now=now())
    await REQUESTS.upkeep.restore(valkey, now=now())
    kept = [item_id for item_id, _ in await REQUESTS.upkeep.dead(valkey, "a", 2000)]
    assert len(kept) == 1000 and set(kept) < set(ids)
    assert await valkey.hlen(REQUESTS.keys.names(valkey.layout).items % b"a") == 3 * 1000
    moving_clock.advance(6.6 * 86400)
    for _ in range(6):
        await REQUESTS.upkeep.restore(valkey, now=now())
    assert (await REQUESTS.length(valkey)).dead == 0
    assert not await valkey.exists(REQUESTS.keys.names(valkey.layout).items % b"a")
    assert not await valkey.exists(REQUESTS.keys.names(valkey.layout).index % b"sig")


async def test_recount_mends_wrong_counts(server: Valkey) -> None:
    await fill(server, REQUESTS, "a", 5)
    await fill(server, REQUESTS, "b", 2, delay_seconds=50)
    batch = await REQUESTS.take_batch(server, 2, "w", now=NOW)
    await REQUESTS.bury(server, batch.items[:1], now=NOW)
    true = await REQUESTS.length(server)
    await server.hset(REQUESTS.keys.names(server.layout).base[3], mapping={"ready": 99, "dead": 7})
    assert await REQUESTS.upkeep.recount(server, fix=False) == Counts(ready=3, delayed=2, leased=1, dead=1)
    assert (await REQUESTS.length(server)).ready == 99
    await REQUESTS.upkeep.recount(server)
    assert await REQUESTS.length(server) == true


@pytest.mark.parametrize("when", ["listed", "counted"])
async def test_recount_is_not_misled_by_what_comes_meanwhile(
    valkey: Valkey, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """A shard joins after the shards were listed, or after they were counted and before the counts are written."""
    await fill(valkey, REQUESTS, "a", 5)
    step = Upkeep._shards if when == "listed" else Upkeep._recounted
    calls = 0

    async def and_then_one_joins(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        answer = await step(*arguments)
        if calls == (1 if when == "listed" else 3):
            await fill(valkey, REQUESTS, "late", 2)
        return answer

    monkeypatch.setattr(Upkeep, step.__name__, and_then_one_joins)
    counts = await REQUESTS.upkeep.recount(valkey)
    assert counts is not None and counts.ready == 7
    assert (await REQUESTS.length(valkey)).ready == 7


async def test_deficits_are_told_in_pages(server: Valkey) -> None:
    async with server.pipeline(transaction=False) as pipeline:
        for number in range(700):
            REQUESTS.produce(pipeline, f"s{number}", REQUESTS.new_id(NOW), b"x", now=NOW)
        await pipeline.execute()
    seen: dict[str, float] = {}
    cursor, pages = 0, 0
    while pages == 0 or cursor:
        cursor, page = await REQUESTS.upkeep.deficits(server, cursor, 50)
        seen |= page
        pages += 1
    assert len(seen) == 700 and set(seen.values()) == {0.0} and pages > 1
