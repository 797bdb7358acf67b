"""Restoring a backup: what comes back, and what is refused before anything is touched."""

import asyncio
import shutil
import sqlite3
from contextlib import AsyncExitStack, closing

import msgspec
import pytest
from sqlalchemy import select, text

from keystead.backup import Restore, check, keep_newest
from keystead.backup import restoring as restoring_module
from keystead.backup.scratch import serving
from keystead.clock import SystemClock
from keystead.engine import connect
from keystead.errors import Conflict, Invalid
from keystead.jobs import Inspection, JobBook, Worker
from keystead.store import Database
from keystead.testing.server import LocalServer

from .installations import app_at, migrated


@pytest.fixture
def fresh_server():
    server = LocalServer()
    server.start()
    yield server
    server.stop()


async def made(server, url, database_url, tmp_path, **more):
    """An archive of a small installation."""
    app = app_at(url, tmp_path / "own", database_url, **more)
    await server.set("lasting", "1")
    await server.set("short", "1", px=50)
    await server.hset("a-hash", mapping={"x": "1"})
    await server.zadd("a-set", {"m": 1.5})
    await server.set("with-time", "1", ex=5000)
    async with migrated(app) as database:
        applied, outbox = app.installation().tables().applied, _outbox()
        async with database.transaction() as sql:
            await sql.execute(applied.insert().values(id="row", family="f", applied_at=1.0))
            for uid in ("a", "b"):
                await sql.execute(outbox.insert().values(uid=uid, kind="job", queue="", due_at=0.0, channel=b"",
                                                         shard_channel=b"", raw=b"{}\x00\xff", written_at=1.0))
            await sql.execute(outbox.delete().where(outbox.c.uid == "b"))
        (tmp_path / "own" / "files").mkdir(exist_ok=True)
        (tmp_path / "own" / "files" / "x.bin").write_bytes(b"\x00\x01")
        await app.backup().take(tmp_path / "one.backup")
    return tmp_path / "one.backup"


async def test_a_data_directory_comes_back_and_can_be_started(valkey, valkey_server, database_url, tmp_path):
    path = await made(valkey, valkey_server.url, database_url, tmp_path)
    target = app_at(f"embedded://{tmp_path / 'new'}", tmp_path / "new")
    seen = []

    async def prepare(client):
        seen.append(await client.get("lasting"))
        await client.set("prepared", "1")

    restored = await Restore(target.installation()).run(path, prepare=prepare)
    assert seen == [b"1"] and restored.warnings == ()
    assert not [each.name for each in tmp_path.iterdir() if each.name.startswith(".")]
    assert (tmp_path / "new" / "ticket.secret").read_bytes() == (tmp_path / "own" / "ticket.secret").read_bytes()
    assert (tmp_path / "new" / "ticket.secret").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "new" / "files" / "x.bin").read_bytes() == b"\x00\x01"
    async with target.running(start_server=True) as running:
        assert await running.valkey.get("lasting") == b"1" and await running.valkey.get("prepared") == b"1"
        assert await running.valkey.get("short") is None
        assert await running.valkey.hgetall("a-hash") == {b"x": b"1"}
        assert 4000 < await running.valkey.ttl("with-time") <= 5000
        await _rows_are_back(running.database, target)


async def test_a_server_and_a_database_get_everything(valkey, valkey_server, fresh_server, postgresql, database_url,
                                                      tmp_path):
    path = await made(valkey, valkey_server.url, database_url, tmp_path)
    with postgresql.database() as url:
        target = app_at(fresh_server.url, tmp_path / "new", url)
        restored = await Restore(target.installation()).run(path)
        client = await connect(fresh_server.url)
        try:
            keys = {raw async for raw in client.scan_iter()}
            assert keys >= {b"lasting", b"a-hash", b"a-set", b"with-time"} and b"short" not in keys
            assert 4000 < await client.ttl("with-time") <= 5000
            assert await client.zscore("a-set", "m") == 1.5
        finally:
            await client.aclose()
        assert restored.keys == len(keys) and b"backup:restoring" not in keys
        async with Database.open(url) as database:
            await database.migrate()
            await _rows_are_back(database, target)
        with pytest.raises(Conflict, match="holds"):
            await Restore(target.installation()).run(path)
        fresh_server.call("SET", "theirs", "1")
        async with Database.open(url) as database, database.transaction() as sql:
            await sql.execute(_outbox().delete())
        replaced = await Restore(target.installation(), replace=True).run(path)
        assert fresh_server.call("GET", "theirs") is None and replaced.keys == restored.keys
        async with Database.open(url) as database:
            await _rows_are_back(database, target)


@pytest.mark.cluster
async def test_a_cluster_comes_back_on_a_cluster_and_nowhere_else(cluster, valkey_cluster, fresh_server, tmp_path):
    await cluster.set("{msg:0}sms:x", "1")
    path = await made(cluster, valkey_cluster.url, "", tmp_path)
    valkey_cluster.flush()
    with pytest.raises(Invalid, match="cluster"):
        await Restore(app_at(f"embedded://{tmp_path / 'new'}", tmp_path / "new").installation()).run(path)
    with pytest.raises(Invalid, match="tagged"):
        await Restore(app_at(fresh_server.url, tmp_path / "new").installation()).run(path)
    with pytest.raises(Invalid, match="lanes"):
        await Restore(app_at(valkey_cluster.url, tmp_path / "new", messaging__lanes=2).installation()).run(path)
    assert not (tmp_path / "new").exists()
    restored = await Restore(app_at(valkey_cluster.url, tmp_path / "new").installation()).run(path)
    assert restored.keys >= 5 and await cluster.get("{msg:0}sms:x") == b"1"
    assert await cluster.hgetall("a-hash") == {b"x": b"1"}


async def test_a_log_of_another_database_is_not_taken_for_changes_of_the_restored_one(
    valkey, valkey_server, fresh_server, tmp_path
):
    path = await made(valkey, valkey_server.url, "", tmp_path)
    place = tmp_path / "elsewhere" / "rows.sqlite"
    place.parent.mkdir()
    with closing(sqlite3.connect(place, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("CREATE TABLE x (y)")
        other.execute("INSERT INTO x VALUES (1)")
        shutil.copy(f"{place}-wal", tmp_path / "wal")
    place.unlink()
    shutil.copy(tmp_path / "wal", f"{place}-wal")
    target = app_at(fresh_server.url, tmp_path / "new", f"sqlite:///{place}")
    with pytest.raises(Conflict, match="left of another database"):
        await Restore(target.installation()).run(path)
    assert not place.exists()


async def test_a_linked_directory_stays_a_link_and_a_file_system_is_refused(
    valkey, valkey_server, tmp_path, monkeypatch
):
    path = await made(valkey, valkey_server.url, "", tmp_path)
    (tmp_path / "disk" / "data").mkdir(parents=True)
    link = tmp_path / "new"
    link.symlink_to(tmp_path / "disk" / "data")
    target = app_at(f"embedded://{link}", link)
    with monkeypatch.context() as patched:
        patched.setattr(restoring_module.Path, "is_mount", lambda self: True)
        with pytest.raises(Invalid, match="--data"):
            await Restore(target.installation()).run(path)
    await Restore(target.installation()).run(path)
    assert link.is_symlink() and (link / "keystead.sqlite").stat().st_size
    assert (tmp_path / "disk" / "data" / "appendonlydir").is_dir()
    assert [each.name for each in (tmp_path / "disk").iterdir()] == ["data"]


async def test_what_is_not_empty_is_refused_and_stays(valkey, valkey_server, fresh_server, tmp_path):
    path = await made(valkey, valkey_server.url, "", tmp_path)
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "mine").write_bytes(b"mine")
    with pytest.raises(Conflict, match="not empty"):
        await Restore(app_at(f"embedded://{tmp_path / 'new'}", tmp_path / "new").installation()).run(path)
    assert [each.name for each in (tmp_path / "new").iterdir()] == ["mine"]
    fresh_server.call("SET", "lasting", "theirs")
    target = app_at(fresh_server.url, tmp_path / "other")
    with pytest.raises(Conflict, match="holds 1 keys"):
        await Restore(target.installation()).run(path)
    assert bytes(fresh_server.call("GET", "lasting")) == b"theirs"
    fresh_server.call("SET", "other", "theirs")
    await Restore(target.installation(), replace=True).run(path)
    assert bytes(fresh_server.call("GET", "lasting")) == b"1" and fresh_server.call("GET", "other") is None
    place = app_at(f"embedded://{tmp_path / 'new'}", tmp_path / "new")
    (warning,) = (await Restore(place.installation(), replace=True).run(path)).warnings
    (aside,) = tmp_path.glob("new.replaced-*")
    assert str(aside) in warning and (aside / "mine").read_bytes() == b"mine"
    assert not (tmp_path / "new" / "mine").exists() and not (tmp_path / "new" / "restoring.json").exists()
    async with place.running(start_server=True) as running:
        assert await running.valkey.get("lasting") == b"1"
        with pytest.raises(Conflict, match="in use"):
            await Restore(place.installation(), replace=True).run(path)


async def test_the_secret_of_another_installation_is_not_replaced(valkey, valkey_server, fresh_server, tmp_path):
    path = await made(valkey, valkey_server.url, "", tmp_path)
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "ticket.secret").write_bytes(b"z" * 32)
    target = app_at(fresh_server.url, tmp_path / "new")
    with pytest.raises(Conflict, match="another installation"):
        await Restore(target.installation()).run(path)
    assert (tmp_path / "new" / "ticket.secret").read_bytes() == b"z" * 32
    assert int(fresh_server.call("DBSIZE")) == 0


async def test_a_damaged_archive_touches_nothing(valkey, valkey_server, tmp_path):
    path = await made(valkey, valkey_server.url, "", tmp_path)
    raw = path.read_bytes()
    path.write_bytes(raw[: len(raw) // 2])
    with pytest.raises(Invalid):
        await Restore(app_at(f"embedded://{tmp_path / 'new'}", tmp_path / "new").installation()).run(path)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["one.backup", "own"]


async def test_a_restore_that_fails_in_the_middle_leaves_no_data_directory(valkey, valkey_server, tmp_path):
    path = await made(valkey, valkey_server.url, "", tmp_path)

    async def prepare(client):
        raise Invalid("no")

    with pytest.raises(Invalid, match="no"):
        target = app_at(f"embedded://{tmp_path / 'new'}", tmp_path / "new")
        await Restore(target.installation()).run(path, prepare=prepare)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["one.backup", "own"]


async def test_a_restore_that_fails_in_the_middle_leaves_a_server_that_refuses_to_start(
    valkey, valkey_server, fresh_server, postgresql, tmp_path
):
    path = await made(valkey, valkey_server.url, "", tmp_path)
    with postgresql.database() as url:
        target = app_at(fresh_server.url, tmp_path / "new", url)

        async def prepare(client):
            raise Invalid("no")

        with pytest.raises(Invalid, match="no"):
            await Restore(target.installation()).run(path, prepare=prepare)
        with pytest.raises(Conflict, match="has not ended"):
            async with target.running():
                pass
        with pytest.raises(Conflict, match="has not ended"):
            await Restore(target.installation()).run(path)
        with pytest.raises(Conflict, match="has not ended"):
            await target.backup().take(tmp_path / "two.backup")
        assert not (tmp_path / "two.backup").exists()
        await Restore(target.installation(), replace=True).run(path)
        async with target.running() as running:
            assert await running.valkey.get("lasting") == b"1"
            await _rows_are_back(running.database, target)


async def test_where_parts_lie_outside_of_the_directory_it_is_marked_until_all_of_them_are_there(
    valkey, valkey_server, tmp_path, monkeypatch
):
    path = await made(valkey, valkey_server.url, "", tmp_path)
    rows = tmp_path / "elsewhere" / "rows.sqlite"
    target = app_at(f"embedded://{tmp_path / 'new'}", tmp_path / "new", f"sqlite:///{rows}")
    with monkeypatch.context() as patched:
        patched.setattr(restoring_module, "move_in", lambda *given: (_ for _ in ()).throw(OSError(5, "broken")))
        with pytest.raises(OSError, match="broken"):
            await Restore(target.installation()).run(path)
    assert rows.exists() and [each.name for each in (tmp_path / "new").iterdir()] == ["restoring.json"]
    with pytest.raises(Invalid, match="has not ended"):
        async with target.running(start_server=True):
            pass
    await Restore(target.installation(), replace=True).run(path)
    async with target.running(start_server=True) as running:
        assert await running.valkey.get("lasting") == b"1"
        await _rows_are_back(running.database, target)


async def test_a_server_with_a_worker_is_not_replaced(valkey, valkey_server, fresh_server, tmp_path):
    path = await made(valkey, valkey_server.url, "", tmp_path)
    target = app_at(fresh_server.url, tmp_path / "new")
    client = await connect(fresh_server.url)
    try:
        worker = Worker(client, JobBook(), clock=SystemClock())
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            group.create_task(worker.run())
            while not [one for one in await Inspection(client, SystemClock()).workers() if one.alive]:
                await asyncio.sleep(0.05)
            with pytest.raises(Conflict, match="works at this server"):
                await Restore(target.installation(), replace=True).run(path)
            worker.stop()
    finally:
        await client.aclose()


def after_reading(monkeypatch, happens):
    """Let something happen while an archive is read, which takes long where there is much in it."""
    read = restoring_module.unpack_and_check

    async def reading(*given):
        found = await read(*given)
        await happens()
        return found

    monkeypatch.setattr(restoring_module, "unpack_and_check", reading)


@pytest.mark.parametrize("there", [True, False])
async def test_what_is_started_in_a_directory_meanwhile_stays(valkey, valkey_server, tmp_path, monkeypatch, there):
    path = await made(valkey, valkey_server.url, "", tmp_path)
    target = app_at(f"embedded://{tmp_path / 'new'}", tmp_path / "new")
    async with AsyncExitStack() as stack:
        if there:
            async with target.running(start_server=True) as running:
                await running.valkey.set("mark", "1")

        async def start() -> None:
            running = await stack.enter_async_context(target.running(start_server=True))
            await running.valkey.set("mark", "1")

        after_reading(monkeypatch, start)
        with pytest.raises(Conflict, match="in use" if there else "not empty"):
            await Restore(target.installation(), replace=there).run(path)
        assert not (tmp_path / "new" / "restoring.json").exists()
    async with target.running(start_server=True) as running:
        assert await running.valkey.get("mark") == b"1" and await running.valkey.get("lasting") is None


async def test_what_is_written_to_a_server_meanwhile_stays(valkey, valkey_server, fresh_server, tmp_path, monkeypatch):
    path = await made(valkey, valkey_server.url, "", tmp_path)
    target = app_at(fresh_server.url, tmp_path / "new")
    client = await connect(fresh_server.url)
    try:
        after_reading(monkeypatch, lambda: client.set("mark", "1"))
        with pytest.raises(Conflict, match="holds 1 keys"):
            await Restore(target.installation()).run(path)
        assert [raw async for raw in client.scan_iter()] == [b"mark"]
    finally:
        await client.aclose()


async def test_files_of_an_installation_that_runs_are_not_replaced(valkey, valkey_server, fresh_server, tmp_path):
    path = await made(valkey, valkey_server.url, "", tmp_path)
    running = app_at(f"embedded://{tmp_path / 'new'}", tmp_path / "new")
    target = app_at(fresh_server.url, tmp_path / "new")  # another server, and the same directory
    async with running.running(start_server=True):
        secret = (tmp_path / "new" / "ticket.secret").read_bytes()
        with pytest.raises(Conflict, match="in use"):
            await Restore(target.installation(), replace=True).run(path)
        assert (tmp_path / "new" / "ticket.secret").read_bytes() == secret


async def test_a_refused_restore_leaves_no_directories(valkey, valkey_server, tmp_path):
    path = await made(valkey, valkey_server.url, "", tmp_path)
    path.write_bytes(path.read_bytes()[:-200])
    target = app_at(f"embedded://{tmp_path / 'a/b/new'}", tmp_path / "a/b/new")
    with pytest.raises(Invalid, match="cut off or damaged"):
        await Restore(target.installation()).run(path)
    assert not (tmp_path / "a").exists()


async def test_a_restored_installation_has_backups_of_its_own(valkey, valkey_server, tmp_path):
    path = await made(valkey, valkey_server.url, "", tmp_path)
    place = app_at(f"embedded://{tmp_path / 'new'}", tmp_path / "new")
    first = app_at(valkey_server.url, tmp_path / "own").backup()
    (tmp_path / "shared").mkdir()
    one, two = [(await first.take_into(tmp_path / "shared")).manifest.head.installation,
                (await check(path)).manifest.head.installation]
    assert one == two != ""
    await Restore(place.installation()).run(path)
    async with place.running(start_server=True):
        taken = await place.backup().take_into(tmp_path / "shared")
    assert taken.manifest.head.installation not in ("", one)
    assert keep_newest(tmp_path / "shared", 1, taken.manifest.head.installation) == []
    assert len(list((tmp_path / "shared").iterdir())) == 2


async def test_an_archive_of_a_newer_version_is_refused(valkey, valkey_server, tmp_path, monkeypatch):
    path = await made(valkey, valkey_server.url, "", tmp_path)
    read = restoring_module.read_head
    for changes in ({"keystead_version": "99.0.0"}, {"migration": "9999"}):
        monkeypatch.setattr(restoring_module, "read_head",
                            lambda *given, changes=changes: msgspec.structs.replace(read(*given), **changes))
        with pytest.raises(Invalid, match="newer one"):
            await Restore(app_at(f"embedded://{tmp_path / 'new'}", tmp_path / "new").installation()).run(path)


async def test_a_backup_key_by_key_comes_back(valkey, valkey_server, fresh_server, tmp_path):
    valkey_server.call("ACL", "SETUSER", "plain", "reset", "on", ">pw", "~*", "&*", "+@all", "-psync", "-sync")
    try:
        path = await made(valkey, f"valkey://plain:pw@127.0.0.1:{valkey_server.port}", "", tmp_path)
    finally:
        valkey_server.call("ACL", "DELUSER", "plain")
    restored = await Restore(app_at(f"embedded://{tmp_path / 'new'}", tmp_path / "new").installation()).run(path)
    assert "one moment" in restored.warnings[0]
    async with serving(tmp_path / "new") as client:
        assert await client.get("lasting") == b"1" and 4000 < await client.ttl("with-time") <= 5000
    await Restore(app_at(fresh_server.url, tmp_path / "other").installation()).run(path)
    assert bytes(fresh_server.call("HGET", "a-hash", "x")) == b"1"


def _outbox():
    from keystead.store.tables import OUTBOX

    return OUTBOX


async def _rows_are_back(database, app):
    applied, outbox = app.installation().tables().applied, _outbox()
    async with database.reading() as sql:
        assert (await sql.execute(select(applied.c.id))).scalars().all() == ["row"]
        rows = (await sql.execute(select(outbox.c.uid, outbox.c.raw, outbox.c.number))).all()
        assert [(uid, bytes(raw)) for uid, raw, _ in rows] == [("a", b"{}\x00\xff")]
    async with database.transaction() as sql:  # a number that was given is not given again
        await sql.execute(outbox.insert().values(uid="c", kind="job", queue="", due_at=0.0, channel=b"",
                                                 shard_channel=b"", raw=b"{}", written_at=1.0))
        number = (await sql.execute(text("SELECT max(number) FROM " + outbox.name))).scalar_one()
        assert number > rows[0].number + 1
        await sql.execute(outbox.delete().where(outbox.c.uid == "c"))
