"""How queues, workers, jobs and errors look in a terminal."""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from keystead.cli.output import fact_grid, human_seconds, printable, table

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from keystead.jobs import EndedJob
    from keystead.jobs.inspection_views import (
        ErrorGroup,
        JobFound,
        JobView,
        QueueView,
        RecurringView,
        Snapshot,
        WorkerView,
    )

SHOWN_ARGUMENTS = 80
SHOWN_ERROR = 200
STATUS_STYLES = {"succeeded": "green", "failed": "red", "cancelled": "yellow"}
NUMBERS = ("queued", "delayed", "running", "waiting", "dead", "workers")


def overview(snapshot: "Snapshot") -> "Iterator[RenderableType]":
    """Queues, workers, and what was done ever."""
    yield queue_table(snapshot.queues)
    if snapshot.workers:
        yield worker_table(snapshot.workers, snapshot.at)
    else:
        yield "No worker is there; `keystead worker MODULE` starts one."
    totals = snapshot.totals
    yield f"{totals.done:,} done ever, {totals.failed:,} failed, {totals.retried:,} tried again"


def queue_table(queues: "Sequence[QueueView]") -> "Table":
    shown = table("queue", *NUMBERS, "", title="Queues", right=NUMBERS)
    for queue in queues:
        shown.add_row(_text(queue.name), *(f"{getattr(queue, number):,}" for number in NUMBERS[:4]),
                      _text(f"{queue.dead:,}", "red" if queue.dead else ""), f"{queue.workers:,}",
                      "[yellow]paused[/yellow]" if queue.paused else "")
    return shown


def worker_table(workers: "Sequence[WorkerView]", now: float) -> "Table":
    numbers = ("running", "of", "done", "failed")
    shown = table("worker", "queues", *numbers, "up for", "", title="Workers", right=numbers)
    for worker in workers:
        state = worker.state
        facts = ("", "", "", "", "", "") if state is None else (
            state.queues, f"{state.running:,}", f"{state.concurrency:,}", f"{state.done:,}", f"{state.failed:,}",
            _ago(state.started_at, now),
        )
        shown.add_row(_text(worker.name), *map(_text, facts), _standing(worker, now))
    return shown


def _standing(worker: "WorkerView", now: float) -> "Text":
    if not worker.alive:
        return _text(f"silent for {_ago(worker.seen_at, now)}", "red")
    if worker.state is not None and worker.state.stopping:
        return _text("stopping", "yellow")
    return _text("alive", "green")


def job_table(place: str, jobs: "Sequence[JobView]", now: float) -> "Table":
    """Jobs of one place, each in a row."""
    more = {"delayed": ("due",), "running": ("worker",), "dead": ("died", "tries", "error")}.get(place, ())
    shown = table("uid", "job", "queue", "queued", *more, "arguments", title=f"Jobs {place}", right=("tries",))
    for job in jobs:
        extra = {
            "due": "" if job.due_at is None else _due(job.due_at, now), "worker": job.worker,
            "died": "" if job.dead_at is None else f"{_ago(job.dead_at, now)} ago",
            "tries": "" if job.attempts is None else str(job.attempts), "error": _short(job.error, SHOWN_ERROR),
        }
        record = job.record
        head = (record.uid, record.name, job.queue, f"{_ago(record.queued_at, now)} ago") if record is not None else \
            ("", f"no job: {job.problem}", job.queue, "")
        arguments = "" if record is None else _short(_json(record.kwargs), SHOWN_ARGUMENTS)
        shown.add_row(*map(_text, head), *(_text(extra[name]) for name in more), _text(arguments))
    return shown


def ended_table(jobs: "Sequence[EndedJob]", now: float) -> "Table":
    """Jobs that ended, each in a row."""
    numbers = ("ran", "tries")
    shown = table("uid", "job", "queue", "status", "ended", *numbers, "worker", "error", title="Jobs ended lately",
                  right=numbers)
    for job in jobs:
        shown.add_row(
            _text(job.uid), _text(job.name), _text(job.queue), _text(job.status, STATUS_STYLES.get(job.status, "")),
            f"{_ago(job.ended_at, now)} ago", "" if job.ran_seconds is None else human_seconds(job.ran_seconds),
            str(job.attempts), _text(job.worker), _text(_short(job.error, SHOWN_ERROR)),
        )
    return shown


def recurring_table(entries: "Sequence[RecurringView]", now: float) -> "Table":
    """Recurring jobs, each in a row."""
    shown = table("job", "queue", "next run", "", "last run", title="Recurring jobs")
    for entry in entries:
        shown.add_row(_text(entry.title), _text(entry.queue), _when(entry.next_at), _due(entry.next_at, now),
                      _when(entry.last_at))
    return shown


def error_table(groups: "Sequence[ErrorGroup]") -> "Table":
    """Dead letters by their error."""
    shown = table("count", "error", "queue", "first", "last", "jobs", "for example", title="Dead jobs by error",
                  right=("count",))
    for group in groups:
        names = ", ".join(f"{name} ({count:,})" if len(group.names) > 1 else name
                          for name, count in list(group.names.items())[:3])
        shown.add_row(f"{group.count:,}", _text(group.error), _text(group.queue), _when(group.first_at),
                      _when(group.last_at), _text(names), _text(group.sample.uid))
    return shown


def job_facts(found: "JobFound", now: float) -> "tuple[RenderableType, RenderableType]":
    """Everything that is known of one job."""
    from rich.text import Text

    state, view, ended = found.state, found.view, found.ended
    record = view.record if view is not None else None
    facts: list[tuple[str, object]] = [("queue", found.queue)]
    if view is not None:
        facts += [("lies", view.place), ("held by", view.worker),
                  ("due", "" if view.due_at is None else _due(view.due_at, now))]
    if state is not None:
        facts += [("state", state.status), ("tries", state.attempts or ""), ("begun", _when(state.started_at)),
                  ("ended", _when(state.finished_at)), ("worker", state.worker)]
    if ended is not None:
        ran = "" if ended.ran_seconds is None else human_seconds(ended.ran_seconds)
        facts += [("state", f"{ended.status}; no state of it is kept, so arguments and result are not known"),
                  ("tries", ended.attempts), ("ran", ran), ("ended", _when(ended.ended_at)), ("worker", ended.worker)]
    known = record or state or ended
    name, queued_at = ("", None) if known is None else (known.name, known.queued_at)
    facts += [("job", name), ("queued", _when(queued_at))]
    if record is not None:
        facts += [("failed tries", record.attempt or ""), ("arguments", _json(record.kwargs))]
    if view is not None:
        facts += [("died", _when(view.dead_at)), ("tries", "" if view.attempts is None else view.attempts)]
    error = next((one.error for one in (view, state, ended) if one is not None and one.error), "")
    facts += [("error", Text(printable(error), style="red") if error else ""),
              ("result", state.result if state is not None else "")]
    return Text(printable(found.uid), style="bold cyan"), fact_grid(facts)


def _text(words: str, style: str = "") -> "Text":
    """Names and errors come from the server; what looks like markup in them is not."""
    from rich.text import Text

    return Text(printable(words), style=style)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _short(words: str, most: int) -> str:
    return words if len(words) <= most else words[: most - 1] + "…"


def _ago(at: float, now: float) -> str:
    return human_seconds(max(0.0, now - at))


def _due(at: float, now: float) -> str:
    return f"in {human_seconds(at - now)}" if at > now else "now"


def _when(at: float | None) -> str:
    if not at:
        return ""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return f"{at:g}"
