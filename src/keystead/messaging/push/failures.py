"""Push messages that failed: sent again, checked again, or given up. Asked twice, the answer is that of the first."""

from enum import Enum
from typing import Final

import msgspec

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.jobs import AfterFailure
from keystead.messaging.push.keys import COLD, SENDING
from keystead.messaging.push.models import FailureInfo, Identifier, OutgoingPush, PushCheck, PushFailure
from keystead.messaging.push.stats import RECEIPTS, TICKETS
from keystead.messaging.sending import Retries, decide, retry_or_abandon, trace
from keystead.patterns import Writes

# The provider keeps a receipt for a day.
RECEIPT_SECONDS: Final = 86_400
# How often the usual wait passes before a receipt is asked for again.
WAITS: Final = (1, 2, 4)


class Settled(Enum):
    """What became of a message that failed."""

    RETRIED = "it is sent, or its receipt asked for, again; its callbacks will hear more"
    ABANDONED = "it was given up just now"
    FINAL = "nothing could be done about it"

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come of this message."""
        return self is not Settled.RETRIED


class Failures:
    """What a failure job does with a push message. Every failure job has to ask it, and may ask again."""

    def __init__(
        self, valkey: Valkey, clock: Clock, retries: Retries | None = None, *, cold_seconds: float = 900.0
    ) -> None:
        self._valkey, self._clock, self._cold_seconds = valkey, clock, cold_seconds
        self._retries = retries or Retries()

    async def settle(self, failure: PushFailure) -> Settled:
        """Send it again, check it again, or give it up; counted once, in one step with what is done."""
        attempt, info = failure.attempt, failure.failure_info
        if not info.retryable:
            return Settled.FINAL
        if isinstance(attempt, OutgoingPush):
            return await self._send_again(attempt, info, TICKETS)
        if info.identifier is Identifier.RATE_EXCEEDED:
            return await self._send_again(attempt.outgoing(), info, RECEIPTS)
        return await self._check_again(attempt)

    async def _send_again(self, push: OutgoingPush, info: FailureInfo, abandoned_in: object) -> Settled:
        def retried(writes: Writes) -> None:
            TICKETS.tally().incr("retried", at=push.initially_queued_at).store(writes)

        def abandoned(writes: Writes) -> None:
            family = RECEIPTS if abandoned_in is RECEIPTS else TICKETS
            family.tally().incr("abandoned", at=push.initially_queued_at).store(writes)

        decided = await retry_or_abandon(
            self._valkey.lane_for(push.user_sub), SENDING, push, retryable=True, now=self._clock.now(),
            retries=self._retries,
            retry_after_seconds=info.retry_after_seconds, retried=retried, abandoned=abandoned,
        )
        return Settled.RETRIED if decided is AfterFailure.RETRY else Settled.ABANDONED

    async def _check_again(self, check: PushCheck) -> Settled:
        valkey = self._valkey.lane_for(check.user_sub)
        now, writes = self._clock.now(), Writes(valkey.layout)
        queued_at = check.attempt_initially_queued_at
        gives_up = check.retry >= self._retries.policy.most_retries or now - queued_at > RECEIPT_SECONDS
        if gives_up:
            RECEIPTS.tally().incr("abandoned", at=queued_at).store(writes)
        else:
            again = msgspec.structs.replace(check, retry=check.retry + 1, last_queued_at=now)
            # One wait passes in the cold set by itself; longer ones are counted from a later time.
            longer = (WAITS[min(check.retry, len(WAITS) - 1)] - 1) * self._cold_seconds
            COLD.at().add(writes, again, now + longer)
            RECEIPTS.tally().incr("retried", at=queued_at).store(writes)
        trace(writes, check.uid, "check abandoned" if gives_up else "check retried", now,
              kept_seconds=self._retries.trace_seconds, retry=check.retry)
        # A message that was sent again has receipts to be checked from the start.
        mark = SENDING.decided(f"check{check.send_retry}", check.uid, check.retry)
        decision = AfterFailure.ABANDON if gives_up else AfterFailure.RETRY
        decided = await decide(valkey, mark, decision, writes)
        return Settled.RETRIED if decided is AfterFailure.RETRY else Settled.ABANDONED
