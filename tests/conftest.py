"""The fixtures are Keystead's own test kit, loaded by its pytest entry point."""

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests on the cluster run in one process, so that a parallel run starts one cluster and not several."""
    for item in items:
        if {"valkey_cluster", "cluster"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.xdist_group("cluster"))
