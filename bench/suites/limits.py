"""Limits: what one check costs, alone and in a crowd."""

from bench.plan import OURS, Bar, Case, Contestant, Figure, Home, Suite
from bench.stage import one_server

MODULE = "bench.load.limit_checks"
TASKS = 100
PEERS = ("throttled-py", "limits")


def checks(name: str, kind: str, tasks: int, *bars: Bar, peers: tuple[str, ...] = PEERS) -> Case:
    """Checks per second, over all tasks."""
    arguments = (kind, "--tasks", str(tasks))
    contestants = (
        Contestant(OURS, Home.PROJECT, MODULE, ("keystead", *arguments)),
        *(Contestant(peer, Home.PEERS_OLD_REDIS, MODULE, (peer.replace("-", "_"), *arguments)) for peer in peers),
    )
    return Case(name, (Figure(name, "per_second", "checks/s", bars=bars),), contestants)


SUITE = Suite(
    name="limits",
    title="limits: uses counted and allowed",
    stage=one_server,
    cases=(
        checks("fixed window, 100 tasks", "fixed", TASKS, *(Bar(8, peer) for peer in PEERS)),
        checks("fixed window, one at a time", "fixed", 1),
        checks("even rate with bursts, 100 tasks", "rate", TASKS, peers=("throttled-py",)),
        checks("sliding window, 100 tasks", "sliding", TASKS),
    ),
    notes=("every task has a key of its own and every use is allowed; the sliding window is a log of single uses in "
           "ours and in limits, a weighted counter in throttled-py",),
)
