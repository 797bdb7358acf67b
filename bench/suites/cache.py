"""Caches: what a hit costs on the server and in the process, and how often a crowd reads the source."""

from bench.plan import OURS, Bar, Case, Contestant, Figure, Home, Suite
from bench.stage import one_server

HITS, STAMPEDE = "bench.load.cache_hits", "bench.load.cache_stampede"
TASKS = 100
PEERS = ("aiocache", "cashews")


def hits(name: str, kind: str, tasks: int, *bars: Bar, peers: tuple[str, ...] = PEERS) -> Case:
    """Reads per second of values that are there; every task has a key of its own."""
    arguments = (kind, "--tasks", str(tasks))
    contestants = (
        Contestant(OURS, Home.PROJECT, HITS, ("keystead", *arguments)),
        *(Contestant(peer, Home.PEERS, HITS, (peer, *arguments)) for peer in peers),
    )
    return Case(name, (Figure(name, "per_second", "reads/s", bars=bars),), contestants)


SUITE = Suite(
    name="cache",
    title="cache: values that are there, and one that is missing",
    stage=one_server,
    cases=(
        hits("hit on the server, 100 tasks", "server", TASKS, *(Bar(8, peer) for peer in PEERS)),
        hits("hit on the server, one at a time", "server", 1),
        hits("hit in the process, kept right by the server, 100 tasks", "process", TASKS, Bar(1, "cashews"),
             peers=("cashews",)),
        hits("hit in the process, kept right by the server, one at a time", "process", 1, Bar(1, "cashews"),
             peers=("cashews",)),
        hits("hit in the process alone, 100 tasks", "memory", TASKS, *(Bar(1, peer) for peer in PEERS)),
        Case(
            "stampede, 8 processes of 200 tasks",
            (
                Figure("reads of the source, 8 processes of 200 tasks", "loads", "reads", lower_is_better=True,
                       bars=(Bar(1),)),
                Figure("time until all have the value", "seconds", "s", lower_is_better=True),
            ),
            (
                Contestant(OURS, Home.PROJECT, STAMPEDE, ("keystead",)),
                *(Contestant(peer, Home.PEERS, STAMPEDE, (peer,)) for peer in PEERS),
            ),
        ),
    ),
    notes=("ours decodes JSON on every hit, since the process holds bytes; cashews hands out the object it holds; "
           "the stampede's loader takes 50 ms; cashews with lock=True, aiocache with cached_stampede and "
           "its connections open beforehand",),
)
