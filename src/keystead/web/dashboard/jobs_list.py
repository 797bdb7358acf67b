"""Jobs by where they lie, each of which can be opened and called off; and those that ended lately."""

from collections.abc import Callable
from functools import partial
from html import escape
from typing import Final, Literal

from nicegui import ui

from keystead.jobs.inspection_views import JobPage, JobView, Place
from keystead.web.dashboard.jobs_ended import ended_list
from keystead.web.dashboard.jobs_shown import ago, due, job_cell
from keystead.web.dashboard.live_table import Action, Column, LiveTable, Row
from keystead.web.dashboard.shown import NOTHING, shown_count
from keystead.web.dashboard.stepping_in import SteppingIn
from keystead.web.jobs_watch import LISTED, JobsWatch

Look = Callable[[], None]

COLUMNS: Final = (Column("Job"), Column("Queue", "mid"), Column("", "wide"), Column("Age", "num"))
SAYS: Final[dict[Place, str]] = {
    "running": "Held by a worker now.",
    "queued": "Ready to run; taken in this order.",
    "delayed": "To run later, or to be tried again.",
    "waiting": "Waiting for other jobs to end first.",
}
WHERE: Final[dict[Place, str]] = {"running": "Worker", "delayed": "Due", "queued": "", "waiting": ""}
EMPTY: Final[dict[Place, str]] = {
    "running": "No job is running at this moment. Short ones come and go between two looks; the chart counts them all.",
    "queued": "Nothing waits for a worker.",
    "delayed": "Nothing waits for its time. <span class=mono>jobs.options(delay_seconds=60)</span> would.",
    "waiting": "Nothing waits for another job. <span class=mono>jobs.options(after=[first])</span> would.",
}
PLACES_IN_ORDER: Final[tuple[Place, ...]] = ("running", *(place for place in LISTED if place != "running"))


def jobs_card(watch: JobsWatch, step_in: SteppingIn) -> Look:
    """The first few jobs of the place that the viewer chose, or the newest that ended."""
    chosen: Place | Literal["ended"] = "running"

    async def act(key: str, _: str) -> None:
        await call_off(watch, step_in, key.partition(" ")[2])
        look()

    with ui.element("section").classes("ks-card").props('aria-label="Jobs"'):
        with ui.element("div").classes("ks-card-head"):
            with ui.element("div"):
                ui.html("Jobs", sanitize=True, tag="h2")
                says = ui.html("", sanitize=True).classes("quiet")
            with ui.element("div").classes("ks-tabs").props("role=group"):
                tabs = {place: ui.html("", sanitize=True, tag="button").props("type=button")
                        for place in PLACES_IN_ORDER}
                ended_tab = ui.html("Ended", sanitize=True, tag="button").props("type=button")
        with ui.element("div") as lying:
            table = LiveTable(COLUMNS, act=act)
        with ui.element("div") as ended:
            look_at_ended = ended_list(watch)

    def look() -> None:
        if watch.look is None:
            return
        for place, tab in tabs.items():
            tab.set_content(f"{place.capitalize()} <b>{shown_count(watch.look.listed[place].total)}</b>")
        if chosen == "ended":
            says.set_content(look_at_ended())
            return
        page = watch.look.listed[chosen]
        says.set_content(f"{SAYS[chosen]}{first_of(page)}")
        table.show([job_row(job, watch.look.at) for job in page.jobs], empty=EMPTY[chosen])

    def choose(place: Place | Literal["ended"]) -> None:
        nonlocal chosen
        chosen = place
        for each, tab in (*tabs.items(), ("ended", ended_tab)):
            tab.props(f"aria-pressed={'true' if each == chosen else 'false'}")
        lying.classes(add="hidden") if chosen == "ended" else lying.classes(remove="hidden")
        ended.classes(remove="hidden") if chosen == "ended" else ended.classes(add="hidden")
        if chosen != "ended":
            table.show([])
            table.head(2, WHERE[chosen])
        look()

    for place, tab in tabs.items():
        tab.on("click", partial(choose, place))
    ended_tab.on("click", partial(choose, "ended"))
    choose(chosen)
    return look


def first_of(page: JobPage) -> str:
    return f" The first {len(page.jobs)} of {shown_count(page.total)}." if page.total > len(page.jobs) else ""


def job_row(job: JobView, now: float) -> Row:
    """A job's row. Only one with a uid can be called off. The age counts from when it was first queued."""
    queued_at = job.record.queued_at if job.record is not None else None
    key = f"{job.queue}:{job.place}:{hash(job.raw)} {job.uid}"
    actions = (Action("cancel", "Cancel", "", f"Cancel {job.name} {job.uid}"),) if job.uid else ()
    return Row(key, (job_cell(job), escape(job.queue), where(job, now), ago(queued_at, now)), actions)


def where(job: JobView, now: float) -> str:
    if job.place == "delayed":
        tries = job.record.attempt if job.record is not None else 0
        return due(job.due_at, now) + (f'<div class="quiet">after {tries} failed tr{"y" if tries == 1 else "ies"}</div>'
                                       if tries else "")
    return f'<span class="mono">{escape(job.worker)}</span>' if job.worker else NOTHING


async def call_off(watch: JobsWatch, step_in: SteppingIn, uid: str) -> None:
    """Ask, then call a job off."""
    if await step_in.confirmed(
        "Cancel this job?", f"{uid} will not run, or stops where it waits next if it runs. It is not tried again. A "
        "job that runs in a thread goes on to its end.", "Cancel the job",
    ):
        await step_in.tried(_cancel(watch, uid))


async def _cancel(watch: JobsWatch, uid: str) -> str:
    asked = await watch.inspection.cancel(uid)
    await watch.read()
    return f"{uid} is called off." if asked else f"{uid} has ended already, or is not known any more."
