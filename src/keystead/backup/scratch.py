"""A server made of a snapshot: the RDB file becomes the base of an append-only file, which any start reads."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from keystead.engine import EmbeddedServer, Valkey, connect
from keystead.engine.snapshot import server_facts
from keystead.errors import Invalid, KeysteadError
from keystead.settings import EmbeddedSettings, ValkeySettings

APPEND_ONLY = "appendonlydir"
_BASE, _NEXT = "appendonly.aof.1.base.rdb", "appendonly.aof.1.incr.aof"
# What a server leaves in its directory besides its data.
_TRACES = ("owner.lock", "server.lock", "server.json", "valkey.conf", "valkey.log", "valkey.log.1", "password")


def lay_down(snapshot: Path | None, directory: Path) -> None:
    """Make the data of an embedded server out of a snapshot, which is moved there; without one it is empty."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    if snapshot is None:
        return
    place = directory / APPEND_ONLY
    place.mkdir(mode=0o700)
    shutil.move(snapshot, place / _BASE)
    (place / _NEXT).touch(mode=0o600)
    (place / "appendonly.aof.manifest").write_text(f"file {_BASE} seq 1 type b\nfile {_NEXT} seq 1 type i\n")


@asynccontextmanager
async def serving(directory: Path, database: int = 0) -> AsyncIterator[Valkey]:
    """A server on the data in a directory, for as long as the block runs. ``Invalid`` if it cannot read them."""
    async with _started(directory) as server:
        settings = ValkeySettings(outage_seconds=60.0, command_timeout_seconds=120.0)
        valkey = await connect(server.url + (f"?db={database}" if database else ""), settings=settings)
        try:
            yield valkey
        finally:
            await valkey.aclose()


@asynccontextmanager
async def _started(directory: Path) -> AsyncIterator[EmbeddedServer]:
    running = EmbeddedServer.start(directory, EmbeddedSettings(fsync="everysec"))
    try:
        server = await running.__aenter__()
    except KeysteadError as error:
        raise Invalid(f"the embedded server cannot read the snapshot in the backup: {error}") from error
    try:
        yield server
    finally:
        await running.__aexit__(None, None, None)


async def count_loaded(valkey: Valkey) -> int:
    """Keys that the server found in its data when it started, those that had expired by then included."""
    facts = await server_facts(valkey, "persistence")
    return int(facts.get("rdb_last_load_keys_loaded", 0)) + int(facts.get("rdb_last_load_keys_expired", 0))


def tidy(directory: Path) -> None:
    """Leave nothing of a server that ran here but its data."""
    for name in _TRACES:
        (directory / name).unlink(missing_ok=True)
