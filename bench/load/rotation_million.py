"""Measure the rotation of sets with a million members each: a day's active people, and a cohort in ten sets.

``python -m bench.load.rotation_million --url URL --members 1000000``: how long it takes, the longest command of the
server while it runs, how long another client waits, and what it adds to the memory of this process.
"""

import asyncio
import resource
import tempfile
import time
import tracemalloc
from importlib.metadata import version

from bench.load import protocol

STEP = 5_000


async def measure(url: str, members: int) -> dict[str, float]:
    from keystead.engine import connect
    from keystead.keys import Keyspace
    from keystead.patterns import Cohorts, DaySet
    from keystead.stats import Statistics

    room = Keyspace("bench", tag="bench")
    active = DaySet(room, "stats:bench_active", zone="UTC", table="bench_active", purpose="measured")
    cohorts = Cohorts(room, "stats:bench_cohorts", zone="UTC", table="bench_cohorts", purpose="measured")
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        async with Statistics.open(url, f"sqlite:///{directory}/bench.sqlite", active, cohorts) as stats:
            valkey = stats.valkey
            today = active.day_of(stats.clock.now())
            old = today - cohorts.window_days - 1
            await _fill(valkey, active, cohorts, members, today - 1, old)
            await valkey.config_set("slowlog-log-slower-than", 500)
            await valkey.execute_command("SLOWLOG", "RESET")
            other = await connect(url)
            stop = asyncio.Event()
            waiting = asyncio.ensure_future(_wait_times(other, stop))
            tracemalloc.start()
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            begin = time.perf_counter()
            report = await stats.rotation.run()
            took = time.perf_counter() - begin
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            await asyncio.sleep(1)  # what is freed in the background is freed now
            stop.set()
            waits = await waiting
            entries = await valkey.execute_command("SLOWLOG", "GET", 128)
            slowest = max((entry["duration"] if isinstance(entry, dict) else entry[2] for entry in entries), default=0)
            await other.aclose()
            if report.days < 2 or report.problems:
                raise SystemExit(f"the sets were not rotated: {report}")
    return {
        "seconds": took, "slowest_ms": slowest / 1000, "longest_wait_ms": max(waits) * 1000,
        "python_peak_mb": peak / 1e6,
        "resident_growth_mb": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / 1e6,
    }


async def _fill(valkey, active, cohorts, members: int, day: int, old: int) -> None:  # type: ignore[no-untyped-def]
    """Members of the day, and of a cohort that is over; written as sets, the way the patterns would have."""
    await active.add(valkey, "first", day=day)
    await cohorts.join(valkey, "first", day=old)
    names = [active.day_key.at(day).name(valkey.layout)]
    names += [cohorts.members_key.at(f"{period}day", "false", old).name(valkey.layout) for period in cohorts.periods]
    for first in range(0, members, STEP):
        numbers = range(first, min(first + STEP, members))
        some = [f"user_{number:07}_{number * 7919 % 1_000_003:07}" for number in numbers]
        async with valkey.pipeline(transaction=False) as pipeline:
            for name in names:
                pipeline.sadd(name, *some)
            await pipeline.execute()


async def _wait_times(valkey, stop: asyncio.Event) -> list[float]:  # type: ignore[no-untyped-def]
    waits = []
    while not stop.is_set():
        begin = time.perf_counter()
        await valkey.ping()
        waits.append(time.perf_counter() - begin)
        await asyncio.sleep(0.0005)
    return waits


if __name__ == "__main__":
    flags = protocol.parser()
    flags.add_argument("--members", type=int, default=1_000_000)
    given = flags.parse_args()
    figures = asyncio.run(measure(given.url, given.members))
    protocol.answer(figures, {"library": f"keystead {version('keystead')}", "members": given.members})
