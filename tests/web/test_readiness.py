"""Readiness tells the truth: each part is stopped for real, and named."""

import asyncio
import shutil
from dataclasses import replace

import httpx
import pytest

from keystead.app import App
from keystead.engine import connect
from keystead.settings import load_settings
from keystead.store import Database
from keystead.web.housekeeping import Housekeeping
from keystead.web.readiness import Readiness
from keystead.web.server import build

from ..operations.test_watchers import shut_down
from .conftest import PORT


async def wrong(running) -> dict[str, str]:
    """What is not right, looked at anew."""
    return {check.name: check.says for check in await Readiness(running).look() if not check.ok}


async def test_a_process_that_only_answers_is_ready_with_server_and_tables(visitor):
    answer = await visitor().get("/ready")
    assert answer.status_code == 200 and answer.headers["cache-control"] == "no-store"
    assert answer.json() == {"ready": True, "checks": [
        {"name": name, "ok": True, "says": ""} for name in ("valkey", "sql", "migrations")]}


async def test_a_server_that_is_away_is_named_and_503(running, fault_proxy):
    proxy = await fault_proxy()
    away = await connect(proxy.url)
    try:
        proxy.half_open()
        app = build(replace(running, valkey=away), port=PORT)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            answer = await client.get("/ready")
        assert answer.status_code == 503 and not answer.json()["ready"]
        assert [check["name"] for check in answer.json()["checks"] if not check["ok"]] == ["valkey"]
    finally:
        await away.aclose()


async def test_a_server_that_was_killed_and_came_back_is_ready_again(running, valkey_server):
    valkey_server.kill()
    try:
        assert "valkey" in await wrong(running)
    finally:
        valkey_server.restart()
    async with asyncio.timeout(30):
        while await wrong(running):
            await asyncio.sleep(0.1)


async def test_a_database_that_lets_nobody_in_is_named(running, database, database_url, request):
    if database.dialect == "sqlite":
        pytest.skip("a file is not away")
    with_postgresql = replace(running, database=database)
    assert await wrong(with_postgresql) == {}
    shut_down(request.getfixturevalue("postgresql"), database_url)
    found = await wrong(with_postgresql)
    assert "sql" in found and "does not answer" in found["sql"]


async def test_tables_that_were_not_brought_up_to_date_are_named(running, tmp_path):
    async with Database.open(f"sqlite:///{tmp_path}/empty.sqlite") as empty:
        found = await wrong(replace(running, database=empty))
        assert set(found) == {"migrations"} and "missing" in found["migrations"]
        await empty.migrate()
        assert await wrong(replace(running, database=empty)) == {}


async def test_a_process_that_works_is_ready_only_while_its_worker_beats(valkey, valkey_server, tables, tmp_path):
    shutil.copy(tables, tmp_path / "keystead.sqlite")
    settings = load_settings({
        "valkey.url": valkey_server.url, "store.url": f"sqlite:///{tmp_path}/keystead.sqlite",
        "store.files_url": f"file://{tmp_path}/files", "alerts.audit_seconds": 0.0,
    }, environment={})
    app = App(settings)
    app.data_directory = tmp_path
    async with app.running(works=True) as running:
        assert set(await wrong(running)) == {"workers"}, "nobody has begun to work"
        async with asyncio.TaskGroup() as tasks:
            work = tasks.create_task(Housekeeping(running).run())
            async with asyncio.timeout(30):
                while await wrong(running):
                    await asyncio.sleep(0.1)
            work.cancel()
        async with asyncio.timeout(30):
            while "workers" not in await wrong(running):
                await asyncio.sleep(0.1)


async def test_many_who_ask_at_once_are_one_look(running, monkeypatch):
    readiness, looks = Readiness(running), 0
    look = readiness.look

    async def counted():
        nonlocal looks
        looks += 1
        return await look()

    monkeypatch.setattr(readiness, "look", counted)
    await asyncio.gather(*(readiness.checks() for _ in range(50)))
    assert looks == 1
