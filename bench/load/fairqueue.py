"""Measure a fair queue: the cost of a lease as tenants grow, what small ones wait for, items per second in batches."""

import asyncio
import gc
import time
from collections.abc import Iterable
from importlib.metadata import version

from bench.load import loops, protocol
from keystead.engine import Valkey, connect
from keystead.keys import Keyspace
from keystead.patterns.fairqueue import FairQueue
from keystead.patterns.fairqueue_keys import Keepalives, QueueGate

BODY = b"x" * 200
BATCH = 50
NAMES = ("bench:few", "bench:many")
KEYSPACE = Keyspace("bench")
KEEPALIVES = Keepalives(KEYSPACE, NAMES)
NOW = time.time()


def queues(quantum: int) -> tuple[FairQueue[bytes], FairQueue[bytes]]:
    """Two queues on one server, so that both sides of a ratio are measured in the same seconds."""
    few, many = (
        FairQueue(KEYSPACE, name, item=bytes, keepalives=KEEPALIVES, quantum=quantum, cap=1_000_000, purpose="bench")
        for name in NAMES
    )
    return few, many


async def fill(valkey: Valkey, queue: FairQueue[bytes], shards: Iterable[str]) -> None:
    """One item for each name, in the order given; the gate is wide open."""
    await queue.set_gate(valkey, QueueGate(max_shard=10_000_000, max_total=100_000_000))
    names = list(shards)
    for at in range(0, len(names), 500):
        async with valkey.pipeline(transaction=False) as pipeline:
            for shard in names[at : at + 500]:
                queue.produce(pipeline, shard, queue.new_id(NOW), BODY, now=NOW)
            await pipeline.execute()


async def lease(valkey: Valkey, seconds: float, warm_up: float, tenants: int) -> dict[str, float]:
    """Wait for the lease of one item, with 10 tenants and with ``tenants``, turn about. Every visited tenant has two
    items or more, so that a lease finds the same situation on both sides."""
    few, many = queues(1)
    await fill(valkey, few, (f"t{number % 10}" for number in range(40_000)))
    await fill(valkey, many, (f"t{number}" for number in range(tenants)))
    await fill(valkey, many, (f"t{number}" for number in range(min(tenants, 20_000))))
    waits: dict[str, list[float]] = {few.name: [], many.name: []}
    for found, length in (({few.name: [], many.name: []}, warm_up), (waits, seconds)):
        gc.collect()
        until = time.perf_counter() + length
        while time.perf_counter() < until:
            for queue in (few, many):
                begin = time.perf_counter()
                item = await queue.take_most_urgent(valkey, "w", now=NOW)
                found[queue.name].append(time.perf_counter() - begin)
                assert item is not None, "the queue ran dry; a figure from it would mean nothing"
                assert await queue.finish(valkey, item, now=NOW)
    small, large = (loops.percentile(sorted(each), 0.5) for each in waits.values())
    return {"small_us": small * 1e6, "large_us": large * 1e6, "growth": large / small}


async def noisy(valkey: Valkey, items: int) -> dict[str, float]:
    """One tenant with ``items``, in the middle of being served; then 99 come with one each."""
    _, queue = queues(8)
    await fill(valkey, queue, ["big"] * items)
    await queue.take_batch(valkey, 13, "w", now=NOW)
    await fill(valkey, queue, (f"small{number}" for number in range(99)))
    waiting, before = 99, 0
    while waiting:
        for item in (await queue.take_batch(valkey, 1, "w", now=NOW)).items:
            before += item.shard == "big" if waiting else 0
            waiting -= item.shard != "big"
    return {"rounds": before / queue.quantum, "big_before": float(before)}


async def batches(valkey: Valkey, queue: FairQueue[bytes], seconds: float, workers: int) -> float:
    """Items per second through lease and finish, by some workers in batches of 50."""
    until = time.perf_counter() + seconds

    async def work(number: int) -> int:
        done = 0
        while time.perf_counter() < until:
            batch = await queue.take_batch(valkey, BATCH, f"w{number}", now=NOW)
            if not batch.items:
                raise SystemExit("the queue ran dry; a figure from it would mean nothing")
            done += sum(await queue.finish_all(valkey, batch.items, now=NOW))
        return done

    begin = time.perf_counter()
    done = sum(await asyncio.gather(*(work(number) for number in range(workers))))
    return done / (time.perf_counter() - begin)


async def throughput(valkey: Valkey, seconds: float, warm_up: float, quantum: int) -> dict[str, float]:
    """The same work with one tenant and with 100, turn about, four slices each."""
    one, hundred = queues(quantum)
    items = round((seconds + warm_up) * 45_000) + 2000
    await fill(valkey, one, ["t"] * items)
    await fill(valkey, hundred, (f"t{number % 100}" for number in range(items)))
    rates: dict[str, list[float]] = {one.name: [], hundred.name: []}
    for queue in (one, hundred):
        await batches(valkey, queue, warm_up / 2, 4)
    for _ in range(4):
        for queue in (one, hundred):
            gc.collect()
            rates[queue.name].append(await batches(valkey, queue, seconds / 4, 4))
    alone = await batches(valkey, hundred, seconds / 4, 1)
    single, many = (sorted(each)[len(each) // 2] for each in rates.values())
    rates_of_both = {"one_per_second": single, "hundred_per_second": many, "share": many / single}
    return rates_of_both | {"one_worker_per_second": alone}


async def measure(case: str, url: str, seconds: float, warm_up: float, quantum: int) -> None:
    valkey = await connect(url)
    size = 100_000 if seconds >= 1 else 3_000
    try:
        if case == "lease":
            figures = await lease(valkey, seconds, warm_up, size)
        elif case == "noisy":
            figures = await noisy(valkey, size)
        else:
            figures = await throughput(valkey, seconds, warm_up, quantum)
    finally:
        await valkey.aclose()
    protocol.answer(figures, {"library": f"keystead {version('keystead')}", "loop": "uvloop", "size": size})


def main() -> None:
    flags = protocol.parser()
    flags.add_argument("case", choices=("lease", "noisy", "throughput"))
    flags.add_argument("--quantum", type=int, default=8)
    given = flags.parse_args()
    import uvloop

    uvloop.run(measure(given.case, given.url, given.seconds, given.warm_up, given.quantum))


if __name__ == "__main__":
    main()
