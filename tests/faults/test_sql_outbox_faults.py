"""The SQL outbox while producers and relays are killed without warning: what follows a commit arrives once."""

import asyncio
from collections import Counter

from sqlalchemy import func, select

from keystead.engine import Valkey
from keystead.jobs.keys import Queue
from keystead.store import Database, SqlOutbox
from keystead.store.tables import OUTBOX
from keystead.testing.server import LocalServer

from .programs import programs
from .sql_outbox_program import CHANGES, TABLES

ROLES = {"produce": "producing", "relay": "relaying"}


async def arrived(valkey: Valkey) -> Counter[str]:
    records = [*await Queue().work.queue.range(valkey), *await Queue("mail").work.queue.range(valkey)]
    return Counter(record.kwargs["name"] for record in records)


async def committed(database: Database) -> Counter[str]:
    async with database.reading() as sql:
        return Counter((await sql.execute(select(CHANGES.c.name))).scalars())


async def waiting(database: Database) -> int:
    async with database.reading() as sql:
        return (await sql.execute(select(func.count()).select_from(OUTBOX))).scalar_one()


async def test_killed_producers_and_relays_lose_and_double_nothing(
    database: Database, database_url: str, valkey: Valkey, valkey_server: LocalServer
) -> None:
    async with database.transaction() as sql:
        await sql.run_sync(TABLES.create_all)
    killed = Counter[str]()
    async with asyncio.timeout(240), programs("tests.faults.sql_outbox_program") as start:
        roles = ["produce", "relay", "produce", "relay"]
        running = await asyncio.gather(*(start(role, valkey_server.url, database_url) for role in roles))
        for place in (0, 1, 3, 2, 1, 0):
            await running[place].hears(ROLES[roles[place]])
            enough = len(await arrived(valkey)) + 30
            while len(await arrived(valkey)) < enough:
                await asyncio.sleep(0.01)
            await running[place].kill()
            killed[roles[place]] += 1
            running[place] = await start(roles[place], valkey_server.url, database_url)
        for program in running:
            await program.kill()

    # A commit that was under way when its producer died may still happen, so the end is waited for.
    outbox = SqlOutbox(database, valkey)
    async with asyncio.timeout(60):
        while True:
            while await outbox.relay():
                pass
            changes = await committed(database)
            if changes == await arrived(valkey) and not await waiting(database):
                break
            found = await arrived(valkey)
            assert all(times == 1 for times in found.values()), "some jobs came twice"
            assert await waiting(database) or found <= await committed(database), "jobs came of what was undone"
            await asyncio.sleep(0.1)
    print(f"{changes.total()} committed, {(await arrived(valkey)).total()} arrived, killed {dict(killed)}")
    assert changes.total() >= 180
    assert (await outbox.counts()).failed == 0
    assert not {name for name in changes if int(name.split("-")[1]) % 3 == 2}
