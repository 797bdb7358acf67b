"""The mark of a restore that has begun and not ended: while it is there, nothing starts on what is half there.

At a server it is a key, written before anything else and removed after everything else. In a data directory it is a
file, which ``installation.check_mark`` looks for.
"""

import json
import os
import time
from pathlib import Path

from keystead.backup.keys import RESTORING
from keystead.backup.models import Restoring
from keystead.engine import Valkey, scan
from keystead.errors import Conflict
from keystead.installation import RESTORING_FILE


async def require_whole(valkey: Valkey) -> None:
    """Refuse a server that a restore was begun at and not ended."""
    found = await RESTORING.at().get(valkey)
    if found is not None:
        raise Conflict(f"a restore of {found.file} to this server, begun {_told(found.begun_at)}, has not ended: only "
                       "part of the data may be here; if it is not running any more, begin it again with --replace")


async def begin(valkey: Valkey, file: Path) -> None:
    """From now on nothing starts at this server."""
    await RESTORING.at().set(valkey, Restoring(file=str(file), begun_at=time.time()))


async def remove_all_but_mark(valkey: Valkey) -> None:
    """Empty the server, key by key: whoever is killed meanwhile leaves the mark behind."""
    mark = RESTORING.at().name(valkey.layout)
    async for names in scan(valkey):
        async with valkey.pipeline(transaction=False) as pipeline:
            for name in names:
                if name != mark:
                    pipeline.run(("UNLINK", name), int)
            await pipeline.execute()


async def end(valkey: Valkey) -> None:
    """Everything is there."""
    await RESTORING.at().delete(valkey)


def begin_in(directory: Path, file: Path) -> None:
    """From now on nothing starts in this directory, which is made if it is missing."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (directory / RESTORING_FILE).open("w", encoding="utf-8") as mark:
        json.dump({"file": str(file), "begun_at": time.time()}, mark)
        mark.flush()
        os.fsync(mark.fileno())
    sync_directory(directory)


def end_in(directory: Path) -> None:
    """Everything is there."""
    sync_directory(directory)
    (directory / RESTORING_FILE).unlink(missing_ok=True)
    sync_directory(directory)


def sync_directory(directory: Path) -> None:
    """Let the names in a directory outlast a power failure."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _told(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at))
