"""The registry: how fast a live key is told apart among the shapes of all seed patterns."""

from bench.plan import OURS, Bar, Case, Contestant, Figure, Home, Suite
from bench.stage import bare

SUITE = Suite(
    name="keys",
    title="keys: concrete keys back to their declaration, one process",
    stage=bare,
    cases=(
        Case(
            "resolve",
            (
                Figure("resolve, plain layout", "plain_per_second", "keys/s", bars=(Bar(250_000),)),
                Figure("resolve, tagged layout", "tagged_per_second", "keys/s"),
                Figure("refuse, keys just beside a declared shape", "undeclared_per_second", "keys/s"),
                Figure("build and check the registry", "build_seconds", "s", lower_is_better=True),
            ),
            (Contestant(OURS, Home.PROJECT, "bench.load.registry"),),
        ),
    ),
    notes=("all 423 seed shapes declared, dozens of different keys of each key shape in random order; every key is "
           "checked to come back to its declaration and arguments before the clock starts",),
)
