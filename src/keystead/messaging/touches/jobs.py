"""The worker's door: the jobs that make touches into messages, take news of these, and write the log."""

from collections.abc import Awaitable, Callable
from typing import Final

from keystead.clock import Clock
from keystead.dates import LOS_ANGELES
from keystead.engine import Valkey
from keystead.jobs import Calendar, JobBook, Recurring, Work
from keystead.members import ERASED_JOB
from keystead.messaging.touches.dispatcher import Dispatcher
from keystead.messaging.touches.dispatcher_plan import Planner
from keystead.messaging.touches.erased import Erasure
from keystead.messaging.touches.given_up import GivenUp
from keystead.messaging.touches.handlers import Handlers
from keystead.messaging.touches.log import LogJob, TouchLog
from keystead.messaging.touches.models import CHANNELS, Channel
from keystead.messaging.touches.outlets import Outlets
from keystead.messaging.touches.pending import Pending
from keystead.messaging.touches.stale import StaleJob

SEND_JOB: Final = "keystead.touches.send"
LOG_JOB: Final = "keystead.touches.log"
STALE_JOB: Final = "keystead.touches.detect_stale"


def register(
    book: JobBook, valkey: Valkey, clock: Clock, planner: Planner, outlets: Outlets, handlers: Handlers,
    pending: Pending, log: TouchLog, erasure: Erasure, *, stopping: Callable[[], bool] = lambda: False,
) -> None:
    """Add the room's jobs to the book."""
    planners = [(lane, planner.on(lane)) for lane in valkey.lanes]
    dispatchers = [Dispatcher(lane, clock, plans, outlets, stopping=stopping) for lane, plans in planners]
    logs = [LogJob(lane, clock, log, stopping=stopping) for lane in valkey.lanes]
    sweeps = [StaleJob(lane, clock, pending, GivenUp(lane, plans), stopping=stopping) for lane, plans in planners]

    async def send() -> None:
        for dispatcher in dispatchers:
            await dispatcher.run()

    async def write_log() -> None:
        for logging in logs:
            await logging.run()

    async def detect_stale() -> None:
        for stale in sweeps:
            await stale.run()

    async def erased(user_sub: str) -> None:
        await erasure.erase(user_sub)

    book.register(SEND_JOB, send)
    book.register(LOG_JOB, write_log)
    book.register(STALE_JOB, detect_stale)
    book.listen(ERASED_JOB, erased)
    for channel in CHANNELS:
        book.register(f"touch.{channel}_success_handler", _success(handlers, channel))
        book.register(f"touch.{channel}_failure_handler", _failure(handlers, channel))


def recurring() -> tuple[Recurring, ...]:
    """Safety nets beside the crew: touches every quarter of a minute, the log every minute, the rest four times an
    hour."""
    return (
        Recurring(SEND_JOB, Calendar(LOS_ANGELES, seconds=(0, 15, 30, 45))),
        Recurring(LOG_JOB, Calendar(LOS_ANGELES, seconds=(3,))),
        Recurring(STALE_JOB, Calendar(LOS_ANGELES, minutes=(0, 15, 30, 45), seconds=(0,))),
    )


def crew(
    valkey: Valkey, clock: Clock, planner: Planner, outlets: Outlets, pending: Pending, log: TouchLog, *,
    workers: int = 1,
) -> list[Work]:
    """What runs all the time for each lane: so many dispatchers, a writer of the log, and the search for touches
    without news."""
    crew: list[Work] = []
    for lane in valkey.lanes:
        plans = planner.on(lane)
        crew += [Dispatcher(lane, clock, plans, outlets) for _ in range(max(1, workers))]
        crew += [LogJob(lane, clock, log), StaleJob(lane, clock, pending, GivenUp(lane, plans))]
    return crew


def _success(handlers: Handlers, channel: Channel) -> Callable[..., Awaitable[None]]:
    async def handle(attempt_uid: str, touch_uid: str, touch_point_uid: str, user_sub: str, data_raw: str) -> None:
        await handlers.succeeded(channel, attempt_uid, touch_uid, touch_point_uid, user_sub, data_raw)

    return handle


def _failure(handlers: Handlers, channel: Channel) -> Callable[..., Awaitable[None]]:
    async def handle(attempt_uid: str, touch_uid: str, user_sub: str, data_raw: str) -> None:
        await handlers.failed(channel, attempt_uid, touch_uid, user_sub, data_raw)

    return handle
