import os
import subprocess
import sys
from pathlib import Path

from keystead.engine.embedded_lock import FileLock, is_locked


async def test_lock_has_one_holder_who_is_named(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not is_locked(path)
    with FileLock(path) as first, FileLock(path) as second:
        assert not is_locked(path), "an open file is not a held lock"
        assert await first.acquire(seconds=0)
        first.sign()
        assert is_locked(path)
        assert not await second.acquire(seconds=0.05)
        assert second.holder == str(os.getpid())
        first.close()
        assert await second.acquire(seconds=0)
    assert not is_locked(path)


async def test_shorter_signature_leaves_nothing_of_the_longer(tmp_path: Path) -> None:
    with FileLock(tmp_path / "lock") as lock:
        assert lock.holder == "unknown"
        lock.sign(1234567)
        lock.sign(89)
        assert lock.holder == "89"


async def test_child_that_inherits_the_descriptor_keeps_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    lock = FileLock(path)
    assert await lock.acquire(seconds=0)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(lock.descriptor,))
    lock.close()
    assert is_locked(path)
    child.communicate()
    assert not is_locked(path)
