"""Buffers while the processes that store rows are killed without warning: each row is counted in a real SQLite file."""

import asyncio
import random
from collections import Counter
from pathlib import Path

from keystead.engine import Valkey
from keystead.testing.server import LocalServer

from .buffer_writer import ROWS, opened
from .programs import Forked


async def start(url: str, path: Path) -> Forked:
    process = await Forked.start("tests.faults.buffer_writer", url, str(path))
    async with asyncio.timeout(60):
        assert await process.stdout.readline() == b"ready\n"
    return process


async def test_killed_writers_store_every_row_exactly_once(
    valkey: Valkey, valkey_server: LocalServer, tmp_path: Path
) -> None:
    rng, path, total = random.Random(3), tmp_path / "rows.sqlite", 0
    sql = opened(str(path))
    writers = [await start(valkey_server.url, path) for _ in range(2)]
    try:
        async with asyncio.timeout(180):
            for kills in range(4):
                await ROWS.push(valkey, *range(total, total + 300))
                total += 300
                await asyncio.sleep(rng.uniform(0.0, 0.05))
                writers[kills % 2].kill()
                await writers[kills % 2].wait()
                writers[kills % 2] = await start(valkey_server.url, path)
            while await ROWS.length(valkey) or await ROWS.purgatory.exists(valkey):
                await asyncio.sleep(0.02)
    finally:
        for writer in writers:
            writer.kill()
            await writer.wait()
    assert Counter(number for (number,) in sql.execute("SELECT number FROM rows")) == Counter(range(total))
    sql.close()
