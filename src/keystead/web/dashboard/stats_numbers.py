"""Who or how many by day or month: people who were active, people who joined."""

from urllib.parse import quote

from nicegui import ui

from keystead.app import Running
from keystead.patterns import DayNumber, DaySet
from keystead.stats import Series
from keystead.web.dashboard.shown import shown_count
from keystead.web.dashboard.stats_card import ChartCard
from keystead.web.dashboard.stats_frame import keep_looking, one_head, problem_banner, range_bar, stats_frame
from keystead.web.dashboard.stats_range import StatsRange
from keystead.web.dashboard.stats_shown import csv_address, exact
from keystead.web.dashboard.stats_table import DayTable
from keystead.web.sampler import Sampler
from keystead.web.stats_watch import LiveSeries, StatsWatch


async def show_numbers(
    running: Running, sampler: Sampler, watch: StatsWatch, one: DaySet | DayNumber, shown: StatsRange
) -> None:
    """Build the page for one viewer; it then moves by itself."""
    clock = running.clock
    shared = watch.share(("numbers", one.name, shown), LiveSeries(
        running.charts, one.name, lambda: shown.bounds(one, clock.now()), numbers=True
    ))
    await shared.first()
    csv = csv_address(one, shown.bounds(one, clock.now()))
    with stats_frame(running, sampler):
        one_head(one)
        range_bar(running, f"/stats/{quote(one.name, safe=':')}", shown)
        problem = problem_banner(sampler, shared)
        plot = ChartCard("By month" if one.monthly else "By day", one.name, csv=csv, kinds=False)
        with ui.element("section").classes("ks-card").props('aria-label="Table of days"'):
            table = DayTable(f"{one.name} as a table", sums=isinstance(one, DayNumber))
    drawn: Series | None = None

    def look() -> None:
        nonlocal drawn
        problem()
        if shared.value is None or shared.value is drawn:
            return
        drawn = shared.value
        lines = {"total": drawn.counts["total"]}
        plot.show(drawn, lines, says=summary(drawn, distinct=isinstance(one, DaySet)))
        table.show(drawn, {**lines, "late": drawn.counts["late"]} if any(drawn.counts["late"]) else lines)

    keep_looking(look, shared)


def summary(series: Series, *, distinct: bool) -> str:
    """Different people of several days cannot be added up, so they are averaged over the days that are over."""
    numbers = series.counts["total"]
    over = numbers[: len(numbers) - len(series.live)]
    unit = "month" if series.monthly else "day"
    if not distinct:
        return f"{shown_count(sum(numbers))} in all, {series.labels[0]} to {series.labels[-1]}"
    if not over:
        return f"{exact(numbers[-1])} so far"
    late = sum(series.counts["late"])
    apart = f"; {shown_count(late)} told too late to know whether they were in" if late else ""
    return f"{shown_count(round(sum(over) / len(over)))} a {unit} on average over {unit}s that are over{apart}"
