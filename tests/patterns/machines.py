"""Models beside a server: random rules played on one node and, with fewer examples, on the cluster."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from keystead.engine import connect
from keystead.testing.clock import MovableClock

T = TypeVar("T")

CLUSTER_SHARE = 5  # the cluster sees one example of so many: what differs there are names and slots, not rules

on_both = pytest.mark.parametrize("place", [
    "one node", pytest.param("cluster", marks=[pytest.mark.cluster, pytest.mark.xdist_group("cluster")]),
])


class ServerMachine(RuleBasedStateMachine):
    """An empty server, a connection to it and a clock that moves its expiries. Subclasses add rules and a model."""

    starts_at: float | None = 1_700_000_000.0  # None: now

    def __init__(self, url: str, servers: list[Any]) -> None:
        super().__init__()
        self.servers = servers
        for server in servers:
            server.call("FLUSHALL")
        self.runner = asyncio.Runner()
        self.client = self.runner.run(connect(url))
        self.clock = MovableClock(servers, now=self.starts_at)

    def run(self, make: Callable[[], Awaitable[T]]) -> T:
        """What ``make`` gives to await, awaited on the machine's own loop."""
        async def go() -> T:
            return await make()
        return self.runner.run(go())

    def teardown(self) -> None:
        self.runner.run(self.client.aclose())
        self.runner.close()


def play(
    request: pytest.FixtureRequest, place: str, machine: type[ServerMachine], *, examples: int = 25, steps: int = 25
) -> None:
    """Play the machine's rules at ``place``, which ``on_both`` gave."""
    if place == "cluster":
        cluster = request.getfixturevalue("valkey_cluster")
        cluster.heal()
        url, servers, examples = cluster.url, cluster.primaries(), max(3, examples // CLUSTER_SHARE)
    else:
        single = request.getfixturevalue("valkey_server")
        single.ensure_running()
        url, servers = single.url, [single]
    run_state_machine_as_test(lambda: machine(url, servers), settings=settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=list(HealthCheck),
    ))
