"""A directory of backups: their names, and how many are kept."""

import contextlib
import re
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

_NAME: Final = re.compile(r"keystead-\d{8}T\d{6}Z(-[a-z0-9]+)?\.backup")
# A draft that nobody can be writing any more.
LEFT_SECONDS: Final = 2 * 86400


def file_name(taken_at: float, *, suffix: str = "") -> str:
    """The name of a backup; names sort by time."""
    return f"keystead-{datetime.fromtimestamp(taken_at, UTC):%Y%m%dT%H%M%SZ}{f'-{suffix}' if suffix else ''}.backup"


def keep_newest(directory: Path, count: int, *, spare: Path | None = None) -> list[Path]:
    """Remove all backups of a directory but the newest ones, and drafts of those that died. Other files stay.

    ``spare`` is the one that was just taken: it stays also where a clock that was wrong once left names of later days.
    Says which backups were removed.
    """
    found = sorted(path for path in directory.iterdir() if _NAME.fullmatch(path.name) and path.is_file())
    gone = [path for path in found[: max(0, len(found) - max(1, count))] if spare is None or path.name != spare.name]
    for path in gone:
        path.unlink(missing_ok=True)
    for draft in (*directory.glob(".keystead-*.partial"), *directory.glob(".keystead-*.work")):
        with contextlib.suppress(OSError):
            if time.time() - draft.stat().st_mtime > LEFT_SECONDS:
                shutil.rmtree(draft) if draft.is_dir() else draft.unlink()
    return gone
