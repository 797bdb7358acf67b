"""The page of one thing that is counted: each kind has its own."""

from collections.abc import Mapping
from html import escape

from nicegui import ui

from keystead.app import Running
from keystead.errors import NotFound
from keystead.patterns import Cohorts, DailyFamily, DimensionViews, RowsByDay
from keystead.web.dashboard.stats_family import show_family
from keystead.web.dashboard.stats_frame import stats_frame
from keystead.web.dashboard.stats_numbers import show_numbers
from keystead.web.dashboard.stats_range import StatsRange
from keystead.web.dashboard.stats_retention import show_retention
from keystead.web.dashboard.stats_rows import show_rows
from keystead.web.dashboard.stats_views import show_views
from keystead.web.sampler import Sampler
from keystead.web.stats_watch import StatsWatch


async def show_one(
    running: Running, sampler: Sampler, watch: StatsWatch, name: str, shown: StatsRange, asked: Mapping[str, str]
) -> None:
    """The page of what is called so; words and a way back if nothing is."""
    try:
        one = running.charts.catalogue.find(name)
    except NotFound as refusal:
        _unknown(running, sampler, name, str(refusal))
        return
    if isinstance(one, DailyFamily):
        await show_family(running, sampler, watch, one, shown, asked.get("event", ""))
    elif isinstance(one, Cohorts):
        await show_retention(running, sampler, watch, one, shown, asked.get("by", ""))
    elif isinstance(one, DimensionViews):
        await show_views(running, sampler, watch, one, shown)
    elif isinstance(one, RowsByDay):
        await show_rows(running, sampler, watch, one, asked.get("day", ""))
    else:
        await show_numbers(running, sampler, watch, one, shown)


def _unknown(running: Running, sampler: Sampler, name: str, why: str) -> None:
    with stats_frame(running, sampler):
        ui.html('<a href="/stats">Statistics</a>', sanitize=False, tag="nav").classes("ks-crumb")
        with ui.element("div").classes("ks-head"), ui.element("div"):
            ui.html(escape(name[:80]), sanitize=True, tag="h1").classes("mono")
            ui.html(escape(f"{why[:1].upper()}{why[1:]}"), sanitize=True, tag="p")
