"""Daily counts: what storing 20 counters and 20 breakdowns costs."""

from bench.plan import OURS, Bar, Case, Contestant, Figure, Home, Suite
from bench.stage import one_server

MODULE = "bench.load.daily_counts"
TASKS = 100


def stores(name: str, kind: str, *bars: Bar) -> Case:
    """Calls per second, over all tasks."""
    contestants = (
        Contestant(OURS, Home.PROJECT, MODULE, ("keystead", kind, "--tasks", str(TASKS))),
        Contestant("redis-py by hand", Home.PEERS, MODULE, ("redis_py", kind, "--tasks", str(TASKS))),
    )
    return Case(name, (Figure(name, "per_second", "calls/s", bars=bars),), contestants)


SUITE = Suite(
    name="daily",
    title="daily: 20 counters and 20 breakdowns in one call, 100 tasks",
    stage=one_server,
    cases=(
        stores("stored together with others of the same turn", "merged", Bar(10_000)),
        stores("stored inside the caller's transaction", "pipeline", Bar(3_000)),
        stores("stored alone", "alone"),
    ),
    notes=("one call adds to 40 fields of the day and to 20 breakdowns; by hand the same increments are one "
           "transaction of single commands, whatever the case",),
)
