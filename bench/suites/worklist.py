"""Work list: items through push, take and finish."""

from bench.plan import OURS, Bar, Case, Contestant, Figure, Home, Suite
from bench.stage import one_server

MODULE = "bench.load.worklist"


def items(name: str, *flags: str, bars: tuple[Bar, ...] = (), peer: bool = True) -> Case:
    """A case whose one figure is items per second through all three moves."""
    by_hand = (Contestant("redis-py by hand", Home.PEERS, MODULE, ("by_hand", *flags)),) if peer else ()
    return Case(
        name, (Figure(name, "per_second", "items/s", bars=bars),),
        (Contestant(OURS, Home.PROJECT, MODULE, ("keystead", *flags)), *by_hand),
    )


SUITE = Suite(
    name="worklist",
    title="worklist: push + take + finish, one server on loopback, one process",
    stage=one_server,
    cases=(
        items("messages, batches of 100", "--shape", "message", bars=(Bar(100_000),), peer=False),
        items("messages, batches of 100, 8 workers", "--shape", "message", "--workers", "8", peer=False),
        items("raw bytes, batches of 100", "--shape", "raw", bars=(Bar(100_000),)),
        items("raw bytes, one at a time, 100 workers", "--shape", "raw", "--batch", "1", "--workers", "100"),
    ),
    notes=("messages are structs of five fields, encoded and decoded; by hand: RPUSH, a script that moves into a "
           "purgatory list, LTRIM, and no protection for several workers, wrong types or bad items",),
)
