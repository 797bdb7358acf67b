"""Proving that an archive can be restored: its checksums, a server that reads the snapshot, a sound database."""

import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from keystead.backup.dumping import BATCH_KEYS, put, records_in
from keystead.backup.models import DUMP, Manifest
from keystead.backup.scratch import count_loaded, lay_down, serving
from keystead.backup.threads import Stop, in_thread
from keystead.backup.unpacking import Unpacked, unpack
from keystead.errors import Invalid


@dataclass(frozen=True, slots=True)
class Checked:
    """An archive that could be restored. ``keys`` were read by a server, ``rows`` counted in its tables."""

    manifest: Manifest
    keys: int
    rows: int


async def check(path: Path, *, passphrase: bytes | None = None) -> Checked:
    """Take an archive apart in a temporary directory beside it and load it there. ``Invalid`` says what is wrong."""
    with tempfile.TemporaryDirectory(prefix=".keystead-check-", dir=path.parent) as place:
        directory = Path(place)
        stop = Stop()
        unpacked = await in_thread(
            unpack, path, directory / "archive", passphrase, lambda done, of: stop.check(), stop=stop
        )
        rows = await in_thread(check_sql, unpacked.sql)
        keys = await _load(unpacked, directory)
    if keys != unpacked.manifest.valkey_keys:
        raise Invalid(f"{path}: the snapshot holds {keys:,} keys, and there were {unpacked.manifest.valkey_keys:,} at "
                      "the moment of the backup; use another backup")
    return Checked(unpacked.manifest, keys, rows)


async def _load(unpacked: Unpacked, directory: Path) -> int:
    keys = 0
    if unpacked.head.valkey_form == DUMP:
        async with serving(directory / "server") as valkey:
            for file in unpacked.snapshots():
                some = []
                for record in records_in(file):
                    some.append((record[0], -1, record[2]))  # also what has expired by now must be readable
                    if len(some) == BATCH_KEYS:
                        await put(valkey, some, replace=True)
                        some = []
                await put(valkey, some, replace=True)
            return await valkey.run(("DBSIZE",), int)
    for number, snapshot in enumerate(unpacked.snapshots()):
        place = directory / f"server-{number}"
        lay_down(snapshot, place)
        async with serving(place) as valkey:
            keys += await count_loaded(valkey)
    return keys


def check_sql(path: Path) -> int:
    """See that the database of an archive is sound; says how many rows it has."""
    if not path.is_file():
        raise Invalid("there is no database in this backup")
    try:
        with closing(sqlite3.connect(path)) as file:
            (verdict,) = file.execute("PRAGMA integrity_check(1)").fetchone()
            if verdict != "ok":
                raise Invalid(f"the database in this backup is damaged: {verdict}")
            names = [name for (name,) in file.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            )]
            quoted = (name.replace('"', '""') for name in names)
            return sum(file.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in quoted)  # noqa: S608
    except sqlite3.Error as error:
        raise Invalid(f"the database in this backup cannot be read: {error}") from error
