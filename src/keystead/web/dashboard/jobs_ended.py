"""Jobs that ended lately: how, when, after how many tries and how long; each leads to its page."""

from collections.abc import Callable, Mapping
from functools import partial
from html import escape
from typing import Final

from nicegui import ui

from keystead.jobs import EndedJob
from keystead.jobs.handle import ENDED
from keystead.jobs.inspection_views import EndedPage
from keystead.jobs.models import EndedStatus
from keystead.web.dashboard.jobs_shown import cut, moment, name_cell, state_chip, took
from keystead.web.dashboard.live_table import Column, LiveTable, Row
from keystead.web.dashboard.shown import NOTHING, shown_ago, shown_count
from keystead.web.jobs_watch import SHOWN_JOBS, JobsWatch

COLUMNS: Final = (
    Column("Job"), Column("Status", "state"), Column("Queue", "mid"), Column("Worker", "wide"),
    Column("Tries", "num mid"), Column("Took", "num mid"), Column("Ended", "num"),
)
SAYS: Final = "The newest that ended. Where more than 200 a second end alike, a worker tells the newest of them."
EMPTY: Final = "No job has ended lately. Each that does is listed here, for a day after the last."


def ended_list(watch: JobsWatch) -> Callable[[], str]:
    """The newest jobs of the status that the viewer chose. What is returned brings it up to date, and says what it
    shows."""
    chosen: EndedStatus | None = None
    choices: tuple[EndedStatus | None, ...] = (None, *ENDED)

    def look() -> str:
        if watch.look is None:
            return ""
        pages = dict(zip(choices, pages_of(watch.look.ended), strict=True))
        for status, tab in tabs.items():
            tab.set_content(f"{(status or 'all').capitalize()} <b>{shown_count(pages[status].total)}</b>")
        page = pages[chosen]
        table.show([ended_row(job, watch.look.at) for job in page.jobs],
                   empty=EMPTY if chosen is None else f"None {chosen} lately.")
        return SAYS + newest_of(page)

    def choose(status: EndedStatus | None) -> None:
        nonlocal chosen
        chosen = status
        for each, tab in tabs.items():
            tab.props(f"aria-pressed={'true' if each == chosen else 'false'}")
        look()

    with ui.element("div").classes("ks-under-head"), ui.element("div").classes("ks-tabs").props(
        'role=group aria-label="How they ended"'
    ):
        tabs = {status: ui.html("", sanitize=True, tag="button").props("type=button") for status in choices}
    table = LiveTable(COLUMNS, classes="ks-ended")
    for status, tab in tabs.items():
        tab.on("click", partial(choose, status))
    choose(None)
    return look


def pages_of(ended: Mapping[EndedStatus, EndedPage]) -> list[EndedPage]:
    """The newest of all, then those of each status."""
    jobs = sorted((job for page in ended.values() for job in page.jobs), key=lambda job: -job.ended_at)
    return [EndedPage(jobs[:SHOWN_JOBS], sum(page.total for page in ended.values())), *(ended[each] for each in ENDED)]


def newest_of(page: EndedPage) -> str:
    return f" Shown are {len(page.jobs)} of {shown_count(page.total)}." if page.total > len(page.jobs) else ""


def ended_row(job: EndedJob, now: float) -> Row:
    error = f'<div class="quiet">{escape(cut(job.error, 100))}</div>' if job.error else ""
    return Row(f"{job.ended_at} {job.uid} {job.name}", (
        name_cell(job.name, job.uid), state_chip(job.status) + error, escape(job.queue),
        f'<span class="mono">{escape(cut(job.worker, 100))}</span>' if job.worker else NOTHING, str(job.attempts),
        NOTHING if job.ran_seconds is None else took(job.ran_seconds),
        f'<span title="{moment(job.ended_at)}">{shown_ago(now - job.ended_at)}</span>',
    ))
