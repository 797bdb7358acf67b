"""Texts that failed: sent again, asked about again, or given up. Asked twice, the answer is that of the first time."""

from enum import Enum
from typing import Final

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.jobs import ROOMS_QUEUE, AfterFailure, JobRef
from keystead.messaging.sending import Retries, queue_job, retry_or_abandon, trace
from keystead.messaging.sms.keys import PENDING, RECOVERY, SENDING
from keystead.messaging.sms.models import FailureInfo, OutgoingSms, PendingSms, SmsFailure, Unreachable
from keystead.messaging.sms.stats import POLLING, SENDS
from keystead.patterns import PendingOutcome, Writes

UNREACHABLE_JOB: Final = "sms.unreachable"
UNREACHABLE: Final = JobRef(UNREACHABLE_JOB, {}, ROOMS_QUEUE)
# Without news for so many waits, a text is given up: after an hour, with waits of a quarter.
MOST_FAILURES: Final = 4


class Settled(Enum):
    """What became of a text that failed."""

    RETRIED = "it is sent, or asked about, again; its callbacks will hear more"
    ABANDONED = "it was given up just now"
    FINAL = "nothing could be done about it"
    IGNORED = "newer information exists: whatever was done because of the failure is to be undone"

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come of this text."""
        return self in (Settled.ABANDONED, Settled.FINAL)


class Failures:
    """What a failure job does with a text. Every failure job of a text has to ask it, and may ask again.

    ``most_failures``: a text without news for so many waits is given up; with 0, and ``retries`` that allow none, so is
    whatever fails.
    """

    def __init__(
        self, valkey: Valkey, clock: Clock, retries: Retries = Retries(), *, most_failures: int = MOST_FAILURES,  # noqa: B008
    ) -> None:
        self._valkey, self._clock, self._retries, self._most_failures = valkey, clock, retries, most_failures

    async def settle(self, failure: SmsFailure) -> Settled:
        """Send it again, ask about it again, or give it up; counted once, in one step with what is done."""
        if not failure.failure_info.retryable:
            return Settled.FINAL
        if isinstance(failure.sms, PendingSms):
            return await self._settle_pending(failure.sms)
        return await self._settle_send(failure.sms, failure.failure_info)

    async def _settle_send(self, sms: OutgoingSms, info: FailureInfo) -> Settled:
        def counted(event: str, writes: Writes) -> None:
            SENDS.tally().incr(event, at=sms.initially_queued_at).store(writes)

        decided = await retry_or_abandon(
            self._valkey.lane_for(sms.user_sub), SENDING, sms, retryable=True, now=self._clock.now(),
            retries=self._retries,
            retry_after_seconds=info.retry_after_seconds, retried=lambda writes: counted("retried", writes),
            abandoned=lambda writes: counted("abandoned", writes),
        )
        return Settled.RETRIED if decided is AfterFailure.RETRY else Settled.ABANDONED

    async def _settle_pending(self, sms: PendingSms) -> Settled:
        now, sid = self._clock.now(), sms.message_resource.sid
        gives_up = (
            sms.num_failures >= self._most_failures
            or now - sms.send_initially_queued_at > self._retries.policy.most_seconds
        )
        valkey = self._valkey.lane_for(sms.user_sub)
        writes, noted = Writes(valkey.layout), SENDING.decided("pending", sms.uid, sms.num_changes)
        event = "abandoned" if gives_up else "queued_for_recovery"
        POLLING.tally().incr(event, str(sms.num_failures - 1), at=sms.send_initially_queued_at).store(writes)
        trace(writes, sms.uid, event, now, kept_seconds=self._retries.trace_seconds, failures=sms.num_failures)
        decision = AfterFailure.ABANDON if gives_up else AfterFailure.RETRY
        noted.set(writes, decision.name)
        if gives_up:
            outcome = await PENDING.remove(valkey, sid, sms.num_changes, writes=writes)
        else:
            RECOVERY.queue.push_right(writes, sid)
            # The change is counted, so that this job, run again, finds it made.
            outcome = await PENDING.update(valkey, sid, sms.num_changes, writes=writes)
        if outcome is PendingOutcome.DONE:
            return Settled.ABANDONED if gives_up else Settled.RETRIED
        before = await noted.get(valkey)
        if before is None:
            return Settled.IGNORED
        return Settled.ABANDONED if before == AfterFailure.ABANDON.name else Settled.RETRIED


def queue_unreachable(writes: Writes, phone_number: str, info: FailureInfo, now: float) -> None:
    """Let a number be suppressed which the provider says cannot be reached."""
    details = {"identifier": info.identifier.value, "subidentifier": info.subidentifier, "extra": info.extra}
    queue_job(writes, UNREACHABLE, Unreachable(phone_number, details), now)
