"""Six nodes, one client process: what a call costs when the client must find the right node first."""

from bench.plan import Bar, Suite
from bench.stage import six_nodes
from bench.suites.wire import commands, rate

SUITE = Suite(
    name="cluster",
    title="cluster: three primaries and three replicas on loopback, one client process",
    stage=six_nodes,
    cases=(
        rate("cluster GET, 100 tasks", commands("get", flags=("--cluster",)), Bar(8, "redis-py")),
        rate("cluster SET of 1 KiB, 100 tasks", commands("set", flags=("--cluster",)), Bar(8, "redis-py")),
    ),
    notes=("100 keys spread over all slots; reads go to primaries; six servers share the cores with the client",),
)
