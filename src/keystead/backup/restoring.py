"""Restoring a backup: into a data directory, or to a server and a database. What they hold is replaced only if told."""

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from keystead.backup.checking import require_all, require_known, unpack_and_check
from keystead.backup.dumping import dump, put, put_files
from keystead.backup.installation import Installation
from keystead.backup.keys import IDENTITY
from keystead.backup.models import DUMP, Head, Manifest
from keystead.backup.placing import Placing, appear, move_in
from keystead.backup.scratch import count_loaded, lay_down, serving, tidy
from keystead.backup.staging import staged
from keystead.backup.taking import Progress, silent
from keystead.backup.threads import in_thread
from keystead.backup.unfinished import begin, begin_in, end, end_in, remove_all_but_mark, require_whole
from keystead.backup.unpacking import Unpacked, read_head
from keystead.clock import SystemClock
from keystead.engine import ErrorReply, Valkey, connect
from keystead.engine.embedded_lock import is_locked
from keystead.errors import Conflict, Corrupt, Invalid
from keystead.jobs import Inspection

# Called with a client of the restored server, before anybody else uses it.
Prepare = Callable[[Valkey], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Restored:
    """What was restored. ``keys`` are on the server now: those whose time was over by now are not."""

    manifest: Manifest
    keys: int
    warnings: tuple[str, ...]


class Restore:
    """Restores to one installation, which must not be running."""

    def __init__(self, installation: Installation, *, passphrase: bytes | None = None, replace: bool = False) -> None:
        """``replace``: also where something is already. Keys, rows and object files that are there go; what was in a
        data directory is moved beside it."""
        self._to, self._passphrase, self._replace = installation, passphrase, replace

    async def run(self, path: Path, *, prepare: Prepare | None = None, progress: Progress | None = None) -> Restored:
        """Check the whole archive, down to a server that reads it; only then touch the target.

        An empty data directory appears in one step, complete, or not at all. Anywhere else a mark is left first and
        taken away last: whoever is killed between leaves a target that refuses to start, and another run with
        ``replace`` mends it. Rows in PostgreSQL come in one transaction.
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
        self._require_directory(target, place)
        if head.layout != "plain":
            raise Invalid(f"{path} was taken from a cluster, whose keys have other names than those of one server; "
                          "restore it to a cluster with --url cluster://...")
        await Placing(self._to, replace=self._replace, inside=target).require_free()
        async with staged(place.parent, place.name) as staging:
            return await self._through(staging, path, target, place, prepare, told)

    async def _through(
        self, staging: Path, path: Path, target: Path, place: Path, prepare: Prepare | None, told: Progress
    ) -> Restored:
        made = staging / "data"
        placing = Placing(self._to, replace=self._replace, inside=target, made=made)
        unpacked = await self._unpack(path, staging / "archive", told)
        keys = await self._make_data(unpacked, made, prepare, told)
        placing.put_state(unpacked, made)
        self._require_directory(target, place)  # that took a while, in which somebody may have started there
        in_one_step = placing.is_all_inside and not _holds_something(place)
        if not in_one_step:
            begin_in(place, path)
        await placing.put_sql(unpacked, told)
        await in_thread(placing.put_files, unpacked)
        if in_one_step:
            await in_thread(appear, made, place)
        else:
            if (aside := await in_thread(move_in, made, place)) is not None:
                placing.warnings.append(f"what was in {target} before lies in {aside}; remove it when all is well")
            end_in(place)
        return Restored(unpacked.manifest, keys, (*unpacked.manifest.warnings, *placing.warnings))

    def _require_directory(self, target: Path, place: Path) -> None:
        if place.is_mount():
            raise Invalid(f"{target} is where a file system begins, and cannot appear in one step; name a directory in "
                          f"it: --data {target / 'data'}")
        if not _holds_something(target):
            return
        if not target.is_dir():
            raise Conflict(f"{target} is a file; name a directory with --data, which is made if it is missing")
        if not self._replace:
            raise Conflict(f"{target} is not empty; name another directory with --data, or replace it with --replace")
        _require_unused(target)

    async def _make_data(self, unpacked: Unpacked, made: Path, prepare: Prepare | None, told: Progress) -> int:
        """The data of an embedded server, written and read by one; says how many keys it has."""
        head, snapshots = unpacked.head, unpacked.snapshots()
        lay_down(None if head.valkey_form == DUMP else snapshots[0], made)
        async with serving(made, head.valkey_database) as valkey:
            told("Valkey keys", 0, unpacked.manifest.valkey_keys)
            loaded = await (put_files(valkey, snapshots) if head.valkey_form == DUMP else count_loaded(valkey))
            require_all(loaded, unpacked.manifest)
            await _begin_anew(valkey, prepare)
            keys = await valkey.run(("DBSIZE",), int)
        tidy(made)
        return keys

    # -- a server ---------------------------------------------------------------------------------------------------

    async def _to_server(self, path: Path, head: Head, prepare: Prepare | None, told: Progress) -> Restored:
        target = self._to.data_directory.expanduser().absolute()
        placing = Placing(self._to, replace=self._replace)
        async with self._connected() as valkey:
            if valkey.layout.value != head.layout:
                raise Invalid(f"{path} holds {head.layout} names of keys and this server {valkey.layout.value} ones; "
                              "restore it to the kind of server that it was taken from, then see: keystead keys move")
            if head.lanes != self._to.lanes and head.layout != "plain":
                raise Invalid(f"{path} was taken with messaging.lanes = {head.lanes}, and here it is {self._to.lanes}; "
                              f"set messaging.lanes to {head.lanes}")
            await self._require_server(valkey, target)
            await placing.require_free()
            async with staged(_work_place(target), "keystead") as staging:
                unpacked = await self._unpack(path, staging / "archive", told)
                placing.require_state(unpacked, target)
                sources = await _read_by_servers(unpacked, staging)
                await self._require_server(valkey, target)  # somebody may have started meanwhile
                await begin(valkey, path)
                if self._replace:
                    await remove_all_but_mark(valkey)
                await placing.put_sql(unpacked, told)
                await in_thread(placing.put_files, unpacked)
                await _put_keys(valkey, unpacked, sources, told)
                await _begin_anew(valkey, prepare)
                placing.put_state(unpacked, target)
                await end(valkey)
                keys = await _count(valkey)
                return Restored(unpacked.manifest, keys, (*unpacked.manifest.warnings, *placing.warnings))

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Valkey]:
        settings = replace(self._to.valkey, replicas=0)
        valkey = await connect(settings.url, settings=settings, lanes=self._to.lanes)
        try:
            yield valkey
        finally:
            await valkey.aclose()

    async def _require_server(self, valkey: Valkey, target: Path) -> None:
        """Refuse a server that holds keys, unless told to replace them; and in any case one with workers at work, and
        a directory whose files another installation uses."""
        if not self._replace:
            await require_whole(valkey)
            if found := await _count(valkey):
                raise Conflict(f"the server holds {found:,} keys; restore to an empty one, or replace all of them with "
                               "--replace")
            return
        _require_unused(target)
        with suppress(Corrupt, ErrorReply):  # keys of somebody else that are named like ours
            if alive := [each.name for each in await Inspection(valkey, SystemClock()).workers() if each.alive]:
                raise Conflict(f"{alive[0]} works at this server; stop every worker first (one that was killed is "
                               "forgotten after a minute)")

    async def _unpack(self, path: Path, place: Path, told: Progress) -> Unpacked:
        return await unpack_and_check(path, place, self._passphrase,
                                      lambda done, of: told("reading the archive", done, of))


async def _begin_anew(valkey: Valkey, prepare: Prepare | None) -> None:
    """What is done before anybody uses the restored data. Its backups are its own: the installation that the archive
    was taken of may still be there, and its backups in the same place."""
    await IDENTITY.at().delete(valkey)
    if prepare is not None:
        await prepare(valkey)


async def _count(valkey: Valkey) -> int:
    return sum([await node.run(("DBSIZE",), int) for node in await valkey.nodes()])


async def _read_by_servers(unpacked: Unpacked, place: Path) -> list[Path]:
    """Let a server read what is in the archive, and see that all keys are there; says where snapshots lie now."""
    found: list[Path] = []
    if unpacked.head.valkey_form == DUMP:
        async with serving(place / "server") as scratch:
            require_all(await put_files(scratch, unpacked.snapshots(), forever=True), unpacked.manifest)
        return found
    loaded = 0
    for number, snapshot in enumerate(unpacked.snapshots()):
        found.append(place / f"server-{number}")
        lay_down(snapshot, found[-1])
        async with serving(found[-1]) as scratch:
            loaded += await count_loaded(scratch)
    require_all(loaded, unpacked.manifest)
    return found


async def _put_keys(valkey: Valkey, unpacked: Unpacked, sources: list[Path], told: Progress) -> None:
    if unpacked.head.valkey_form == DUMP:
        await put_files(valkey, unpacked.snapshots())
    for source in sources:
        async with serving(source, unpacked.head.valkey_database) as scratch:
            async for records in dump(scratch, lambda done, of: told("Valkey keys", done, of)):
                await put(valkey, records)
        shutil.rmtree(source)


def _require_unused(directory: Path) -> None:
    if is_locked(directory / "owner.lock"):
        raise Conflict(f"{directory} is in use; stop what runs there first")


def _holds_something(target: Path) -> bool:
    return target.exists() and (not target.is_dir() or any(target.iterdir()))


def _work_place(target: Path) -> Path:
    """Beside the data directory, where there is room for what is restored; else wherever the system likes."""
    beside = target.parent
    return beside if beside.is_dir() and os.access(beside, os.W_OK) else Path(tempfile.gettempdir())
