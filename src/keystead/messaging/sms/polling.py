"""Texts without news: found when their time is over, and asked about at the provider."""

import asyncio
from dataclasses import dataclass
from typing import Final

import msgspec

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.jobs import BatchJob, Step, StopReason, SweepJob, SweepRun
from keystead.messaging.sending import queue_job, trace
from keystead.messaging.sms.gateway import Gateway, Read
from keystead.messaging.sms.keys import NEWS, PENDING, RECOVERY, RECOVERY_LOCK, STALE_LOCK
from keystead.messaging.sms.models import FailureInfo, Identifier, PendingRecord, SmsEvent, SmsFailure
from keystead.messaging.sms.sender import SenderSettings
from keystead.messaging.sms.stats import POLLING, RECOVERY_RUN, STALE_RUN
from keystead.messaging.sms.statuses import Category, Status
from keystead.patterns import PendingEntry, PendingOutcome, Tally, Writes
from keystead.telemetry import logger

STALE_ITEMS: Final = 10
UNKNOWN: Final = "(unknown)"

_log = logger("messaging.sms")


class StaleJob(SweepJob):
    """Finds texts whose time is over and calls their failure jobs, which ask the provider or give up.

    Each text is put off, counted and its job queued in one step, so a run that dies leaves nothing half done.
    """

    lock = STALE_LOCK
    runs = STALE_RUN
    every_seconds = 5.0

    def __init__(self, valkey: Valkey, clock: Clock, settings: SenderSettings, **options: object) -> None:
        super().__init__(valkey, clock, **options)  # type: ignore[arg-type]
        self._settings = settings

    async def sweep(self, run: SweepRun) -> StopReason:
        started_at = self.clock.now()
        while True:
            reason = run.reason_to_stop()
            if reason is not None:
                return reason
            found = await PENDING.due(self.valkey, STALE_ITEMS, until=started_at)
            for broken in found.broken:
                _log.error("record of a text does not decode", sid=broken.member, reason=str(broken.error))
                await PENDING.index.add(self.valkey, broken.member, started_at + self._settings.wait_seconds)
            if not found.found and not found.broken and not found.repaired:
                return StopReason.LIST_EXHAUSTED
            called = await asyncio.gather(*(self._call(entry) for entry in found))
            run.count("callbacks_queued", sum(called))

    async def _call(self, entry: PendingEntry[PendingRecord]) -> bool:
        """Whether the failure job was queued; not if news came meanwhile."""
        now, record = self.clock.now(), entry.record
        after = msgspec.structs.replace(
            record, failure_job_last_called_at=now, num_failures=record.num_failures + 1,
            num_changes=record.num_changes + 1,
        )
        writes, status = Writes(self.valkey.layout), record.message_resource_status.value
        queue_job(writes, record.failure_job, SmsFailure(
            after.nested(), FailureInfo("pending", Identifier.STUCK, retryable=True)
        ), now)
        POLLING.tally().incr("detected_stale", status, at=record.send_initially_queued_at).store(writes)
        trace(writes, record.uid, "no news", now, kept_seconds=self._settings.trace_seconds, status=status,
              failures=after.num_failures)
        outcome = await PENDING.update(
            self.valkey, entry.member, record.num_changes, score=now + self._settings.wait_seconds, writes=writes,
            failure_job_last_called_at=now, num_failures=after.num_failures,
        )
        return outcome is PendingOutcome.DONE


@dataclass(frozen=True, slots=True)
class _Polled:
    """What an answer of the provider means: the news to tell, if any; what is counted, and whether to slow down."""

    counted: str
    breakdown: str | None
    of_run: str
    status: Status | None = None
    slow_down: bool = False


class RecoveryJob(BatchJob[str]):
    """Asks the provider what became of messages, and hands its answers to the reconciliation as news."""

    source = RECOVERY
    lock = RECOVERY_LOCK
    runs = RECOVERY_RUN
    batch_items = 100
    slice_items = 10

    def __init__(
        self, valkey: Valkey, clock: Clock, gateway: Gateway, settings: SenderSettings, **options: object
    ) -> None:
        super().__init__(valkey, clock, **options)  # type: ignore[arg-type]
        self._gateway, self._settings = gateway, settings

    async def process(self, value: str, step: Step) -> None:
        await self.process_slice([value], step)

    async def process_slice(self, values: list[str], step: Step) -> None:
        polled = await asyncio.gather(*(self._ask(sid) for sid in dict.fromkeys(values)))
        by_sid = dict(zip(dict.fromkeys(values), polled, strict=True))
        for sid in values:
            meaning, writes = by_sid.pop(sid, (None, Writes(self.valkey.layout)))
            if meaning is not None:
                step.count("attempted")
                step.count(meaning.of_run)
                if meaning.slow_down:
                    step.slow_down()
            step.settle(sid, writes)

    async def _ask(self, sid: str) -> tuple[_Polled, Writes]:
        entry = await PENDING.get(self.valkey, sid)
        old = entry.record.message_resource_status.value if entry else UNKNOWN
        read = await self._gateway.read(sid)
        now, meaning, writes = self.clock.now(), _meaning(read, old), Writes(self.valkey.layout)
        at = entry.record.send_initially_queued_at if entry else now
        self._tally(meaning, at).store(writes)
        if meaning.status is not None:
            resource = read.resource
            NEWS.push(writes, SmsEvent(
                sid=sid, status=meaning.status, error_code=resource.error_code if resource else None,
                error_message=read.error_message, date_updated=resource.date_updated if resource else None,
                information_received_at=now, received_via="poll", uid=entry.record.uid if entry else "",
            ))
        if entry is not None:
            trace(writes, entry.record.uid, "asked", now, kept_seconds=self._settings.trace_seconds,
                  answer=meaning.status.value if meaning.status else meaning.counted, http=read.status)
        return meaning, writes

    @staticmethod
    def _tally(meaning: _Polled, at: float) -> Tally:
        return POLLING.tally().incr("attempted", at=at).incr(meaning.counted, meaning.breakdown, at=at)


def _meaning(read: Read, old: str) -> _Polled:
    if not read.status:
        return _Polled("error_network", None, "transient_error", slow_down=True)
    if read.status == 404:
        return _Polled("error_client_404", None, "lost", Status.LOST)
    if read.status == 429:
        return _Polled("error_client_429", None, "transient_error", slow_down=True)
    if read.status >= 500:
        return _Polled("error_server", str(read.status), "transient_error", slow_down=True)
    if not 200 <= read.status < 300:
        return _Polled("error_client_other", str(read.status), "permanent_error")
    if read.resource is None:
        return _Polled("error_internal", None, "permanent_error")
    status = read.resource.status
    of_run = {Category.PENDING: "pending", Category.SUCCEEDED: "succeeded", Category.FAILED: "failed"}[status.category]
    return _Polled("received", f"{old}:{status}", of_run, status)
