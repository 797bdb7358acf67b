"""Jobs that were given up, grouped by their error: tried again or dropped together."""

from collections.abc import Callable
from html import escape

from nicegui import ui

from keystead.jobs.dead_letters import Choice, group_of
from keystead.jobs.inspection_views import ErrorGroup, JobView
from keystead.web.dashboard.jobs_shown import cut, job_address, moment, plural
from keystead.web.dashboard.live_table import Action, Column, LiveTable, Row
from keystead.web.dashboard.shown import shown_ago, shown_count
from keystead.web.dashboard.stepping_in import SteppingIn
from keystead.web.jobs_watch import JobsWatch

Look = Callable[[], None]

SHOWN_GROUPS = 50
SHOWN_NAMES = 3
COLUMNS = (Column("Error"), Column("Count", "num"), Column("Last", "when mid"), Column("First", "when wide"))
NONE_FAILED = (
    "No job has failed for good. One that raises is tried again first, and listed here when its tries are used up."
)


def failed_card(watch: JobsWatch, step_in: SteppingIn) -> Look:
    """The most frequent errors first."""

    async def act(key: str, action: str) -> None:
        queue, _, error = key.partition(" ")
        group = next((each for each in watch.groups or () if (each.queue, each.error) == (queue, error)), None)
        if group is None:
            step_in.tell("These jobs are not there any more.", bad=True)
        elif action == "retry":
            await step_in.tried(_retry(watch, group))
            look()
        elif await step_in.confirmed(
            f"Drop {plural(group.count, 'failed job')}?", f"They are forgotten for good, with their arguments: {error}",
            f"Drop {plural(group.count, 'job')}",
        ):
            await step_in.tried(_drop(watch, group))
            look()

    with ui.element("section").classes("ks-card").props('aria-label="Failed jobs"'):
        with ui.element("div").classes("ks-card-head"):
            ui.html("Failed jobs, by error", sanitize=True, tag="h2")
            says = ui.html("", sanitize=True).classes("quiet")
        table = LiveTable(COLUMNS, act=act)

    def look() -> None:
        if watch.look is None or watch.groups is None:
            return
        now, groups = watch.look.at, watch.groups
        says.set_content(groups_heading(groups))
        table.show([group_row(group, now) for group in groups[:SHOWN_GROUPS]], empty=NONE_FAILED)

    return look


def groups_heading(groups: list[ErrorGroup]) -> str:
    if not groups:
        return ""
    more = f"; the {SHOWN_GROUPS} most frequent are shown" if len(groups) > SHOWN_GROUPS else ""
    return f"{plural(sum(group.count for group in groups), 'job')}, {plural(len(groups), 'error')}{more}"


def group_row(group: ErrorGroup, now: float) -> Row:
    says = f"{shown_count(group.count)} of {group.error}"
    return Row(
        f"{group.queue} {group.error}",
        (error_cell(group), f'<span class="bad">{shown_count(group.count)}</span>', _when(group.last_at, now),
         _when(group.first_at, now)),
        (Action("retry", "Retry", "accent", f"Retry {says}"), Action("drop", "Drop", "danger", f"Drop {says}")),
    )


def error_cell(group: ErrorGroup) -> str:
    """The newest error whole, since its numbers say more than the group's dots, then which jobs had one like it."""
    shown = cut(group.sample.error or group.error or "no error was told")
    names = list(group.names.items())
    jobs = ", ".join(f"{escape(cut(name, 60))}" + (f" ({shown_count(count)})" if len(names) > 1 else "")
                     for name, count in names[:SHOWN_NAMES])
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    uid = group.sample.uid
    sample = f' · <a class="ks-link" href="{escape(job_address(uid))}">newest one</a>' if uid else ""
    return (f'<div class="ks-error">{escape(shown)}</div>'
            f'<div class="quiet"><span class="mono">{jobs}</span>{more} · queue {escape(group.queue)}{sample}</div>')


def _when(at: float, now: float) -> str:
    return f'<span title="{moment(at)}">{shown_ago(now - at)}</span>' if at else ""


def those_shown(group: ErrorGroup) -> Choice:
    """Chooses the letters that the viewer saw counted: none of another error, and none that came later."""

    def chosen(letter: JobView) -> bool:
        return group_of(letter.error) == group.error and (letter.dead_at or 0.0) <= group.last_at

    return chosen


async def _retry(watch: JobsWatch, group: ErrorGroup) -> str:
    moved = await watch.inspection.dead_letters(group.queue).retry(those_shown(group))
    await watch.refresh()
    return f"{plural(moved, 'job')} queued again, with all their tries." if moved != 1 else \
        "1 job queued again, with all its tries."


async def _drop(watch: JobsWatch, group: ErrorGroup) -> str:
    dropped = await watch.inspection.dead_letters(group.queue).drop(those_shown(group))
    await watch.refresh()
    return f"{plural(dropped, 'job')} dropped."
