"""Measure a job queue: how fast one process queues no-op jobs, what they take of the server's memory, and how fast one
worker process runs them.

The clock of the drain goes from the begin of the first job to the begin of the last, so that the start of the worker is
left out. ``--passes`` repeats all of it and takes medians, for libraries that are through in a fraction of a second.
"""

import statistics
import time

from bench.load import protocol
from bench.load.jobs_crew import Crew, crew, flags, is_quick
from bench.load.queues import scene

SETTLE_SECONDS = 0.3  # until the server has let go of the connections of the process before


def fill(team: Crew, count: int) -> dict[str, float]:
    """Queue so many jobs."""
    time.sleep(SETTLE_SECONDS)
    before = team.memory()
    seconds = team.produce("bulk", count)
    time.sleep(SETTLE_SECONDS)
    return {"enqueue_per_second": count / seconds, "bytes_per_job": (team.memory() - before) / count}


def drain(team: Crew, count: int, workers: int = 1, patience_seconds: float = 120.0) -> float:
    """Jobs per second of so many worker processes together, until all are run."""
    for slot in range(workers):
        team.hire(slot)
    team.must_wait(scene.COUNT, count, patience_seconds)
    team.dismiss()
    if team.total(scene.COUNT) != count:
        raise SystemExit(f"{team.library} ran {team.total(scene.COUNT):.0f} jobs instead of {count}")
    used = [cells for cells in map(team.board.cells, range(workers)) if cells[scene.COUNT]]
    first, last = min(cells[scene.FIRST_AT] for cells in used), max(cells[scene.LAST_AT] for cells in used)
    return float((count - 1) / (last - first))


def main() -> None:
    asked = flags()
    asked.add_argument("--count", type=int, default=20_000)
    asked.add_argument("--passes", type=int, default=1)
    given = asked.parse_args()
    count, passes = (300, 1) if is_quick(given) else (given.count, given.passes)
    found: dict[str, list[float]] = {}
    with crew(given.library, given.url) as team:
        team.produce("bulk", 500)  # what the server sets up only once is no memory of a job
        for _ in range(passes):
            team.clear()
            figures = fill(team, count) | {"drain_per_second": drain(team, count)}
            for name, value in figures.items():
                found.setdefault(name, []).append(value)
        facts = team.facts() | {"jobs": count, "passes": passes}
    protocol.answer({name: statistics.median(values) for name, values in found.items()}, facts)


if __name__ == "__main__":
    main()
