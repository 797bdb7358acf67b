"""Statistics: charts of 90 days, and the rotation of sets with a million members."""

from bench.plan import OURS, Bar, Case, Contestant, Figure, Home, Suite
from bench.stage import one_server

READS = "bench.load.chart_reads"
TASKS = "100"


def reads(name: str, kind: str, *bars: Bar) -> Case:
    contestants = (
        Contestant(OURS, Home.PROJECT, READS, ("keystead", kind, "--tasks", TASKS)),
        Contestant("SQL by hand", Home.PROJECT, READS, ("by_hand", kind, "--tasks", TASKS)),
    )
    return Case(name, (Figure(name, "per_second", "charts/s", bars=bars),), contestants)


SUITE = Suite(
    name="stats",
    title="stats: charts of 90 days, and sets of a million on their way into SQL",
    stage=one_server,
    cases=(
        reads("chart of 90 days, cached", "cached", Bar(5_000)),
        reads("chart of 90 days, read anew", "uncached"),
        Case(
            "rotation of a day and a cohort of 1,000,000",
            (
                Figure("rotation", "seconds", "s", lower_is_better=True),
                Figure("longest command of the server", "slowest_ms", "ms", lower_is_better=True, bars=(Bar(10),)),
                Figure("longest wait of another client", "longest_wait_ms", "ms", lower_is_better=True),
                Figure("memory that Python takes for it", "python_peak_mb", "MB", lower_is_better=True, bars=(Bar(5),)),
            ),
            (Contestant(OURS, Home.PROJECT, "bench.load.rotation_million"),),
            most_rounds=1, patience_seconds=300.0,
        ),
    ),
    notes=("by hand: one query with SQLAlchemy, the breakdowns decoded, the answer packed, each time; twelve events, "
           "four of them by twenty values",),
)
