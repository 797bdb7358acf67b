"""Queues, which can be paused, and the workers that serve them."""

from collections.abc import Callable, Sequence
from html import escape

from nicegui import ui

from keystead.jobs.inspection_views import QueueView, WorkerView
from keystead.web.dashboard.jobs_shown import number, plural
from keystead.web.dashboard.live_table import Action, Column, LiveTable, Row
from keystead.web.dashboard.shown import NOTHING, chip, shown_ago, shown_count, shown_duration
from keystead.web.dashboard.stepping_in import SteppingIn
from keystead.web.jobs_watch import JobsWatch

Look = Callable[[], None]

PAUSE = Action("pause", "Pause")
RESUME = Action("resume", "Resume", "accent")
SHOWN_WORKERS = 50
SHOWN_QUEUES = 50

QUEUE_COLUMNS = (
    Column("Queue"), Column("Queued", "num"), Column("Running", "num"), Column("Delayed", "num mid"),
    Column("Waiting", "num mid"), Column("Failed", "num"), Column("Workers", "num mid"),
)
WORKER_COLUMNS = (
    Column("Worker"), Column("Serves", "mid"), Column("Up for", "num mid"), Column("Running", "num"),
    Column("Done", "num"), Column("Failed", "num"),
)


def queues_card(watch: JobsWatch, step_in: SteppingIn) -> Look:
    """How many jobs of each queue lie where. Pausing stops nothing that runs, so it is asked about only briefly."""

    async def act(queue: str, action: str) -> None:
        if action == "resume":
            await step_in.tried(_resume(watch, queue))
            look()
        elif await step_in.confirmed(
            f"Pause the queue {queue}?", "Jobs that run go on to their end. No worker takes another one of this queue, "
            "and what is enqueued meanwhile waits, until you resume it.", "Pause",
        ):
            await step_in.tried(_pause(watch, queue))
            look()

    with ui.element("section").classes("ks-card").props('aria-label="Queues"'):
        with ui.element("div").classes("ks-card-head"):
            ui.html("Queues", sanitize=True, tag="h2")
            says = ui.html("", sanitize=True).classes("quiet")
        table = LiveTable(QUEUE_COLUMNS, act=act, classes="ks-counts")

    def look() -> None:
        if watch.look is not None:
            queues = watch.look.snapshot.queues
            says.set_content(f"{SHOWN_QUEUES} of {shown_count(len(queues))}" if len(queues) > SHOWN_QUEUES else "")
            table.show([queue_row(queue) for queue in shown_queues(queues)])

    return look


def shown_queues(queues: Sequence[QueueView]) -> list[QueueView]:
    """All of them in their order; of very many, those where something lies."""
    if len(queues) <= SHOWN_QUEUES:
        return list(queues)
    return sorted(queues, key=lambda queue: not (queue.queued or queue.running or queue.dead or queue.paused))[
        :SHOWN_QUEUES
    ]


def queue_row(queue: QueueView) -> Row:
    paused = f" {chip('paused', 'warn')}" if queue.paused else ""
    action = RESUME if queue.paused else PAUSE
    return Row(
        queue.name,
        (f'<span class="mono">{escape(queue.name)}</span>{paused}', number(queue.queued), number(queue.running),
         number(queue.delayed), number(queue.waiting), number(queue.dead, "bad"), number(queue.workers)),
        (Action(action.name, action.label, action.tone, f"{action.label} {queue.name}"),),
    )


async def _pause(watch: JobsWatch, queue: str) -> str:
    await watch.inspection.pause(queue)
    await watch.read()
    return f"The queue {queue} is paused."


async def _resume(watch: JobsWatch, queue: str) -> str:
    was_paused = await watch.inspection.resume(queue)
    await watch.read()
    return f"The queue {queue} goes on." if was_paused else f"The queue {queue} was not paused any more."


def workers_card(watch: JobsWatch) -> Look:
    """Who is there, or was within the last hour."""
    with ui.element("section").classes("ks-card").props('aria-label="Workers"'):
        with ui.element("div").classes("ks-card-head"):
            ui.html("Workers", sanitize=True, tag="h2")
            says = ui.html("", sanitize=True).classes("quiet")
        table = LiveTable(WORKER_COLUMNS, classes="ks-counts")

    def look() -> None:
        if watch.look is None:
            return
        workers = watch.look.snapshot.workers
        says.set_content(workers_heading(workers))
        table.show([worker_row(worker, watch.look.at) for worker in shown_workers(workers)], empty=NO_WORKER)

    return look


NO_WORKER = (
    "<b>No worker is running</b>, so jobs wait. Start one beside the module that holds your jobs:"
    '<pre class="ks-code">keystead worker tasks</pre>'
)


def workers_heading(workers: Sequence[WorkerView]) -> str:
    if not workers:
        return ""
    alive = [worker for worker in workers if worker.alive]
    slots = sum(worker.state.concurrency for worker in alive if worker.state is not None)
    silent = len(workers) - len(alive)
    return f"{plural(len(alive), 'worker')}, {plural(slots, 'job')} at once" + (f", {silent} silent" if silent else "")


def shown_workers(workers: Sequence[WorkerView]) -> list[WorkerView]:
    """Those that are there first, each at a place that does not depend on who gave the last sign of life."""
    return sorted(workers, key=lambda worker: (not worker.alive, worker.name))[:SHOWN_WORKERS]


def worker_row(worker: WorkerView, now: float) -> Row:
    """A worker that fell silent keeps what it told last, as long as that is known."""
    state = worker.state
    if state is None:
        cells = (escape(worker.name), NOTHING, NOTHING, NOTHING, NOTHING, NOTHING)
    else:
        where = f'<span class="mono">{escape(state.host)}</span> <span class="quiet">pid {state.pid}</span>'
        cells = (
            where, escape(state.queues), shown_duration((now if worker.alive else worker.seen_at) - state.started_at),
            f'{shown_count(state.running if worker.alive else 0)}<span class="quiet"> / '
            f"{shown_count(state.concurrency)}</span>",
            number(state.done), number(state.failed, "bad"),
        )
    return Row(worker.name, (f"{cells[0]} {_standing(worker, now)}", *cells[1:]), tone="" if worker.alive else "faded")


def _standing(worker: WorkerView, now: float) -> str:
    if not worker.alive:
        return chip(f"last seen {shown_ago(now - worker.seen_at)}", "bad")
    return chip("stopping", "warn") if worker.state is not None and worker.state.stopping else chip("alive", "good")
