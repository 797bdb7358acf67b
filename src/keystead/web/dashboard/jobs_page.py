"""Jobs at a glance: how many lie where, how fast they end, who works, what failed, what comes next."""

import asyncio
import contextlib
from collections.abc import Callable
from html import escape

from nicegui import ui

from keystead.app import Running
from keystead.clock import real, speed_of
from keystead.settings import ValkeySettings
from keystead.web.dashboard import jobs_chart
from keystead.web.dashboard.frame import LOOK_SECONDS, page_frame
from keystead.web.dashboard.jobs_failed import failed_card
from keystead.web.dashboard.jobs_list import jobs_card
from keystead.web.dashboard.jobs_queues import queues_card, workers_card
from keystead.web.dashboard.jobs_shown import plural
from keystead.web.dashboard.jobs_times import recurring_card, tasks_card
from keystead.web.dashboard.shown import NOTHING, shown_count, shown_rate
from keystead.web.dashboard.stepping_in import SteppingIn
from keystead.web.job_rates import JobRateSampler
from keystead.web.jobs_watch import JobsLook, JobsWatch
from keystead.web.sampler import Sampler

Look = Callable[[], None]

FIRST_LOOK_SECONDS = 2.0
TILES = ("Queued", "Running", "Delayed", "Waiting", "Failed", "Done")
FIRST_STEPS = """<div class="ks-first"><h2>No job has been queued yet</h2>
<p>A job is a function that runs later, in a worker. Write one into <span class="mono">tasks.py</span>:</p>
<pre class="ks-code">from keystead.jobs import job

@job
async def greet(name: str) -&gt; None:
    print("hello", name)</pre>
<p>Start a worker in that directory:</p>
<pre class="ks-code">keystead worker tasks{option}</pre>
<p>Queue the job, from any program:</p>
<pre class="ks-code">async with keystead.jobs.Jobs.connect("{address}") as jobs:
    await jobs.enqueue("tasks.greet", name="Ada")</pre>
<p>This page moves by itself as soon as there is something to show.</p></div>"""


async def show_jobs(running: Running, sampler: Sampler, watch: JobsWatch, rates: JobRateSampler) -> None:
    """Build the page for one viewer; it then moves by itself, from what is read once for all viewers."""
    if watch.is_stale():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_LOOK_SECONDS):
                await watch.read()
    watch.want()
    with page_frame(sampler, running.clock, current="/jobs"):
        step_in = SteppingIn()
        looks = [_head(watch), _problem(watch)]
        with ui.element("section").classes("ks-card") as first:
            ui.html(first_steps(running.settings.valkey.url), sanitize=False)
        with ui.element("div") as rest:
            looks += [_tiles(watch), _rate_card(running, rates), queues_card(watch, step_in), workers_card(watch),
                      failed_card(watch, step_in), jobs_card(watch, step_in)]
            with ui.element("div").classes("ks-sides"):
                speed = speed_of(running.clock)
                looks += [recurring_card(watch, speed), tasks_card(watch, speed)]

    def look() -> None:
        watch.want()
        bare = watch.look is None or watch.look.is_bare
        first.classes(remove="hidden") if bare and watch.look is not None else first.classes(add="hidden")
        rest.classes(add="hidden") if bare else rest.classes(remove="hidden")
        for each in looks:
            each()

    look()
    ui.timer(LOOK_SECONDS, look)


def first_steps(url: str) -> str:
    """What to write and run to see something here, against this very server; never with its password."""
    address = "valkey://…" if "@" in url else url
    option = "" if url == ValkeySettings().url else f" --url {address}"
    return FIRST_STEPS.format(option=escape(option), address=escape(address))


def _head(watch: JobsWatch) -> Look:
    with ui.element("div").classes("ks-head"):
        with ui.element("div"):
            ui.html("Jobs", sanitize=True, tag="h1")
            below = ui.html("", sanitize=True, tag="p")
        state = ui.html("", sanitize=True, tag="span").classes("ks-state").props("role=status")

    def look() -> None:
        if watch.look is None:
            below.set_content("Waiting for the first answer…")
            state.classes(add="hidden")
            return
        below.set_content(escape(summary(watch.look)))
        words, tone = standing(watch.look)
        state.set_content(escape(words))
        state.classes(remove="hidden away warn idle", add=tone)

    return look


def summary(look: JobsLook) -> str:
    totals = look.snapshot.totals
    alive = sum(worker.alive for worker in look.snapshot.workers)
    return (f"{plural(len(look.snapshot.queues), 'queue')}, {plural(alive, 'worker')}. Ever: "
            f"{shown_count(totals.done)} done, {shown_count(totals.failed)} failed, "
            f"{shown_count(totals.retried)} tried again.")


def standing(look: JobsLook) -> tuple[str, str]:
    """The one thing to know, and its tone: away, warn, idle or nothing."""
    snapshot = look.snapshot
    queued = sum(queue.queued for queue in snapshot.queues)
    if not any(worker.alive for worker in snapshot.workers):
        return ("Jobs wait, no worker", "away") if queued else ("No worker", "idle")
    if paused := [queue.name for queue in snapshot.queues if queue.paused]:
        return (f"{paused[0]} is paused" if len(paused) == 1 else f"{len(paused)} queues are paused"), "warn"
    return ("Working", "") if any(queue.running for queue in snapshot.queues) or queued else ("Idle, ready", "")


def _problem(watch: JobsWatch) -> Look:
    banner = ui.html("", sanitize=False).classes("ks-banner hidden").props("role=alert")

    def look() -> None:
        if watch.problem is not None:
            banner.set_content(f"<b>Jobs cannot be read</b><div>{escape(watch.problem)}</div>"
                               "<div>Another program may use the same names. keystead keys audit tells more.</div>")
        banner.classes(remove="hidden") if watch.problem is not None else banner.classes(add="hidden")

    return look


def tile_texts(look: JobsLook) -> list[tuple[str, str]]:
    """Value and the line below it, for each tile."""
    queues = look.snapshot.queues
    alive = [worker for worker in look.snapshot.workers if worker.alive]
    slots = sum(worker.state.concurrency for worker in alive if worker.state is not None)
    queued, running, delayed, waiting, dead = (
        sum(getattr(queue, place) for queue in queues) for place in ("queued", "running", "delayed", "waiting", "dead")
    )
    return [
        (shown_count(queued), "ready to run"),
        (shown_count(running), f"of {shown_count(slots)} at once" if slots else "no worker"),
        (shown_count(delayed), "later, or again"),
        (shown_count(waiting), "for other jobs"),
        (shown_count(dead), "to retry or drop" if dead else "none given up"),
        (shown_count(look.snapshot.totals.done), "ever"),
    ]


def _tiles(watch: JobsWatch) -> Look:
    shown: list[tuple[ui.html, ui.html]] = []
    with ui.element("div").classes("ks-tiles"):
        for name in TILES:
            with ui.element("section").classes("ks-tile").props(f'aria-label="{name}"'):
                ui.html(name, sanitize=True).classes("name")
                shown.append((ui.html(NOTHING, sanitize=True).classes("value"),
                              ui.html("", sanitize=True).classes("more")))

    def look() -> None:
        if watch.look is None:
            return
        for (value, more), (value_text, more_text) in zip(shown, tile_texts(watch.look), strict=True):
            value.set_content(value_text)
            more.set_content(more_text)
        failed = shown[TILES.index("Failed")][0]
        failed.classes(add="bad") if failed.content != "0" else failed.classes(remove="bad")

    return look


def _rate_card(running: Running, rates: JobRateSampler) -> Look:
    with ui.element("section").classes("ks-card"):
        with ui.element("div").classes("ks-card-head"):
            ui.html("<h2>Jobs per second</h2><span class=quiet>last five minutes, your local time</span>",
                    sanitize=False)
            now = ui.html("", sanitize=True).classes("ks-legend").props("data-rates")
        chart = ui.echart(jobs_chart.options(rates.samples, real(running.clock).now())).classes("ks-chart")
    drawn = False

    def look() -> None:
        nonlocal drawn
        newest = rates.newest
        now.set_content("".join(
            f'<span class="{line}"><b>{shown_rate(getattr(newest, line) if newest else None)}</b> {line}</span>'
            for line, _ in jobs_chart.LINES
        ))
        if drawn:
            chart.run_chart_method("setOption", jobs_chart.moved(rates.samples, real(running.clock).now()))
        drawn = True

    return look
