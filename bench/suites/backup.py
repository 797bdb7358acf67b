"""Backups: how long writes are held, and what a backup of a million keys costs."""

from bench.plan import OURS, Bar, Case, Contestant, Figure, Home, Suite
from bench.stage import one_server

SUITE = Suite(
    name="backup",
    title="backup: one moment of a million keys and 200,000 rows, while others write",
    stage=one_server,
    cases=(
        Case(
            "backups of 1,000,000 keys and 200,000 rows",
            (
                Figure("writes held, median", "held_median_ms", "ms", lower_is_better=True, bars=(Bar(100),)),
                Figure("writes held, worst", "held_worst_ms", "ms", lower_is_better=True, bars=(Bar(500),)),
                Figure("longest wait of a client that writes", "longest_wait_ms", "ms", lower_is_better=True),
                Figure("a backup", "seconds", "s", lower_is_better=True),
                Figure("the archive", "megabytes", "MB", lower_is_better=True),
                Figure("memory that Python takes for it", "python_peak_mb", "MB", lower_is_better=True,
                       bars=(Bar(50),)),
                Figure("a check, loaded into a scratch server", "check_seconds", "s", lower_is_better=True),
                Figure("a restore into a data directory", "restore_seconds", "s", lower_is_better=True),
            ),
            (Contestant(OURS, Home.PROJECT, "bench.load.backup_million"),),
            most_rounds=1, patience_seconds=600.0,
        ),
    ),
    notes=("five backups in a row; the client writes one key after the other all the time",),
)
