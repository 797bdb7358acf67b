"""What runs by the clock: recurring jobs, and the tasks of the scheduler."""

from collections.abc import Callable
from html import escape

from nicegui import ui

from keystead.jobs import SchedulerOverview
from keystead.jobs.inspection_views import RecurringView
from keystead.web.dashboard.jobs_shown import due, moment, number, plural
from keystead.web.dashboard.live_table import Column, LiveTable, Row
from keystead.web.dashboard.shown import NOTHING, chip, shown_ago
from keystead.web.dashboard.stats_shown import broken_up
from keystead.web.jobs_watch import JobsWatch

Look = Callable[[], None]

RECURRING_COLUMNS = (Column("Job"), Column("Next run", "when"), Column("Last run", "when"))
TASK_COLUMNS = (Column("Tasks"), Column("", "num"))

NO_RECURRING = (
    "Nothing runs on a calendar yet. A list in the module of your jobs would, and the worker queues each run:"
    '<pre class="ks-code">RECURRING = RecurringList([\n'
    '    Recurring(report, cron("0 9 * * mon-fri", "Europe/London")),\n])</pre>'
)
NO_TASKS = (
    "No task is scheduled. One runs once at its time, on whichever instance is there:"
    '<pre class="ks-code">await Scheduler(valkey).schedule("shop.remind", {"order": 17}, delay_seconds=3600)</pre>'
)


def recurring_card(watch: JobsWatch, speed: float = 1.0) -> Look:
    """Entries by their next run. ``speed``: how fast the installation's clock runs."""
    with ui.element("section").classes("ks-card").props('aria-label="Recurring jobs"'):
        with ui.element("div").classes("ks-card-head"):
            ui.html("Recurring jobs", sanitize=True, tag="h2")
            says = ui.html("", sanitize=True).classes("quiet")
        table = LiveTable(RECURRING_COLUMNS)

    def look() -> None:
        if watch.look is not None:
            entries = watch.look.recurring
            says.set_content(plural(len(entries), "entry", "entries") if entries else "")
            table.show([recurring_row(entry, watch.look.at, speed) for entry in entries], empty=NO_RECURRING)

    return look


def recurring_row(entry: RecurringView, now: float, speed: float = 1.0) -> Row:
    title = broken_up(entry.title).replace(".", ".<wbr>")
    name = f'<span class="mono">{title}</span><div class="quiet">{escape(entry.queue)}</div>'
    last = shown_ago(now - entry.last_at) if entry.last_at else NOTHING
    return Row(f"{entry.queue} {entry.hash}", (
        name, f'<span title="{moment(entry.next_at)}">{due(entry.next_at, now, speed)}</span>',
        f'<span title="{moment(entry.last_at)}">{last}</span>',
    ))


def tasks_card(watch: JobsWatch, speed: float = 1.0) -> Look:
    """The scheduler at a glance."""
    with ui.element("section").classes("ks-card").props('aria-label="Scheduled tasks"'):
        with ui.element("div").classes("ks-card-head"):
            ui.html("Scheduled tasks", sanitize=True, tag="h2")
            state = ui.html("", sanitize=True)
        table = LiveTable(TASK_COLUMNS, classes="bare")

    def look() -> None:
        if watch.look is not None:
            state.set_content(tasks_state(watch.look.tasks) if watch.look.has_tasks else "")
            table.show(task_rows(watch.look.tasks, watch.look.at, speed) if watch.look.has_tasks else [],
                       empty=NO_TASKS)

    return look


def tasks_state(tasks: SchedulerOverview) -> str:
    if tasks.paused:
        return chip("paused", "warn")
    return chip("led", "good") if tasks.leader else chip("nobody leads", "bad")


def task_rows(tasks: SchedulerOverview, now: float, speed: float = 1.0) -> list[Row]:
    instance, _, epoch = tasks.leader.rpartition(":")
    facts = [
        ("Scheduled", number(tasks.scheduled)), ("Next one", due(tasks.next_at, now, speed)),
        ("Ready", number(tasks.ready)),
        ("Processing", number(tasks.processing)), ("Given up", number(tasks.dead, "bad")),
        ("Leader", f'<span class="mono">{escape(instance)}</span> <span class="quiet">epoch {escape(epoch)}</span>'
         if tasks.leader else "none; due tasks wait"),
    ]
    return [Row(name, (name, shown)) for name, shown in facts]
