"""The same suite on one node and on the six-node cluster.

``server`` gives a connected client twice: once for one server with plain names, once for the cluster with tagged
names. A test that needs only one of them asks for ``valkey`` or ``cluster`` of the test kit.
"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from keystead.engine import Valkey, connect


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
