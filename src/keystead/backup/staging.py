"""A directory for what is being restored, until it has its place: gone at the end, however that comes.

Whoever is killed leaves theirs behind, with personal data in it; the next restore beside it takes it away.
"""

import re
import secrets
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from keystead.backup.threads import in_thread
from keystead.engine.embedded_lock import FileLock, is_locked
from keystead.errors import Invalid

LOCK: Final = "restore.lock"
# Between making a directory and locking it somebody else may look.
YOUNG_SECONDS: Final = 60.0


@asynccontextmanager
async def staged(parent: Path, name: str) -> AsyncIterator[Path]:
    """A new directory in ``parent``, which is made for it if it is missing; ``Invalid`` if it cannot be."""
    await in_thread(_remove_abandoned, parent, name)
    place = parent / f".{name}.{secrets.token_hex(6)}.restoring"
    missing = [each for each in place.parents if not each.exists()]
    try:
        place.mkdir(mode=0o700, parents=True)
    except OSError as error:
        raise Invalid(f"{parent} cannot be written: {error.strerror}") from error
    try:
        with FileLock(place / LOCK) as lock:
            await lock.acquire(seconds=0.0)
            yield place
    finally:
        await in_thread(shutil.rmtree, place, True)
        with suppress(OSError):  # nothing but what we made for this, or it stays
            for each in missing:
                each.rmdir()


def _remove_abandoned(parent: Path, name: str) -> None:
    ours = re.compile(rf"\.{re.escape(name)}\.[0-9a-f]{{12}}\.restoring")
    with suppress(OSError):  # what cannot be looked at is not ours to remove
        for each in parent.iterdir():
            if ours.fullmatch(each.name) and time.time() - each.stat().st_mtime > YOUNG_SECONDS \
                    and not is_locked(each / LOCK):
                shutil.rmtree(each, ignore_errors=True)
