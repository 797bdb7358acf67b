"""A process for the fault tests that stores buffered rows in a SQLite file until it is killed."""

import asyncio
import sqlite3
import sys

from keystead.engine import connect
from keystead.keys import Keyspace
from keystead.patterns.buffer import Buffer

ROWS = Buffer(Keyspace("faults", tag="f"), "rows", int, purpose="a test")
TABLES = (
    "CREATE TABLE IF NOT EXISTS rows (number INTEGER)",
    "CREATE TABLE IF NOT EXISTS batches (id TEXT PRIMARY KEY)",
)


def opened(path: str) -> sqlite3.Connection:
    sql = sqlite3.connect(path, isolation_level=None, timeout=30)
    for statement in TABLES:
        sql.execute(statement)
    return sql


async def work(url: str, path: str) -> None:
    valkey, sql = await connect(url), opened(path)
    print("ready", flush=True)
    while True:
        batch = await ROWS.take(valkey, 20, now=1.0)
        if batch is None:
            await asyncio.sleep(0.002)
            continue
        sql.execute("BEGIN IMMEDIATE")
        if sql.execute("INSERT OR IGNORE INTO batches VALUES (?)", (batch.id,)).rowcount:
            for row in batch:
                sql.execute("INSERT INTO rows VALUES (?)", (row.value,))
        sql.execute("COMMIT")
        await ROWS.finish(valkey, batch)


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], sys.argv[2]))
