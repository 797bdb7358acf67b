"""Measure storing daily counts: ``python -m bench.load.daily_counts keystead merged --tasks 100 --url URL``.

One call is a piece of work that counts 20 events without and 20 events with a breakdown.
"""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import version

from bench.load import loops, protocol

EVENTS = 20
PLAIN = [f"event_{number}" for number in range(EVENTS)]
BROKEN_DOWN = [f"event_by_value_{number}" for number in range(EVENTS)]
VALUES = ("sent", "failed", "blocked", "unknown")
KINDS = ("merged", "pipeline", "alone")
ZONE = "America/Los_Angeles"


@asynccontextmanager
async def keystead(url: str, kind: str) -> AsyncIterator[loops.Call]:
    from keystead.engine import connect
    from keystead.keys import Keyspace, StringKey
    from keystead.patterns import DailyFamily

    room = Keyspace("bench", tag="bench")
    family = DailyFamily(room, "bench", counts=PLAIN, breakdowns=dict.fromkeys(BROKEN_DOWN, "value"), held_days=2,
                         zone=ZONE, purpose="measured")
    state = StringKey(room, "bench:state", str, purpose="what the caller changes")
    valkey = await connect(url)
    turn = 0

    def tally():  # type: ignore[no-untyped-def]
        nonlocal turn
        turn += 1
        found, today = family.tally(), family.day_of(time.time())
        value = VALUES[turn % len(VALUES)]
        for event in PLAIN:
            found.incr(event, unix_date=today)
        for event in BROKEN_DOWN:
            found.incr(event, value, unix_date=today)
        return found

    async def in_pipeline() -> None:
        async with valkey.pipeline(transaction=True) as pipeline:
            state.at().set(pipeline, "changed")
            tally().store(pipeline)
            await pipeline.execute()

    async with family.collector(valkey) as collector:
        try:
            yield {"merged": lambda: collector.store(tally()), "pipeline": in_pipeline,
                   "alone": lambda: tally().store(valkey)}[kind]
            day = await family.read(valkey, family.day_of(time.time()))
            if day.inconsistencies() or not day.counts[PLAIN[0]]:
                raise SystemExit("the counts are not what was stored; a figure for them would mean nothing")
        finally:
            await valkey.aclose()


@asynccontextmanager
async def redis_py(url: str, kind: str) -> AsyncIterator[loops.Call]:
    """The same by hand: a transaction of plain increments, and earliest by a script."""
    from redis.asyncio import Redis

    lower = "local e = redis.call('GET', KEYS[1]) if not e or tonumber(e) > tonumber(ARGV[1]) then " \
            "redis.call('SET', KEYS[1], ARGV[1]) end"
    turn = 0

    async def by_hand() -> None:
        nonlocal turn
        turn += 1
        value, day = VALUES[turn % len(VALUES)], int(time.time()) // 86400
        async with client.pipeline(transaction=True) as pipeline:
            pipeline.set("bench:state", "changed")
            pipeline.eval(lower, 1, "stats:bench:daily:earliest", day)
            for event in PLAIN:
                pipeline.hincrby(f"stats:bench:daily:{day}", event, 1)
            for event in BROKEN_DOWN:
                pipeline.hincrby(f"stats:bench:daily:{day}", event, 1)
                pipeline.hincrby(f"stats:bench:daily:{day}:extra:{event}", value, 1)
            await pipeline.execute()

    async with Redis.from_url(url, max_connections=128) as client:
        yield by_hand


LIBRARIES: dict[str, tuple[str, Callable[[str, str], AbstractAsyncContextManager[loops.Call]]]] = {
    "keystead": ("keystead", keystead), "redis_py": ("redis", redis_py),
}


async def measure(library: str, kind: str, tasks: int, url: str, seconds: float, warm_up: float) -> None:
    distribution, opened = LIBRARIES[library]
    async with opened(url.replace("valkey://", "redis://"), kind) as call:
        await call()
        figures = {"per_second": await loops.rate([call] * tasks, seconds, warm_up)}
    protocol.answer(figures, {"library": f"{distribution} {version(distribution)}"})


if __name__ == "__main__":
    protocol.measure_library(measure, LIBRARIES, KINDS)
