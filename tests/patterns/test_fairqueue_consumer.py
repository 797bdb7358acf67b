"""A worker on a fair queue: batches, heartbeats, the bell, cancellation and a clean stop."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from keystead.clock import SystemClock
from keystead.engine import Valkey, connect
from keystead.keys import Keyspace
from keystead.patterns.fairqueue import FairQueue
from keystead.patterns.fairqueue_consumer import FairConsumer
from keystead.patterns.fairqueue_values import Leased
from keystead.settings import ValkeySettings

QUEUE: FairQueue[dict[str, int]] = FairQueue(
    Keyspace("consumer"), "consumer:work", item=dict[str, int], fields=("request_id",), max_attempts=1, purpose="work")
CLOCK = SystemClock()


async def produce(valkey: Valkey, shard: str, number: int, **more: Any) -> str:
    item_id = QUEUE.new_id(CLOCK.now())
    await QUEUE.produce(valkey, shard, item_id, {"n": number}, now=CLOCK.now(), **more)
    return item_id


async def until(true: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(30):
        while not await true():
            await asyncio.sleep(0.02)


@asynccontextmanager
async def running(valkey: Valkey, handle: Any, **more: Any) -> AsyncIterator[FairConsumer[dict[str, int]]]:
    options = {"name": "w1", "lease_seconds": 4.0, "retry_seconds": 0.05} | more
    consumer = FairConsumer(QUEUE, valkey, CLOCK, handle, **options)
    task = asyncio.create_task(consumer.run())
    try:
        yield consumer
    finally:
        consumer.stop()
        async with asyncio.timeout(30):
            await task


async def test_items_are_handled_as_soon_as_they_are_produced(server: Valkey) -> None:
    seen: list[int] = []

    async def handle(item: Leased[dict[str, int]]) -> None:
        seen.append(item.value["n"])

    async with running(server, handle, idle_seconds=30.0):
        await asyncio.sleep(0.1)  # asleep on the bell by now; otherwise the test would show less, never fail
        for number in range(20):
            await produce(server, f"t{number % 3}", number)

        async def all_seen() -> bool:
            return len(seen) == 20

        await until(all_seen)
    assert sorted(seen) == list(range(20))
    counts = await QUEUE.length(server)
    assert (counts.acked, counts.leased, counts.ready) == (20, 0, 0)


async def test_long_work_keeps_its_lease(server: Valkey) -> None:
    started: list[int] = []

    async def handle(item: Leased[dict[str, int]]) -> float:
        started.append(item.attempt)
        await asyncio.sleep(4.0)
        return 3.0

    async with running(server, handle, lease_seconds=3.0):
        await produce(server, "a", 1)

        async def done() -> bool:
            return (await QUEUE.length(server)).acked == 1

        await until(done)
    assert started == [0]


async def test_failing_item_is_tried_again_later_and_dies(server: Valkey) -> None:
    attempts: list[int] = []
    told: list[tuple[str, str]] = []

    async def handle(item: Leased[dict[str, int]]) -> None:
        attempts.append(item.attempt)
        raise RuntimeError("no")

    async def tell(given_up: Sequence[tuple[str, str]]) -> None:
        told.extend(given_up)

    async with running(server, handle, idle_seconds=0.2, dead=tell):
        item_id = await produce(server, "a", 1)

        async def dead() -> bool:
            return bool(told)

        await until(dead)
    assert attempts == [0, 1]
    assert told == [("a", item_id)]
    assert (await QUEUE.length(server)).dead == 1


async def test_consumer_outlives_a_server_that_is_away_when_work_is_done(valkey: Valkey, fault_proxy: Any) -> None:
    """What could not be finished comes again, and the consumer is there to take it."""
    proxy = await fault_proxy()
    client = await connect(proxy.url, settings=ValkeySettings(outage_seconds=0.5))
    begun, away, attempts = asyncio.Event(), asyncio.Event(), []

    async def handle(item: Leased[dict[str, int]]) -> None:
        attempts.append(item.attempt)
        begun.set()
        await away.wait()

    async def unfinished() -> bool:
        return any("fairqueue_not_finished" in record for record in told)

    async def finished() -> bool:
        return (await QUEUE.length(valkey)).acked == 1

    told: list[str] = []
    watch = logging.Handler()
    watch.emit = lambda record: told.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("keystead.patterns").addHandler(watch)
    try:
        async with running(client, handle, lease_seconds=5.0, idle_seconds=0.2):
            await produce(valkey, "a", 1)
            await asyncio.wait_for(begun.wait(), 30)
            await proxy.refuse()
            proxy.cut()
            away.set()
            await until(unfinished)
            await proxy.restore()
            await until(finished)
    finally:
        logging.getLogger("keystead.patterns").removeHandler(watch)
        await client.aclose()
    assert attempts == [0, 1]


async def test_removed_item_stops_its_handler(server: Valkey) -> None:
    outcome: list[str] = []
    begun = asyncio.Event()

    async def handle(item: Leased[dict[str, int]]) -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            outcome.append("cancelled")
            raise

    async with running(server, handle):
        await produce(server, "a", 1, fields={"request_id": "r1"})
        await asyncio.wait_for(begun.wait(), 30)
        assert len(await QUEUE.remove_by_value(server, "request_id", "r1", now=CLOCK.now())) == 1

        async def told() -> bool:
            return outcome == ["cancelled"]

        await until(told)
    assert (await QUEUE.length(server)).leased == 0


async def test_item_that_does_not_decode_is_buried(server: Valkey) -> None:
    item_id = await produce(server, "a", 1)
    await server.hset(QUEUE.keys.names(server.layout).items % b"a", item_id, b"{broken")
    handled: list[str] = []

    async def handle(item: Leased[dict[str, int]]) -> None:
        handled.append(item.id)

    async with running(server, handle):
        async def dead() -> bool:
            return (await QUEUE.length(server)).dead == 1

        await until(dead)
    assert handled == []
    assert [each for each, _ in await QUEUE.upkeep.dead(server, "a")] == [item_id]


async def test_cancelled_worker_hands_back_what_it_holds(server: Valkey) -> None:
    begun = asyncio.Event()

    async def handle(item: Leased[dict[str, int]]) -> None:
        begun.set()
        await asyncio.sleep(60)

    item_id = await produce(server, "a", 1)
    task = asyncio.create_task(FairConsumer(QUEUE, server, CLOCK, handle, name="w1").run())
    await asyncio.wait_for(begun.wait(), 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    item = await QUEUE.take_most_urgent(server, "w2", now=CLOCK.now())
    assert item and (item.id, item.attempt) == (item_id, 0)
