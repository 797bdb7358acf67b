"""``keystead up`` on a fresh data directory: how soon there is something to see, and what it weighs."""

from bench.plan import OURS, Bar, Case, Contestant, Figure, Home, Suite
from bench.stage import bare

SUITE = Suite(
    name="first_light",
    title="first light: keystead up on a fresh data directory",
    stage=bare,
    rounds=3,
    cases=(
        Case(
            "keystead up",
            (
                Figure("command to first screen", "screen_seconds", "s", lower_is_better=True, bars=(Bar(10),)),
                Figure("command to printed link", "link_seconds", "s", lower_is_better=True),
                Figure("resident memory, all processes", "resident_mb", "MB", lower_is_better=True, bars=(Bar(300),)),
                Figure("proportional memory, all processes", "proportional_mb", "MB", lower_is_better=True),
            ),
            (Contestant(OURS, Home.PROJECT, "bench.load.first_light"),),
        ),
    ),
    notes=("resident counts a page once for every process that shares it, proportional once in all; 1 MB is "
           "1,000,000 bytes",),
)
