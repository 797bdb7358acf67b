"""Producers and relays of the SQL outbox for the fault tests; both go on until they are killed."""

import asyncio
import contextlib
import itertools
import os
import random
import sys

from sqlalchemy import Column, MetaData, Table, Text, insert

from keystead.engine import connect
from keystead.store import Database, SqlOutbox

TABLES = MetaData()
CHANGES = Table("changes", TABLES, Column("name", Text, primary_key=True))


class Undone(Exception):
    """The producer thought better of it."""


async def produce(database: Database, outbox: SqlOutbox) -> None:
    """A change and the job that follows it, in one transaction. Each third is undone at the last moment."""
    for number in itertools.count():
        with contextlib.suppress(Undone):
            async with database.transaction() as sql:
                name = f"{os.getpid()}-{number}"
                await sql.execute(insert(CHANGES).values(name=name))
                await outbox.enqueue(sql, "runners.follow", queue="mail" if number % 2 else "", name=name)
                if number % 3 == 2:
                    raise Undone
        if number == 0:
            print("producing", flush=True)
        await asyncio.sleep(0.002)


async def relay(outbox: SqlOutbox) -> None:
    print("relaying", flush=True)
    while True:
        if not await outbox.relay(random.choice((1, 3, 20))):
            await asyncio.sleep(0.005)


async def work(role: str, valkey_url: str, database_url: str) -> None:
    valkey = await connect(valkey_url)
    async with Database.open(database_url) as database:
        outbox = SqlOutbox(database, valkey)
        await (produce(database, outbox) if role == "produce" else relay(outbox))


if __name__ == "__main__":
    asyncio.run(work(*sys.argv[1:]))
