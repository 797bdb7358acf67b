"""A table that changes under the reader's eyes without flicker: rows keep their place on the page, and only cells that
differ are sent. What has the focus, or is being clicked, stays what it was."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from nicegui import ui

Act = Callable[[str, str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Column:
    """``classes`` goes onto the head and every cell: ``num``, ``mid`` (not on a phone), ``wide`` (not on a tablet)."""

    title: str
    classes: str = ""


@dataclass(frozen=True, slots=True)
class Action:
    """A button in a row. ``name`` is handed to whoever acts, ``tone`` may be ``danger``."""

    name: str
    label: str
    tone: str = ""
    says: str = ""  # for those who do not see which row it stands in


@dataclass(frozen=True, slots=True)
class Row:
    """``key`` makes it the same row as before; ``cells`` are ready HTML, one for each column."""

    key: str
    cells: tuple[str, ...]
    actions: tuple[Action, ...] = ()
    tone: str = ""


class LiveTable:
    """Built where it is made; ``show`` brings it up to date. ``act`` is given a row's key and an action's name."""

    def __init__(self, columns: Sequence[Column], *, act: Act | None = None, classes: str = "") -> None:
        self._columns, self._act = columns, act
        self._rows: dict[str, _ShownRow] = {}
        with ui.element("table").classes(f"ks-table {classes}") as self._table:
            with ui.element("thead"), ui.element("tr"):
                self._heads = [ui.html(column.title, sanitize=True, tag="th").classes(column.classes)
                               for column in columns]
                if act is not None:
                    ui.html("", sanitize=True, tag="th").classes("acts").props('aria-label="Actions"')
            self._body = ui.element("tbody")
        self._empty = ui.html("", sanitize=False).classes("ks-empty hidden")

    def head(self, column: int, title: str) -> None:
        """Give a column another title."""
        self._heads[column].set_content(title)

    def show(self, rows: Sequence[Row], *, empty: str = "") -> None:
        """These rows in this order; with none of them ``empty``, as HTML."""
        wanted = {row.key: row for row in rows}  # a key that comes twice is one row
        for key in [key for key in self._rows if key not in wanted]:
            self._rows.pop(key).element.delete()
        for index, (key, row) in enumerate(wanted.items()):
            shown = self._rows.get(key)
            if shown is None:
                with self._body:
                    shown = self._rows[key] = _ShownRow(self._columns, row, self._act)
            else:
                shown.change(row)
            if self._body.default_slot.children[index] is not shown.element:
                shown.element.move(target_index=index)
        if not wanted:
            self._empty.set_content(empty)
        _hide(self._table, not wanted)
        _hide(self._empty, bool(wanted))


class _ShownRow:
    """One row on the page."""

    def __init__(self, columns: Sequence[Column], row: Row, act: Act | None) -> None:
        self._row, self._act = row, act
        with ui.element("tr").classes(row.tone) as self.element:
            self._cells = [
                ui.html(content, sanitize=False, tag="td").classes(column.classes)
                for column, content in zip(columns, row.cells, strict=True)
            ]
            if act is not None:
                with ui.element("td").classes("acts"):
                    self._acts = ui.element("div")
                self._draw_actions()

    def change(self, row: Row) -> None:
        before, self._row = self._row, row
        for cell, old, new in zip(self._cells, before.cells, row.cells, strict=True):
            if old != new:
                cell.set_content(new)
        if before.tone != row.tone:
            self.element.classes(remove=before.tone, add=row.tone)
        if before.actions != row.actions and self._act is not None:
            self._acts.clear()
            self._draw_actions()

    def _draw_actions(self) -> None:
        assert self._act is not None
        with self._acts:
            for action in self._row.actions:
                button(action.label, tone=action.tone, says=action.says).on(
                    "click", partial(self._act, self._row.key, action.name)
                )


def button(label: str, *, tone: str = "", says: str = "") -> ui.html:
    """A plain button of the dashboard."""
    made = ui.html(label, sanitize=True, tag="button").classes(f"ks-btn {tone}")
    made.props("type=button")
    if says:
        made.props["aria-label"] = says
    return made


def _hide(element: ui.element, hidden: bool) -> None:
    element.classes(add="hidden") if hidden else element.classes(remove="hidden")
