"""Valkey and SQL of a backup are of one moment: what moves between them is in one of them, whenever it is taken."""

import asyncio

import pytest

from keystead.backup import moment as moment_module
from keystead.engine import connect
from keystead.engine.snapshot import Moved, Snapshot

from .installations import app_at, contents, migrated

TOKENS = 12
BACKUPS = 3


async def moving(valkey, database, applied, token, stop, moves):
    """Carry a token from Valkey to SQL and back. It is in at least one of them at any instant."""
    row = {"id": token, "family": "test", "applied_at": 0.0}
    while not stop.is_set():
        async with database.transaction() as sql:
            await sql.execute(applied.insert().values(row))
        await valkey.delete(token)
        await asyncio.sleep(0.02)
        await valkey.set(token, "here")
        async with database.transaction() as sql:
            await sql.execute(applied.delete().where(applied.c.id == token))
        moves.append(token)
        await asyncio.sleep(0.02)


@pytest.mark.slow
async def test_what_moves_between_valkey_and_sql_is_never_missing_from_a_backup(
    server, database_url, tmp_path, monkeypatch
):
    at_once = Snapshot.begin

    async def begin_late(self, *arguments):
        await asyncio.sleep(0.3)  # without a hold, many tokens would move between the two snapshots
        await at_once(self, *arguments)

    monkeypatch.setattr(Snapshot, "begin", begin_late)
    app = app_at(_url(server), tmp_path / "own", database_url)
    moves, stop = [], asyncio.Event()
    tokens = {f"token-{number}" for number in range(TOKENS)}
    async with migrated(app) as database:
        applied = app.installation().tables().applied
        for token in tokens:
            await server.set(token, "here")
        async with asyncio.TaskGroup() as tasks:
            for token in tokens:
                tasks.create_task(moving(server, database, applied, token, stop, moves))
            try:
                for number in range(BACKUPS):
                    before = len(moves)
                    taken = await app.backup().take(tmp_path / f"{number}.backup")
                    assert taken.manifest.head.one_moment and not taken.manifest.warnings
                    assert 300 <= taken.manifest.held_ms < 3000
                    while len(moves) < before + TOKENS:  # writes went on
                        await asyncio.sleep(0.01)
            finally:
                stop.set()
    for number in range(BACKUPS):
        keys, rows = await contents(tmp_path / f"{number}.backup", tmp_path / f"unpacked-{number}")
        assert tokens <= keys | rows, f"lost in backup {number}: {tokens - keys - rows}"


async def test_a_moment_that_was_none_is_tried_again(valkey, tmp_path, monkeypatch):
    app = app_at(_url(valkey), tmp_path / "own")
    tries = []
    true_offset = moment_module.replication_offset

    async def offset(node):
        tries.append(node)
        if len(tries) == 1:
            raise Moved("a primary was replaced meanwhile; try again")
        return await true_offset(node)

    monkeypatch.setattr(moment_module, "replication_offset", offset)
    async with migrated(app):
        await valkey.set("a", "1")
        taken = await app.backup().take(tmp_path / "one.backup")
    assert taken.manifest.valkey_keys == 2 and len(tries) >= 3
    await valkey.set("b", "1")  # writes are not held any more


async def test_writes_go_on_when_every_try_failed(valkey, tmp_path, monkeypatch):
    app = app_at(_url(valkey), tmp_path / "own")

    async def offset(node):
        raise Moved("a primary was replaced meanwhile; try again")

    monkeypatch.setattr(moment_module, "replication_offset", offset)
    monkeypatch.setattr(moment_module, "TRIES", 2)
    async with migrated(app):
        with pytest.raises(Moved):
            await app.backup().take(tmp_path / "one.backup")
    other = await connect(_url(valkey))
    try:
        async with asyncio.timeout(2):
            await other.set("a", "1")
    finally:
        await other.aclose()
    assert [path.name for path in tmp_path.iterdir()] == ["own"]


def _url(valkey):
    address = valkey.address
    if address.path is not None:
        return f"unix://{address.path}"
    return "cluster://" + ",".join(f"{host}:{port}" for host, port in address.hosts)
