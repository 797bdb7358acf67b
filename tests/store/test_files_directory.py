"""What only a directory can do wrong: links, full disks, leftovers, threads."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from keystead.errors import Invalid, NotFound, Unavailable
from keystead.store.files import open_files
from keystead.store.files_directory import LEFT_SECONDS

from .test_files import listed, pieces, whole


async def test_a_link_cannot_lead_out_of_the_directory(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    async with open_files((tmp_path / "objects").as_uri()) as files:
        (tmp_path / "objects" / "a").symlink_to(outside)
        (tmp_path / "objects" / "b").symlink_to(outside / "secret")
        with pytest.raises(Invalid, match="outside"):
            await whole(files, "a/secret")
        with pytest.raises(Invalid, match="outside"):
            await files.write("a/new", pieces(b"x"))
        with pytest.raises(NotFound):
            await whole(files, "b")
        await files.delete("b")
    assert (outside / "secret").read_text() == "secret"


async def test_deleting_removes_what_killed_writes_left(tmp_path: Path) -> None:
    async with open_files((tmp_path / "objects").as_uri()) as files:
        writing = asyncio.Event()

        async def endless() -> AsyncIterator[bytes]:
            yield bytes(300_000)
            writing.set()
            await asyncio.Event().wait()

        task = asyncio.ensure_future(files.write("a/one", endless()))
        await writing.wait()
        drafts = list((tmp_path / "objects" / ".partial").iterdir())
        assert len(drafts) == 1
        left_behind = drafts[0].with_suffix(".killed")
        os.link(drafts[0], left_behind)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert list((tmp_path / "objects" / ".partial").iterdir()) == [left_behind]
        await files.delete("a/two")
        assert left_behind.exists()
        await files.delete("a/one")
        assert not left_behind.exists()
        assert await listed(files) == []


async def test_opening_removes_what_nobody_can_be_writing_any_more(tmp_path: Path) -> None:
    """A draft whose entry on the list was lost too; walks over the objects do not see drafts."""
    url, drafts = (tmp_path / "objects").as_uri(), tmp_path / "objects" / ".partial"
    async with open_files(url):
        for name, age in (("old", LEFT_SECONDS + 60), ("new", 3600)):
            (drafts / name).write_bytes(b"x")
            os.utime(drafts / name, (time.time() - age,) * 2)
    async with open_files(url):
        assert [draft.name for draft in drafts.iterdir()] == ["new"]


async def test_folders_vanish_with_their_last_object_while_others_write(tmp_path: Path) -> None:
    async with open_files((tmp_path / "objects").as_uri()) as files:
        async def come_and_go(number: int) -> None:
            for _ in range(15):
                await files.write(f"a/b/c/{number}", pieces(b"x"))
                await files.delete(f"a/b/c/{number}")

        await asyncio.gather(*(come_and_go(number) for number in range(6)))
        assert [path.name for path in (tmp_path / "objects").iterdir()] == [".partial"]


async def test_files_belong_to_their_owner_alone(tmp_path: Path) -> None:
    async with open_files((tmp_path / "objects").as_uri()) as files:
        await files.write("a/one", pieces(b"x"))
    for path in (tmp_path / "objects").rglob("*"):
        assert not path.stat().st_mode & 0o077, path


async def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(Invalid, match="must be writable"):
        async with open_files((tmp_path / "file" / "objects").as_uri()):
            pass


async def test_a_disk_that_fails_is_unavailable_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    async with open_files((tmp_path / "objects").as_uri()) as files:
        monkeypatch.setattr("keystead.store.files_directory.os.fsync", full)
        with pytest.raises(Unavailable, match="No space left"):
            await files.write("a/one", pieces(b"x"))
        monkeypatch.undo()
        assert await listed(files) == []
        assert list((tmp_path / "objects" / ".partial").iterdir()) == []
