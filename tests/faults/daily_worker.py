"""Processes for the fault tests: one counts what it changes, one rotates days into SQLite, until they are killed."""

import asyncio
import sqlite3
import sys
import uuid

from keystead.engine import Valkey, connect
from keystead.keys import IntegerKey, Keyspace
from keystead.patterns.daily import CANONICAL, DailyFamily

FAULTS = Keyspace("faults", tag="f")
DONE = IntegerKey(FAULTS, "done", purpose="what was changed")
EVENTS = DailyFamily(FAULTS, "faults", counts=("seen",), breakdowns={"done": "kind"}, held_days=1, zone=CANONICAL,
                     purpose="a test")
FIRST_DAY, DAYS = 100, 6
TABLES = (
    "CREATE TABLE IF NOT EXISTS days (unix_date INTEGER, done INTEGER, kinds INTEGER)",
    "CREATE TABLE IF NOT EXISTS applied (id TEXT PRIMARY KEY)",
)


def opened(path: str) -> sqlite3.Connection:
    sql = sqlite3.connect(path, isolation_level=None, timeout=30)
    for statement in TABLES:
        sql.execute(statement)
    return sql


def store(sql: sqlite3.Connection, applied_id: str, day: int, done: int, kinds: int) -> None:
    """Add to a day once, whoever tries it again."""
    sql.execute("BEGIN IMMEDIATE")
    if sql.execute("INSERT OR IGNORE INTO applied VALUES (?)", (applied_id,)).rowcount:
        sql.execute("INSERT INTO days VALUES (?, ?, ?)", (day, done, kinds))
    sql.execute("COMMIT")


async def count(valkey: Valkey) -> None:
    """Change something and count it, on a day that may be under rotation or gone."""
    number = 0
    while True:
        number += 1
        async with valkey.pipeline(transaction=True) as pipeline:
            DONE.at().increment(pipeline)
            day = FIRST_DAY + number % DAYS
            EVENTS.tally().incr("done", f"kind {number % 3}", unix_date=day).store(pipeline)
            await pipeline.execute()


async def rotate(valkey: Valkey, sql: sqlite3.Connection) -> None:
    """Rotate whatever is the earliest day, up to the last, and apply what came late."""
    while True:
        day = await EVENTS.earliest(valkey)
        if day is not None and day < FIRST_DAY + DAYS:
            rotation = await EVENTS.begin_rotation(valkey, day, uuid.uuid4().hex)
            if rotation is not None:
                found = await EVENTS.read(valkey, day)
                store(sql, rotation, day, found.counts["done"], sum(found.breakdowns["done"].values()))
                await EVENTS.end_rotation(valkey, day, rotation)
        late = await EVENTS.late(valkey, 200, now=1.0)
        for one in late:
            store(sql, one.count.id, one.count.unix_date, one.count.amount, one.count.amount)
        if late:
            await EVENTS.finish_late(valkey, late)
        await asyncio.sleep(0.01)


async def main(role: str, url: str, path: str) -> None:
    valkey = await connect(url)
    print("ready", flush=True)
    await (count(valkey) if role == "count" else rotate(valkey, opened(path)))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
