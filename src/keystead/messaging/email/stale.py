"""Gives up on email of which no news came, and looks after news that were laid aside."""

from collections.abc import Callable
from typing import Any, ClassVar, Final

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.jobs import StopReason, SweepJob, SweepRun
from keystead.keys import RecordKey
from keystead.keys.sealed import lacks_key
from keystead.messaging.email.keys import RECEIPT_PENDING, STALE_LOCK
from keystead.messaging.email.models import EmailFailure, FailureInfo
from keystead.messaging.email.receipts import KEY_SECONDS, return_early
from keystead.messaging.email.stats import STALE_RUN
from keystead.messaging.sending import queue_job, trace
from keystead.patterns import PendingEntries, PendingOutcome, SmartLock, Writes
from keystead.telemetry import logger

RECEIPT_SECONDS: Final = 86_400.0
STEP: Final = 100

_log = logger("messaging.email")


class StaleJob(SweepJob):
    """An email leaves those that wait, and its failure job is queued, in one step; no crash loses one of the two."""

    lock: ClassVar[SmartLock] = STALE_LOCK
    runs: ClassVar[RecordKey[Any]] = STALE_RUN
    every_seconds = 2.0

    def __init__(
        self, valkey: Valkey, clock: Clock, *, receipt_seconds: float = RECEIPT_SECONDS,
        stopping: Callable[[], bool] = lambda: False, hostname: str = "",
    ) -> None:
        """``receipt_seconds``: without news for so long, an email counts as failed."""
        super().__init__(valkey, clock, stopping=stopping, hostname=hostname)
        self._receipt_seconds = receipt_seconds

    async def sweep(self, run: SweepRun) -> StopReason:
        await return_early(self.valkey, run.started_at)
        while True:
            reason = run.reason_to_stop()
            if reason is not None:
                return reason
            entries = await RECEIPT_PENDING.due(self.valkey, STEP, until=run.started_at - self._receipt_seconds)
            if not entries.found and not entries.broken and not entries.repaired:
                return StopReason.LIST_EXHAUSTED
            await self._give_up(entries, run)

    async def _give_up(self, entries: PendingEntries[Any], run: SweepRun) -> None:
        now = self.clock.now()
        async with self.valkey.pipeline(transaction=False) as pipeline:
            removing = []
            for entry in entries:
                email = entry.record
                writes = Writes(self.valkey.layout)
                info = FailureInfo("receipt", "ReceiptTimeout", False)
                queue_job(writes, email.failure_job, EmailFailure(email, info), now)
                trace(writes, email.uid, "no receipt", now, message_id=entry.member)
                removing.append(RECEIPT_PENDING.remove(pipeline, entry.member, None, writes=writes))
            for broken in entries.broken:
                if lacks_key(broken.error):
                    _log.error("an email that waits for news cannot be read", message_id=broken.member,
                               reason=str(broken.error))
                    RECEIPT_PENDING.index.add(pipeline, broken.member, now - self._receipt_seconds + KEY_SECONDS)
                    continue
                _log.error("an email that waits for news cannot be read and is dropped", message_id=broken.member,
                           reason=str(broken.error))
                RECEIPT_PENDING.remove(pipeline, broken.member, None)
            await pipeline.execute()
        for outcome in removing:
            if await outcome is PendingOutcome.DONE:
                run.count("abandoned")
