"""Locks: what taking and freeing one costs, alone, in a crowd, and when many want the same."""

from bench.plan import OURS, Bar, Case, Contestant, Figure, Home, Suite
from bench.stage import one_server

MODULE = "bench.load.locks"
TASKS = 100
SHARING = 20


def pairs(name: str, kind: str, tasks: int, *bars: Bar, peers: tuple[str, ...] = ("redis-py",)) -> Case:
    """Pairs of taking and freeing per second, over all tasks."""
    arguments = (kind, "--tasks", str(tasks))
    contestants = (
        Contestant(OURS, Home.PROJECT, MODULE, ("keystead", *arguments)),
        *(Contestant(peer, Home.PEERS, MODULE, (peer.replace("-", "_"), *arguments)) for peer in peers),
    )
    return Case(name, (Figure(name, "per_second", "pairs/s", bars=bars),), contestants)


SUITE = Suite(
    name="lock",
    title="lock: leased locks, taken and freed",
    stage=one_server,
    cases=(
        pairs("lock and unlock, one at a time", "alone", 1, Bar(3, "redis-py"), peers=("redis-py", "pottery")),
        pairs("lock and unlock, 100 tasks", "alone", TASKS, Bar(10, "redis-py"), peers=("redis-py", "pottery")),
        pairs("lock and unlock with fencing number, 100 tasks", "fenced", TASKS),
        pairs("one lock for 20 tasks", "shared", SHARING),
    ),
    notes=("every task has a lock of its own except in the last case; the peers have no fencing numbers, and ask again "
           "every 0.1 s where ours waits in turn",),
)
