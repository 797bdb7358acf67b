"""The last run of every job: when, for how long, why it stopped, and what it counted."""

from collections.abc import Sequence
from html import escape
from typing import Final

from nicegui import ui

from keystead.app import Running
from keystead.clock import speed_of
from keystead.dates import UnixDate, unix_date_to_date
from keystead.stats.charts_live import RunView
from keystead.web.dashboard.live_table import Column, LiveTable, Row
from keystead.web.dashboard.shown import NOTHING, chip, shown_ago
from keystead.web.dashboard.stats_frame import keep_looking, places, problem_banner, stats_frame
from keystead.web.dashboard.stats_rotated import rotated_line
from keystead.web.dashboard.stats_shown import broken_up, exact, shown_took
from keystead.web.sampler import Sampler
from keystead.web.stats_watch import StatsWatch

# A run that says nothing for so long has probably died.
LONG_SECONDS: Final = 3600.0
MOST_DAYS: Final = 1_000_000
COLUMNS: Final = (
    Column("Job"), Column("Started", "when"), Column("Took", "when mid"), Column("Stopped", "stop"),
    Column("Counted", "counters"),
)
STOPS: Final = {
    "list_exhausted": ("all done", "good"), "time_exhausted": ("out of time", "warn"), "signal": ("told to stop", ""),
    "backpressure": ("too much waits downstream", "warn"), "credentials": ("credentials refused", "bad"),
}


async def show_runs(running: Running, sampler: Sampler, watch: StatsWatch) -> None:
    """Build the page for one viewer; it then moves by itself."""

    async def read(_: list[RunView] | None) -> list[RunView]:
        return await running.charts.runs()

    shared = watch.share("runs", read)
    await shared.first()
    with stats_frame(running, sampler):
        with ui.element("div").classes("ks-head"):
            with ui.element("div"):
                ui.html("Job runs", sanitize=True, tag="h1")
                below = ui.html("", sanitize=True, tag="p")
            places("/stats/job-runs")
        problem = problem_banner(sampler, shared)
        rotated = rotated_line(running, watch)
        with ui.element("section").classes("ks-card").props('aria-label="Last runs"'):
            table = LiveTable(COLUMNS, classes="ks-runs")
        never = ui.html("", sanitize=False)

    def look() -> None:
        problem()
        rotated()
        if shared.value is None:
            below.set_content("Waiting for the first answer…")
            return
        now = running.clock.now()
        ran = [run for run in shared.value if run.started_at or run.problem]
        below.set_content(escape(summary(shared.value)))
        table.show([run_row(run, now, speed_of(running.clock)) for run in ran],
                   empty="No job has run yet. Each one leaves what its last run counted, and shows here.")
        if (text := never_html(shared.value)) != never.content:
            never.set_content(text)

    keep_looking(look, shared)


def is_running(run: RunView) -> bool:
    """When a run starts only its start is written; what the one before left behind stays until the end."""
    return run.started_at is not None and (run.finished_at is None or run.finished_at < run.started_at)


def summary(runs: Sequence[RunView]) -> str:
    ran, going = [run for run in runs if run.started_at], sum(is_running(run) for run in runs)
    return (f"{len(ran)} of {len(runs)} jobs that keep count have run, {going or 'none'} of them is running now. "
            "Each row is the last run of one job.").replace("is running", "are running" if going > 1 else "is running")


def run_row(run: RunView, now: float, speed: float = 1.0) -> Row:
    """One job. Work takes real time, so a duration is divided by ``speed``, that of the installation's clock."""
    name = f'<span class="mono">{broken_up(run.name)}</span><div class="quiet">{escape(_purpose(run))}</div>'
    if run.problem or run.started_at is None:
        return Row(run.name, (name, NOTHING, NOTHING, chip("cannot be read", "bad"), escape(run.problem)))
    running = is_running(run)
    seconds = now - run.started_at if running else run.running_time
    took = shown_took(None if seconds is None else seconds / speed)
    stopped = _stopped(run, running, now, speed)
    return Row(run.name, (name, shown_ago(now - run.started_at), took, stopped, counters_html(run)))


def _purpose(run: RunView) -> str:
    return run.purpose.removesuffix("; running_time in seconds").removeprefix("the last run of ")


def _stopped(run: RunView, running: bool, now: float, speed: float) -> str:
    if running:
        silent = now - (run.started_at or now) > LONG_SECONDS * speed
        return chip("running, or died", "warn") if silent else chip("running", "good")
    if not run.stop_reason:
        return chip("ended")
    words, tone = STOPS.get(run.stop_reason, (run.stop_reason, ""))
    return chip(words, tone)


def counters_html(run: RunView) -> str:
    """What was counted, in the order of the job; zeros are only named."""
    counters = run.counters or {}
    some = [f"<span>{broken_up(name)} <b>{_amount(name, int(amount))}</b></span>"
            for name, amount in counters.items() if amount]
    none = [broken_up(name) for name, amount in counters.items() if not amount]
    zeros = f'<span class="zero">none: {", ".join(none)}</span>' if none and some else \
        '<span class="zero">nothing</span>' if none else ""
    return f'<div class="ks-counters">{"".join(some)}{zeros}</div>'


def _amount(name: str, amount: int) -> str:
    return unix_date_to_date(UnixDate(amount)).isoformat() if name.endswith("unix_date") and \
        amount < MOST_DAYS else exact(amount)


def never_html(runs: Sequence[RunView]) -> str:
    """Jobs that never ran, quietly."""
    names = sorted(run.name for run in runs if not run.started_at and not run.problem)
    if not names:
        return ""
    listed = ", ".join(f'<span class="mono">{broken_up(name)}</span>' for name in names)
    return f'<section class="ks-card ks-idle"><dl class="ks-facts"><dt>Never ran</dt><dd>{listed}</dd></dl></section>'
