"""The worker's door: what the jobs of texts are called, when they run, and who works all the time."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from keystead.clock import Clock
from keystead.dates import LOS_ANGELES
from keystead.engine import Valkey
from keystead.jobs import Calendar, JobBook, Recurring, Work, decode_data_raw
from keystead.members import PhoneReason, Suppression
from keystead.messaging.sending import Courier, CourierSettings, Retries
from keystead.messaging.sms.failures import UNREACHABLE_JOB, Failures
from keystead.messaging.sms.gateway import Gateway, OneAtATime
from keystead.messaging.sms.keys import SENDING
from keystead.messaging.sms.models import OutgoingSms, SmsFailure, SmsSuccess, Unreachable
from keystead.messaging.sms.polling import RecoveryJob, StaleJob
from keystead.messaging.sms.receipts import Receipts, ReconciliationJob
from keystead.messaging.sms.sender import SenderSettings, SmsCarrier
from keystead.messaging.sms.sms import FAILED_JOB, SUCCEEDED_JOB
from keystead.messaging.sms.stats import SEND_RUN
from keystead.messaging.sms.suppressed import Suppressed
from keystead.settings import MessagingSettings, SmsSettings
from keystead.telemetry import logger

SEND_JOB: Final = "keystead.sms.send"
STALE_JOB: Final = "keystead.sms.find_stale"
RECOVER_JOB: Final = "keystead.sms.recover"
RECONCILE_JOB: Final = "keystead.sms.reconcile"

_log = logger("messaging.sms")


@dataclass(frozen=True)
class SmsWorkers:
    """What those who work need. ``public_url``: how the provider reaches us, empty if it cannot."""

    valkey: Valkey
    clock: Clock
    gateway: Gateway
    suppression: Suppression
    suppressed: Suppressed
    sms: SmsSettings
    messaging: MessagingSettings
    public_url: Callable[[], str] = str
    lane: int = 0

    @property
    def settings(self) -> SenderSettings:
        return SenderSettings.of(self.sms, self.messaging, self.public_url, self.lane)

    def courier(self, gateway: Gateway, **options: Any) -> Courier[OutgoingSms]:
        carrier = SmsCarrier(self.valkey, self.clock, gateway, self.suppressed, self.settings)
        return Courier(
            self.valkey, self.clock, SENDING, carrier, runs=SEND_RUN, settings=CourierSettings(
                concurrent_requests=self.sms.concurrent_requests, rate_per_second=self.sms.rate_per_second,
                on_ambiguous=self.messaging.on_ambiguous, trace_seconds=self.messaging.trace_seconds,
            ), **options,
        )

    def stale(self, **options: Any) -> StaleJob:
        return StaleJob(self.valkey, self.clock, self.settings, **options)

    def recovery(self, gateway: Gateway, **options: Any) -> RecoveryJob:
        return RecoveryJob(self.valkey, self.clock, gateway, self.settings, **options)

    def reconciliation(self, **options: Any) -> ReconciliationJob:
        return ReconciliationJob(self.valkey, self.clock, Receipts(self.valkey, self.clock, self.settings), **options)


def register(book: JobBook, *lanes: SmsWorkers, stopping: Callable[[], bool] = lambda: False) -> None:
    """Add the room's jobs to the book: the callbacks of texts that name none, and the single runs of each worker.

    ``lanes``: the workers of each lane of a cluster, otherwise one.
    """
    workers = lanes[0]
    one_by_one = [OneAtATime(each.gateway, each.valkey, each.clock) for each in lanes]
    sending = [each.courier(one, stopping=stopping) for each, one in zip(lanes, one_by_one, strict=True)]
    stale = [each.stale(stopping=stopping) for each in lanes]
    recovery = [each.recovery(one, stopping=stopping) for each, one in zip(lanes, one_by_one, strict=True)]
    reconciliation = [each.reconciliation(stopping=stopping) for each in lanes]
    failures = Failures(workers.valkey, workers.clock, Retries.of(workers.messaging))

    async def succeeded(data_raw: str) -> None:
        success = decode_data_raw(data_raw, SmsSuccess)
        _log.info("text succeeded", uid=success.sms.uid, status=success.result.message_resource.status.value)

    async def failed(data_raw: str) -> None:
        failure = decode_data_raw(data_raw, SmsFailure)
        settled = await failures.settle(failure)
        if settled.is_over:
            info = failure.failure_info
            _log.warning("text failed", uid=failure.sms.uid, identifier=info.identifier.value, why=info.subidentifier)

    async def unreachable(data_raw: str) -> None:
        told = decode_data_raw(data_raw, Unreachable)
        await workers.suppression.suppress_phone(told.phone_number, PhoneReason.UNREACHABLE, told.details)
        workers.suppressed.forget(told.phone_number)

    async def send() -> None:
        for each in sending:
            await each.run()

    async def find_stale() -> None:
        for each in stale:
            await each.run()

    async def recover() -> None:
        for each in recovery:
            await each.run()

    async def reconcile() -> None:
        for each in reconciliation:
            await each.run()

    book.register(SUCCEEDED_JOB, succeeded)
    book.register(FAILED_JOB, failed)
    book.register(UNREACHABLE_JOB, unreachable)
    book.register(SEND_JOB, send)
    book.register(STALE_JOB, find_stale)
    book.register(RECOVER_JOB, recover)
    book.register(RECONCILE_JOB, reconcile)


def recurring() -> tuple[Recurring, ...]:
    """Single runs now and then, for what nobody works on all the time."""
    return (
        Recurring(SEND_JOB, Calendar(LOS_ANGELES, seconds=(0, 15, 30, 45))),
        Recurring(STALE_JOB, Calendar(LOS_ANGELES, seconds=(5,))),
        Recurring(RECOVER_JOB, Calendar(LOS_ANGELES, seconds=(10,))),
        Recurring(RECONCILE_JOB, Calendar(LOS_ANGELES, seconds=(20,))),
    )


def crew(*lanes: SmsWorkers) -> list[Work]:
    """Who works all the time in this process, for each lane."""
    return [work for workers in lanes for work in _crew(workers)]


def _crew(workers: SmsWorkers) -> list[Work]:
    couriers = [workers.courier(workers.gateway) for _ in range(max(1, workers.messaging.workers))]
    return [*couriers, workers.stale(), workers.recovery(workers.gateway), workers.reconciliation()]
