"""The keys of the statistics room itself; what is counted is declared by the rooms that count it."""

from typing import Final

from keystead.jobs import RunFacts
from keystead.keys import Keyspace, RecordKey
from keystead.patterns import Cache

STATS = Keyspace("stats", tag="stats")

_ROTATION: Final = ("stats.rotation",)


class RotationRun(RunFacts, frozen=True, kw_only=True):
    """What a run of the rotation counts."""

    days: int = 0
    late: int = 0
    problems: int = 0


ROTATION_RUN = RecordKey(
    STATS, "stats:rotation:job", RotationRun, purpose="the last run of the rotation; running_time in seconds",
    writers=_ROTATION, readers=("stats.charts",),
)

# Kept by processes only: what is on the server is who computes one just now. Whoever fills it says until when.
CHARTS = Cache(
    STATS, "stats_charts:{unix_date}:{kind}:{name:text}", bytes, local_seconds=26 * 3600.0, lock_seconds=10.0,
    channel="ps:stats:charts", purpose="answers about days, gzip over JSON, carried to all processes",
    writers=("stats.charts",), readers=("stats.charts",),
)
