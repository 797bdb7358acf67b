"""The keys of the statistics room itself; what is counted is declared by the rooms that count it."""

from typing import Final

from keystead.jobs import RunFacts
from keystead.keys import Keyspace, RecordKey

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
