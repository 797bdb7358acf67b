"""Counts by day as a table: newest first, one column for each event that counted anything."""

from collections.abc import Sequence
from typing import Final

from nicegui import ui

from keystead.stats.series import Series
from keystead.web.dashboard.stats_chart import Lines
from keystead.web.dashboard.stats_shown import broken_up, exact

# Whoever wants more rows wants a spreadsheet.
MOST_ROWS: Final = 400


def head_html(first: str, names: Sequence[str]) -> str:
    cells = "".join(f'<th scope="col" class="num">{broken_up(name)}</th>' for name in names)
    return f'<tr><th scope="col">{first}</th>{cells}</tr>'


def rows_html(labels: Sequence[str], columns: Sequence[Sequence[int]], at: range, *, live: bool = False) -> str:
    """Days of these places, the last of them first."""
    rows = []
    for place in reversed(at):
        cells = "".join(f'<td class="num{"" if days[place] else " zero"}">{exact(days[place])}</td>'
                        for days in columns)
        mark = ' <span class="ks-chip warn">still counting</span>' if live else ""
        rows.append(f'<tr><th scope="row">{labels[place]}{mark}</th>{cells}</tr>')
    return "".join(rows)


def sum_html(columns: Sequence[Sequence[int]]) -> str:
    cells = "".join(f'<td class="num">{exact(sum(days))}</td>' for days in columns)
    return f'<tr class="sum"><th scope="row">All days</th>{cells}</tr>'


class DayTable:
    """Only the sums and the live days are sent again while they are counted."""

    def __init__(self, label: str, *, sums: bool = True) -> None:
        self._sums = sums
        with ui.element("div").classes("ks-wide").props("tabindex=0 role=region") as wide:
            wide.props["aria-label"] = label
            with ui.element("table").classes("ks-days"):
                self._head = ui.html("", sanitize=False, tag="thead")
                self._sum = ui.html("", sanitize=False, tag="tbody")
                self._live = ui.html("", sanitize=False, tag="tbody")
                self._rest = ui.html("", sanitize=False, tag="tbody")
        self._more = ui.html("", sanitize=True).classes("ks-note hidden")

    def show(self, series: Series, lines: Lines) -> None:
        columns, days = list(lines.values()), len(series.labels)
        live_at = min(days, max(0, series.live_from - series.start))
        first = max(0, days - MOST_ROWS)
        self._head.set_content(head_html("Month" if series.monthly else "Day", list(lines)))
        self._sum.set_content(sum_html(columns) if self._sums else "")
        self._live.set_content(rows_html(series.labels, columns, range(max(first, live_at), days), live=True))
        self._rest.set_content(rows_html(series.labels, columns, range(first, live_at)))
        if first:
            self._more.set_content(f"The newest {MOST_ROWS} of {days:,} days; the CSV has all of them.")
            self._more.classes(remove="hidden")
