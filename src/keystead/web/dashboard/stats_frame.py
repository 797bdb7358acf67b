"""What the pages on statistics share: their look, the way back, the range of days, and words for what went wrong."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from html import escape
from importlib.resources import files
from typing import Any
from zoneinfo import ZoneInfo

from nicegui import ui

from keystead import dates
from keystead.app import Running
from keystead.stats import Charted
from keystead.web.dashboard.frame import page_frame
from keystead.web.dashboard.stats_range import StatsRange, picker
from keystead.web.dashboard.stats_shown import broken_up, zone_said
from keystead.web.sampler import Sampler
from keystead.web.stats_watch import Shared

Look = Callable[[], None]

LOOK_SECONDS = 1.0
PLACES = (("/stats", "Overview"), ("/stats/job-runs", "Job runs"))


@contextmanager
def stats_frame(running: Running, sampler: Sampler) -> Iterator[None]:
    """Everything inside the block is the page."""
    css = files("keystead.web").joinpath("assets", "stats.css").read_text(encoding="utf-8")
    with page_frame(sampler, running.clock, current="/stats"):
        ui.add_head_html(f"<style>{css}</style>")  # after the sheet of all pages, which it goes on with
        yield


def places(current: str) -> None:
    """The two tables of contents: what is counted, and what ran."""
    links = "".join(f'<a href="{path}"{" aria-current=page" if path == current else ""}>{name}</a>'
                    for path, name in PLACES)
    ui.html(f'<nav class="ks-tabs ks-places" aria-label="Statistics">{links}</nav>', sanitize=False)


def one_head(one: Charted) -> None:
    """The head of a page about one thing: the way back, its name and purpose, and whose days they are."""
    ui.html('<a href="/stats">Statistics</a>', sanitize=False, tag="nav").classes("ks-crumb")
    with ui.element("div").classes("ks-head"), ui.element("div"):
        ui.html(broken_up(one.name), sanitize=False, tag="h1").classes("mono")
        purpose = one.purpose[:1].upper() + one.purpose[1:]
        ui.html(escape(f"{purpose}; {zone_said(one)}."), sanitize=True, tag="p")


def range_bar(running: Running, path: str, shown: StatsRange, extra: Mapping[str, str] | None = None) -> None:
    today = dates.unix_date_to_date(dates.unix_date(running.clock.now(), ZoneInfo("UTC")))
    ui.html(picker(path, shown, today, extra), sanitize=False)
    if shown.problem:
        ui.html(f"<b>These days cannot be shown</b><div>{escape(shown.problem)} Below are the {shown.said}.</div>",
                sanitize=False).classes("ks-banner").props("role=alert")


def problem_banner(sampler: Sampler, *shared: Shared[Any]) -> Look:
    """Told unless the server is away: then the banner of every page tells already."""
    banner = ui.html("", sanitize=False).classes("ks-banner hidden").props("role=alert")

    def look() -> None:
        problem = next((one.problem for one in shared if one.problem is not None), None)
        if problem is not None:
            banner.set_content(f"<b>Statistics cannot be read</b><div>{escape(problem)}</div>"
                               "<div>What is shown is what was last known.</div>")
        told = problem is not None and sampler.away_since is None
        banner.classes(remove="hidden") if told else banner.classes(add="hidden")

    return look


def keep_looking(look: Look, *shared: Shared[Any]) -> None:
    """Look now, and each second from now on; what is looked at goes on being read."""

    def again() -> None:
        for one in shared:
            one.want()
        look()

    again()
    ui.timer(LOOK_SECONDS, again)
