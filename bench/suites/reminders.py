"""Reminders: how a million of them get their times."""

from bench.plan import OURS, Bar, Case, Contestant, Figure, Home, Suite
from bench.stage import one_server

SUITE = Suite(
    name="reminders",
    title="reminders: a million people get their times of a day",
    stage=one_server,
    cases=(
        Case(
            "times of 1,000,000 reminders",
            (
                Figure("reminders that get a time", "rows_per_second", "rows/s", bars=(Bar(20_000),)),
                Figure("1,000,000 reminders against 100,000", "against_a_tenth", "x"),
                Figure("memory that 1,000,000 take more than 100,000", "resident_growth_mb", "MB",
                       lower_is_better=True, bars=(Bar(16),)),
            ),
            (Contestant(OURS, Home.PROJECT, "bench.load.reminders_assign"),),
            most_rounds=1, patience_seconds=600.0,
        ),
    ),
    notes=("rows in SQLite, a thousand for each step; the limit of waiting reminders is out of the way",),
)
