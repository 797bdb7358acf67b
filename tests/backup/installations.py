"""Installations for the tests of backups: settings for a server and a database, and what an archive holds."""

import sqlite3
from contextlib import asynccontextmanager, closing
from pathlib import Path

from keystead.app import App
from keystead.backup.scratch import lay_down, serving
from keystead.backup.unpacking import unpack
from keystead.edge import load_secret
from keystead.settings import load_settings


def app_at(valkey_url: str, directory: Path, database_url: str = "", **more: object) -> App:
    """An installation whose own files lie in ``directory``."""
    given = {
        "valkey.url": valkey_url, "store.url": database_url, "installation.directory": str(directory),
        **{name.replace("__", "."): value for name, value in more.items()},
    }
    return App(load_settings(given, environment={}))


@asynccontextmanager
async def migrated(app: App):
    """The database of an installation with all its tables, and its secret."""
    from keystead.store import Database

    load_secret(app.data_directory)
    async with Database.open(app.database_url) as database:
        await database.migrate()
        await app.installation().tables().ensure(database)
        yield database


async def contents(path: Path, directory: Path, passphrase: bytes | None = None):
    """Keys on the servers of an archive, and the ids in its table of applied rotations."""
    unpacked = unpack(path, directory, passphrase)
    with closing(sqlite3.connect(unpacked.sql)) as file:
        rows = {name for (name,) in file.execute("SELECT id FROM stats_applied")}
    keys = set()
    for number, snapshot in enumerate(unpacked.snapshots()):
        place = directory / f"server-{number}"
        lay_down(snapshot, place)
        async with serving(place) as valkey:
            keys |= {raw.decode() async for raw in valkey.scan_iter(count=1000)}
    return keys, rows
