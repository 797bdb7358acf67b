"""One family: its events by day, each of them by value, whether its sums agree, and all of it as a table."""

from html import escape
from typing import Final
from urllib.parse import quote

from nicegui import ui

from keystead.app import Running
from keystead.patterns import DailyFamily
from keystead.stats import Series
from keystead.web.dashboard.shown import shown_count
from keystead.web.dashboard.stats_card import ChartCard
from keystead.web.dashboard.stats_chart import something
from keystead.web.dashboard.stats_frame import keep_looking, one_head, problem_banner, range_bar, stats_frame
from keystead.web.dashboard.stats_identities import IdentityCard, broken_days
from keystead.web.dashboard.stats_range import StatsRange
from keystead.web.dashboard.stats_shown import broken_up, csv_address
from keystead.web.dashboard.stats_table import DayTable
from keystead.web.sampler import Sampler
from keystead.web.stats_watch import LiveSeries, StatsWatch

SHOWN_VALUES: Final = 8


async def show_family(
    running: Running, sampler: Sampler, watch: StatsWatch, family: DailyFamily, shown: StatsRange, event: str = ""
) -> None:
    """Build the page for one viewer; it then moves by itself."""
    charts, clock = running.charts, running.clock
    shared = watch.share(("series", family.name, shown), LiveSeries(
        charts, family.name, lambda: shown.bounds(family, clock.now())
    ))
    await shared.first()
    csv = csv_address(family, shown.bounds(family, clock.now()))
    path = f"/stats/{quote(family.name, safe=':')}"
    with stats_frame(running, sampler):
        one_head(family)
        range_bar(running, path, shown)
        problem = problem_banner(sampler, shared)
        identities: IdentityCard | None = None
        if broken_at_all(family, shared.value):  # first things first; sums that agree stand further down
            identities = IdentityCard(family)
        plot = ChartCard("Events by day", family.name, csv=csv)
        values = _Values(family, event) if family.breakdowns else None
        if identities is None and family.identities:
            identities = IdentityCard(family)
        with ui.element("section").classes("ks-card").props('aria-label="Table of days"'):
            with ui.element("div").classes("ks-card-head"):
                ui.html("Day by day", sanitize=True, tag="h2")
                ui.html(f'<a class="ks-btn" href="{escape(csv)}" download>CSV</a>', sanitize=False)
            table = DayTable(f"{family.name} day by day")
            idle = ui.html("", sanitize=False).classes("ks-note")
    drawn: Series | None = None

    def look() -> None:
        nonlocal drawn
        problem()
        if shared.value is None or shared.value is drawn:
            return
        drawn = shared.value
        lines = something(drawn.counts)
        plot.show(drawn, lines, says=summary(drawn))
        table.show(drawn, lines or {event: drawn.counts[event] for event in family.events[:6]})
        idle.set_content(idle_html([event for event in family.events if event not in lines]))
        if identities is not None:
            identities.show(drawn)
        if values is not None:
            values.show(drawn)

    keep_looking(look, shared)


def broken_at_all(family: DailyFamily, series: Series | None) -> bool:
    """Whether a day that is over has sums that do not agree."""
    return series is not None and any(not day.live for day in broken_days(family, series))


def summary(series: Series) -> str:
    total = sum(series.total(event) for event in series.counts)
    live = f"; {', '.join(series.live)} still counting" if 0 < len(series.live) <= 4 else ""
    return f"{shown_count(total)} events, {series.labels[0]} to {series.labels[-1]}{live}"


def idle_html(events: list[str]) -> str:
    if not events:
        return ""
    return "Nothing on these days: " + ", ".join(f'<span class="mono">{broken_up(event)}</span>' for event in events)


class _Values:
    """One event by its values, the biggest of them; the reader chooses which event."""

    def __init__(self, family: DailyFamily, event: str) -> None:
        self._family = family
        self._chosen = event if event in family.breakdowns else ""
        self._series: Series | None = None
        self._card = ChartCard("One event by value", family.name, tools=self._chooser)

    def _chooser(self) -> None:
        self._select = ui.element("select").classes("ks-select").props('aria-label="Event"')
        with self._select:
            self._options = {
                event: ui.html(escape(event), sanitize=True, tag="option") for event in self._family.breakdowns
            }
        for event, option in self._options.items():
            option.props["value"] = event
        self._select.on("change", self._choose, js_handler="(e) => emit(e.target.value)")

    def _choose(self, said: object) -> None:
        event = str(getattr(said, "args", ""))
        if event in self._family.breakdowns:
            self._chosen = event
            ui.run_javascript("const at = new URL(location); at.searchParams.set('event', "
                              f"{event!r}); history.replaceState(history.state, '', at);")
            if self._series is not None:
                self.show(self._series)

    def show(self, series: Series) -> None:
        self._series = series
        if not self._chosen:
            self._chosen = max(self._family.breakdowns, key=series.total)
        for event, option in self._options.items():
            if event == self._chosen:
                option.props["selected"] = True
        known = series.breakdowns.get(self._chosen, {})
        by = self._family.breakdowns[self._chosen]
        says = f"{self._chosen}, by {by}: {shown_count(len(known))} value{'s' if len(known) != 1 else ''}"
        self._card.show(series, something(series.top(self._chosen, SHOWN_VALUES)), says=says,
                        empty=f"{self._chosen} was not counted on these days.")
