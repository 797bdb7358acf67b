"""How days of statistics look in a terminal."""

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from keystead.cli.output import console, fact_grid, printable, table

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from keystead.stats.charts_cohorts import CohortGrid
    from keystead.stats.charts_rows import DayRows
    from keystead.stats.charts_views import ViewsChart
    from keystead.stats.listing import Listed
    from keystead.stats.rotation_report import RotationReport
    from keystead.stats.series import Series

BLOCKS = " ▁▂▃▄▅▆▇█"
PLAIN_BLOCKS = " .:-=+*#@"
MOST_COLUMNS = 60
MOST_VALUES = 20
_NUMBERS_COLUMNS = 48  # what the columns of numbers take beside the bars


def list_table(listed: "Sequence[Listed]") -> "Table":
    """Everything that is counted."""
    shown = table("name", "kind", "events", "days held", "purpose", right=("events", "days held"))
    for one in listed:
        held = f"{one.held_days} months" if one.monthly else str(one.held_days)
        shown.add_row(one.name, one.kind, str(len(one.events) or ""), held, one.purpose)
    return shown


def series_shown(series: "Series", purpose: str, rows: Mapping[str, Sequence[int]], what: str) -> (
    "Iterator[RenderableType]"
):
    """Facts, and a row of bars for each list; days that may still change stand behind a line."""
    count, most = len(series.labels), _room(rows)
    each = math.ceil(count / most)
    unit = "month" if series.monthly else "day"
    live = list(series.live)
    yield fact_grid([
        (series.name, purpose), ("zone", series.zone),
        (f"{unit}s", f"{series.labels[0]} to {series.labels[-1]}"),
        ("still live", f"{', '.join(live)}" if len(live) <= 4 else f"{live[0]} to {live[-1]}"),
        ("one bar", f"{each} {unit}s" if each > 1 else ""),
    ])
    newest = series.labels[-1]
    shown = table(what, "total", newest, "most", f"{unit}s", right=("total", newest, "most"))
    first_live = count - len(live)
    for name, days in rows.items():
        numbers = (f"{amount:,}" for amount in (sum(days), days[-1], max(days)))
        shown.add_row(_text(name), *numbers, _text(bars(days, first_live, most)))
    yield shown


def _room(names: Iterable[str]) -> int:
    """How many bars fit beside these names and their numbers."""
    longest = max(map(len, names), default=0)
    return max(10, min(MOST_COLUMNS, console().width - longest - _NUMBERS_COLUMNS))


def bars(days: Sequence[int], first_live: int, most: int = MOST_COLUMNS) -> str:
    """A bar for each day, or for several; a line stands before those that may still change."""
    blocks = BLOCKS if (sys.stdout.encoding or "ascii").lower().replace("-", "") == "utf8" else PLAIN_BLOCKS
    each = math.ceil(len(days) / most)
    sums = [sum(days[at : at + each]) for at in range(0, len(days), each)]
    highest = max(sums, default=0)
    drawn = [_block(blocks, amount, highest) for amount in sums]
    if first_live < len(days):
        drawn.insert(first_live // each, "|")
    return "".join(drawn)


def _block(blocks: str, amount: int, highest: int) -> str:
    """Anything above nothing is seen; anything below (rows may be) is not."""
    if amount <= 0:
        return blocks[0]
    return blocks[max(1, round(amount / highest * (len(blocks) - 1)))]


def cohorts_shown(grid: "CohortGrid", purpose: str) -> "Iterator[RenderableType]":
    """A row for everyone who joined in a week, and which part of them came back."""
    yield fact_grid([(grid.name, purpose), ("zone", grid.zone), ("periods", "not over yet are left empty")])
    names = [f"{period} d" for period in grid.periods]
    shown = table("joined from", "people", *names, "late", right=("people", *names, "late"))
    nobody = True  # the weeks before the first in which somebody joined are left out
    for label, size, cells, late in zip(grid.labels, grid.sizes, grid.retained, grid.late, strict=True):
        nobody = nobody and not size and not late
        if nobody:
            continue
        rates = ["" if cell is None or not size else f"{cell / size:.0%}" for cell in cells]
        shown.add_row(label, f"{size:,}", *rates, f"{late:,}" if late else "")
    yield shown


def views_shown(chart: "ViewsChart", purpose: str) -> "Iterator[RenderableType]":
    """A row of bars for each value."""
    first_live = max(0, chart.live_from - chart.start)
    yield fact_grid([(chart.name, purpose), ("zone", chart.zone), ("days", f"{chart.labels[0]} to {chart.labels[-1]}"),
                     ("not shown", f"{chart.left_out:,} more values" if chart.left_out else "")])
    shown = table(chart.dimension, "all time", "views", "people by day", "days",
                  right=("all time", "views", "people by day"))
    most = _room(one.value for one in chart.values)
    for one in chart.values:
        shown.add_row(_text(one.value), f"{one.total_views:,}", f"{sum(one.views):,}", f"{sum(one.users):,}",
                      _text(bars(one.views, first_live, most)))
    yield shown


def rows_shown(found: "DayRows", purpose: str) -> "Iterator[RenderableType]":
    """The rows of one day."""
    yield fact_grid([(found.name, purpose), ("zone", found.zone),
                     ("day", f"{found.label}, still live" if found.live else found.label)])
    shown = table(found.row_name, *found.fields, right=tuple(found.fields))
    for row, counts in found.rows:
        shown.add_row(_text(row), *(f"{counts[field]:,}" for field in found.fields))
    yield shown


def report_table(report: "RotationReport") -> "Table":
    """What a rotation did; what had nothing to do is left out."""
    shown = table("name", "days", "late", "seconds", "problems", right=("days", "late", "seconds", "problems"))
    for name, done in report.by_name.items():
        if done.days or done.late or done.problems:
            shown.add_row(name, f"{done.days:,}", f"{done.late:,}", f"{done.seconds:.2f}", f"{len(done.problems):,}")
    return shown


def _text(content: str) -> "Text":
    from rich.text import Text

    return Text(printable(content))
