"""Where a restore works: nothing of it stays, also of one that was killed."""

import os
import time
from pathlib import Path

import pytest

from keystead.backup.staging import LOCK, YOUNG_SECONDS, staged
from keystead.engine.embedded_lock import FileLock
from keystead.errors import Invalid


def left_behind(parent: Path, name: str, *, age_seconds: float) -> Path:
    place = parent / name
    place.mkdir()
    (place / LOCK).touch()
    (place / "secret").write_text("of somebody")
    at = time.time() - age_seconds
    os.utime(place, (at, at))
    return place


async def test_nothing_stays_however_it_ends(tmp_path: Path):
    with pytest.raises(RuntimeError):
        async with staged(tmp_path / "new" / "parent", "data") as place:
            (place / "half").write_text("x")
            assert place.stat().st_mode & 0o077 == 0
            raise RuntimeError
    assert not list(tmp_path.iterdir())


async def test_parents_that_somebody_uses_stay(tmp_path: Path):
    async with staged(tmp_path / "new", "data"):
        (tmp_path / "new" / "mine").touch()
    assert [each.name for each in (tmp_path / "new").iterdir()] == ["mine"]


async def test_what_a_killed_one_left_is_taken_away_and_nothing_else(tmp_path: Path):
    old = YOUNG_SECONDS + 60
    gone = left_behind(tmp_path, ".data.0123456789ab.restoring", age_seconds=old)
    kept = [
        left_behind(tmp_path, ".data.0123456789ac.restoring", age_seconds=0),  # has just begun
        left_behind(tmp_path, ".other.0123456789ab.restoring", age_seconds=old),
        left_behind(tmp_path, ".data.sqlite.restoring", age_seconds=old),
        left_behind(tmp_path, "data", age_seconds=old),
    ]
    busy = left_behind(tmp_path, ".data.0123456789ad.restoring", age_seconds=old)
    with FileLock(busy / LOCK) as lock:
        assert await lock.acquire(seconds=0.0)
        async with staged(tmp_path, "data"):
            assert not gone.exists()
            assert busy.exists() and all(each.exists() for each in kept)


async def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(Invalid, match="cannot be written"):
        async with staged(tmp_path / "file", "data"):
            pass
