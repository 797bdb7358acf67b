"""``keystead jobs tail``: queues as they change, or one job on its way."""

import asyncio
import json
from collections import deque
from contextlib import aclosing
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from keystead.cli.jobs import FINDINGS, inspecting
from keystead.cli.jobs_shown import queue_table, worker_table
from keystead.cli.output import Format, FormatOption, console, emit, note, printable
from keystead.cli.session import connected, run_settings, wait_for
from keystead.errors import NotFound, Unavailable

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Progress, TaskID

    from keystead.jobs.inspection_views import Snapshot
    from keystead.jobs.models import ProgressEvent
    from keystead.settings import Settings

SMOOTHED = 6  # rates are told over so many looks: workers report once a second, not when we look


def tail(
    context: typer.Context,
    uid: Annotated[
        str | None, typer.Argument(metavar="[UID]", show_default=False, help="Watch the progress of this job instead.")
    ] = None,
    every: Annotated[
        float, typer.Option("--every", min=0.1, metavar="SECONDS", help="Pause between two looks.")
    ] = 1.0,
    count: Annotated[
        int, typer.Option("--count", min=0, metavar="LOOKS", show_default="until Ctrl-C", help="End after so many.")
    ] = 0,
    format: FormatOption = Format.TABLE,
) -> None:
    """Watch the queues and their rates, or the progress of one job until it ends.

    Off a terminal each look is one line; as JSON each look, and each step of a job, is a document in one line. With a
    uid it leaves with 1 if the job fails. Only jobs that tell of their progress can be watched.
    """
    settings = run_settings(context)
    if uid is None:
        wait_for(_watch_queues(settings, every, count, format))
    elif wait_for(_watch_job(settings, uid, format)) == "failed":
        raise typer.Exit(FINDINGS)


# -- queues ------------------------------------------------------------------------------------------------------------


async def _watch_queues(settings: "Settings", every: float, count: int, format: Format) -> None:
    from rich.live import Live
    from rich.text import Text

    screen, seen = console(), deque["Snapshot"](maxlen=SMOOTHED)
    is_live = screen.is_terminal and format is Format.TABLE
    live = Live(Text("Looking…"), console=screen, auto_refresh=False)
    async with inspecting(settings) as inspection:
        if is_live:
            live.start()
        try:
            looks = 0
            while not count or looks < count:
                if looks:
                    await asyncio.sleep(every)
                looks += 1
                try:
                    seen.append(await inspection.snapshot())
                except Unavailable as error:
                    if not is_live:
                        raise
                    live.update(Text(f"The server is away: {printable(str(error))}", style="red"), refresh=True)
                    continue
                if is_live:
                    live.update(picture(seen), refresh=True)
                elif format is Format.JSON:
                    emit(json.dumps({**seen[-1].as_dict(), "rates": rates(seen)}) + "\n")
                else:
                    emit(line(seen) + "\n")
        finally:
            if is_live:
                live.stop()


def rates(seen: "deque[Snapshot]") -> dict[str, float]:
    """How many jobs a second ended how, over the last looks."""
    first, last = seen[0], seen[-1]
    seconds = last.at - first.at
    if seconds <= 0:
        return {"done": 0.0, "failed": 0.0, "retried": 0.0}
    return {name: round(max(0, getattr(last.totals, name) - getattr(first.totals, name)) / seconds, 2)
            for name in ("done", "failed", "retried")}


def picture(seen: "deque[Snapshot]") -> "RenderableType":
    """What a terminal shows at one moment."""
    from rich.console import Group
    from rich.text import Text

    snapshot = seen[-1]
    parts: list[RenderableType] = [queue_table(snapshot.queues)]
    if snapshot.workers:
        parts.append(worker_table(snapshot.workers, snapshot.at))
    return Group(*parts, Text(_rate_line(seen), style="bold"), Text("Ctrl-C ends this", style="dim"))


def line(seen: "deque[Snapshot]") -> str:
    """The same in one line."""
    snapshot = seen[-1]
    clock = datetime.fromtimestamp(snapshot.at).strftime("%H:%M:%S")
    queues = "; ".join(
        f"{queue.name}: {queue.queued} queued, {queue.delayed} delayed, {queue.running} running, {queue.dead} dead"
        + (", paused" if queue.paused else "")
        for queue in snapshot.queues
    )
    return printable(f"{clock} {_rate_line(seen)}; {queues}")


def _rate_line(seen: "deque[Snapshot]") -> str:
    now = rates(seen)
    alive = sum(worker.alive for worker in seen[-1].workers)
    return (f"{now['done']:,.1f} done/s, {now['failed']:,.1f} failed/s, {now['retried']:,.1f} retried/s, "
            f"{alive} {'worker' if alive == 1 else 'workers'}")


# -- one job -----------------------------------------------------------------------------------------------------------


async def _watch_job(settings: "Settings", uid: str, format: Format) -> str:
    """Show what a job tells until it ends; returns the type of its last event."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from keystead.jobs.progress_watch import watch

    screen = console()
    is_live = screen.is_terminal and format is Format.TABLE
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.fields[far]}"),
               TimeElapsedColumn())
    bars, kind = Progress(*columns, console=screen, disable=not is_live), ""
    async with connected(settings) as valkey:
        with bars:
            bar = bars.add_task(printable(uid), total=None, far="")
            try:
                async with aclosing(watch(valkey, uid, linger_seconds=0)) as batches:
                    async for batch in batches:
                        if batch.missed:
                            note(f"{batch.missed:,} earlier steps are not kept any more")
                        for event in batch.events:
                            kind = event.type
                            if is_live:
                                _move(bars, bar, event)
                            else:
                                emit(_told(event, format) + "\n")
            except NotFound:
                raise NotFound(f"job {uid} tells of no progress, or is long over; a job is watched that was enqueued "
                               "with options(progress=True), and `keystead jobs show UID` tells of any") from None
    if kind not in ("succeeded", "failed"):
        note("the job has been silent for long; it may still run")
    return kind


def _move(bars: "Progress", bar: "TaskID", event: "ProgressEvent") -> None:
    indicator = event.indicator
    words = printable(" ".join(event.message.split()))
    if indicator is not None and indicator.type == "bar" and indicator.of:
        far = f"{indicator.at:g} of {indicator.of:g}"
        bars.update(bar, description=words, completed=indicator.at, total=indicator.of, far=far)
    elif event.type == "succeeded":
        bars.update(bar, description=words, total=1, completed=1, far="done")
    elif event.type == "failed":
        bars.update(bar, description=words, far="failed")
    else:
        bars.update(bar, description=words)


def _told(event: "ProgressEvent", format: Format) -> str:
    if format is Format.JSON:
        import msgspec

        return msgspec.json.encode(event).decode()
    indicator = event.indicator
    far = f" ({indicator.at:g} of {indicator.of:g})" if indicator is not None and indicator.type == "bar" \
        and indicator.at is not None and indicator.of is not None else ""
    clock = datetime.fromtimestamp(event.occurred_at).strftime("%H:%M:%S")
    return printable(f"{clock} {event.type}: {' '.join(event.message.split())}{far}")
