"""Processes that save and sweep files until they are killed, and write down what they were told."""

import asyncio
import logging
import os
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from keystead.clock import SystemClock
from keystead.engine import Valkey, connect
from keystead.errors import GatewayError, Unavailable
from keystead.store import Database
from keystead.store.files import ObjectFiles, open_files
from keystead.store.files_kept import FileLost, Files
from keystead.store.sweep import Sweep

TASKS = 6
# The sweeping process lives in the future, so that whatever is announced is due for it at once.
AHEAD_SECONDS = 700.0


@asynccontextmanager
async def opened(
    valkey_url: str, database_url: str, directory: str
) -> AsyncIterator[tuple[Valkey, Database, ObjectFiles]]:
    valkey = await connect(valkey_url)
    async with Database.open(database_url) as database, open_files(Path(directory, "objects").as_uri()) as objects:
        yield valkey, database, objects


class Log:
    """Lines that are there when the call returns; each is one write, so processes may share the file."""

    def __init__(self, directory: str) -> None:
        self._handle = os.open(Path(directory, "log"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def say(self, *words: object) -> None:
        os.write(self._handle, (" ".join(map(str, words)) + "\n").encode())


async def _save(valkey_url: str, database_url: str, directory: str, seed: int, most: int) -> None:
    log, rng, left = Log(directory), random.Random(seed), most
    async with opened(valkey_url, database_url, directory) as (valkey, database, objects):
        files = Files(valkey, database, objects, SystemClock())

        async def coming(raw: bytes) -> AsyncIterator[bytes]:
            for at in range(0, len(raw), 1000):
                await asyncio.sleep(rng.choice((0, 0, 0.001)))
                yield raw[at : at + 1000]

        async def task() -> None:
            nonlocal left
            while left > 0:
                left -= 1
                log.say("began")
                try:
                    file = await files.save(coming(rng.randbytes(rng.randrange(4000))), under="f", most_bytes=4000)
                except (FileLost, GatewayError, Unavailable) as error:
                    log.say("refused", type(error).__name__)
                    continue
                if rng.random() < 0.2:
                    log.say("deleting", file.key)
                    try:
                        await files.delete(file.key, hint="a test")
                    except Unavailable:
                        continue
                else:
                    log.say("saved", file.key, file.sha256)

        log.say("saving", os.getpid())
        async with asyncio.TaskGroup() as group:
            for _ in range(TASKS):
                group.create_task(task())


async def _sweep(valkey_url: str, database_url: str, directory: str, pause_seconds: float) -> None:
    log = Log(directory)
    async with opened(valkey_url, database_url, directory) as (valkey, database, objects):
        sweep = Sweep(valkey, database, objects, SystemClock(AHEAD_SECONDS))
        log.say("sweeping", os.getpid())
        while True:
            try:
                report = await sweep.sweep()
                log.say("swept", report.purged, report.kept, report.failed)
            except Unavailable:
                pass
            await asyncio.sleep(pause_seconds)


def quiet() -> None:
    """Thousands of files are purged here, which nobody wants to read of one by one."""
    logging.getLogger("keystead.store").setLevel(logging.CRITICAL)


def save(*arguments: object) -> None:
    """Save ``most`` files, several at a time."""
    quiet()
    asyncio.run(_save(*arguments))  # type: ignore[arg-type]


def sweep(*arguments: object) -> None:
    """Sweep, also what is being saved at the moment, again and again."""
    quiet()
    asyncio.run(_sweep(*arguments))  # type: ignore[arg-type]
