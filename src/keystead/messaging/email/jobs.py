"""The worker's door: what goes on all the time, the same as single runs, and the room's own callbacks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from keystead.clock import Clock
from keystead.dates import LOS_ANGELES
from keystead.engine import Valkey
from keystead.errors import Invalid
from keystead.jobs import AfterFailure, Calendar, JobBook, Recurring, Work, opened
from keystead.messaging.email.door import FAILED_JOB, SUCCEEDED_JOB
from keystead.messaging.email.failures import Failures
from keystead.messaging.email.gateway import EmailGateway
from keystead.messaging.email.keys import SENDING
from keystead.messaging.email.models import EmailEvent, OutgoingEmail, read_failure, read_success
from keystead.messaging.email.receipts import ABANDONED_JOB, UNREACHABLE_JOB, ReconciliationJob
from keystead.messaging.email.sender import Sender
from keystead.messaging.email.stale import StaleJob
from keystead.messaging.email.stats import SEND_RUN
from keystead.messaging.email.suppressed import Suppressed
from keystead.messaging.email.templates import Templates
from keystead.messaging.email.unsubscribe import Unsubscribing
from keystead.messaging.sending import Courier, CourierSettings
from keystead.settings import EmailSettings, MessagingSettings
from keystead.telemetry import logger

SEND_JOB: Final = "keystead.email.send"
RECONCILE_JOB: Final = "keystead.email.reconcile"
STALE_JOB: Final = "keystead.email.give_up_stale"

_log = logger("messaging.email")


@dataclass(frozen=True)
class EmailWorkers:
    """What those who work need. ``rate_per_second``: what ``allowed_rate`` gave for the gateway.

    ``lane`` is the number of the cluster's lane that ``valkey`` is for.
    """

    valkey: Valkey
    clock: Clock
    gateway: EmailGateway
    templates: Templates
    suppressed: Suppressed
    unsubscribing: Unsubscribing
    failures: Failures
    email: EmailSettings
    messaging: MessagingSettings
    rate_per_second: float
    lane: int = 0

    def sender(self) -> Sender:
        return Sender(
            self.valkey, self.clock, self.gateway, self.templates, self.suppressed, self.unsubscribing,
            on_ambiguous=self.messaging.on_ambiguous, verify_seconds=self.email.verify_seconds, lane=self.lane,
        )

    def courier(self, **options: Any) -> Courier[OutgoingEmail]:
        return Courier(
            self.valkey, self.clock, SENDING, self.sender(), runs=SEND_RUN, settings=CourierSettings(
                concurrent_requests=self.email.concurrent_requests, rate_per_second=self.rate_per_second,
                on_ambiguous=self.messaging.on_ambiguous, trace_seconds=self.messaging.trace_seconds,
            ), **options,
        )

    def reconciliation(self, **options: Any) -> ReconciliationJob:
        return ReconciliationJob(self.valkey, self.clock, **options)

    def stale(self, **options: Any) -> StaleJob:
        return StaleJob(self.valkey, self.clock, receipt_seconds=self.email.receipt_seconds, **options)


def register(book: JobBook, *lanes: EmailWorkers, stopping: Callable[[], bool] = lambda: False) -> None:
    """Add the room's jobs to the book: single runs of each worker, and the callbacks of email that names none.

    ``lanes``: the workers of each lane of a cluster, otherwise one.
    """
    sending, failures = [each.courier(stopping=stopping) for each in lanes], lanes[0].failures
    reconciliation = [each.reconciliation(stopping=stopping) for each in lanes]
    stale = [each.stale(stopping=stopping) for each in lanes]

    async def send() -> None:
        for each in sending:
            await each.run()

    async def reconcile() -> None:
        for each in reconciliation:
            await each.run()

    async def give_up_stale() -> None:
        for each in stale:
            await each.run()

    async def succeeded(data_raw: str) -> None:
        _log.info("email was delivered", uid=read_success(data_raw).email.uid)

    async def failed(data_raw: str) -> None:
        failure = read_failure(data_raw)
        if await failures.retry_or_abandon(failure) is not AfterFailure.RETRY:
            _log.warning("email failed", uid=failure.email.uid, identifier=failure.info.error_identifier)

    async def unreachable(event_obj: dict[str, Any] | str) -> None:
        try:
            event = msgspec.convert(opened(event_obj), EmailEvent)
        except msgspec.ValidationError as error:
            raise Invalid(f"this is no news of an email: {error}") from None
        await failures.bounced(event)

    book.register(SEND_JOB, send)
    book.register(RECONCILE_JOB, reconcile)
    book.register(STALE_JOB, give_up_stale)
    book.register(SUCCEEDED_JOB, succeeded)
    book.register(FAILED_JOB, failed)
    book.register(UNREACHABLE_JOB, unreachable)
    book.register(ABANDONED_JOB, unreachable)


def recurring() -> tuple[Recurring, ...]:
    """Single runs by the clock, in case nothing goes on all the time. Harmless where something does."""
    every_minute = Calendar(LOS_ANGELES, seconds=(0,))
    return (
        Recurring(SEND_JOB, Calendar(LOS_ANGELES, seconds=(0, 15, 30, 45))),
        Recurring(RECONCILE_JOB, every_minute),
        Recurring(STALE_JOB, every_minute),
    )


def crew(*lanes: EmailWorkers) -> list[Work]:
    """Who works all the time in this process, for each lane."""
    return [work for workers in lanes for work in _crew(workers)]


def _crew(workers: EmailWorkers) -> list[Work]:
    couriers = [workers.courier() for _ in range(max(1, workers.messaging.workers))]
    return [*couriers, workers.reconciliation(), workers.stale()]
