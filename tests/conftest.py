"""The fixtures are Keystead's own test kit, loaded by its pytest entry point, and ``server`` on top of it.

``server`` gives a connected client twice: once for one server with plain names, once for the six-node cluster with
tagged names. A test that needs only one of them asks for ``valkey`` or ``cluster`` of the test kit.
"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from keystead.engine import Valkey, connect


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests on the cluster run in one process, so that a parallel run starts one cluster and not several."""
    for item in items:
        if {"valkey_cluster", "cluster"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.xdist_group("cluster"))


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
