"""Object files at one moment: each is held by a second name before the moment and after it, and none is copied for
that.

An object is written once, before its row, and deleted after its row. So what the rows of the moment speak of was
there at the moment: it was there before, or it came between. Objects that came later are taken too; they have no
row, and the sweep of the store removes such.
"""

import contextlib
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

PINS: Final = ".backup-"  # the directory of files does not look into names with a dot
LEFT_SECONDS: Final = 2 * 86400  # pins of a backup that died


def files_directory(url: str) -> Path | None:
    """The directory that holds the object files; None if they are elsewhere."""
    parts = urlsplit(url)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


class Pins:
    """Second names of all objects of a directory, as long as the block runs."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._place = root / f"{PINS}{secrets.token_hex(6)}"
        self._links = True

    def __enter__(self) -> "Pins":
        if self._root.is_dir():
            self._remove_left()
            self._place.mkdir(mode=0o700)
        return self

    def __exit__(self, *error: object) -> None:
        shutil.rmtree(self._place, ignore_errors=True)

    def pin(self) -> None:
        """Give a second name to everything that is there now and has none. What vanishes meanwhile is left out."""
        for name in self._names(self._root):
            if not self._links:
                return
            target = self._place / name
            if target.exists():
                continue
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            try:
                target.hardlink_to(self._root / name)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError:  # a file system without links: files are read where they lie
                self._links = False

    def files(self) -> Iterator[tuple[str, Path]]:
        """Name and place of each, in a fixed order."""
        root = self._place if self._links else self._root
        for name in self._names(root):
            yield name, root / name

    @staticmethod
    def _names(root: Path) -> Iterator[str]:
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                if not name.startswith("."):
                    yield Path(folder, name).relative_to(root).as_posix()

    def _remove_left(self) -> None:
        for left in self._root.glob(f"{PINS}*"):
            with contextlib.suppress(OSError):
                if time.time() - left.stat().st_mtime > LEFT_SECONDS:
                    shutil.rmtree(left, ignore_errors=True)
