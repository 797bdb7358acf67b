"""What the suite starts once is shared: tests that use it run in one process."""

import pytest


def test_tests_of_a_group_run_in_one_process(request: pytest.FixtureRequest) -> None:
    """A combination of pytest and pytest-xdist that forgets the groups says nothing: all is well, and slow."""
    if not request.config.getoption("loadgroup", False):
        return  # one process has all tests
    grouped = [item for item in request.session.items if item.get_closest_marker("xdist_group")]
    forgotten = [item.nodeid for item in grouped if "@" not in item.nodeid.rpartition("]")[2]]
    assert not forgotten, f"{len(forgotten)} tests lost their group, {forgotten[0]} for one"
