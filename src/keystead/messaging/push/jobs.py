"""The worker's door: what the jobs of push messages are called, when they run, and who works all the time."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from keystead.clock import Clock
from keystead.dates import LOS_ANGELES
from keystead.engine import Valkey
from keystead.jobs import Calendar, JobBook, Recurring, Work, decode_data_raw, opened
from keystead.messaging.push.failures import Failures
from keystead.messaging.push.gateway import Gateway
from keystead.messaging.push.keys import SENDING
from keystead.messaging.push.models import OutgoingPush, PushFailure, PushSuccess
from keystead.messaging.push.push import FAILED_JOB, SUCCEEDED_JOB
from keystead.messaging.push.receipts import CheckJob, ColdToHotJob
from keystead.messaging.push.sender import FORGET_JOB, PushCarrier
from keystead.messaging.push.stats import SEND_RUN
from keystead.messaging.sending import Courier, CourierSettings, Retries
from keystead.settings import MessagingSettings, PushSettings
from keystead.telemetry import logger

if TYPE_CHECKING:
    from keystead.members import PushTokens

SEND_JOB: Final = "keystead.push.send"
COLD_TO_HOT_JOB: Final = "keystead.push.cold_to_hot"
CHECK_JOB: Final = "keystead.push.check"

_log = logger("messaging.push")


@dataclass(frozen=True)
class PushWorkers:
    """What those who work need."""

    valkey: Valkey
    clock: Clock
    gateway: Gateway
    tokens: "PushTokens"
    push: PushSettings
    messaging: MessagingSettings

    def courier(self, **options: Any) -> Courier[OutgoingPush]:
        may_repeat = self.messaging.on_ambiguous != "drop"
        carrier = PushCarrier(self.valkey, self.clock, self.gateway, may_repeat=may_repeat)
        return Courier(
            self.valkey, self.clock, SENDING, carrier, runs=SEND_RUN, settings=CourierSettings(
                concurrent_requests=self.push.concurrent_requests, rate_per_second=self.push.rate_per_second,
                on_ambiguous=self.messaging.on_ambiguous, trace_seconds=self.messaging.trace_seconds,
            ), **options,
        )

    def cold_to_hot(self, **options: Any) -> ColdToHotJob:
        return ColdToHotJob(self.valkey, self.clock, self.push.cold_seconds,
                            trace_seconds=self.messaging.trace_seconds, **options)

    def check(self, **options: Any) -> CheckJob:
        return CheckJob(self.valkey, self.clock, self.gateway, trace_seconds=self.messaging.trace_seconds, **options)

    def failures(self) -> Failures:
        """What every failure job of a push message has to ask."""
        retries = Retries.of(self.messaging)
        return Failures(self.valkey, self.clock, retries, cold_seconds=self.push.cold_seconds)


def register(book: JobBook, *lanes: PushWorkers, stopping: Callable[[], bool] = lambda: False) -> None:
    """Add the room's jobs to the book: the callbacks of messages that name none, and the single runs of each worker.

    ``lanes``: the workers of each lane of a cluster, otherwise one.
    """
    workers, failures = lanes[0], lanes[0].failures()
    sending = [each.courier(stopping=stopping) for each in lanes]
    check = [each.check(stopping=stopping) for each in lanes]
    cold_to_hot = [each.cold_to_hot(stopping=stopping) for each in lanes]

    async def succeeded(data_raw: str) -> None:
        success = decode_data_raw(data_raw, PushSuccess)
        await workers.tokens.confirm(success.attempt.push_token, success.result.receipt_checked_at)

    async def failed(data_raw: str) -> None:
        failure = decode_data_raw(data_raw, PushFailure)
        settled = await failures.settle(failure)
        if settled.is_over:
            _log.warning("push message failed", uid=failure.attempt.uid,
                         identifier=failure.failure_info.identifier.value)

    async def forget_token(token: str, because: Literal["ticket", "receipt"]) -> None:
        await workers.tokens.forget(opened(token), because)

    async def send() -> None:
        for each in sending:
            await each.run()

    async def move() -> None:
        for each in cold_to_hot:
            await each.run()

    async def ask() -> None:
        for each in check:
            await each.run()

    book.register(SUCCEEDED_JOB, succeeded)
    book.register(FAILED_JOB, failed)
    book.register(FORGET_JOB, forget_token)
    book.register(SEND_JOB, send)
    book.register(COLD_TO_HOT_JOB, move)
    book.register(CHECK_JOB, ask)


def recurring() -> tuple[Recurring, ...]:
    """Single runs now and then, for what nobody works on all the time."""
    return (
        Recurring(SEND_JOB, Calendar(LOS_ANGELES, seconds=(0,))),
        Recurring(COLD_TO_HOT_JOB, Calendar(LOS_ANGELES, minutes=tuple(range(0, 60, 5)), seconds=(0,))),
        Recurring(CHECK_JOB, Calendar(LOS_ANGELES, seconds=(30,))),
    )


def crew(*lanes: PushWorkers) -> list[Work]:
    """Who works all the time in this process, for each lane."""
    return [work for workers in lanes for work in _crew(workers)]


def _crew(workers: PushWorkers) -> list[Work]:
    couriers = [workers.courier() for _ in range(max(1, workers.messaging.workers))]
    return [*couriers, workers.cold_to_hot(), workers.check()]
