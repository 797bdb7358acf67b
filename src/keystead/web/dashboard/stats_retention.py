"""Who came back: the heat map of those who joined together, and a line for each period."""

from dataclasses import replace
from html import escape
from typing import Final, Literal
from urllib.parse import quote, urlencode

from nicegui import ui

from keystead.app import Running
from keystead.patterns import Cohorts
from keystead.stats.charts_cohorts import CohortGrid
from keystead.web.dashboard.live_table import button
from keystead.web.dashboard.shown import shown_count, shown_share
from keystead.web.dashboard.stats_card import file_name, save_script
from keystead.web.dashboard.stats_frame import keep_looking, one_head, problem_banner, range_bar, stats_frame
from keystead.web.dashboard.stats_heatmap import heatmap_options, height, line_options, overall, period_said
from keystead.web.dashboard.stats_range import StatsRange
from keystead.web.dashboard.stats_shown import csv_address
from keystead.web.sampler import Sampler
from keystead.web.stats_watch import StatsWatch

# Every set of the window is measured anew each time, so that it is done less often than elsewhere.
EVERY_SECONDS: Final = 20.0
DAYS_AS_ROWS: Final = 31

Step = Literal["day", "week"]


def step_of(by: str, shown: StatsRange) -> Step:
    """As the address says; else weeks where days would be a wall of rows."""
    if by in ("day", "week"):
        return "day" if by == "day" else "week"
    return "day" if shown.days <= DAYS_AS_ROWS else "week"


async def show_retention(
    running: Running, sampler: Sampler, watch: StatsWatch, one: Cohorts, shown: StatsRange, by: str = ""
) -> None:
    """Build the page for one viewer; it is brought up to date every few seconds."""
    clock, step = running.clock, step_of(by, shown)

    async def read(_: CohortGrid | None) -> CohortGrid:
        return since_the_first(await running.charts.cohorts(one.name, *shown.bounds(one, clock.now()), step))

    shared = watch.share(("cohorts", one.name, shown, step), read, EVERY_SECONDS)
    await shared.first()
    path = f"/stats/{quote(one.name, safe=':')}"
    with stats_frame(running, sampler):
        one_head(one)
        range_bar(running, path, shown, {"by": step})
        problem = problem_banner(sampler, shared)
        with ui.element("div").classes("ks-tiles ks-heads"):
            tiles = [_tile(period_said(period)) for period in one.periods]
        with ui.element("section").classes("ks-card ks-plot").props('aria-label="Heat map"'):
            with ui.element("div").classes("ks-card-head"):
                with ui.element("div"):
                    ui.html("Came back, by when they joined", sanitize=True, tag="h2")
                    says = ui.html("", sanitize=True).classes("quiet")
                with ui.element("div").classes("ks-side"):
                    ui.html(steps_html(path, shown, step), sanitize=False)
                    csv = csv_address(one, shown.bounds(one, clock.now()), by=step)
                    ui.html(f'<a class="ks-btn" href="{escape(csv)}" download>CSV</a>', sanitize=False)
                    save = button("PNG", says="Save the heat map as an image")
            ground = ui.element("div").classes("ks-ground ks-heat")
        with ui.element("section").classes("ks-card ks-plot").props('aria-label="Lines"'):
            with ui.element("div").classes("ks-card-head"):
                ui.html("Rate by period", sanitize=True, tag="h2")
                save_lines = button("PNG", says="Save the lines as an image")
            lines = ui.element("div").classes("ks-ground")
    drawn: CohortGrid | None = None
    charts: list[ui.echart] = []

    def look() -> None:
        nonlocal drawn
        problem()
        if shared.value is None or shared.value is drawn:
            return
        fits = drawn is not None and len(drawn.labels) == len(shared.value.labels)
        drawn = shared.value
        says.set_content(escape(summary(drawn)))
        for (value, more), (value_text, more_text) in zip(tiles, tile_texts(drawn), strict=True):
            value.set_content(value_text)
            more.set_content(more_text)
        options = [heatmap_options(drawn), line_options(drawn)]
        if fits and charts:
            for chart, option in zip(charts, options, strict=True):
                chart.run_chart_method("setOption", {"series": [_data(series) for series in option["series"]]})
            return
        charts.clear()
        for place, option, pixels in zip((ground, lines), options, (height(drawn), 300), strict=True):
            place.clear()
            with place:
                charts.append(ui.echart(option).classes("ks-chart").style(f"height: {pixels}px"))

    def keep(which: int, title: str, tail: str) -> None:
        if drawn is not None:
            ends = drawn.labels[0], drawn.labels[-1]
            file = file_name(f"{one.name}-{tail}", ends, "png")
            ui.run_javascript(save_script(charts[which].id, f"{one.name}: {title}", file, which * len(one.periods)))

    save.on("click", lambda: keep(0, "came back, by when they joined", "cohorts"))
    save_lines.on("click", lambda: keep(1, "rate by period", "rates"))
    keep_looking(look, shared)


def since_the_first(grid: CohortGrid) -> CohortGrid:
    """Without the rows before anybody joined; a grid of nobody keeps its last row."""
    first = next((at for at, amount in enumerate(zip(grid.sizes, grid.late, strict=True)) if any(amount)),
                 max(0, len(grid.sizes) - 1))
    return replace(grid, labels=grid.labels[first:], sizes=grid.sizes[first:], retained=grid.retained[first:],
                   late=grid.late[first:])


def _data(series: dict[str, object]) -> dict[str, object]:
    return {"data": series["data"]}


def _tile(name: str) -> tuple[ui.html, ui.html]:
    with ui.element("section").classes("ks-tile"):
        ui.html(escape(name.capitalize() if name == "same day" else f"After {name}"), sanitize=True).classes("name")
        return ui.html("", sanitize=True).classes("value"), ui.html("", sanitize=True).classes("more")


def steps_html(path: str, shown: StatsRange, step: Step) -> str:
    links = "".join(
        f'<a href="{escape(path)}?{escape(shown.query)}&amp;{urlencode({"by": each})}"'
        f'{" aria-current=true" if each == step else ""}>{said}</a>'
        for each, said in (("day", "Days"), ("week", "Weeks"))
    )
    return f'<nav class="ks-tabs" aria-label="Rows">{links}</nav>'


def tile_texts(grid: CohortGrid) -> list[tuple[str, str]]:
    """For each period the rate over everyone for whom it is over, and how many they are."""
    return [(shown_share(rate), f"{shown_count(retained)} of {shown_count(size)}" if size else "not known yet")
            for rate, retained, size in overall(grid)]


def summary(grid: CohortGrid) -> str:
    many = f"{shown_count(sum(grid.sizes))} joined, {grid.labels[0]} to {grid.labels[-1]}"
    late = f"; {shown_count(sum(grid.late))} told too late to be followed" if any(grid.late) else ""
    return f"{many}{late}. Empty cells: the period is not over for all of the row."
