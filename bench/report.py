"""What a run leaves behind: a table to read, a result file to compute with, and every single measurement."""

import json
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import machine
from bench.plan import OURS, Suite
from bench.results import Round, Row, calm_rounds
from bench.runner import Pace, Played

MISSING = "-"
MOST_COLUMNS = 6  # with more peers than that, they get a table of their own, a line for each


def write(directory: Path, suite: Suite, found: Sequence[Row], played: Played, pace: Pace) -> Path:
    """Write ``NAME.json`` (the rows) and ``raw/NAME.json`` (every measurement, with what disturbed it)."""
    raw = directory / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    everything = {
        "machine": machine.describe(),
        "pace": {"seconds": pace.seconds, "warm_up": pace.warm_up, "rounds": pace.rounds_of(suite)},
        "failures": played.failures,
        "cases": {name: [_raw(measured) for measured in rounds] for name, rounds in played.rounds.items()},
    }
    _dump(raw / f"{suite.name}.json", everything)
    path = directory / f"{suite.name}.json"
    _dump(path, [row.as_json() for row in found])
    return path


def show(console: Console, suite: Suite, found: Sequence[Row], played: Played) -> None:
    """Print the table of a suite, how calm the machine was, and what could not be measured."""
    peers = list(dict.fromkeys(name for row in found for name in row.peers))
    beside = peers if len(peers) <= MOST_COLUMNS else []
    table = Table(title=suite.title, title_justify="left", title_style="bold")
    table.add_column("case")
    table.add_column("unit")
    for name in (OURS, *beside, "ratio"):
        table.add_column(name, justify="right")
    table.add_column("bar")
    table.add_column("holds")
    for row in found:
        values = (_number(row.ours), *(_number(row.peers.get(name)) for name in beside))
        table.add_row(row.case, row.unit, *values, _ratio(row.ratio), row.bar or MISSING, _verdict(row))
    console.print(table)
    if len(peers) > MOST_COLUMNS:
        console.print(_crowd(found, peers))
    for line in (*suite.notes, *_versions(played), *_calmness(played)):
        console.print(f"  {line}", style="dim", highlight=False)
    for failure in dict.fromkeys(played.failures):
        console.print(f"  not measured: {failure}", style="red", highlight=False, markup=False)


def _crowd(found: Sequence[Row], peers: Sequence[str]) -> Table:
    """Every peer and its figures; rows that differ in their bars alone share a column."""
    columns = {row.case.partition(", against ")[0]: row for row in found if row.peers}
    table = Table()
    table.add_column("")
    for name, row in columns.items():
        table.add_column(f"{name}, {row.unit}", justify="right")
    for who in (OURS, *peers):
        values = (row.ours if who == OURS else row.peers.get(who) for row in columns.values())
        table.add_row(who, *map(_number, values))
    return table


def _raw(measured: Round) -> dict[str, object]:
    return {
        name: {
            "figures": dict(one.figures), "facts": dict(one.facts),
            "stolen": round(one.disturbance.stolen, 4), "others": round(one.disturbance.others, 4),
        }
        for name, one in measured.items()
    }


def _versions(played: Played) -> list[str]:
    found = {
        " ".join(str(one.facts[name]) for name in ("library", "loop") if name in one.facts)
        for rounds in played.rounds.values() for measured in rounds for one in measured.values()
    }
    return [f"measured: {', '.join(sorted(filter(None, found)))}"] if any(found) else []


def _calmness(played: Played) -> list[str]:
    kept = [one for rounds in played.rounds.values() for measured in calm_rounds(rounds) for one in measured.values()]
    if not kept:
        return []
    stolen, others = (max(getattr(one.disturbance, name) for one in kept) for name in ("stolen", "others"))
    lines = [f"medians of the calmer rounds; in those at most {stolen:.1%} of processor time was stolen by the host, "
             f"{others:.1%} used by other programs"]
    none: Round = {}
    rounds = list(zip_longest(*filter(None, played.rounds.values()), fillvalue=none))
    if len(rounds) > 1:
        worst = (max((one.disturbance.stolen for measured in cases for one in measured.values()), default=0.0)
                 for cases in rounds)
        lines.append(f"most stolen, round by round: {', '.join(f'{share:.1%}' for share in worst)}")
    return lines


def _number(value: float | None) -> str:
    if value is None:
        return MISSING
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 100 else f"{value:.2f}"


def _ratio(value: float | None) -> str:
    return MISSING if value is None else f"{value:.2f}x"


def _verdict(row: Row) -> str:
    if row.bar is None:
        return MISSING
    if row.holds is None:
        return "[yellow]not measured[/]"
    return "[green]yes[/]" if row.holds else "[bold red]NO[/]"


def _dump(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
