"""Proving that an archive can be restored: its checksums, a server that reads the snapshot, a sound database."""

import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from keystead.backup.archive import STATE
from keystead.backup.dumping import put_files
from keystead.backup.models import DUMP, Head, Manifest
from keystead.backup.rows import VERSION_TABLE
from keystead.backup.scratch import count_loaded, lay_down, serving
from keystead.backup.threads import Stop, in_thread
from keystead.backup.unpacking import Progress, Unpacked, read_head, unpack
from keystead.edge.tickets import SECRET_BYTES, SECRET_FILE
from keystead.errors import Invalid
from keystead.installation import MARK_FILE, check_mark
from keystead.pace import PACE_FILE, read_pace
from keystead.store.migration import line


@dataclass(frozen=True, slots=True)
class Checked:
    """An archive that could be restored. ``keys`` were read by a server, ``rows`` counted in its tables."""

    manifest: Manifest
    keys: int
    rows: int


async def check(path: Path, *, passphrase: bytes | None = None) -> Checked:
    """Take an archive apart in a temporary directory beside it and load it there. ``Invalid`` says what is wrong."""
    try:
        place = tempfile.TemporaryDirectory(prefix=".keystead-check-", dir=path.parent)
    except OSError as error:
        raise Invalid(f"{path.parent} cannot be written: {error.strerror}; an archive is unpacked beside itself, so "
                      "copy it to where there is room") from error
    with place as name:
        directory = Path(name)
        require_known(await in_thread(read_head, path, passphrase), path)
        unpacked = await unpack_and_check(path, directory / "archive", passphrase)
        rows = await in_thread(count_rows, unpacked.sql)
        keys = await _load(unpacked, directory)
    require_all(keys, unpacked.manifest)
    return Checked(unpacked.manifest, keys, rows)


async def unpack_and_check(
    path: Path, place: Path, passphrase: bytes | None, progress: Progress | None = None
) -> Unpacked:
    """Take an archive apart, and see that its database and small files can be used; its snapshots a server judges."""
    stop = Stop()

    def read(done: int, of: int) -> None:
        stop.check()
        if progress is not None:
            progress(done, of)

    unpacked = await in_thread(unpack, path, place, passphrase, read, stop=stop)
    await in_thread(check_sql, unpacked.sql, unpacked.head.migration)
    check_state(unpacked.directory / STATE)
    return unpacked


def require_known(head: Head, path: Path) -> None:
    """Refuse an archive of a newer version, before anything is done with it."""
    newest = line()[-1].revision
    if head.migration > newest or _numbers(head.keystead_version) > _numbers(version("keystead")):
        raise Invalid(f"{path} was made by Keystead {head.keystead_version} with tables {head.migration}, and this one "
                      f"is {version('keystead')} with tables {newest}; restore it with that version or a newer one")


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:3] if part.isdecimal())


def require_all(loaded: int, manifest: Manifest) -> None:
    """See that the servers found as many keys as there were at the moment of the backup."""
    if loaded != manifest.valkey_keys:
        raise Invalid(f"the snapshot holds {loaded:,} keys, and there were {manifest.valkey_keys:,} at the moment of "
                      "the backup; use another backup")


async def _load(unpacked: Unpacked, directory: Path) -> int:
    if unpacked.head.valkey_form == DUMP:
        async with serving(directory / "server") as valkey:
            return await put_files(valkey, unpacked.snapshots(), forever=True)
    keys = 0
    for number, snapshot in enumerate(unpacked.snapshots()):
        place = directory / f"server-{number}"
        lay_down(snapshot, place)
        async with serving(place) as valkey:
            keys += await count_loaded(valkey)
    return keys


def check_state(place: Path) -> None:
    """See that an installation could start with the small files of an archive."""
    secret = place / SECRET_FILE
    if secret.exists() and secret.stat().st_size < SECRET_BYTES:
        raise Invalid("the secret in this backup is damaged; use another backup")
    for look, what in ((check_mark, MARK_FILE), (read_pace, PACE_FILE)):
        try:
            look(place)
        except Invalid:
            raise Invalid(f"{what} in this backup is damaged, or of a newer version; use another backup") from None


def check_sql(path: Path, migration: str) -> None:
    """See that the database of an archive is sound, and as old as the archive says."""
    try:
        with closing(sqlite3.connect(path)) as file:
            (verdict,) = file.execute("PRAGMA integrity_check(1)").fetchone()
            if verdict != "ok":
                raise Invalid(f"the database in this backup is damaged: {' '.join(verdict.split())[:200]}")
            found = ""
            if file.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (VERSION_TABLE,)).fetchone():
                row = file.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchone()  # noqa: S608
                found = str(row[0]) if row else ""
            if found != migration:
                raise Invalid(f"the database in this backup has tables {found[:64]!r}, and the backup says "
                              f"{migration!r}; use another backup")
    except sqlite3.Error as error:
        raise Invalid(f"the database in this backup cannot be read: {error}") from error


def count_rows(path: Path) -> int:
    """How many rows all tables of a database have together."""
    with closing(sqlite3.connect(path)) as file:
        names = [name for (name,) in file.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        )]
        quoted = (name.replace('"', '""') for name in names)
        return sum(file.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in quoted)  # noqa: S608
