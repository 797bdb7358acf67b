"""Views by the value of a dimension: the biggest of them by day, and all of them in a table."""

from collections.abc import Sequence
from functools import partial
from html import escape
from typing import Final
from urllib.parse import quote

from nicegui import ui

from keystead.app import Running
from keystead.patterns import DimensionViews
from keystead.stats import Series
from keystead.stats.charts_views import MOST_DAYS, ValueViews, ViewsChart
from keystead.web.dashboard.shown import NOTHING, shown_count
from keystead.web.dashboard.stats_card import ChartCard
from keystead.web.dashboard.stats_chart import something
from keystead.web.dashboard.stats_frame import keep_looking, one_head, problem_banner, range_bar, stats_frame
from keystead.web.dashboard.stats_range import StatsRange
from keystead.web.dashboard.stats_shown import broken_up, csv_address, exact
from keystead.web.dashboard.stats_spark import sparkline
from keystead.web.sampler import Sampler
from keystead.web.stats_watch import StatsWatch

SHOWN_VALUES: Final = 8
ROWS: Final = 100
EVERY_SECONDS: Final = 4.0


async def show_views(
    running: Running, sampler: Sampler, watch: StatsWatch, one: DimensionViews, shown: StatsRange
) -> None:
    """Build the page for one viewer; it then moves by itself."""
    clock = running.clock

    async def read(_: ViewsChart | None) -> ViewsChart:
        start, end = shown.bounds(one, clock.now())
        return await running.charts.views(one.name, end - 1, min(end - start, MOST_DAYS))

    shared = watch.share(("views", one.name, shown), read, EVERY_SECONDS)
    await shared.first()
    counted = "views"

    def choose(what: str) -> None:
        nonlocal counted
        counted = what
        draw()

    def tabs() -> None:
        with ui.element("div").classes("ks-tabs").props('role=group aria-label="What is counted"'):
            for what, said in (("views", "Views"), ("users", "People")):
                tab_of[what] = ui.html(said, sanitize=True, tag="button").props("type=button")
                tab_of[what].on("click", partial(choose, what))

    tab_of: dict[str, ui.html] = {}
    with stats_frame(running, sampler):
        one_head(one)
        range_bar(running, f"/stats/{quote(one.name, safe=':')}", shown)
        problem = problem_banner(sampler, shared)
        csv = csv_address(one, shown.bounds(one, clock.now()))
        plot = ChartCard(f"By {one.dimension}", one.name, csv=csv, tools=tabs)
        with ui.element("section").classes("ks-card").props('aria-label="Values"'):
            with ui.element("div").classes("ks-card-head"):
                ui.html(f"Every {escape(one.dimension)}", sanitize=True, tag="h2")
            table = ui.html("", sanitize=False).classes("ks-wide").props("tabindex=0 role=region")
            table.props["aria-label"] = f"Table of every {one.dimension}"
    drawn: ViewsChart | None = None

    def draw() -> None:
        for what, tab in tab_of.items():
            tab.props(f"aria-pressed={'true' if what == counted else 'false'}")
        if drawn is not None:
            series = as_series(drawn, counted)
            said = "people, each once a day" if counted == "users" else "views"
            plot.show(series, something(series.top("all", SHOWN_VALUES)),
                      says=f"{shown_count(series.total('all'))} {said}, {drawn.labels[0]} to {drawn.labels[-1]}")

    def look() -> None:
        nonlocal drawn
        problem()
        if shared.value is not None and shared.value is not drawn:
            drawn = shared.value
            draw()
            table.set_content(table_html(drawn))

    draw()
    keep_looking(look, shared)


def as_series(chart: ViewsChart, counted: str) -> Series:
    """Views, or people, as one event that has values."""
    values = {one.value: list(one.users if counted == "users" else one.views) for one in chart.values}
    total = [sum(day) for day in zip(*values.values(), strict=True)] if values else [0] * len(chart.labels)
    return Series(chart.name, chart.zone, chart.start, chart.end, chart.labels, {"all": total}, {"all": values},
                  chart.live_from)


def table_html(chart: ViewsChart) -> str:
    """Most viewed first."""
    shown = chart.values[:ROWS]
    with_users = any(one.total_users is not None for one in shown)
    head = (f'<th scope="col">{escape(chart.dimension.capitalize())}</th><th scope="col" class="spark">By day</th>'
            '<th scope="col" class="num">Views</th><th scope="col" class="num">People, by day</th>'
            '<th scope="col" class="num">Views ever</th>'
            + ('<th scope="col" class="num">People ever, by day</th>' if with_users else ""))
    live = max(0, chart.end - max(chart.start, chart.live_from))
    rows = "".join(_row(one, live, with_users=with_users) for one in shown)
    left = len(chart.values) - len(shown) + chart.left_out
    more = f'<div class="ks-note">and {shown_count(left)} more</div>' if left > 0 else ""
    if not shown:
        return '<div class="ks-empty">Nothing was viewed yet.</div>'
    return f'<table class="ks-days"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}'


def _row(one: ValueViews, live: int, *, with_users: bool) -> str:
    cells: Sequence[int | None] = (sum(one.views), sum(one.users), one.total_views,
                                   *((one.total_users,) if with_users else ()))
    numbers = "".join(f'<td class="num{"" if cell else " zero"}">{NOTHING if cell is None else exact(cell)}</td>'
                      for cell in cells)
    return (f'<tr><th scope="row">{broken_up(one.value)}</th><td class="spark">{sparkline(one.views, live)}</td>'
            f"{numbers}</tr>")
