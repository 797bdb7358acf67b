"""Restoring a backup: into an empty data directory, or to a server and a database that hold nothing yet."""

import os
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from keystead.backup.archive import STATE
from keystead.backup.checking import check_sql
from keystead.backup.dumping import BATCH_KEYS, dump, put, records_in
from keystead.backup.installation import Installation
from keystead.backup.models import DUMP, Head, Manifest
from keystead.backup.pinning import files_directory
from keystead.backup.rows import all_tables, copy_rows, foreign_tables, learn_columns, require_empty
from keystead.backup.scratch import count_loaded, lay_down, serving, tidy
from keystead.backup.taking import Progress, silent
from keystead.backup.threads import Stop, in_thread
from keystead.backup.unpacking import Unpacked, read_head, unpack
from keystead.engine import Valkey, connect
from keystead.errors import Conflict, Invalid
from keystead.store import Database
from keystead.store.address import parse_address
from keystead.store.migration import line

# Called with a client of the restored server, before anybody else uses it.
Prepare = Callable[[Valkey], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Restored:
    """What was restored. ``keys`` are on the server now: those whose time was over by now are not."""

    manifest: Manifest
    keys: int
    warnings: tuple[str, ...]


def require_known(head: Head, path: Path) -> None:
    """Refuse an archive of a newer version, before anything is done with it."""
    newest = line()[-1].revision
    if head.migration > newest or _numbers(head.keystead_version) > _numbers(version("keystead")):
        raise Invalid(f"{path} was made by Keystead {head.keystead_version} with tables {head.migration}, and this one "
                      f"is {version('keystead')} with tables {newest}; restore it with that version or a newer one")


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:3] if part.isdigit())


class Restore:
    """Restores to one installation, which must not be running."""

    def __init__(self, installation: Installation, *, passphrase: bytes | None = None, over: bool = False) -> None:
        """``over``: also to a server that holds keys; those of the same names are replaced, the others stay."""
        self._to, self._passphrase, self._over = installation, passphrase, over
        self._warnings: list[str] = []

    async def run(self, path: Path, *, prepare: Prepare | None = None, progress: Progress | None = None) -> Restored:
        """Check the whole archive, then restore it.

        Into a data directory it appears in one step, complete, or not at all. At a server and a PostgreSQL database
        rows come in one transaction and keys after them; if that fails in the middle, it says so, and the target has to
        be emptied before the next try.
        """
        told = progress or silent
        head = await in_thread(read_head, path, self._passphrase)
        require_known(head, path)
        if self._to.is_embedded:
            return await self._into_directory(path, head, prepare, told)
        return await self._to_server(path, head, prepare, told)

    # -- a data directory -------------------------------------------------------------------------------------------

    async def _into_directory(self, path: Path, head: Head, prepare: Prepare | None, told: Progress) -> Restored:
        target = self._to.data_directory.expanduser().absolute()
        place = target.resolve()  # a link stays one
        if place.is_mount():
            raise Invalid(f"{target} is where a file system begins, and cannot appear in one step; name a directory in "
                          f"it: --data {target / 'data'}")
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise Conflict(f"{target} is not empty; name another directory with --data, or move it away")
        if head.layout != "plain":
            raise Invalid(f"{path} was taken from a cluster, whose keys have other names than those of one server; "
                          "restore it to a cluster with --url cluster://...")
        await self._require_free(inside=target)
        staging = place.with_name(f".{place.name}.{secrets.token_hex(6)}.restoring")
        try:
            staging.mkdir(mode=0o700, parents=True)
        except OSError as error:
            raise Invalid(f"{target.parent} cannot be written: {error.strerror}") from error
        try:
            unpacked = await self._unpack(path, staging / "archive", told)
            made = staging / "data"
            snapshots = unpacked.snapshots()
            lay_down(None if head.valkey_form == DUMP else snapshots[0], made)
            self._put_state(unpacked, made)
            async with serving(made, head.valkey_database) as valkey:
                if head.valkey_form == DUMP:
                    await self._put_dump(valkey, snapshots, told)
                else:
                    require_all(await count_loaded(valkey), unpacked.manifest)
                if prepare is not None:
                    await prepare(valkey)
                keys = await valkey.run(("DBSIZE",), int)
            tidy(made)
            await self._put_sql(unpacked, told, inside=target, made=made)
            self._put_files(unpacked, inside=target, made=made)
            await in_thread(_appear, made, place)
            return Restored(unpacked.manifest, keys, self._said(unpacked))
        finally:
            await in_thread(shutil.rmtree, staging, True)

    # -- a server ---------------------------------------------------------------------------------------------------

    async def _to_server(self, path: Path, head: Head, prepare: Prepare | None, told: Progress) -> Restored:
        target = self._to.data_directory.expanduser().absolute()
        async with self._connected() as valkey:
            if valkey.layout.value != head.layout:
                raise Invalid(f"{path} holds {head.layout} names of keys and this server {valkey.layout.value} ones; "
                              "restore it to the kind of server that it was taken from, then see: keystead keys move")
            if head.lanes != self._to.lanes and head.layout != "plain":
                raise Invalid(f"{path} was taken with messaging.lanes = {head.lanes}, and here it is {self._to.lanes}; "
                              f"set messaging.lanes to {head.lanes}")
            await self._require_no_keys(valkey)
            await self._require_free(inside=None)
            with tempfile.TemporaryDirectory(prefix="keystead-restore-", dir=_work_place(target)) as place:
                unpacked = await self._unpack(path, Path(place) / "archive", told)
                self._require_state(unpacked, target)
                await self._put_sql(unpacked, told)
                self._put_files(unpacked)
                await self._put_keys(valkey, unpacked, Path(place), told)
                if prepare is not None:
                    await prepare(valkey)
                target.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._put_state(unpacked, target)
                keys = sum([await node.run(("DBSIZE",), int) for node in await valkey.nodes()])
                return Restored(unpacked.manifest, keys, self._said(unpacked))

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Valkey]:
        settings = replace(self._to.valkey, replicas=0)
        valkey = await connect(settings.url, settings=settings, lanes=self._to.lanes)
        try:
            yield valkey
        finally:
            await valkey.aclose()

    async def _require_no_keys(self, valkey: Valkey) -> None:
        if self._over:
            return
        found = sum([await node.run(("DBSIZE",), int) for node in await valkey.nodes()])
        if found:
            raise Conflict(f"the server holds {found:,} keys; restore to an empty one, or replace those of the same "
                           "names with --over")

    async def _put_keys(self, valkey: Valkey, unpacked: Unpacked, place: Path, told: Progress) -> None:
        if unpacked.head.valkey_form == DUMP:
            await self._put_dump(valkey, unpacked.snapshots(), told)
            return
        loaded = 0
        for number, snapshot in enumerate(unpacked.snapshots()):
            directory = place / f"server-{number}"
            lay_down(snapshot, directory)
            async with serving(directory, unpacked.head.valkey_database) as scratch:
                loaded += await count_loaded(scratch)
                async for records in dump(scratch, lambda done, of: told("Valkey keys", done, of)):
                    await put(valkey, records, replace=self._over)
            shutil.rmtree(directory)
        require_all(loaded, unpacked.manifest)

    # -- parts ------------------------------------------------------------------------------------------------------

    async def _unpack(self, path: Path, place: Path, told: Progress) -> Unpacked:
        stop = Stop()

        def read(done: int, of: int) -> None:
            stop.check()
            told("reading the archive", done, of)

        unpacked = await in_thread(unpack, path, place, self._passphrase, read, stop=stop)
        await in_thread(check_sql, unpacked.sql)
        return unpacked

    async def _put_dump(self, valkey: Valkey, files: list[Path], told: Progress) -> None:
        for number, file in enumerate(files):
            some = []
            for record in records_in(file):
                some.append(record)
                if len(some) == BATCH_KEYS:
                    await put(valkey, some, replace=self._over)
                    some = []
            await put(valkey, some, replace=self._over)
            told("Valkey keys, in files", number + 1, len(files))

    async def _require_free(self, inside: Path | None) -> None:
        """See that database and files hold nothing yet, wherever they are besides the data directory."""
        address = parse_address(self._to.database_url)
        if address.dialect == "sqlite":
            if address.path.exists() and address.path.stat().st_size and not _is_within(address.path, inside):
                raise Conflict(f"{address.shown} is there already; move it away, or name another one with store.url")
            for left in (Path(f"{address.path}{end}") for end in ("-wal", "-journal")):
                if left.exists() and not _is_within(left, inside):  # it would be taken for changes of the restored one
                    raise Conflict(f"{left} is left of another database; move it away")
        else:
            async with Database.open(self._to.database_url) as database, database.reading() as sql:
                await require_empty(sql, self._to.tables(), database.shown)
        root = files_directory(self._to.files_url)
        if root is not None and root.is_dir() and any(not each.name.startswith(".") for each in root.iterdir()):
            raise Conflict(f"the directory of files {root} is not empty; move it away")

    async def _put_sql(
        self, unpacked: Unpacked, told: Progress, *, inside: Path | None = None, made: Path | None = None
    ) -> None:
        address = parse_address(self._to.database_url)
        if address.dialect == "sqlite":
            place = address.path
            if made is not None and inside is not None and _is_within(place, inside):
                place = made / place.absolute().relative_to(inside)
            place.parent.mkdir(parents=True, exist_ok=True)
            await in_thread(shutil.move, unpacked.sql, place)
            return
        families = self._to.tables()
        async with Database.open(f"sqlite:///{unpacked.sql}") as kept, Database.open(self._to.database_url) as target:
            await kept.migrate()
            await target.migrate()
            async with kept.reading() as source:
                await learn_columns(source, families)
                await families.ensure(target)
                if left_out := await foreign_tables(source, families):
                    self._warnings.append(f"{len(left_out)} tables of the backup are not Keystead's and were not "
                                          f"restored: {', '.join(left_out[:5])}")
                async with target.transaction() as sql:
                    await require_empty(sql, families, target.shown)
                    await copy_rows(source, target, sql, all_tables(families),
                                    lambda table, count: told(f"SQL {table}", count, 0))

    def _put_files(self, unpacked: Unpacked, *, inside: Path | None = None, made: Path | None = None) -> None:
        root = files_directory(self._to.files_url)
        if root is None:
            if unpacked.manifest.files.count:
                self._warnings.append(f"{unpacked.manifest.files.count} object files of the backup were not restored: "
                                      "this installation keeps its files in a bucket")
            return
        if not unpacked.files.is_dir():
            return
        if made is not None and inside is not None and _is_within(root, inside):
            root = made / root.absolute().relative_to(inside)
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        for each in unpacked.files.iterdir():
            shutil.move(each, root / each.name)

    def _require_state(self, unpacked: Unpacked, directory: Path) -> None:
        for kept in self._state(unpacked):
            there = directory / kept.name
            if there.exists() and there.read_bytes() != kept.read_bytes() and not self._over:
                raise Conflict(f"{there} belongs to another installation; move it away, or replace it with --over")

    def _put_state(self, unpacked: Unpacked, directory: Path) -> None:
        for kept in self._state(unpacked):
            shutil.copyfile(kept, directory / kept.name)
            (directory / kept.name).chmod(0o600)

    def _state(self, unpacked: Unpacked) -> list[Path]:
        """The small files; only those that an installation has."""
        place = unpacked.directory / STATE
        return [place / name for name in self._to.state_files if (place / name).is_file()]

    def _said(self, unpacked: Unpacked) -> tuple[str, ...]:
        return (*unpacked.manifest.warnings, *self._warnings)


def require_all(loaded: int, manifest: Manifest) -> None:
    """See that the servers found as many keys as there were at the moment of the backup."""
    if loaded != manifest.valkey_keys:
        raise Invalid(f"the snapshot holds {loaded:,} keys, and there were {manifest.valkey_keys:,} at the moment of "
                      "the backup; use another backup")


def _is_within(path: Path, directory: Path | None) -> bool:
    return directory is not None and path.absolute().is_relative_to(directory)


def _work_place(target: Path) -> Path | None:
    """Beside the data directory, where there is room for what is restored; else wherever the system likes."""
    return target.parent if target.parent.is_dir() and os.access(target.parent, os.W_OK) else None


def _appear(made: Path, target: Path) -> None:
    for folder, _, names in os.walk(made):
        for name in names:
            handle = os.open(Path(folder, name), os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
    if target.exists():
        target.rmdir()
    made.rename(target)
