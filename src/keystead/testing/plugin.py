"""The fixtures. Loaded by pytest in every project that has Keystead installed, so each fixture imports when it is used.

``valkey_server``       session: a ``LocalServer``; one per test process, so parallel workers do not meet
``valkey``              a client connected to it; the server is empty when the test begins
``valkey_cluster``      session: a ``LocalCluster``, started when the first test asks
``cluster``             a client connected to it; healed and empty when the test begins
``fault_proxy``         ``await fault_proxy()`` gives a ``FaultProxy`` before the test server, or before a given URL
``moving_clock``        a ``MovableClock`` that takes the TTLs on the test server along
``no_undeclared_keys``  ``no_undeclared_keys(registry)``: fails at the end if keys are left that it cannot explain
``no_cross_slot``       ``no_cross_slot(client)``: refuses the client's calls whose keys lie in different slots
``keystead_watch``      ``keystead_watch(client)``: look at the server of a client that is no fixture, too

With ``keystead_inventory = keystead.toml`` in the settings of pytest, a test fails that leaves a key on the server it
used which is not in that inventory, has another type, or lacks its expiry. Every redis-py or valkey-py client that a
test gets as a fixture is looked at. ``@pytest.mark.keystead_ignore("scratch:*")`` lets a test leave such keys, without
arguments any.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from keystead.engine import Valkey
    from keystead.guard.leftovers import Leftovers
    from keystead.keys import Registry
    from keystead.testing.clock import MovableClock, Server
    from keystead.testing.cluster import LocalCluster
    from keystead.testing.proxy import FaultProxy
    from keystead.testing.server import LocalServer

try:
    from pytest_asyncio import fixture as async_fixture
except ImportError:  # the synchronous fixtures work without it; pytest says so when an asynchronous one is used
    async_fixture = pytest.fixture  # type: ignore[assignment]


@pytest.fixture(scope="session")
def valkey_server() -> "Iterator[LocalServer]":
    """One Valkey server for this test process."""
    from keystead.testing.server import LocalServer

    server = LocalServer()
    server.start()
    try:
        yield server
    finally:
        server.stop()


@async_fixture
async def valkey(valkey_server: "LocalServer") -> "AsyncIterator[Valkey]":
    """A connected client; the server was flushed."""
    from keystead.engine import connect

    valkey_server.ensure_running()
    valkey_server.call("FLUSHALL")
    client = await connect(valkey_server.url)
    try:
        yield client
    finally:
        await client.aclose()


@pytest.fixture(scope="session")
def valkey_cluster() -> "Iterator[LocalCluster]":
    """Three primaries and three replicas for this test process."""
    from keystead.testing.cluster import LocalCluster

    cluster = LocalCluster()
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop()


@async_fixture
async def cluster(valkey_cluster: "LocalCluster") -> "AsyncIterator[Valkey]":
    """A connected cluster client; every node is up and flushed."""
    from keystead.engine import connect

    valkey_cluster.heal()
    valkey_cluster.flush()
    client = await connect(valkey_cluster.url)
    try:
        yield client
    finally:
        await client.aclose()


@async_fixture
async def fault_proxy(valkey_server: "LocalServer") -> "AsyncIterator[Callable[..., Awaitable[FaultProxy]]]":
    """``await fault_proxy(url=None)``: a proxy before that server, or before the test server. Closed after the test."""
    from keystead.testing.proxy import FaultProxy

    made: list[FaultProxy] = []

    async def make(upstream: str | None = None) -> FaultProxy:
        if upstream is None:
            valkey_server.ensure_running()
        proxy = FaultProxy(upstream or valkey_server.tcp_url)
        await proxy.start()
        made.append(proxy)
        return proxy

    try:
        yield make
    finally:
        for proxy in made:
            await proxy.aclose()


@pytest.fixture
def moving_clock(valkey_server: "LocalServer") -> "MovableClock":
    """A clock that stands still until ``advance``. For a cluster: ``moving_clock.add(*valkey_cluster.primaries())``."""
    from keystead.testing.clock import MovableClock

    return MovableClock([valkey_server])


@pytest.fixture
def no_undeclared_keys(valkey_server: "LocalServer") -> "Iterator[Callable[..., None]]":
    """``no_undeclared_keys(registry, *servers)``: when the test ends, every key left must be declared.

    Without servers the test server is looked at; for a cluster give ``*valkey_cluster.primaries()``.
    """
    from keystead.testing.checks import check_no_undeclared_keys

    wanted: list[tuple[Registry, tuple[Server, ...]]] = []

    def watch(registry: "Registry", *servers: "Server") -> None:
        wanted.append((registry, servers or (valkey_server,)))

    yield watch
    for registry, servers in wanted:
        check_no_undeclared_keys(registry, *servers)


@pytest.fixture
def no_cross_slot(valkey_server: "LocalServer") -> "Iterator[Callable[[Valkey], None]]":
    """``no_cross_slot(client)``: each later call of the client must keep to one slot; the client's layout is tagged."""
    from keystead.testing.checks import SlotWatch

    watch = SlotWatch(valkey_server)
    yield watch.watch
    watch.check()


_LEFTOVERS: "pytest.StashKey[Leftovers]" = pytest.StashKey()
_WATCHED: "pytest.StashKey[list[Any]]" = pytest.StashKey()
_MOST_SHOWN = 20


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("keystead_inventory", "inventory of keys; a test that leaves others on its server fails", default="")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "keystead_ignore(*globs): the test may leave keys that are not in the inventory")


def pytest_unconfigure(config: pytest.Config) -> None:
    leftovers = config.stash.get(_LEFTOVERS, None)
    if leftovers is not None:
        leftovers.close()


@pytest.fixture
def keystead_watch(request: pytest.FixtureRequest) -> "Callable[[Any], None]":
    """``keystead_watch(client)``: the server of this client is looked at when the test ends."""
    watched: list[Any] = request.node.stash.setdefault(_WATCHED, [])
    return watched.append


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> "Generator[None, Any, Any]":
    """Fail a test that leaves keys which its inventory does not allow. What was there before is not its fault."""
    inventory = str(item.config.getini("keystead_inventory"))
    ignored = item.get_closest_marker("keystead_ignore")
    if not inventory or (ignored is not None and not ignored.args):
        return (yield)
    leftovers = _leftovers(item.config, inventory)
    watched: list[Any] = item.stash.setdefault(_WATCHED, [])
    watched += getattr(item, "funcargs", {}).values()
    before = leftovers.look(watched)
    outcome = yield
    left = {place: trouble for place, trouble in leftovers.look(watched).items() if before.get(place) != trouble}
    if ignored is not None:
        left = {place: trouble for place, trouble in left.items() if not _ignored(place[1], ignored.args)}
    if left:
        shown = "".join(f"\n  {trouble}" for trouble in list(left.values())[:_MOST_SHOWN])
        more = f"\n  and {len(left) - _MOST_SHOWN} more" if len(left) > _MOST_SHOWN else ""
        pytest.fail(f"the test left keys that {inventory} does not allow:{shown}{more}", pytrace=False)
    return outcome


def _leftovers(config: pytest.Config, inventory: str) -> "Leftovers":
    if _LEFTOVERS not in config.stash:
        from keystead.errors import KeysteadError
        from keystead.guard.leftovers import Leftovers
        from keystead.inventory.files import read_inventory

        try:
            config.stash[_LEFTOVERS] = Leftovers(read_inventory(config.rootpath / inventory))
        except (KeysteadError, OSError) as error:
            raise pytest.UsageError(f"keystead_inventory: {error}") from None
    return config.stash[_LEFTOVERS]


def _ignored(raw_key: bytes, globs: "tuple[str, ...]") -> bool:
    return any(fnmatchcase(raw_key.decode(errors="backslashreplace"), glob) for glob in globs)
