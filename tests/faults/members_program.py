"""A process for the fault tests that makes people, and relays what that leaves in the outbox, until it is killed."""

import asyncio
import sys

from keystead.clock import SystemClock
from keystead.engine import connect
from keystead.members import Users
from keystead.store import Database, SqlOutbox


async def work(url: str, database_url: str, first: str) -> None:
    valkey = await connect(url)
    async with Database.open(database_url) as database:
        outbox = SqlOutbox(database, valkey)
        users = Users(valkey, database, outbox, SystemClock())
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(outbox.run())
            number = int(first)
            while True:
                await asyncio.gather(*(users.ensure("google", f"g-{number + ahead}") for ahead in range(3)))
                number += 3
                print("made", number, flush=True)


if __name__ == "__main__":
    asyncio.run(work(*sys.argv[1:]))
