"""A directory of backups: their names, and how many are kept."""

import contextlib
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from keystead.errors import Invalid

# A draft that nobody can be writing any more.
LEFT_SECONDS: Final = 2 * 86400


def file_name(taken_at: float, identity: str) -> str:
    """The name of a backup of the installation with this identity; names sort by time, to the millisecond."""
    second, milliseconds = divmod(int(taken_at * 1000), 1000)
    return f"keystead-{datetime.fromtimestamp(second, UTC):%Y%m%dT%H%M%S}{milliseconds:03d}Z-{identity}.backup"


def made(directory: Path) -> Path:
    """The directory, which is made if it is missing; ``Invalid`` if it cannot be."""
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise Invalid(f"the directory of backups {directory} cannot be made: {error.strerror}") from error
    return directory


def keep_newest(directory: Path, count: int, identity: str, *, spare: Path | None = None) -> list[Path]:
    """Remove all backups of one installation but the newest ones, and drafts of those that died. All other files stay,
    so also the backups of other installations, and those from before names told whose they are.

    ``spare`` is the one that was just taken: it stays also where a clock that was wrong once left names of later days.
    Says which backups were removed.
    """
    name = f"keystead-{'[0-9]' * 8}T{'[0-9]' * 9}Z-{identity}.backup"
    found = sorted(path for path in directory.glob(name) if path.is_file())
    gone = [path for path in found[: max(0, len(found) - max(1, count))] if spare is None or path.name != spare.name]
    for path in gone:
        path.unlink(missing_ok=True)
    for draft in (*directory.glob(f".{name}.*.partial"), *directory.glob(f".{name}.*.work")):
        with contextlib.suppress(OSError):
            if time.time() - draft.stat().st_mtime > LEFT_SECONDS:
                shutil.rmtree(draft) if draft.is_dir() else draft.unlink()
    return gone
