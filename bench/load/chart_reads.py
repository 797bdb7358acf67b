"""Measure reading 90 days of a family: ``python -m bench.load.chart_reads keystead cached --tasks 100 --url URL``.

The days lie in SQLite, twelve events, four of them broken down by twenty values.
"""

import asyncio
import gzip
import json
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import version

from bench.load import loops, protocol

DAYS = 90
PLAIN = [f"event_{number}" for number in range(8)]
BROKEN_DOWN = [f"event_by_value_{number}" for number in range(4)]
VALUES = [f"value_{number}" for number in range(20)]
KINDS = ("cached", "uncached")
ZONE = "America/Los_Angeles"


@asynccontextmanager
async def seeded(url: str) -> AsyncIterator[tuple]:  # type: ignore[type-arg]
    """The services over a family that has 90 rotated days and counts of today."""
    from keystead.keys import Keyspace
    from keystead.patterns import DailyFamily
    from keystead.stats import FamilyTables, Statistics

    family = DailyFamily(
        Keyspace("bench", tag="bench"), "bench", counts=PLAIN, breakdowns=dict.fromkeys(BROKEN_DOWN, "value"),
        held_days=2, zone=ZONE, table="bench_stats", purpose="measured",
    )
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        async with Statistics.open(url, f"sqlite:///{directory}/bench.sqlite", family) as stats:
            today = family.day_of(stats.clock.now())
            for day in range(today - DAYS - 2, today + 1):
                tally = family.tally()
                for number, event in enumerate(PLAIN):
                    tally.incr(event, amount=day % 97 + number, unix_date=day)
                for event in BROKEN_DOWN:
                    for value in VALUES:
                        tally.incr(event, value, day % 13 + 1, unix_date=day)
                await tally.store(stats.valkey)
            report = await stats.rotation.run()
            if report.days < DAYS or report.problems:
                raise SystemExit(f"the days were not rotated: {report}")
            yield stats, family, FamilyTables(stats.catalogue).table("bench")


@asynccontextmanager
async def keystead(url: str, kind: str) -> AsyncIterator[loops.Call]:
    async with seeded(url) as (stats, family, _):
        today = family.day_of(stats.clock.now())

        async def uncached() -> None:
            series = await stats.charts.series("bench", today - DAYS - 1, today - 1)
            if not min(series.counts[BROKEN_DOWN[0]]):
                raise SystemExit("a day is missing")

        async def cached() -> None:
            await stats.charts.historical_raw("bench")
            await asyncio.sleep(0)  # what is held is answered without waiting; the others want their turn

        yield {"cached": cached, "uncached": uncached}[kind]


@asynccontextmanager
async def by_hand(url: str, kind: str) -> AsyncIterator[loops.Call]:
    """One query and the same answer made of its rows, each time."""
    from sqlalchemy import select

    async with seeded(url) as (stats, family, table):
        query = select(table).order_by(table.c.retrieved_for.desc()).limit(DAYS)

        async def read() -> bytes:
            async with stats.database.reading() as sql:
                rows = (await sql.execute(query)).mappings().all()
            answer = {event: [row[event] for row in rows] for event in family.events}
            for event in BROKEN_DOWN:
                found = [json.loads(row[f"{event}_breakdown"]) for row in rows]
                answer[f"{event}_breakdown"] = {value: [day.get(value, 0) for day in found] for value in VALUES}
            return gzip.compress(json.dumps(answer).encode(), mtime=0)

        yield read


LIBRARIES: dict[str, tuple[str, Callable[[str, str], AbstractAsyncContextManager[loops.Call]]]] = {
    "keystead": ("keystead", keystead), "by_hand": ("sqlalchemy", by_hand),
}


async def measure(library: str, kind: str, tasks: int, url: str, seconds: float, warm_up: float) -> None:
    distribution, opened = LIBRARIES[library]
    begin = time.perf_counter()
    async with opened(url, kind) as call:
        seeding = time.perf_counter() - begin
        await call()
        figures = {"per_second": await loops.rate([call] * tasks, seconds, warm_up)}
    library = f"{distribution} {version(distribution)}"
    protocol.answer(figures, {"library": library, "seeding_seconds": round(seeding, 1)})


if __name__ == "__main__":
    protocol.measure_library(measure, LIBRARIES, KINDS)
