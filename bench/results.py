"""From measurements to verdicts: which rounds count, what the medians are, which bars hold."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.machine import Disturbance
from bench.plan import OURS, Bar, Case, Figure


@dataclass(frozen=True, slots=True)
class Measurement:
    """One contestant, measured once."""

    figures: Mapping[str, float]
    facts: Mapping[str, object]
    disturbance: Disturbance


# What one case measured in one round: contestant -> measurement. A contestant that failed is absent.
Round = Mapping[str, Measurement]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a result file. ``ratio`` is above one when ours is the better."""

    case: str
    unit: str
    ours: float | None
    peers: dict[str, float]
    ratio: float | None
    bar: str | None
    holds: bool | None

    def as_json(self) -> dict[str, Any]:
        return {
            "case": self.case, "unit": self.unit, "ours": self.ours, "peers": self.peers,
            "ratio": self.ratio, "bar": self.bar, "holds": self.holds,
        }


def calm_rounds(rounds: Sequence[Round]) -> list[Round]:
    """The calmer part of the rounds, three of five, at least one.

    A round is kept or dropped whole, by its most disturbed measurement, so that ours and the peers are always compared
    over the same stretches of time.
    """
    complete = max((len(measured) for measured in rounds), default=0)
    whole = [measured for measured in rounds if measured and len(measured) == complete]
    keep = max(1, (len(whole) * 3 + 4) // 5)
    return sorted(whole, key=lambda measured: max(one.disturbance.total for one in measured.values()))[:keep]


def rows(case: Case, rounds: Sequence[Round]) -> list[Row]:
    """The verdicts of a case: one row for each figure, and one more for each further bar of it."""
    calm = calm_rounds(rounds)
    found: list[Row] = []
    for figure in case.figures:
        medians = _medians(figure.key, calm)
        ours = medians.pop(OURS, None)
        for bar in figure.bars or (None,):
            # Of two bars one may be a limit, which is nobody: that line keeps the plain name.
            plain = len(figure.bars) < 2 or bar is None or bar.peer is None
            name = figure.name if plain else f"{figure.name}, against {bar.peer}"
            found.append(_row(name, figure, bar, ours, medians))
    return found


def _medians(key: str, rounds: Sequence[Round]) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for measured in rounds:
        for name, one in measured.items():
            if key in one.figures:
                values.setdefault(name, []).append(one.figures[key])
    return {name: statistics.median(series) for name, series in values.items()}


def _row(name: str, figure: Figure, bar: Bar | None, ours: float | None, peers: dict[str, float]) -> Row:
    ratio = _ratio(ours, _rival(figure, bar, peers), figure.lower_is_better)
    described = holds = None
    if bar is not None:
        described = bar.describe(lower_is_better=figure.lower_is_better)
        if bar.rivals:
            holds = None if ratio is None else ratio >= (bar.value if bar.peer is not None else 1.0)
        elif ours is not None:  # a limit, which may be nothing at all: no ratio then
            holds = ours <= bar.value if figure.lower_is_better else ours >= bar.value
    return Row(name, figure.unit, ours, peers, ratio, described, holds)


def _rival(figure: Figure, bar: Bar | None, peers: Mapping[str, float]) -> float | None:
    """What ours is compared with: the best peer that the bar names, its limit, or else the best peer there is."""
    if bar is not None and not bar.rivals:
        return bar.value
    found = [value for name, value in peers.items() if bar is None or name in bar.rivals]
    if not found:
        return None
    return min(found) if figure.lower_is_better else max(found)


def _ratio(ours: float | None, rival: float | None, lower_is_better: bool) -> float | None:
    if ours is None or rival is None:
        return None
    above, below = (rival, ours) if lower_is_better else (ours, rival)
    return above / below if below else None
