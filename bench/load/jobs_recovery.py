"""Measure how soon the job of a killed worker runs again on an otherwise idle queue.

kill -9 of the worker in the middle of a job, another worker at once; the clock runs from the kill to the second begin
of the job. ``--tuned`` takes the shortest sensible settings of a library instead of its defaults; ``--standby`` has the
other worker idle beside the first one from the beginning. A library that does not run the job again within
``--give-up`` seconds gets no figure; in a quick run the tuned ones are only seen to begin.
"""

import time

from bench.load import protocol
from bench.load.jobs_crew import Crew, crew, flags, is_quick
from bench.load.queues import scene

BEGIN_SECONDS = 40.0


def seconds_until_run_again(team: Crew, standby: bool, give_up: float) -> float | None:
    """How long after the kill the job began again; None if it did not."""
    slots = (0, 1) if standby else (0,)
    workers = {slot: team.hire(slot) for slot in slots}
    if standby:
        time.sleep(3.0)  # both are up and have seen each other
    team.produce("nap")
    team.must_wait(scene.NAPS_BEGUN, 1, BEGIN_SECONDS)
    [busy] = [slot for slot in slots if team.board.cells(slot)[scene.NAPS_BEGUN]]
    team.kill(workers[busy])
    killed = time.monotonic()
    if not standby:
        team.hire(1)
    if not team.wait(scene.NAPS_BEGUN, 2, give_up):
        return None
    other = 1 if busy == 0 else 0
    begun = team.board.cells(other)[scene.NAP_BEGUN_AT]
    team.must_wait(scene.NAPS_ENDED, 1, scene.NAP_SECONDS + 15)
    return float(begun - killed)


def main() -> None:
    asked = flags()
    asked.add_argument("--tuned", action="store_true")
    asked.add_argument("--standby", action="store_true")
    asked.add_argument("--give-up", type=float, default=40.0)
    given = asked.parse_args()
    with crew(given.library, given.url) as team:
        team.quick_recovery = given.tuned
        give_up = 3.0 if given.tuned and is_quick(given) else given.give_up
        seconds = seconds_until_run_again(team, given.standby, give_up)
        facts = team.facts() | {"ran_again": seconds is not None}
    protocol.answer({"seconds": seconds} if seconds is not None else {}, facts)


if __name__ == "__main__":
    main()
