"""Measure backups of a server with a million keys while others write: how long they wait, and what it costs.

``python -m bench.load.backup_million --url URL --keys 1000000 --rows 200000 --backups 5``
"""

import asyncio
import resource
import tempfile
import time
import tracemalloc
from importlib.metadata import version
from pathlib import Path
from statistics import median

from bench.load import protocol

STEP = 5_000


async def measure(url: str, keys: int, rows: int, backups: int) -> dict[str, float]:
    from keystead.app import App
    from keystead.backup import Restore, check
    from keystead.engine import connect
    from keystead.settings import load_settings

    with tempfile.TemporaryDirectory(prefix="bench-") as place:
        directory = Path(place)
        app = App(load_settings({
            "valkey.url": url, "installation.directory": str(directory / "own"),
            "store.url": f"sqlite:///{directory / 'bench.sqlite'}",
        }, environment={}))
        valkey, other = await connect(url), await connect(url)
        await _fill(app, valkey, keys, rows)
        stop = asyncio.Event()
        waiting = asyncio.ensure_future(_wait_times(other, stop))
        await asyncio.sleep(1)
        held, took, size = [], [], 0
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for number in range(backups):
            if number == backups - 1:
                tracemalloc.start()
            taken = await app.backup().take(directory / f"{number}.backup")
            held.append(taken.manifest.held_ms)
            took.append(taken.seconds)
            size = taken.bytes
            if not taken.manifest.head.one_moment:
                raise SystemExit(f"not one moment: {taken.manifest.warnings}")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / 1e6
        stop.set()
        waits = await waiting
        await other.aclose()
        await valkey.aclose()
        begin = time.perf_counter()
        checked = await check(directory / "0.backup")
        checking = time.perf_counter() - begin
        begin = time.perf_counter()
        target = App(load_settings({"valkey.url": f"embedded://{directory / 'new'}"}, environment={}))
        await Restore(target.installation()).run(directory / "0.backup")
        restoring = time.perf_counter() - begin
        if checked.keys < keys:
            raise SystemExit(f"the backup has {checked.keys} keys, and there were {keys}")
    return {
        "held_median_ms": median(held), "held_worst_ms": max(held), "longest_wait_ms": max(waits) * 1000,
        "seconds": median(took), "megabytes": size / 1e6, "python_peak_mb": peak / 1e6, "resident_growth_mb": grown,
        "check_seconds": checking, "restore_seconds": restoring,
    }


async def _fill(app, valkey, keys: int, rows: int) -> None:  # type: ignore[no-untyped-def]
    from keystead.edge import load_secret
    from keystead.store import Database

    load_secret(app.data_directory)
    for first in range(0, keys, STEP):
        async with valkey.pipeline(transaction=False) as pipeline:
            for number in range(first, min(first + STEP, keys)):
                pipeline.set(f"user:{number:07}:profile", f'{{"name":"person {number * 7919 % 1_000_003}","city":"x"}}')
            await pipeline.execute()
    tables = app.installation().tables()
    async with Database.open(app.database_url) as database:
        await database.migrate()
        await tables.ensure(database)
        async with database.transaction() as sql:
            await database.insert_many(sql, tables.applied, (
                {"id": f"id-{number:09}", "family": "bench", "applied_at": float(number)} for number in range(rows)
            ))


async def _wait_times(valkey, stop: asyncio.Event) -> list[float]:  # type: ignore[no-untyped-def]
    """A client that writes all the time."""
    waits = [0.0]
    while not stop.is_set():
        begin = time.perf_counter()
        await valkey.set("bench:written", "1")
        waits.append(time.perf_counter() - begin)
        await asyncio.sleep(0.001)
    return waits


if __name__ == "__main__":
    flags = protocol.parser()
    flags.add_argument("--keys", type=int, default=1_000_000)
    flags.add_argument("--rows", type=int, default=200_000)
    flags.add_argument("--backups", type=int, default=5)
    given = flags.parse_args()
    figures = asyncio.run(measure(given.url, given.keys, given.rows, given.backups))
    protocol.answer(figures, {"library": f"keystead {version('keystead')}", "keys": given.keys, "rows": given.rows})
