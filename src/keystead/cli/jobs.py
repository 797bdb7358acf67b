"""``keystead jobs``: what lies in the queues, and stepping in."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from keystead.cli.jobs_shown import ended_table, error_table, job_facts, job_table, overview, recurring_table
from keystead.cli.output import Format, FormatOption, note, write, write_json
from keystead.cli.session import connected, run_settings, wait_for
from keystead.errors import Invalid, NotFound

if TYPE_CHECKING:
    from keystead.jobs import Inspection
    from keystead.jobs.dead_letters import Choice, DeadLetters
    from keystead.jobs.inspection_views import ErrorGroup, JobPage, JobView
    from keystead.settings import Settings

T = TypeVar("T")

FINDINGS = 1


class PlaceName(StrEnum):
    """Where jobs can lie."""

    QUEUED = "queued"
    DELAYED = "delayed"
    RUNNING = "running"
    WAITING = "waiting"
    DEAD = "dead"


class StatusName(StrEnum):
    """How jobs can end."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


QueuesOption = Annotated[
    list[str] | None,
    typer.Option("--queue", metavar="NAME", show_default="all",
                 help="Only this queue; may be given several times. The queue without a name is hot."),
]
QueueArgument = Annotated[str, typer.Argument(metavar="QUEUE", help="Name of the queue; the one without is hot.")]
UidsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[UID]...", show_default=False, help="Jobs by their uid.")
]
ErrorOption = Annotated[
    str | None,
    typer.Option("--error", metavar="TEXT", show_default=False,
                 help="Those of one error, as `jobs list dead --by-error` shows it, or whose error begins so."),
]
AllOption = Annotated[bool, typer.Option("--all", help="All of them.")]


@asynccontextmanager
async def inspecting(settings: "Settings") -> AsyncIterator["Inspection"]:
    """An inspection for the time of one command, by the server's clock."""
    from keystead.app import App
    from keystead.engine import sync_clock
    from keystead.jobs import Inspection

    async with connected(settings) as valkey:
        clock = App(settings).clock()
        await sync_clock(valkey, clock)
        yield Inspection(valkey, clock)


def _ask(context: typer.Context, ask: "Callable[[Inspection], Awaitable[T]]") -> T:
    """The answer of one inspection."""

    async def answer() -> T:
        async with inspecting(run_settings(context)) as inspection:
            return await ask(inspection)

    return wait_for(answer())


# -- looking -----------------------------------------------------------------------------------------------------------


def list_jobs(
    context: typer.Context,
    place: Annotated[
        PlaceName | None,
        typer.Argument(metavar="[PLACE]", show_default=False,
                       help="Jobs that lie here: queued, delayed, running, waiting (for other jobs) or dead."),
    ] = None,
    queue: QueuesOption = None,
    by_error: Annotated[bool, typer.Option("--by-error", help="Dead ones grouped by their error.")] = False,
    first: Annotated[int, typer.Option(min=0, metavar="NUMBER", help="Leave out so many at the beginning.")] = 0,
    most: Annotated[int, typer.Option(min=1, max=10_000, metavar="COUNT", help="List no more than this.")] = 50,
    format: FormatOption = Format.TABLE,
) -> None:
    """List the queues and workers, or the jobs that lie in one place.

    Jobs come in the order in which they will be served, dead ones newest first.
    """
    if by_error and place is not PlaceName.DEAD:
        raise Invalid("only dead jobs have errors to be grouped by: keystead jobs list dead --by-error")
    if place is None:
        snapshot = _ask(context, lambda inspection: inspection.snapshot(queue))
        write_json(snapshot.as_dict()) if format is Format.JSON else write(*overview(snapshot))
        return
    if by_error:
        groups = _ask(context, lambda inspection: _groups(inspection, queue))
        write_json([group.as_dict() for group in groups]) if format is Format.JSON else write(error_table(groups))
        return
    page, now = _ask(context, lambda inspection: _page(inspection, place, queue, first, most))
    if format is Format.JSON:
        write_json(page.as_dict())
        return
    write(job_table(place.value, page.jobs, now))
    note(f"{len(page.jobs):,} of {page.total:,} {place.value} jobs; `keystead jobs show UID` tells all about one")


async def _page(
    inspection: "Inspection", place: PlaceName, queues: Sequence[str] | None, first: int, most: int
) -> "tuple[JobPage, float]":
    """One page over several queues, as if one followed the other."""
    from keystead.jobs.inspection_views import JobPage

    found: list[JobView] = []
    total = 0
    for name in queues or await inspection.queue_names():
        page = await inspection.jobs(place.value, name, first=max(0, first - total), most=max(1, most - len(found)))
        found += page.jobs[: most - len(found)]
        total += page.total
    return JobPage(found, first, total), inspection.now()


async def _groups(inspection: "Inspection", queues: Sequence[str] | None) -> list["ErrorGroup"]:
    return [group for name in queues or await inspection.queue_names()
            for group in await inspection.dead_letters(name).groups()]


def ended(
    context: typer.Context,
    status: Annotated[
        StatusName | None,
        typer.Argument(metavar="[STATUS]", show_default=False,
                       help="Only those that ended so: succeeded, failed or cancelled."),
    ] = None,
    name: Annotated[str, typer.Option(metavar="JOB", show_default="all", help="Only jobs of this name.")] = "",
    queue: QueuesOption = None,
    most: Annotated[int, typer.Option(min=1, max=3000, metavar="COUNT", help="List no more than this.")] = 50,
    format: FormatOption = Format.TABLE,
) -> None:
    """List the jobs that ended lately, newest first: how, when, after how many tries, where.

    The newest 1,000 of each status are kept, for a day after the last. Each worker tells once a second, the newest 200
    of each status; one that is killed does not tell its last second.
    """
    page, now = _ask(context, lambda inspection: _with_time(inspection, inspection.ended(
        queue, name=name, status=None if status is None else status.value, most=most
    )))
    if format is Format.JSON:
        write_json(page.as_dict())
        return
    write(ended_table(page.jobs, now))
    note(f"{len(page.jobs):,} of {page.total:,} that are listed; `keystead jobs show UID` tells all about one")


def show(
    context: typer.Context,
    uid: Annotated[str, typer.Argument(metavar="UID", help="The job.")],
    queue: QueuesOption = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """Show where a job is, its arguments, tries, error and result.

    A job that ended well is only known while its state is kept, or it is among those that ended lately.
    """
    found, now = _ask(context, lambda inspection: _with_time(inspection, inspection.find(uid, queue)))
    if found is None or (found.state is None and found.view is None and found.ended is None):
        where = "" if found is None else " among the first 10,000 jobs of each list"
        raise NotFound(f"no job {uid} is known{where}; one that ended well is forgotten unless it was enqueued with "
                       "keep_seconds, or is among those that `keystead jobs ended` lists")
    if format is Format.JSON:
        write_json(found.as_dict())
        return
    write(*job_facts(found, now))


async def _with_time(inspection: "Inspection", asked: Awaitable[T]) -> tuple[T, float]:
    return await asked, inspection.now()


def recurring(
    context: typer.Context, queue: QueuesOption = None, format: FormatOption = Format.TABLE
) -> None:
    """List the jobs that run on a calendar, by their next run."""
    entries, now = _ask(context, lambda inspection: _with_time(inspection, inspection.recurring(queue)))
    write_json([entry.as_dict() for entry in entries]) if format is Format.JSON else \
        write(recurring_table(entries, now))


# -- stepping in -------------------------------------------------------------------------------------------------------


def retry(
    context: typer.Context,
    uids: UidsArgument = None,
    error: ErrorOption = None,
    everything: AllOption = False,
    queue: QueuesOption = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """Queue dead jobs again, each with all its tries.

    Leaves with 1 if some of the jobs given by uid are not among the dead.
    """
    _move_dead(context, uids, error, everything, queue, format, "retried", "queued again",
               lambda letters, choice: letters.retry(choice))


def drop(
    context: typer.Context,
    uids: UidsArgument = None,
    error: ErrorOption = None,
    everything: AllOption = False,
    queue: QueuesOption = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """Forget dead jobs for good.

    Leaves with 1 if some of the jobs given by uid are not among the dead.
    """
    _move_dead(context, uids, error, everything, queue, format, "dropped", "dropped",
               lambda letters, choice: letters.drop(choice))


def _move_dead(
    context: typer.Context, uids: list[str] | None, error: str | None, everything: bool, queues: list[str] | None,
    format: Format, field: str, done: str,
    move: "Callable[[DeadLetters, Choice], Awaitable[int]]",
) -> None:
    if (bool(uids), bool(error), everything).count(True) != 1:
        raise Invalid("say which dead jobs: their uids, --error TEXT, or --all")
    from keystead.jobs.dead_letters import by_error, by_uid, every

    found: set[str] = set()
    choice = by_uid(uids) if uids else by_error(error) if error else every

    def chosen(letter: "JobView") -> bool:
        if not choice(letter):
            return False
        found.add(letter.uid)
        return True

    async def move_all(inspection: "Inspection") -> int:
        return sum([await move(inspection.dead_letters(name), chosen)
                    for name in queues or await inspection.queue_names()])

    count = _ask(context, move_all)
    missing = [uid for uid in uids or () if uid not in found]
    if (uids or error) and not count:
        raise NotFound("no dead job is like that; `keystead jobs list dead --by-error` shows which there are")
    if format is Format.JSON:
        write_json({field: count, "missing": missing})
    else:
        note(f"{count:,} {'job' if count == 1 else 'jobs'} {done}")
        for uid in missing:
            note(f"{uid} is not among the dead jobs")
    if missing:
        raise typer.Exit(FINDINGS)


def cancel(
    context: typer.Context,
    uids: Annotated[list[str], typer.Argument(metavar="UID", help="Jobs by their uid.")],
    queue: QueuesOption = None,
    format: FormatOption = Format.TABLE,
) -> None:
    """Ask that jobs do not run, or stop.

    One that is not async and runs already goes on to its end. Leaves with 1 if some of them have ended or are not
    known.
    """
    asked = _ask(context, lambda inspection: _cancel(inspection, uids, queue))
    if format is Format.JSON:
        write_json(asked)
    else:
        for uid, is_asked in asked.items():
            note(f"{uid} is called off" if is_asked else f"{uid} has ended, or is not known")
    if not all(asked.values()):
        raise typer.Exit(FINDINGS)


async def _cancel(inspection: "Inspection", uids: Sequence[str], queues: Sequence[str] | None) -> dict[str, bool]:
    return {uid: await inspection.cancel(uid, queues) for uid in uids}


def pause(context: typer.Context, queue: QueueArgument = "hot") -> None:
    """Let nobody take jobs of a queue until it is resumed. Those that run are not touched."""
    _ask(context, lambda inspection: inspection.pause(queue))
    note(f"queue {queue} is paused; `keystead jobs resume {queue}` lets it go on")


def resume(context: typer.Context, queue: QueueArgument = "hot") -> None:
    """Let jobs of a queue be taken again."""
    was_paused = _ask(context, lambda inspection: inspection.resume(queue))
    note(f"queue {queue} goes on" if was_paused else f"queue {queue} was not paused")
