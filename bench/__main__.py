"""``python -m bench``: run the suites, print their tables, write ``bench/out/NAME.json``.

Exit code 0 when everything asked for was measured, 1 when some of it was not (or, with ``--strict``, a bar does not
hold), 2 when the run could not start, 130 when it was interrupted.
"""

import argparse
import contextlib
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench import report, suites
from bench.environments import ENVIRONMENTS, CannotBuild
from bench.plan import Home, Suite
from bench.results import Row, rows
from bench.runner import QUICK, Pace, play
from keystead.errors import KeysteadError

OUT = Path(__file__).parent / "out"


def main() -> int:
    given = _flags().parse_args()
    console = Console(width=None if sys.stdout.isatty() else 160)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that a stopped run takes its servers along
    names = [name for name in given.only.split(",") if name] or list(suites.NAMES)
    unknown = [name for name in names if name not in suites.NAMES]
    if unknown:
        return _refuse(f"there is no suite {unknown[0]!r}; there are {', '.join(suites.NAMES)}")
    chosen = [narrow(suites.load(name), given.case, given.ours, given.peers) for name in names]
    if not any(case.contestants for suite in chosen for case in suite.cases):
        return _refuse("nothing is left to measure with these flags")
    try:
        prepare_peers(console, chosen)
    except CannotBuild as problem:
        return _refuse(str(problem))
    pace = pace_of(given)
    whole = True
    held: list[Row] = []
    for suite in chosen:
        if not suite.cases:
            continue
        try:
            with progress(console, suite, pace) as tell:
                played = play(suite, pace, tell)
        except KeysteadError as problem:
            console.print(f"{suite.name} could not run: {problem}", style="red", highlight=False, markup=False)
            whole = False
            continue
        found = [row for case in suite.cases for row in rows(case, played.rounds[case.name])]
        path = report.write(given.out, suite, found, played, pace)
        report.show(console, suite, found, played)
        console.print(f"  written to {path}\n", style="dim", highlight=False)
        whole = whole and not played.failures
        held.extend(found)
    missed = any(row.holds is False for row in held)
    return 0 if whole and not (given.strict and missed) else 1


def narrow(suite: Suite, case: str, ours: bool, peers: bool) -> Suite:
    """The suite with only the wanted cases and contestants."""
    homes = {home for home in Home if (ours if home is Home.PROJECT else peers)}
    return replace(suite, cases=tuple(
        replace(one, contestants=tuple(each for each in one.contestants if each.home in homes))
        for one in suite.cases
        if case.lower() in one.name.lower()
    ))


def prepare_peers(console: Console, chosen: list[Suite]) -> None:
    """Make the environments of peers that this run needs and that are missing or out of date."""
    needed = {each.home for suite in chosen for case in suite.cases for each in case.contestants}
    for home, environment in ENVIRONMENTS.items():
        if home in needed and not environment.is_current():
            with console.status(f"installing the {home.value} into an environment of their own"):
                environment.build()
            console.print(f"the environment of the {home.value} was made", style="dim")


def pace_of(given: argparse.Namespace) -> Pace:
    pace = QUICK if given.quick else Pace()
    if given.rounds is not None:
        pace = replace(pace, rounds=given.rounds)
    if given.seconds is not None:
        pace = replace(pace, seconds=given.seconds)
    return pace


@contextlib.contextmanager
def progress(console: Console, suite: Suite, pace: Pace) -> Iterator[Callable[[str], None]]:
    """A bar for a person; a line for each measurement where nobody watches a terminal."""
    if not console.is_terminal:
        yield lambda label: print(label, file=sys.stderr, flush=True)
        return
    total = pace.rounds_of(suite) * sum(len(case.contestants) for case in suite.cases)
    columns = (BarColumn(30), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(suite.name, total=total, completed=-1)

        def tell(label: str) -> None:
            bar.update(task, description=label, advance=1)

        yield tell


def _flags() -> argparse.ArgumentParser:
    flags = argparse.ArgumentParser(prog="python -m bench", allow_abbrev=False, description="Ours beside the peers.")
    flags.add_argument("--only", default="", metavar="NAMES", help=f"comma-separated, of: {', '.join(suites.NAMES)}")
    flags.add_argument("--case", default="", metavar="TEXT", help="only cases with this text in their name")
    flags.add_argument("--quick", action="store_true", help="one short round: shows that it runs, not how fast it is")
    flags.add_argument("--rounds", type=int, help="how often each contestant is measured")
    flags.add_argument("--seconds", type=float, help="length of one measurement (2)")
    flags.add_argument("--no-peers", dest="peers", action="store_false", help="measure ours alone")
    flags.add_argument("--no-ours", dest="ours", action="store_false", help="measure the peers alone")
    flags.add_argument("--out", type=Path, default=OUT, metavar="DIR", help="where the result files go (bench/out)")
    flags.add_argument("--strict", action="store_true", help="exit with 1 when a bar does not hold")
    return flags


def _refuse(problem: str) -> int:
    print(f"bench: {problem}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
