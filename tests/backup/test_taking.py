"""Taking a backup of a running installation."""

import asyncio
import os
import sqlite3
from contextlib import closing

import pytest

from keystead.backup import check, last_backup
from keystead.backup import taking as taking_module
from keystead.backup.unfinished import begin_in
from keystead.backup.unpacking import unpack
from keystead.errors import Conflict, Invalid, KeysteadError

from .installations import app_at, contents, migrated

SECRET = "ticket.secret"


async def test_everything_is_in_the_archive(server, database_url, tmp_path):
    app = app_at(_url(server), tmp_path / "own", database_url)
    await server.set("plain-key", "1")
    await server.set("short", "1", ex=1000)
    async with migrated(app) as database:
        applied = app.installation().tables().applied
        async with database.transaction() as sql:
            await sql.execute(applied.insert().values(id="row", family="f", applied_at=1.0))
        place = tmp_path / "own" / "files" / "a"
        place.mkdir(parents=True)
        (place / "b.txt").write_bytes(b"content")
        taken = await app.backup().take(tmp_path / "one.backup")
    manifest = taken.manifest
    assert manifest.head.one_moment and manifest.warnings == ()
    assert manifest.valkey_keys == 3 and manifest.files.count == 1 and manifest.files.bytes == 7
    assert manifest.head.sql_dialect == database.dialect
    assert taken.bytes == (tmp_path / "one.backup").stat().st_size
    keys, rows = await contents(tmp_path / "one.backup", tmp_path / "out")
    assert {key.split("}")[-1] for key in keys} == {"plain-key", "short", "backup:identity"} and rows == {"row"}
    assert (tmp_path / "out" / "files" / "a" / "b.txt").read_bytes() == b"content"
    assert (tmp_path / "out" / "state" / SECRET).read_bytes() == (tmp_path / "own" / SECRET).read_bytes()
    assert not list((tmp_path / "own" / "files").glob(".backup-*"))
    noted = await last_backup(server)
    assert noted is not None and noted.taken_at == manifest.head.taken_at and noted.bytes == taken.bytes
    checked = await check(tmp_path / "one.backup")
    assert checked.keys == 3 and checked.rows >= 1


async def test_a_full_server_is_backed_up(valkey, valkey_server, tmp_path):
    app = app_at(valkey_server.url, tmp_path / "own")
    await valkey.set("mark", "1")
    async with migrated(app):
        first = await app.backup().take(tmp_path / "one.backup")
        await valkey.config_set("maxmemory", "1")
        try:
            second = await app.backup().take(tmp_path / "two.backup")
            await valkey.delete("backup:identity")
            third = await app.backup().take(tmp_path / "three.backup")
        finally:
            await valkey.config_set("maxmemory", "0")
    names = [taken.manifest.head.installation for taken in (first, second, third)]
    assert names[0] == names[1] and names[2] not in ("", names[0]), "one that cannot be kept is of that backup alone"
    assert (await check(tmp_path / "three.backup")).keys >= 1


async def test_a_directory_that_is_half_restored_is_not_backed_up(tmp_path):
    app = app_at(f"embedded://{tmp_path / 'own'}", tmp_path / "own")
    async with app.running(start_server=True) as running:
        await running.valkey.set("mark", "1")
    begin_in(tmp_path / "own", tmp_path / "one.backup")
    with pytest.raises(Invalid, match="has not ended"):
        await app.backup().take(tmp_path / "half.backup")
    assert not (tmp_path / "half.backup").exists()


async def test_files_of_others_are_left_out_and_the_archive_can_be_restored(valkey, valkey_server, tmp_path):
    app = app_at(valkey_server.url, tmp_path / "own")
    place = tmp_path / "own" / "files"
    place.mkdir(parents=True)
    (place / "ours").write_bytes(b"1")
    (place / "My photo (1).jpg").write_bytes(b"2")
    (place / os.fsdecode(b"caf\xe9")).write_bytes(b"3")
    os.mkfifo(place / "pipe")
    async with migrated(app):
        taken = await app.backup().take(tmp_path / "one.backup")
    assert (await check(tmp_path / "one.backup")).manifest.files.count == 1
    (warning,) = taken.manifest.warnings
    assert "2 files" in warning and "My photo" in warning


async def test_a_failure_that_nobody_foresaw_is_noted_too(valkey, valkey_server, tmp_path, monkeypatch):
    def broken(*_):
        raise PermissionError(13, "Permission denied")

    app = app_at(valkey_server.url, tmp_path / "own")
    monkeypatch.setattr(taking_module.Pins, "__enter__", broken)
    async with migrated(app):
        with pytest.raises(PermissionError):
            await app.backup().take(tmp_path / "one.backup")
    noted = await last_backup(valkey)
    assert noted is not None and noted.failure == "PermissionError" and noted.failed_at > 0
    assert not (tmp_path / "one.backup").exists()


async def test_a_user_without_the_right_gets_a_backup_key_by_key_with_a_warning(valkey, valkey_server, tmp_path):
    valkey_server.call("ACL", "SETUSER", "plain", "reset", "on", ">pw", "~*", "&*", "+@all", "-psync", "-sync")
    app = app_at(f"valkey://plain:pw@127.0.0.1:{valkey_server.port}", tmp_path / "own")
    try:
        async with valkey.pipeline(transaction=False) as pipeline:
            for number in range(1000):
                pipeline.set(f"key-{number}", "x" * 20, px=100_000 if number % 2 else None)
            await pipeline.execute()
        async with migrated(app):
            taken = await app.backup().take(tmp_path / "one.backup")
    finally:
        valkey_server.call("ACL", "DELUSER", "plain")
    assert not taken.manifest.head.one_moment and taken.manifest.valkey_keys == 1001
    assert "not of one moment" in taken.manifest.warnings[0]
    assert (await check(tmp_path / "one.backup")).keys == 1001


async def test_a_backup_that_fails_leaves_nothing_and_is_noted(valkey, valkey_server, tmp_path):
    app = app_at(valkey_server.url, tmp_path / "own")  # it has no database yet
    with pytest.raises(Invalid, match="ever started"):
        await app.backup().take(tmp_path / "one.backup")
    assert not list(tmp_path.iterdir())
    noted = await last_backup(valkey)
    assert noted is not None and noted.taken_at == 0 and "ever started" in noted.failure


async def test_a_file_that_is_there_is_refused_before_anything_is_held(valkey, valkey_server, tmp_path):
    app = app_at(valkey_server.url, tmp_path / "own")
    (tmp_path / "one.backup").write_bytes(b"mine")
    async with migrated(app):
        with pytest.raises(Conflict, match="there already"):
            await app.backup().take(tmp_path / "one.backup")
    assert (tmp_path / "one.backup").read_bytes() == b"mine"


async def test_a_backup_that_is_cancelled_leaves_nothing(valkey, valkey_server, tmp_path):
    app = app_at(valkey_server.url, tmp_path / "own")
    async with migrated(app):
        await valkey.set("big", os.urandom(20_000_000))
        begun = asyncio.Event()

        def told(what, done, of):
            if what.startswith("Valkey"):
                begun.set()

        taking = asyncio.ensure_future(app.backup().take(tmp_path / "one.backup", told))
        async with asyncio.timeout(60):
            await begun.wait()
        taking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await taking
    assert [path.name for path in tmp_path.iterdir()] == ["own"]
    async with asyncio.timeout(20):
        await valkey.set("a", "1")


async def test_an_installation_that_does_not_run_is_started_for_its_backup(tmp_path):
    app = app_at(f"embedded://{tmp_path / 'data'}", tmp_path / "data")
    async with app.running(start_server=True) as running:
        await running.valkey.set("a", "1")
        during = await app.backup().take(tmp_path / "during.backup")
    after = await app.backup().take(tmp_path / "after.backup")
    assert during.manifest.valkey_keys and after.manifest.valkey_keys >= during.manifest.valkey_keys
    with pytest.raises(KeysteadError, match="no server runs"):
        await app_at(f"embedded://{tmp_path / 'none'}", tmp_path).backup().take(tmp_path / "none.backup")


async def test_tables_of_others_are_told_where_they_are_left_out(valkey, postgresql, tmp_path):
    with postgresql.database(postgresql.template) as url:
        app = app_at("unix://" + str(valkey.address.path), tmp_path / "own", url)
        async with migrated(app) as database:
            async with database.transaction() as sql:
                from sqlalchemy import text

                await sql.execute(text("CREATE TABLE theirs (x int)"))
            taken = await app.backup().take(tmp_path / "one.backup")
    assert "theirs" in taken.manifest.warnings[0]


async def test_columns_of_events_that_are_declared_no_more_are_in_the_copy(valkey, postgresql, tmp_path):
    from sqlalchemy import text

    with postgresql.database(postgresql.template) as url:
        app = app_at("unix://" + str(valkey.address.path), tmp_path / "own", url)
        async with migrated(app) as database:
            table = next(each for each in app.installation().tables().metadata.sorted_tables if "id" in each.c
                         and each.name != "stats_applied" and "retrieved_for" in each.c and "period_days" not in each.c
                         and len([c for c in each.c if c.name not in ("id", "retrieved_for", "retrieved_at")]) > 2
                         and all(c.server_default is not None or c.nullable or c.name in
                                 ("id", "retrieved_for", "retrieved_at") for c in each.c))
            async with database.transaction() as sql:
                await sql.execute(text(f'ALTER TABLE "{table.name}" ADD COLUMN bygone bigint'))
                await sql.execute(text(
                    f"INSERT INTO \"{table.name}\" (retrieved_for, retrieved_at, bygone) VALUES ('2026-01-01', 1, 7)"
                ))
            await app.backup().take(tmp_path / "one.backup")
    unpacked = unpack(tmp_path / "one.backup", tmp_path / "out", None)
    with closing(sqlite3.connect(unpacked.sql)) as file:
        assert file.execute(f'SELECT bygone FROM "{table.name}"').fetchall() == [(7,)]


async def test_a_sealed_backup_is_checked_with_its_passphrase(valkey, valkey_server, tmp_path):
    (tmp_path / "phrase").write_text("correct horse battery\n")
    app = app_at(valkey_server.url, tmp_path / "own", backup__passphrase_file=str(tmp_path / "phrase"))
    async with migrated(app):
        await valkey.set("a", "1")
        await app.backup().take(tmp_path / "one.backup")
    assert b"keystead sealed" in (tmp_path / "one.backup").read_bytes()[:40]
    assert (await check(tmp_path / "one.backup", passphrase=b"correct horse battery")).keys == 2
    with pytest.raises(Invalid, match="passphrase"):
        await check(tmp_path / "one.backup", passphrase=b"wrong horse battery")


def _url(valkey):
    address = valkey.address
    if address.path is not None:
        return f"unix://{address.path}"
    return "cluster://" + ",".join(f"{host}:{port}" for host, port in address.hosts)


