"""Measure how long a single job waits for an idle worker: from just before the call that queues it to its first line.

500 jobs, 100 a second, so that each finds the worker idle. One job goes ahead, wakes everything and is not counted.
"""

import time

from bench.load import loops, protocol
from bench.load.jobs_crew import crew, flags, is_quick
from bench.load.queues import scene

PER_SECOND = 100.0
CALM_SECONDS = 2.0


def main() -> None:
    given = flags().parse_args()
    count = 30 if is_quick(given) else 500
    with crew(given.library, given.url) as team:
        team.hire()
        team.produce("paced", 1)
        team.must_wait(scene.COUNT, 1, 40)
        time.sleep(0.2 if is_quick(given) else CALM_SECONDS)
        team.produce("paced", count, PER_SECOND)
        team.must_wait(scene.COUNT, count + 1, 30)
        waits = sorted(team.board.waits[1 : count + 1])
        facts = team.facts() | {"jobs": count}
    figures = {f"p{share}_ms": loops.percentile(waits, share / 100) * 1e3 for share in (50, 99)}
    protocol.answer(figures, facts)


if __name__ == "__main__":
    main()
