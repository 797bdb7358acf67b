"""Writing an archive: a tar file under zstd (or gzip), and under a passphrase if there is one.

It grows under a name of its own beside the final one, is forced to the disk, and gets its name in one step, so
under the final name there is a whole archive or nothing. ``tar --zstd -xf FILE`` reads what has no passphrase.
"""

import contextlib
import errno
import gzip
import hashlib
import os
import secrets
import tarfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Self

import msgspec

from keystead.backup.cipher import SealedSink
from keystead.backup.models import RDB, Head, Manifest, Part
from keystead.backup.unfinished import sync_directory
from keystead.errors import Conflict, Invalid, Unavailable

HEAD: Final = "keystead-backup.json"
MANIFEST: Final = "manifest.json"
SQL: Final = "sql/keystead.sqlite"
VALKEY: Final = "valkey/"
FILES: Final = "files/"
STATE: Final = "state/"
CHUNK_BYTES: Final = 1024 * 1024
_BLOCK: Final = 512


def valkey_part(number: int, form: str) -> str:
    """The name of a member with data of Valkey: a snapshot for each primary, or files of records, which may be many."""
    return f"{VALKEY}{number}.rdb" if form == RDB else f"{VALKEY}{number:06}.{form}"


class ArchiveWriter:
    """An archive that is being written. Used as a block: what is not finished when it ends is removed.

    Everything here waits for the disk and belongs into a thread.
    """

    def __init__(self, path: Path, passphrase: bytes | None = None) -> None:
        self.path = path.absolute()
        self._draft = self.path.with_name(f".{path.name}.{secrets.token_hex(6)}.partial")
        self._passphrase = passphrase
        self._parts: list[Part] = []
        self._member: _Member | None = None

    @property
    def parts(self) -> tuple[Part, ...]:
        return tuple(self._parts)

    @property
    def work_directory(self) -> Path:
        """A directory beside the archive for what has to lie on the disk meanwhile; it goes with the block."""
        place = self._draft.with_suffix(".work")
        place.mkdir(mode=0o700, exist_ok=True)
        return place

    def __enter__(self) -> Self:
        if self.path.exists():
            raise Conflict(f"{self.path} is there already; name another file, or remove it")
        with told(self.path):
            handle = os.open(self._draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._file: BinaryIO = os.fdopen(handle, "wb", buffering=CHUNK_BYTES)
        try:
            self._sealed = SealedSink(self._file, self._passphrase) if self._passphrase is not None else None
            self._sink: Any = _compressing(self._sealed or self._file)
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._remove()

    def begin(self, name: str, size: int) -> None:
        """A member of so many bytes follows."""
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode, entry.mtime = size, 0o600, 0
        with told(self.path):
            self._sink.write(entry.tobuf(tarfile.PAX_FORMAT, "utf-8", "strict"))
        self._member = _Member(name, size)

    def write(self, chunk: bytes) -> None:
        """The next bytes of the member."""
        assert self._member is not None
        self._member.add(chunk)
        with told(self.path):
            self._sink.write(chunk)

    def end(self) -> Part:
        """The member is whole. ``Unavailable`` if fewer bytes came than were announced."""
        member, self._member = self._member, None
        assert member is not None
        if member.left:
            raise Unavailable(f"{member.name} ended {member.left:,} bytes too early")
        with told(self.path):
            self._sink.write(bytes(-member.size % _BLOCK))
        return Part(member.name, member.size, member.digest.hexdigest())

    def add(self, name: str, content: bytes) -> Part:
        """A small member."""
        self.begin(name, len(content))
        self.write(content)
        return self.keep(self.end())

    def keep(self, part: Part) -> Part:
        """List a member in the manifest by itself."""
        self._parts.append(part)
        return part

    def add_head(self, head: Head) -> None:
        self.add(HEAD, msgspec.json.format(msgspec.json.encode(head), indent=2) + b"\n")

    def finish(self, manifest: Manifest) -> int:
        """Write the manifest, force everything to the disk and give the file its name; says how many bytes it has."""
        self.add(MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
        with told(self.path):
            self._sink.write(bytes(2 * _BLOCK))
            self._sink.close()
            if self._sealed is not None:
                self._sealed.close()
            self._file.flush()
            os.fsync(self._file.fileno())
            size = os.fstat(self._file.fileno()).st_size
            _give_name(self._draft, self.path)
            sync_directory(self.path.parent)
        return size

    def _remove(self) -> None:
        with contextlib.suppress(OSError):
            self._file.close()
        self._draft.unlink(missing_ok=True)
        work = self._draft.with_suffix(".work")
        if work.is_dir():
            for left in work.iterdir():
                left.unlink(missing_ok=True)
            work.rmdir()


class _Member:
    def __init__(self, name: str, size: int) -> None:
        self.name, self.size, self.left, self.digest = name, size, size, hashlib.sha256()

    def add(self, chunk: bytes) -> None:
        if len(chunk) > self.left:
            raise Unavailable(f"{self.name} is longer than it said")
        self.left -= len(chunk)
        self.digest.update(chunk)


@contextlib.contextmanager
def told(path: Path) -> Iterator[None]:
    """What the system says of a file, in one line that helps."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise Unavailable(f"{path}: the disk is full ({error.strerror}); nothing was left behind") from error
        raise Invalid(f"{path} cannot be written: {error.strerror}") from error


def _compressing(sink: Any) -> Any:
    try:
        import zstandard
    except ImportError:
        return gzip.GzipFile(fileobj=sink, mode="wb", compresslevel=6, mtime=0)
    return zstandard.ZstdCompressor(level=3, write_checksum=True).stream_writer(sink, closefd=False)


def _give_name(draft: Path, path: Path) -> None:
    try:
        path.hardlink_to(draft)  # never replaces an archive that somebody made meanwhile
    except FileExistsError:
        raise Conflict(f"{path} is there already; name another file, or remove it") from None
    except OSError:  # a file system without links
        draft.rename(path)
