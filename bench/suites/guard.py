"""The guard: what it costs to check every command against an inventory, beside plain redis-py."""

from bench.plan import OURS, Bar, Case, Contestant, Figure, Home, Suite
from bench.stage import one_server

KINDS = {
    "GET, one at a time": "get",
    "SET with an expiry, one at a time": "set",
    "GET, asyncio, 50 tasks": "asyncio",
    "GET and HSET in pipelines of 100": "pipeline",
}


def _rates(name: str, kind: str) -> Case:
    return Case(
        name,
        (Figure(f"{name}: share of plain redis-py", "share", "x", bars=(Bar(0.9),)),
         Figure(f"{name}, guarded", "per_second", "commands/s"),
         Figure(f"{name}, plain", "plain_per_second", "commands/s")),
        (Contestant(OURS, Home.PROJECT, "bench.load.guard", (kind,)),),
    )


SUITE = Suite(
    name="guard",
    title="guard: redis-py with every command checked against an inventory of 300 patterns",
    stage=one_server,
    cases=(
        Case(
            "cost of a check",
            (
                Figure("a key seen before, GET", "seen_us", "us", lower_is_better=True, bars=(Bar(3),)),
                Figure("a key seen before, SET with an expiry", "timed_us", "us", lower_is_better=True, bars=(Bar(3),)),
                Figure("a key seen before, INCR that awaits its EXPIRE", "made_us", "us", lower_is_better=True,
                       bars=(Bar(3),)),
                Figure("MGET of two keys", "several_us", "us", lower_is_better=True, bars=(Bar(3),)),
                Figure("a key never seen before, GET", "new_us", "us", lower_is_better=True),
                Figure("an undocumented key never seen before, GET", "stranger_us", "us", lower_is_better=True),
            ),
            (Contestant(OURS, Home.PROJECT, "bench.load.guard", ("cost",)),),
        ),
        *(_rates(name, kind) for name, kind in KINDS.items()),
    ),
    notes=("the cost of a check is what a guarded call takes longer than an unguarded one, without a server; the "
           "best of many short rows, so that other programs on the machine do not count",
           "rates: guarded and plain redis-py take turns of 100 commands in one process; the calmest tenth of each "
           "counts; hiredis, loopback, 1,000 keys again and again"),
)
