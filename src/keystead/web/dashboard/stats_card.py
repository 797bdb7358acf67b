"""A chart with its legend, which keys and fingers reach, and with what can be taken away: an image, a table."""

import json
from collections.abc import Callable
from functools import partial
from html import escape
from typing import Any, Final

from nicegui import ui

from keystead.stats.series import Series
from keystead.web.dashboard import stats_chart
from keystead.web.dashboard.live_table import button
from keystead.web.dashboard.shown import shown_count
from keystead.web.dashboard.stats_chart import Lines
from keystead.web.dashboard.stats_colours import colours
from keystead.web.dashboard.stats_shown import broken_up

# The image gets a title and a legend, which on the page are words of the page.
_SAVE: Final = """
  const chart = getElement({id}).chart;
  const dark = document.documentElement.dataset.theme === "dark";
  const {{grid: [grid], legend: [legend]}} = chart.getOption();
  chart.setOption({{title: {{show: true, text: {title}, left: "center", top: 12,
      textStyle: {{fontSize: 15, color: dark ? "#e6ebf1" : "#1a2330"}}}},
    legend: {{show: {legend}, top: 40}}, grid: {{top: {top}}}}});
  const link = document.createElement("a");
  link.href = chart.getDataURL({{type: "png", pixelRatio: 2, backgroundColor: dark ? "#151c24" : "#ffffff"}});
  link.download = {file};
  chart.setOption({{title: {{show: false}}, legend: {{show: legend.show, top: legend.top}}, grid: {{top: grid.top}}}});
  link.click();
"""
_NAMES_A_LINE: Final = 5


def save_script(chart_id: int, title: str, file: str, names: int = 0) -> str:
    """What the browser does to save a chart as an image; room is left for a legend of so many names."""
    top = 50 + (24 * -(-names // _NAMES_A_LINE) if names else 0)
    return _SAVE.format(id=chart_id, title=json.dumps(title), file=json.dumps(file), top=top,
                        legend="true" if names else "false")


def file_name(name: str, labels: "tuple[str, str]", ending: str) -> str:
    """``sms_send-2026-08-18-to-2026-11-15.png``, with no sign that a disk would refuse."""
    plain = "".join(sign if sign.isalnum() or sign in "._-" else "-" for sign in name)
    return f"{plain}-{labels[0]}-to-{labels[1]}.{ending}"


class ChartCard:
    """A chart that moves while it is looked at. ``show`` is given what is known now; what has not changed is not sent.

    Lines that are gone or new make another chart; the names that a reader switched off stay off.
    """

    def __init__(
        self, title: str, file: str, *, csv: str = "", stacked: bool = True, kinds: bool = True,
        tools: Callable[[], None] | None = None,
    ) -> None:
        self._title, self._file, self._stacked = title, file, stacked
        self._off: set[str] = set()
        self._series: Series | None = None
        self._lines: dict[str, list[int]] = {}
        self._totals: dict[str, ui.html] = {}
        self._chart: ui.echart | None = None
        with ui.element("section").classes("ks-card ks-plot") as card:
            card.props["aria-label"] = title
            with ui.element("div").classes("ks-card-head"):
                with ui.element("div"):
                    ui.html(escape(title), sanitize=True, tag="h2")
                    self._says = ui.html("", sanitize=True).classes("quiet")
                with ui.element("div").classes("ks-side"):
                    if tools is not None:
                        tools()
                    if kinds:
                        self._kinds()
                    if csv:
                        ui.html(f'<a class="ks-btn" href="{escape(csv)}" download>CSV</a>', sanitize=False)
                    button("PNG", says=f"Save {title} as an image").on("click", self._save)
            self._legend = ui.element("div").classes("ks-keys").props("role=group")
            self._legend.props["aria-label"] = f"Lines of {title}"
            self._ground = ui.element("div").classes("ks-ground")
            self._empty = ui.html("", sanitize=True).classes("ks-empty hidden")

    def _kinds(self) -> None:
        with ui.element("div").classes("ks-tabs").props('role=group aria-label="Kind of chart"'):
            tabs = {kind: ui.html(name, sanitize=True, tag="button").props("type=button")
                    for kind, name in ((True, "Stacked"), (False, "Lines"))}

        def choose(stacked: bool) -> None:
            for kind, tab in tabs.items():
                tab.props(f"aria-pressed={'true' if kind is stacked else 'false'}")
            if stacked is not self._stacked and self._series is not None:
                self._stacked = stacked
                self._draw(self._series, self._lines)
            self._stacked = stacked

        for kind, tab in tabs.items():
            tab.on("click", partial(choose, kind))
        choose(self._stacked)

    def show(self, series: Series, lines: Lines, *, says: str = "", empty: str = "") -> None:
        """Draw these lines over the days of the series; with none of them, say so."""
        wanted = {name: list(days) for name, days in lines.items()}
        self._says.set_content(escape(says))
        if self._series is None or list(wanted) != list(self._lines) or len(series.labels) != len(self._series.labels):
            self._draw(series, wanted)
        elif (series, wanted) != (self._series, self._lines) and self._chart is not None:
            self._chart.run_chart_method("setOption", stats_chart.moved(series, wanted, stacked=self._stacked))
            for name, total in self._totals.items():
                total.set_content(shown_count(sum(wanted[name])))
        self._series, self._lines = series, wanted
        _hide(self._ground, not wanted)
        _hide(self._legend, len(wanted) < 2)
        _hide(self._empty, bool(wanted))
        self._empty.set_content(empty or "Nothing was counted on these days.")

    def _draw(self, series: Series, lines: dict[str, list[int]]) -> None:
        options = stats_chart.options(series, lines, stacked=self._stacked)
        options["legend"] |= {"data": list(lines), "selected": {name: name not in self._off for name in lines}}
        self._ground.clear()
        with self._ground:
            self._chart = ui.echart(options).classes("ks-chart tall") if lines else None
        self._legend.clear()
        self._totals = {}
        with self._legend:
            for name, shade in colours(lines).items():
                self._key(name, shade, sum(lines[name]))

    def _key(self, name: str, shade: str, total: int) -> None:
        with ui.element("button").props("type=button").classes("ks-key") as key:
            key.props["aria-pressed"] = "false" if name in self._off else "true"
            ui.html(f'<i style="background:{shade}"></i>{broken_up(name)}', sanitize=False, tag="span")
            self._totals[name] = ui.html(shown_count(total), sanitize=True, tag="b")

        def turn() -> None:
            off = name not in self._off
            (self._off.add if off else self._off.discard)(name)
            key.props["aria-pressed"] = "false" if off else "true"
            if self._chart is not None:
                action: dict[str, Any] = {"type": "legendUnSelect" if off else "legendSelect", "name": name}
                self._chart.run_chart_method("dispatchAction", action)

        key.on("click", turn)

    def _save(self) -> None:
        if self._chart is None or self._series is None:
            return
        labels = self._series.labels[0], self._series.labels[-1]
        title = f"{self._file}: {self._title.lower()}, {labels[0]} to {labels[1]}"
        file = file_name(self._file, labels, "png")
        shown = len(self._lines) if len(self._lines) > 1 else 0
        ui.run_javascript(save_script(self._chart.id, title, file, shown))


def _hide(element: ui.element, hidden: bool) -> None:
    element.classes(add="hidden") if hidden else element.classes(remove="hidden")
