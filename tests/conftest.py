"""The fixtures are Keystead's own test kit, loaded by its pytest entry point, ``server`` and ``database`` on top of it.

``server`` gives a connected client twice: once for one server with plain names, once for the six-node cluster with
tagged names. A test that needs only one of them asks for ``valkey`` or ``cluster`` of the test kit.

``database`` gives an empty database with all its tables twice: on SQLite, then on PostgreSQL. ``database_url`` is where
it is, for other processes.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path

import hypothesis
import pytest
import pytest_asyncio

from keystead.engine import Valkey, connect
from keystead.store import Database
from keystead.testing.cluster import LocalCluster

from .databases import PostgreSQL, migrated

# Tests start hundreds of Python programs. Where bytecode is not kept, each of them compiles the whole package anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# How long an example takes says something of the machine and of what else runs there, not of what is tested.
hypothesis.settings.register_profile("keystead", deadline=None)
hypothesis.settings.load_profile("keystead")


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, None, None]:
    """All tests on the cluster run in one process, so that a parallel run starts one cluster and not several.

    Slow tests that stand alone begin first: one that began last would go on while the other processes have nothing to
    do. Tests of a group stay in their order, for what they share is made anew when another module comes between.
    """
    for item in items:
        if {"valkey_cluster", "cluster"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.xdist_group("cluster"))
    yield
    items.sort(key=lambda item: not item.get_closest_marker("slow") or bool(item.get_closest_marker("xdist_group")))


@pytest_asyncio.fixture(
    params=[
        "one node",
        pytest.param("cluster", marks=[pytest.mark.cluster, pytest.mark.xdist_group("cluster")]),
    ]
)
async def server(request: pytest.FixtureRequest) -> AsyncIterator[Valkey]:
    """An empty server: one node, then the cluster."""
    if request.param == "cluster":
        cluster = request.getfixturevalue("valkey_cluster")
        cluster.heal()
        cluster.flush()
        url = cluster.url
    else:
        single = request.getfixturevalue("valkey_server")
        single.ensure_running()
        single.call("FLUSHALL")
        url = single.url
    client = await connect(url)
    try:
        yield client
    finally:
        await client.aclose()


@pytest_asyncio.fixture
async def two_lanes(valkey_cluster: LocalCluster) -> AsyncIterator[Valkey]:
    """The empty cluster, with two lanes."""
    valkey_cluster.heal()
    valkey_cluster.flush()
    client = await connect(valkey_cluster.url, lanes=2)
    try:
        yield client
    finally:
        await client.aclose()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    """A PostgreSQL server, shared by all processes of a test run; each makes databases of its own."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or f"{os.getpid()}"
    # Not under pytest's own directory: the next run closes that to the user as whom PostgreSQL runs.
    yield PostgreSQL(Path(tempfile.gettempdir(), f"keystead-postgresql-{run}"))


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sqlite") / "template.db"
    migrated(f"sqlite:///{path}")
    return path


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where an empty database with all its tables is."""
    if request.param == "sqlite":
        path = tmp_path / "keystead.db"
        shutil.copyfile(request.getfixturevalue("sqlite_template"), path)
        yield f"sqlite:///{path}"
    else:
        server: PostgreSQL = request.getfixturevalue("postgresql")
        with server.database(server.template) as url:
            yield url


@pytest_asyncio.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """An empty database with all its tables: SQLite, then PostgreSQL."""
    async with Database.open(database_url) as opened:
        yield opened
