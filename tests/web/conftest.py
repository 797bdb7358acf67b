"""An assembled server over the test Valkey, and visitors of several kinds."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from keystead.app import App, Running
from keystead.edge import Guard, Tickets
from keystead.edge.keys import EDGE
from keystead.keys import Registry
from keystead.settings import Settings, load_settings
from keystead.stats import FamilyTables
from keystead.store import Database
from keystead.web.callers import OPERATOR, SESSION_PURPOSE, TOKEN_PURPOSE, cookie_name
from keystead.web.server import build

PORT = 8400


@pytest.fixture(scope="session")
def tables(tmp_path_factory) -> Path:
    """A database with all tables, made once; every test has a copy."""
    path = tmp_path_factory.mktemp("tables") / "made.sqlite"

    async def make() -> None:
        async with Database.open(f"sqlite:///{path}") as database:
            await database.migrate()
            await FamilyTables(App(Settings()).catalogue()).ensure(database)

    asyncio.run(make())
    return path


@pytest.fixture
async def running(valkey, valkey_server, tables, tmp_path) -> AsyncIterator[Running]:
    """An installation over the test server, in a directory of its own, that uses only the keys of the edge."""
    shutil.copy(tables, tmp_path / "keystead.sqlite")
    settings = load_settings({
        "http.trusted_proxies": "10.0.0.0/8", "http.host_names": "keys.example", "valkey.url": valkey_server.url,
        "store.url": f"sqlite:///{tmp_path}/keystead.sqlite", "store.files_url": f"file://{tmp_path}/files",
    }, environment={})
    app = App(settings)
    app.data_directory = tmp_path
    async with app.running() as found:
        yield replace(
            found, valkey=valkey, guard=Guard(valkey), registry=Registry([EDGE], valkey.layout),
            tickets=Tickets(bytes(32), found.clock, found.endings),
        )


@pytest.fixture
def app(running) -> FastAPI:
    return build(running, port=PORT)


@pytest.fixture
async def visitor(app) -> AsyncIterator[Callable[..., httpx.AsyncClient]]:
    """``visitor()`` is a stranger on loopback; give headers, cookies or an address to be someone else."""
    clients: list[httpx.AsyncClient] = []

    def make(address: str = "127.0.0.1", base_url: str = f"http://127.0.0.1:{PORT}", **options) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(app, client=(address, 4711), raise_app_exceptions=False)
        clients.append(httpx.AsyncClient(transport=transport, base_url=base_url, **options))
        return clients[-1]

    yield make
    for client in clients:
        await client.aclose()


@pytest.fixture
def operator(visitor, running) -> httpx.AsyncClient:
    """Someone who logged in to the dashboard."""
    session = running.tickets.issue(SESSION_PURPOSE, OPERATOR, lasts_seconds=60)
    return visitor(cookies={cookie_name(PORT): session})


@pytest.fixture
def program(visitor, running) -> Callable[..., httpx.AsyncClient]:
    """``program("metrics")``: a program whose token has these scopes."""

    def make(*scopes: str, **options) -> httpx.AsyncClient:
        token = running.tickets.issue(TOKEN_PURPOSE, "prometheus", lasts_seconds=60, scopes=scopes)
        return visitor(headers={"Authorization": f"Bearer {token}"}, **options)

    return make


@pytest.fixture
def installation(valkey_server, tmp_path) -> App:
    """Settings that name the test server and a free port."""
    return App(load_settings({"valkey.url": valkey_server.url, "http.port": 0}, environment={}))
