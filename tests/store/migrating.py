"""A process that opens and migrates a database when it is told to."""

import asyncio
import signal
import sys

from keystead.store import Database


async def work(url: str) -> None:
    go = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, go.set)
    print("ready", flush=True)
    await go.wait()
    async with Database.open(url) as database:
        await database.migrate()
        await database.migrate()
    print("migrated", flush=True)


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1]))
