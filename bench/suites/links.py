"""Links: what a click costs below HTTP."""

from bench.plan import OURS, Bar, Case, Contestant, Figure, Home, Suite
from bench.stage import one_server

MODULE = "bench.load.link_clicks"


def clicks(name: str, tasks: int, *bars: Bar) -> Case:
    """Clicks per second, over all tasks of one process."""
    contestant = Contestant(OURS, Home.PROJECT, MODULE, ("--tasks", str(tasks)))
    return Case(name, (Figure(name, "per_second", "clicks/s", bars=bars),), (contestant,))


SUITE = Suite(
    name="links",
    title="links: clicks on links that are not in the database yet",
    stage=one_server,
    cases=(
        clicks("click on a buffered link, 100 tasks", 100, Bar(10_000)),
        clicks("click on a buffered link, one at a time", 1),
    ),
    notes=("every click is written down and counted; limits included, one round trip each",),
)
