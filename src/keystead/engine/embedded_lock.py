"""A lock on a file that ends with the process that holds it, whatever ends the process."""

import asyncio
import contextlib
import fcntl
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

_LOOK_SECONDS = 0.02


class FileLock:
    """An exclusive lock on ``path``, which is made if missing. Raises ``OSError`` if the file cannot be opened.

    A child process that is given ``descriptor`` holds the lock too, until both have ended.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def acquire(self, *, seconds: float) -> bool:
        """Take the lock; ``False`` if someone else still had it after that time."""
        deadline = time.monotonic() + seconds
        while True:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(_LOOK_SECONDS)

    def sign(self, pid: int | None = None) -> None:
        """Write the holder's process id, ours by default, into the file: for those who find it locked."""
        raw = b"%d\n" % (pid or os.getpid())
        os.pwrite(self.descriptor, raw, 0)
        os.ftruncate(self.descriptor, len(raw))

    @property
    def holder(self) -> str:
        """The process id that signed last."""
        return os.pread(self.descriptor, 32, 0).decode(errors="replace").strip() or "unknown"

    def close(self) -> None:
        """Let go. A child that inherited the descriptor keeps the lock."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def is_locked(path: Path) -> bool:
    """Whether some process holds the lock. Raises ``OSError`` if the file may not be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
