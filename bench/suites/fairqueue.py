"""Fair queue: cost of a lease as tenants grow, what small tenants wait for, and items per second in batches."""

from bench.plan import OURS, Bar, Case, Contestant, Figure, Home, Suite
from bench.stage import one_server


def ours(*arguments: str) -> tuple[Contestant, ...]:
    return (Contestant(OURS, Home.PROJECT, "bench.load.fairqueue", arguments),)


SUITE = Suite(
    name="fairqueue",
    title="fair queue: one server on loopback, one client process; no library to compare with, so limits and ratios",
    stage=one_server,
    cases=(
        Case(
            "lease",
            (
                Figure("lease of one item, 100,000 tenants against 10, p50", "growth", "x", lower_is_better=True,
                       bars=(Bar(1.3),)),
                Figure("lease of one item, 10 tenants, p50", "small_us", "us", lower_is_better=True),
                Figure("lease of one item, 100,000 tenants, p50", "large_us", "us", lower_is_better=True),
            ),
            ours("lease"),
        ),
        Case(
            "noisy",
            (Figure("turns of a tenant with 100,000 items until 99 newcomers are served", "rounds", "rounds",
                    lower_is_better=True, bars=(Bar(2),)),),
            ours("noisy"),
        ),
        Case(
            "throughput",
            (
                Figure("lease + finish, batches of 50, 100 tenants", "hundred_per_second", "items/s",
                       bars=(Bar(20_000),)),
                Figure("lease + finish, batches of 50, one tenant", "one_per_second", "items/s"),
                Figure("100 tenants against one", "share", "x", bars=(Bar(0.85),)),
                Figure("lease + finish, batches of 50, 100 tenants, one worker", "one_worker_per_second", "items/s"),
            ),
            ours("throughput"),
        ),
        Case(
            "throughput, quantum 1",
            (Figure("lease + finish, batches of 50, 100 tenants, an item a turn", "hundred_per_second", "items/s"),),
            ours("throughput", "--quantum", "1"),
        ),
    ),
    notes=("bodies of 200 bytes; quantum 8 and unit costs, four workers in one process, except where said; leases are "
           "timed one at a time with quantum 1, both sizes in turn on one server; filling is not counted",),
)
