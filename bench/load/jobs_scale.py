"""Measure whether a job queue stays as fast: with four worker processes instead of one, with a million jobs queued.

Both sides of each ratio are measured in the same process, turn about.
"""

import statistics

from bench.load import protocol
from bench.load.jobs_crew import Crew, crew, flags, is_quick
from bench.load.jobs_drain import drain, fill


def processes(team: Crew, count: int, turns: int) -> dict[str, float]:
    """Jobs per second of one worker process and of four.

    Four do not begin at the same moment, so ``count`` must last for a multiple of the time that a start takes.
    """
    rates: dict[int, list[float]] = {1: [], 4: []}
    for _ in range(turns):
        for workers, found in rates.items():
            team.clear()
            fill(team, count)
            found.append(drain(team, count, workers))
    one, four = (statistics.median(found) for found in rates.values())
    return {"one_per_second": one, "four_per_second": four, "share": four / one}


def depth(team: Crew, few: int, many: int, turns: int) -> dict[str, float]:
    """Rates with ``few`` jobs queued, before and after, and with ``many``."""
    small: list[tuple[float, float]] = []
    large: list[tuple[float, float]] = []

    def measure(count: int, found: list[tuple[float, float]]) -> None:
        team.clear()
        rate = fill(team, count)["enqueue_per_second"]
        found.append((rate, drain(team, count, patience_seconds=150.0)))

    for turn in range(2 * turns):
        if turn == turns:
            measure(many, large)
        measure(few, small)
    figures = {}
    for name, at in (("enqueue", 0), ("drain", 1)):
        shallow, deep = statistics.median(pair[at] for pair in small), large[0][at]
        figures |= {f"{name}_few": shallow, f"{name}_many": deep, f"{name}_share": deep / shallow}
    return figures


def main() -> None:
    asked = flags()
    asked.add_argument("case", choices=("processes", "depth"))
    given = asked.parse_args()
    quick = is_quick(given)
    with crew(given.library, given.url) as team:
        if given.case == "processes":
            figures = processes(team, 400 if quick else 150_000, 1 if quick else 3)
        else:
            figures = depth(team, *((300, 3000, 1) if quick else (20_000, 1_000_000, 2)))
        facts = team.facts()
    protocol.answer(figures, facts)


if __name__ == "__main__":
    main()
