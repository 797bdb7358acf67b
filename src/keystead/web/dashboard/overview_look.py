"""What the overview shows beyond what is sampled anyhow: read together, once for all who look."""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Final, TypeVar

from sqlalchemy import select, text

from keystead.app import Running
from keystead.backup import LastBackup, last_backup
from keystead.engine.failures import ErrorReply
from keystead.errors import KeysteadError
from keystead.jobs import ROOMS_QUEUE, Inspection, Tenants
from keystead.jobs.inspection_views import JobView, QueueView, RecurringView, WorkerView
from keystead.jobs.tenants import TenantView
from keystead.members.stats import DAILY_ACTIVE
from keystead.members.tables import USERS
from keystead.messaging.touches.tables import TOUCH_POINTS, USER_TOUCHES
from keystead.operations.models import Alert, AlertEvent
from keystead.stats import Series
from keystead.stats.charts_live import RunView
from keystead.web.dashboard.messages_look import MessagesLook, look_at
from keystead.web.stats_watch import LiveSeries

T = TypeVar("T")

ACTIVE_DAYS: Final = 14
SHOWN_EVENTS: Final = 9
READ_ROWS: Final = 60
ASKED_TENANTS: Final = 5
MOST_RECURRING: Final = 200


@dataclass(frozen=True, slots=True)
class Arrived:
    """A message that reached somebody; who they are stays out of it."""

    uid: str
    event: str
    channel: str
    at: float


@dataclass(frozen=True, slots=True)
class OverviewLook:
    """All of it at about one moment. ``sql_ms`` is None, with ``sql_problem``, while the database does not answer.

    ``workers`` and ``queues`` include those of our own rooms. What could not be read is empty.
    """

    sql_ms: float | None
    sql_problem: str
    workers: tuple[WorkerView, ...] = ()
    queues: tuple[QueueView, ...] = ()
    recurring: tuple[RecurringView, ...] = ()
    messages: MessagesLook | None = None
    alerts: tuple[Alert, ...] = ()
    told: tuple[AlertEvent, ...] = ()
    tenants: tuple[TenantView, ...] = ()
    failed: tuple[JobView, ...] = ()
    runs: tuple[RunView, ...] = ()
    arrived: tuple[Arrived, ...] = ()
    joined: tuple[float, ...] = ()
    backup: LastBackup | None = None

    @property
    def is_new(self) -> bool:
        """Nobody has joined, nothing has arrived, and no job has failed."""
        return not (self.joined or self.arrived or self.failed)

    @property
    def alive(self) -> list[WorkerView]:
        return [worker for worker in self.workers if worker.alive]


async def read_overview(running: Running, inspection: Inspection) -> OverviewLook:
    """Read everything; what fails leaves its part empty and the rest whole."""
    sql_ms, sql_problem = await ask_sql(running)
    alerts = getattr(running, "alerts", None)
    queues = await _or(inspection.queues(), ())
    workers, recurring, messages, opened, told, tenants, failed, runs = await asyncio.gather(
        _or(inspection.workers(), ()), _or(inspection.recurring(most=MOST_RECURRING), []),
        _or(look_at(running), None), _or(alerts.open(), []) if alerts is not None else _none(),
        _or(alerts.recent(SHOWN_EVENTS), []) if alerts is not None else _none(),
        _or(Tenants(running.valkey, running.clock).busiest(ASKED_TENANTS), []),
        _or(_failed(inspection, queues), []), _or(running.charts.runs(), []),
    )
    arrived, joined = await _or(_rows(running), ((), ())) if sql_ms is not None else ((), ())
    return OverviewLook(
        sql_ms, sql_problem, tuple(workers), tuple(queues), tuple(recurring), messages, tuple(opened or ()),
        tuple(told or ()), tuple(tenants), tuple(failed), tuple(runs), arrived, joined,
        await _or(last_backup(running.valkey), None),
    )


async def ask_sql(running: Running) -> tuple[float | None, str]:
    """How long the database took to say anything, in milliseconds; or None and why it did not."""
    began = perf_counter()
    try:
        async with running.database.reading() as sql:
            await sql.execute(text("SELECT 1"))
    except KeysteadError as error:
        return None, str(error)
    return round((perf_counter() - began) * 1000, 1), ""


def active_days(running: Running) -> LiveSeries:
    """People active by day: the last two weeks, today as it is counted."""

    def bounds() -> tuple[int, int]:
        end = DAILY_ACTIVE.day_of(running.clock.now()) + 1
        return end - ACTIVE_DAYS, end

    return LiveSeries(running.charts, DAILY_ACTIVE.name, bounds, numbers=True)


def active_today(series: Series | None) -> list[int]:
    return list(series.counts.get("total", ())) if series is not None else []


async def _failed(inspection: Inspection, queues: Sequence[QueueView]) -> list[JobView]:
    """The newest few jobs that were given up, of whatever queue."""
    pages = await asyncio.gather(*(inspection.jobs("dead", queue.name, most=3) for queue in queues if queue.dead))
    return sorted((job for page in pages for job in page.jobs), key=lambda job: -(job.dead_at or 0))[:3]


async def _rows(running: Running) -> tuple[tuple[Arrived, ...], tuple[float, ...]]:
    touches, points = USER_TOUCHES.c, TOUCH_POINTS.c
    newest = select(touches.send_uid, points.event_slug, touches.channel, touches.created_at).join(
        TOUCH_POINTS, points.id == touches.touch_point_id).order_by(touches.id.desc()).limit(READ_ROWS)
    people = select(USERS.c.created_at).order_by(USERS.c.id.desc()).limit(READ_ROWS)
    async with running.database.reading() as sql:
        arrived = tuple(Arrived(*row) for row in (await sql.execute(newest)).all())
        return arrived, tuple(at for (at,) in (await sql.execute(people)).all())


async def _or(asked: Awaitable[T], otherwise: T) -> T:
    try:
        return await asked
    except (KeysteadError, ErrorReply):
        return otherwise


async def _none() -> None:
    return None


def of_the_program(queues: Sequence[QueueView]) -> list[QueueView]:
    """Without the queue of our own rooms, unless something of it failed."""
    return [queue for queue in queues if queue.name != ROOMS_QUEUE or queue.dead]
