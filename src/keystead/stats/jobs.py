"""The worker's door of statistics: the rotation of finished days."""

from typing import Final

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.jobs import BatchRun, Calendar, JobBook, Recurring, StopReason
from keystead.jobs.batch_job_run import RunRecord
from keystead.stats.catalogue import Catalogue
from keystead.stats.keys import ROTATION_RUN
from keystead.stats.rotation import Rotation
from keystead.telemetry import counts, logger

ROTATE: Final = "keystead.stats.rotate"
LONGEST_SECONDS: Final = 6 * 3600.0
MOST_TOLD: Final = 100  # of the problems of one run

counts.describe("stats_rotation_problems", "what runs of the rotation could not do, or found to be wrong")

_log = logger("stats")


def register(book: JobBook, rotation: Rotation, valkey: Valkey, clock: Clock) -> None:
    """Add the rotation to the book. What its last run did is kept, as of every job that runs now and then."""
    record = RunRecord(ROTATION_RUN)

    async def rotate() -> dict[str, int]:
        started_at = clock.now()
        await record.begun(valkey, started_at)
        report = await rotation.run()
        counted = {"days": report.days, "late": report.late, "problems": len(report.problems)}
        for problem in report.problems[:MOST_TOLD]:
            _log.warning("rotation has a problem", problem=problem)
        if len(report.problems) > MOST_TOLD:
            _log.warning("rotation has more problems", more=len(report.problems) - MOST_TOLD)
        if report.problems:
            counts.add("stats_rotation_problems", len(report.problems))
        reason = StopReason.SIGNAL if report.stopped else StopReason.LIST_EXHAUSTED
        finished_at = clock.now()
        await record.ended(valkey, BatchRun(reason, finished_at - started_at, counted), finished_at)
        return counted

    book.register(ROTATE, rotate, timeout_seconds=LONGEST_SECONDS)


def recurring(catalogue: Catalogue) -> tuple[Recurring, ...]:
    """When days are rotated: at each time of day that something in the catalogue names, in its zone."""
    times = sorted({(str(one.home), one.rotates_at) for one in catalogue})
    return tuple(
        Recurring(ROTATE, Calendar(zone, hours=(at.hour,), minutes=(at.minute,), seconds=(at.second,)))
        for zone, at in times
    )
