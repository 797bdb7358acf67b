"""Reading an archive: every member is checked on its way into a directory, and the whole of it before it is used."""

import contextlib
import gzip
import hashlib
import io
import os
import shutil
import tarfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, Final, Self

import msgspec

from keystead.backup.archive import CHUNK_BYTES, FILES, HEAD, MANIFEST, SQL, STATE, VALKEY, told, valkey_part
from keystead.backup.cipher import MAGIC, OLD_MAGIC, SealedSource
from keystead.backup.models import FORMAT, RDB, Head, Manifest, ObjectFilesPart, Part
from keystead.errors import Invalid, Unavailable
from keystead.store.files import checked_key

MOST_JSON_BYTES: Final = 64 * 1024 * 1024
MOST_BESIDE_BYTES: Final = 64 * 1024
# Of the disk that an archive is unpacked on so much stays free, whatever the archive says: others write there too.
RESERVED_SHARE, MOST_RESERVED_BYTES = 0.01, 1024**3
_BESIDE: Final = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME,
                  tarfile.GNUTYPE_LONGLINK)
_ZSTD, _GZIP = b"\x28\xb5\x2f\xfd", b"\x1f\x8b"

# How many bytes of the archive were read so far, and how many there are.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Unpacked:
    """An archive whose checksums were right, and where its members lie."""

    manifest: Manifest
    directory: Path

    @property
    def head(self) -> Head:
        return self.manifest.head

    @property
    def sql(self) -> Path:
        return self.directory / SQL

    @property
    def files(self) -> Path:
        return self.directory / FILES

    def snapshots(self) -> list[Path]:
        """The files of the servers, in their order."""
        return [self.directory / part.name for part in self.manifest.parts if part.name.startswith(VALKEY)]


def read_head(path: Path, passphrase: bytes | None) -> Head:
    """What kind of archive this is, without reading more of it than its beginning."""
    with opened(path, passphrase) as archive:
        return _head(archive, next(_members(archive), None), path)


def unpack(path: Path, directory: Path, passphrase: bytes | None, progress: Progress | None = None) -> Unpacked:
    """Take an archive apart into ``directory``. ``Invalid`` says what is wrong with one that is not whole.

    Only names that an archive of ours has are written, and none of them leaves the directory.
    """
    parts: dict[str, Part] = {}
    count, size, digest = 0, 0, hashlib.sha256()
    manifest: Manifest | None = None
    with opened(path, passphrase, progress) as archive:
        head: Head | None = None
        for member in _members(archive):
            if head is None:
                head = _head(archive, member, path)
                continue
            if manifest is not None or not member.isreg() or member.issparse():
                raise Invalid(f"{path} is no backup of Keystead: it holds {member.name[:80]!r}")
            content = archive.extractfile(member)
            assert content is not None
            if member.name == MANIFEST:
                manifest = _decoded(_small(content, member, path), Manifest, path)
                continue
            _check_name(member.name, path)
            part = _write(content, member, directory / member.name, path)
            if member.name.startswith(FILES):
                count, size = count + 1, size + part.bytes
                digest.update(f"{part.sha256} {part.name}\n".encode())
            else:
                parts[part.name] = part
    if manifest is None or head is None:
        raise Invalid(f"{path} is cut off: its manifest is missing; use another backup")
    _check_manifest(manifest, head, path)
    for part in manifest.parts:
        if part.name != HEAD and parts.get(part.name) != part:
            raise Invalid(f"{path} is damaged: {part.name[:80]!r} is not what the manifest says; use another backup")
    if extra := parts.keys() - {part.name for part in manifest.parts}:
        raise Invalid(f"{path} is damaged: the manifest does not know {min(extra)!r}; use another backup")
    found = ObjectFilesPart(count, size, digest.hexdigest() if count else "", manifest.files.kept_elsewhere)
    if found != manifest.files:
        raise Invalid(f"{path} is damaged: its object files are not what the manifest says; use another backup")
    return Unpacked(manifest, directory)


def _check_manifest(manifest: Manifest, head: Head, path: Path) -> None:
    """See that everything is listed that an archive of this kind has, once."""
    names = [part.name for part in manifest.parts]
    servers = [name for name in names if name.startswith(VALKEY)]
    wrong = ""
    if manifest.head != head:
        wrong = "its beginning and its manifest do not agree"
    elif len(set(names)) < len(names):
        wrong = "its manifest lists a part twice"
    elif not servers:
        wrong = "the data of Valkey are missing"
    elif servers != [valkey_part(number, head.valkey_form) for number in range(len(servers))]:
        wrong = "some of the data of Valkey are missing, or of another form than it says"
    elif head.valkey_form == RDB and head.layout == "plain" and len(servers) > 1:
        wrong = f"it says that it was taken from one server, and holds the data of {len(servers)}"
    elif SQL not in names:
        wrong = "there is no database in it"
    if wrong:
        raise Invalid(f"{path} is damaged: {wrong}; use another backup")


def _members(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """The members in turn. What the library stumbles over in a crafted head is damage like any other."""
    members = iter(archive)
    while True:
        try:
            member = next(members)
        except StopIteration:
            return
        except (ValueError, ArithmeticError, LookupError, RecursionError) as error:
            raise tarfile.ReadError("a head that cannot be read") from error
        yield member


@contextlib.contextmanager
def opened(path: Path, passphrase: bytes | None, progress: Progress | None = None) -> Iterator[tarfile.TarFile]:
    """The archive as a row of members. Whatever shows that it is cut off or damaged becomes ``Invalid``."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise Invalid(f"{path} cannot be read: {error.strerror}") from error
    with file:
        try:
            plain = _plain(_Counted(file, progress), passphrase, path)
            with tarfile.open(fileobj=plain, mode="r|", tarinfo=_Entry) as archive:
                yield archive
        except _damage() as error:
            raise Invalid(f"{path} is cut off or damaged, or no backup of Keystead; use another backup") from error


class _Entry(tarfile.TarInfo):
    """The head of a member. What is said of a member beside it is read into memory, so it may not be long; files with
    holes, of any length in a few bytes, are none of ours."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        found = super().frombuf(buf, encoding, errors)
        long = found.type in _BESIDE and found.size > MOST_BESIDE_BYTES
        if found.type == tarfile.GNUTYPE_SPARSE or long or found.size < 0:
            raise Invalid("this is no backup of Keystead: it holds entries that no backup has")
        return found


class _Counted(io.RawIOBase):
    """The file, telling how far it was read."""

    def __init__(self, file: BinaryIO, progress: Progress | None) -> None:
        self._file, self._progress, self._count = file, progress, 0
        self._size = os.fstat(file.fileno()).st_size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        count = self._file.readinto(buffer)  # type: ignore[attr-defined]
        self._count += count
        if self._progress is not None:
            self._progress(self._count, self._size)
        return int(count)


def _plain(file: io.RawIOBase, passphrase: bytes | None, path: Path) -> Any:
    source = io.BufferedReader(file, CHUNK_BYTES)
    if source.peek(len(MAGIC))[: len(MAGIC)] in (MAGIC, OLD_MAGIC):
        if passphrase is None:
            raise Invalid(f"{path} was made with a passphrase; name its file with --passphrase-file")
        source = io.BufferedReader(SealedSource(source, passphrase), CHUNK_BYTES)
    start = source.peek(4)[:4]
    if start == _ZSTD:
        try:
            import zstandard
        except ImportError:
            raise Invalid("this backup needs another package: pip install 'keystead[zstd]'") from None
        return zstandard.ZstdDecompressor().stream_reader(source)
    if start[:2] == _GZIP:
        return gzip.GzipFile(fileobj=source)
    raise Invalid(f"{path} is no backup of Keystead")


def _damage() -> tuple[type[Exception], ...]:
    """What those who read an archive raise when it is cut off or damaged."""
    known: tuple[type[Exception], ...] = (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile)
    try:
        import zstandard
    except ImportError:
        return known
    return (*known, zstandard.ZstdError)


def _head(archive: tarfile.TarFile, member: tarfile.TarInfo | None, path: Path) -> Head:
    if member is None or member.name != HEAD or not member.isreg():
        raise Invalid(f"{path} is no backup of Keystead")
    content = archive.extractfile(member)
    assert content is not None
    raw = _small(content, member, path)
    form = _decoded(raw, _Form, path).format
    if form > FORMAT:
        raise Invalid(f"{path} was made by a newer Keystead (form {form}, this one knows {FORMAT}); use that version")
    head: Head = _decoded(raw, Head, path)
    return head


class _Form(msgspec.Struct):
    format: int


def _small(content: IO[bytes], member: tarfile.TarInfo, path: Path) -> bytes:
    if member.size > MOST_JSON_BYTES:
        raise Invalid(f"{path} is no backup of Keystead: {member.name} has {member.size:,} bytes")
    return content.read()


def _decoded(raw: bytes, kind: Any, path: Path) -> Any:
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.MsgspecError as error:
        raise Invalid(f"{path} is damaged: {error}") from None


def _check_name(name: str, path: Path) -> None:
    if name == SQL:
        return
    for folder in (VALKEY, FILES, STATE):
        if name.startswith(folder):
            try:
                checked_key(name.removeprefix(folder))
                return
            except Invalid:
                break
    raise Invalid(f"{path} is no backup of Keystead: it holds {name[:80]!r}")


def _write(content: IO[bytes], member: tarfile.TarInfo, target: Path, path: Path) -> Part:
    digest = hashlib.sha256()
    with told(target):
        try:
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _require_room(member, target.parent)
            handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except (FileExistsError, NotADirectoryError):
            raise Invalid(f"{path} is no backup of Keystead: it holds {member.name[:80]!r} twice") from None
        with os.fdopen(handle, "wb") as file:
            while chunk := content.read(CHUNK_BYTES):
                digest.update(chunk)
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
    return Part(member.name, member.size, digest.hexdigest())


def _require_room(member: tarfile.TarInfo, place: Path) -> None:
    disk = shutil.disk_usage(place)
    free = max(0, disk.free - int(min(disk.total * RESERVED_SHARE, MOST_RESERVED_BYTES)))
    if member.size > free:
        raise Unavailable(f"{member.name[:80]!r} of the backup has {member.size:,} bytes, and where it is unpacked, "
                          f"{place}, only {free:,} are free for it")
