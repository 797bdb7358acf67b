"""Taking a backup of an installation, while it runs."""

import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Final

import msgspec

from keystead.backup.archive import CHUNK_BYTES, FILES, SQL, STATE, ArchiveWriter, valkey_part
from keystead.backup.dumping import dump_files
from keystead.backup.installation import Installation
from keystead.backup.keeping import file_name, made
from keystead.backup.keys import IDENTITY, LAST
from keystead.backup.models import DUMP, RDB, Head, LastBackup, Manifest, ObjectFilesPart
from keystead.backup.moment import Moment, fix
from keystead.backup.pinning import Pins, files_directory
from keystead.backup.sql import SqlMoment, open_moment
from keystead.backup.threads import Stop, entered, in_thread
from keystead.backup.unfinished import require_whole
from keystead.engine import EmbeddedServer, ErrorReply, Valkey, attach, connect
from keystead.engine.snapshot import NotPermitted
from keystead.errors import KeysteadError, Unavailable
from keystead.installation import check_mark
from keystead.scrubbing import failure_told
from keystead.settings import EmbeddedSettings
from keystead.store.files import is_key

HOLD_SECONDS: Final = 3.0

# What is being done, how much of it is done, and of how much; 0 where nobody knows.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Taken:
    """A backup that lies on the disk."""

    path: Path
    bytes: int
    seconds: float
    manifest: Manifest


def why_failed(error: Exception) -> str:
    """For whoever runs the installation: our own words, and of foreign errors only the kind."""
    return str(error) if isinstance(error, KeysteadError) else failure_told(error)


class Backup:
    """Takes backups of one installation. Nothing is stopped; writes to Valkey wait for some milliseconds."""

    def __init__(
        self, installation: Installation, *, passphrase: bytes | None = None, hold_seconds: float = HOLD_SECONDS
    ) -> None:
        """``hold_seconds``: the longest time that writes may be held, whatever happens to us."""
        self._of, self._passphrase, self._hold_seconds = installation, passphrase, hold_seconds

    async def take(self, path: Path, progress: Progress | None = None) -> Taken:
        """Write everything into a new file. When this returns it is whole and on the disk; else there is no such file.

        Valkey and SQL are of one moment, unless the manifest says that they are not. ``Conflict`` for a file that is
        there already; ``Unavailable`` for a full disk and for servers that are away.
        """
        return await self._noted(lambda identity: path, progress)

    async def take_into(self, directory: Path, progress: Progress | None = None) -> Taken:
        """``take`` into a file that is named by the time and by this installation, as ``keep_newest`` knows it.

        The directory is made if it is missing, once there is an installation to back up.
        """
        return await self._noted(lambda identity: made(directory) / file_name(time.time(), identity), progress)

    async def _noted(self, name: Callable[[str], Path], progress: Progress | None) -> Taken:
        try:
            return await self._take(name, progress or silent)
        except Exception as error:
            await self._note_failure(why_failed(error))
            raise

    async def _take(self, name: Callable[[str], Path], progress: Progress) -> Taken:
        begun = time.monotonic()
        families = self._of.tables()
        async with AsyncExitStack() as stack:
            valkey = await stack.enter_async_context(_server(self._of))
            await require_whole(valkey)
            identity = await _identity(valkey)
            archive = await stack.enter_async_context(entered(ArchiveWriter(name(identity), self._passphrase)))
            sql = await stack.enter_async_context(open_moment(self._of.database_url, families))
            root = files_directory(self._of.files_url)
            pins = await stack.enter_async_context(entered(Pins(root))) if root is not None else None
            if pins is not None:
                await in_thread(pins.pin)
            work = _Work(archive, valkey, sql, self._of, progress, identity)
            await work.fix(stack, self._hold_seconds)
            if pins is not None:
                await in_thread(pins.pin)
            await work.write_state()
            keys = await work.write_valkey()
            await work.write_sql()
            files = await in_thread(work.write_files, pins, stop=work.stop)
            manifest = Manifest(
                head=work.head, parts=archive.parts, files=files, valkey_keys=keys,
                held_ms=round(work.held_seconds * 1000, 3), warnings=tuple(work.warnings),
            )
            size = await in_thread(archive.finish, manifest)
            taken = Taken(archive.path, size, time.monotonic() - begun, manifest)
            await self._note(valkey, taken)
        return taken

    async def _note(self, valkey: Valkey, taken: Taken) -> None:
        """Let it be seen when the last backup was taken. The backup is good even if that fails."""
        head = taken.manifest.head
        with suppress(KeysteadError, ErrorReply):
            await LAST.at().update(
                valkey, taken_at=head.taken_at, path=str(taken.path), bytes=taken.bytes,
                seconds=round(taken.seconds, 3), held_ms=taken.manifest.held_ms, one_moment=head.one_moment,
            )

    async def _note_failure(self, reason: str) -> None:
        with suppress(KeysteadError, ErrorReply):
            async with _connected(self._of) as valkey:
                await LAST.at().update(valkey, failed_at=time.time(), failure=reason[:500])


async def last_backup(valkey: Valkey) -> LastBackup | None:
    """What is known of the last backup; None if there never was one."""
    return await LAST.at().get(valkey)


class _Work:
    """One archive on its way."""

    def __init__(
        self, archive: ArchiveWriter, valkey: Valkey, sql: SqlMoment, of: Installation, progress: Progress,
        identity: str,
    ) -> None:
        self._archive, self._valkey, self._sql, self._of = archive, valkey, sql, of
        self.stop = Stop()
        self._told = progress
        self._moment: Moment | None = None
        self.warnings: list[str] = []
        facts = valkey.facts
        self.head = Head(
            keystead_version=version("keystead"), taken_at=time.time(), layout=valkey.layout.value, lanes=of.lanes,
            valkey_database=valkey.address.db if valkey.address is not None else 0,
            valkey_server=f"{facts.get('server', '')} {facts.get('version', '')}".strip(), sql_dialect=sql.dialect,
            installation=identity,
        )

    def _progress(self, what: str, done: int, of: int) -> None:
        self.stop.check()
        self._told(what, done, of)

    @property
    def held_seconds(self) -> float:
        return self._moment.held_seconds if self._moment is not None else 0.0

    async def fix(self, stack: AsyncExitStack, hold_seconds: float) -> None:
        self._progress("holding writes", 0, 0)
        try:
            self._moment = await fix(self._valkey, self._sql, stack, hold_seconds)
            form = RDB
        except NotPermitted as error:
            self.warnings.append(
                f"Valkey and SQL are not of one moment: {error}. Keys are copied one after the other; what was on its "
                "way between Valkey and SQL meanwhile may be missing, or there twice"
            )
            await self._sql.fix()
            form = DUMP
        self.head = msgspec.structs.replace(
            self.head, taken_at=time.time(), valkey_form=form, one_moment=form == RDB,
            migration=await self._sql.migration(),
        )

    async def write_state(self) -> None:
        await in_thread(self._archive.add_head, self.head)
        for name in self._of.state_files:
            path = self._of.data_directory / name
            if path.is_file():
                await in_thread(self._archive.add, STATE + name, path.read_bytes())
        if self._of.has_own_secret:
            self.warnings.append("installation.secret is not in the backup: keep it with your settings")
        elif not any(part.name == f"{STATE}{self._of.state_files[0]}" for part in self._archive.parts):
            self.warnings.append(f"there is no {self._of.state_files[0]} in {self._of.data_directory}: links and "
                                 "tokens that were given out will not work where this backup is restored")

    async def write_valkey(self) -> int:
        if self._moment is None:
            return await self._write_dump()
        for number, snapshot in enumerate(self._moment.snapshots):
            size = await snapshot.size()
            await in_thread(self._archive.begin, valkey_part(number, RDB), size)
            done = 0
            async for chunk in snapshot.chunks():
                await in_thread(self._archive.write, chunk)
                done += len(chunk)
                self._progress(f"Valkey server {number + 1} of {len(self._moment.snapshots)}", done, size)
            self._archive.keep(await in_thread(self._archive.end))
        return self._moment.keys

    async def _write_dump(self) -> int:
        keys, number = 0, 0
        async for content, count in dump_files(self._valkey, lambda done, of: self._progress("Valkey keys", done, of)):
            await in_thread(self._archive.add, valkey_part(number, DUMP), content)
            keys, number = keys + count, number + 1
        return keys

    async def write_sql(self) -> None:
        place = self._archive.work_directory / "copy.sqlite"
        try:
            self.warnings += await self._sql.write_to(
                place, lambda what, done: self._progress(f"SQL {what}", done, 0), self.stop
            )
        except OSError as error:
            raise Unavailable(f"the copy of the database cannot be written: {error.strerror}") from error
        await in_thread(self._add_file, SQL, place, True, stop=self.stop)
        place.unlink()

    def write_files(self, pins: Pins | None) -> ObjectFilesPart:
        if pins is None:
            self.warnings.append("object files lie in a bucket and are not in the backup")
            return ObjectFilesPart(kept_elsewhere=True)
        count, size, digest, strangers = 0, 0, sha256(), []
        for name, place in pins.files():
            if not is_key(name) or not place.is_file():  # such a name no store gives, and a restore would refuse it
                strangers += [name] if not is_key(name) else []
                continue
            with suppress(FileNotFoundError):
                length, checksum = self._add_file(FILES + name, place, False)
                digest.update(f"{checksum} {FILES}{name}\n".encode())
                count, size = count + 1, size + length
                self._progress("object files", count, 0)
        if strangers:
            self.warnings.append(f"{len(strangers)} files in the directory of files are not Keystead's and are not in "
                                 f"the backup: {', '.join(map(ascii, strangers[:3]))}")
        return ObjectFilesPart(count, size, digest.hexdigest() if count else "")

    def _add_file(self, name: str, place: Path, listed: bool) -> tuple[int, str]:
        with place.open("rb") as file:
            file.seek(0, 2)
            size = file.tell()
            file.seek(0)
            self._archive.begin(name, size)
            done = 0
            while chunk := file.read(CHUNK_BYTES):
                self._archive.write(chunk)
                done += len(chunk)
                if listed:
                    self._progress("archive of SQL", done, size)
            part = self._archive.end()
        if listed:
            self._archive.keep(part)
        return part.bytes, part.sha256


async def _identity(valkey: Valkey) -> str:
    """What the backups of this installation are called after; chosen by the first one.

    A server that takes no writes, as a full one, is backed up all the same: under a name of this backup alone.
    """
    if (known := await IDENTITY.at().get(valkey)) is not None:
        return known
    chosen = secrets.token_hex(4)
    with suppress(ErrorReply):
        await IDENTITY.at().set_if_absent(valkey, chosen)
    return await IDENTITY.at().get(valkey) or chosen


@asynccontextmanager
async def _server(of: Installation) -> AsyncIterator[Valkey]:
    """A client of its own; an embedded server that does not run is started for the time of the backup.

    A directory that is half restored is refused, as wherever it would be started.
    """
    async with AsyncExitStack() as stack:
        if of.is_embedded:
            check_mark(of.data_directory)
            try:
                attach(of.data_directory)
            except Unavailable:
                if not (of.data_directory / "appendonlydir").is_dir():
                    raise
                await stack.enter_async_context(EmbeddedServer.start(of.data_directory, EmbeddedSettings()))
        yield await stack.enter_async_context(_connected(of))


@asynccontextmanager
async def _connected(of: Installation) -> AsyncIterator[Valkey]:
    valkey = await connect(of.valkey.url, settings=replace(of.valkey, replicas=0), lanes=of.lanes)
    try:
        yield valkey
    finally:
        await valkey.aclose()


def silent(what: str, done: int, of: int) -> None:
    """Nobody watches."""
