"""Object files in a directory: one file per object, at the path that its key names.

A write goes to a file of its own under ``.partial`` and is renamed when it is whole and on the disk, so a reader sees
all of an object or nothing. What a killed process left there goes when the object is deleted, and when the directory is
opened after nobody can be writing it any more.
"""

import asyncio
import contextlib
import errno
import os
import secrets
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

from keystead.errors import Invalid, NotFound, Unavailable
from keystead.store.files import CHUNK_BYTES, DEFAULT_CONTENT_TYPE, ObjectFiles, checked_key, in_pieces

PARTIAL: Final = ".partial"
WALK_ITEMS: Final = 1000  # names that are read in one step of another thread
# Nobody saves for more than a day.
LEFT_SECONDS: Final = 2 * 86_400
# A directory that another delete found empty may vanish between making it and renaming into it.
RENAME_TRIES: Final = 20

T = TypeVar("T")


class DirectoryFiles:
    """Objects under ``root``, which must exist. The content type is not kept here; the row of the file has it."""

    def __init__(self, root: Path, bucket: str) -> None:
        self._root = root
        self._bucket = bucket

    @property
    def bucket(self) -> str:
        return self._bucket

    async def write(
        self, key: str, chunks: AsyncIterable[bytes], *, content_type: str = DEFAULT_CONTENT_TYPE
    ) -> int:
        target = self._path(key)
        draft = self._root / PARTIAL / f"{_digest(key)}.{secrets.token_hex(8)}"
        with _said():
            file = await _in_thread(lambda: _create(draft))
        try:
            size = 0
            async for chunk in in_pieces(chunks, CHUNK_BYTES):
                with _said():
                    await _in_thread(lambda some=chunk: _write_all(file, some))  # type: ignore[misc]
                size += len(chunk)
            with _said():
                await _in_thread(lambda: _finish(file, draft, target, self._root))
        except BaseException:
            file.close()
            draft.unlink(missing_ok=True)
            raise
        return size

    async def read(self, key: str, *, start_byte: int = 0, end_byte: int | None = None) -> AsyncIterator[bytes]:
        with _said(key):
            file = await _in_thread(lambda: _open(self._path(key)))
        try:
            await _in_thread(lambda: file.seek(start_byte))
            left = None if end_byte is None else end_byte - start_byte + 1
            while left is None or left > 0:
                most = CHUNK_BYTES if left is None else min(CHUNK_BYTES, left)
                with _said(key):
                    chunk = await _in_thread(lambda most=most: file.read(most))  # type: ignore[misc]
                if not chunk:
                    return
                left = None if left is None else left - len(chunk)
                yield chunk
        finally:
            file.close()

    async def size(self, key: str) -> int | None:
        path = self._path(key)
        with _said():
            return await _in_thread(lambda: _size(path))

    async def delete(self, key: str) -> None:
        path = self._path(key)
        with _said():
            await _in_thread(lambda: _delete(path, self._root, _digest(key)))

    async def keys(self, under: str = "") -> AsyncIterator[str]:
        walk = _walk(self._root)
        while True:
            with _said():
                some = await _in_thread(lambda: list(islice(walk, WALK_ITEMS)))
            for key in some:
                if key.startswith(under):
                    yield key
            if len(some) < WALK_ITEMS:
                return

    def _path(self, key: str) -> Path:
        path = self._root / checked_key(key)
        # The key cannot leave the directory by its spelling; this refuses one that leaves it by a link.
        if not path.parent.resolve().is_relative_to(self._root):
            raise Invalid("this file would lie outside of the directory of files")
        return path


@asynccontextmanager
async def open_directory(path: Path, bucket: str) -> AsyncIterator[ObjectFiles]:
    """The directory, made if it is not there."""
    try:
        root = await _in_thread(lambda: _prepare(path))
    except OSError as error:
        raise Invalid(f"{path}: {error.strerror}; the directory of files must be writable") from error
    yield DirectoryFiles(root, bucket)


async def _in_thread(do: Callable[[], T]) -> T:
    """The answer of a function that may wait for the disk.

    Who is cancelled leaves only when the thread has ended: a file that is closed under it would lend its number to the
    next one that is opened, and the thread would write there.
    """
    step = asyncio.ensure_future(asyncio.to_thread(do))
    try:
        return await asyncio.shield(step)
    except asyncio.CancelledError:
        while not step.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({step})
        raise


def _digest(key: str) -> str:
    return sha256(key.encode()).hexdigest()[:32]


def _prepare(path: Path) -> Path:
    drafts = path / PARTIAL
    drafts.mkdir(parents=True, exist_ok=True, mode=0o700)
    for draft in drafts.iterdir():
        with contextlib.suppress(FileNotFoundError):
            if time.time() - draft.stat().st_mtime > LEFT_SECONDS:
                draft.unlink()
    return path.resolve()


def _create(draft: Path) -> BinaryIO:
    return os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb", buffering=0)


def _write_all(file: BinaryIO, chunk: bytes) -> None:
    rest = memoryview(chunk)
    while rest:
        rest = rest[file.write(rest):]


def _open(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb", buffering=0)


def _finish(file: BinaryIO, draft: Path, target: Path, root: Path) -> None:
    """Make the object appear: bytes first, then its name, both on the disk when this returns."""
    os.fsync(file.fileno())
    file.close()
    for attempt in range(RENAME_TRIES):
        _make_parents(target.parent, root)
        try:
            draft.rename(target)
        except FileNotFoundError:
            if attempt + 1 == RENAME_TRIES or not draft.exists():
                raise
        else:
            break
    _sync(target.parent)


def _make_parents(parent: Path, root: Path) -> None:
    missing = [folder for folder in (parent, *parent.parents) if folder.is_relative_to(root) and not folder.is_dir()]
    for folder in reversed(missing):
        with contextlib.suppress(FileExistsError, FileNotFoundError):
            folder.mkdir(mode=0o700)
            _sync(folder.parent)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _size(path: Path) -> int | None:
    try:
        return path.lstat().st_size
    except (FileNotFoundError, NotADirectoryError):
        return None


def _delete(path: Path, root: Path, digest: str) -> None:
    # Unfinished writes first: one that is renamed meanwhile is then found under its own name.
    for draft in (root / PARTIAL).glob(f"{digest}.*"):
        draft.unlink(missing_ok=True)
    try:
        path.unlink()
    except (FileNotFoundError, NotADirectoryError):
        return
    for folder in path.parents:
        if folder == root:
            break
        try:
            folder.rmdir()
        except OSError:  # not empty, or someone else was quicker
            break


def _walk(root: Path) -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(folder, name).relative_to(root).as_posix() for name in names)


@contextlib.contextmanager
def _said(key: str = "") -> Iterator[None]:
    """What the system says, in our words: full, read-only or broken disks may be better later."""
    try:
        yield
    except FileNotFoundError as error:
        if key:
            raise NotFound(f"there is no file {key}") from error
        raise Unavailable("the file was taken away while it was being written; try again") from error
    except OSError as error:
        if key and error.errno in (errno.ELOOP, errno.EISDIR, errno.ENOTDIR):
            raise NotFound(f"there is no file {key}") from error
        raise Unavailable(f"the directory of files does not work: {error.strerror}") from error
