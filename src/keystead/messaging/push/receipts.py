"""What became of push messages: tickets wait until a receipt can be there, then it is asked for."""

from collections.abc import Callable
from typing import Final

from keystead.clock import Clock
from keystead.engine import Script, Valkey
from keystead.jobs import BatchJob, Step, StopReason, SweepJob, SweepRun
from keystead.messaging.push.gateway import Gateway
from keystead.messaging.push.given_up import GivenUp
from keystead.messaging.push.keys import CHECK_LOCK, COLD, COLD_LOCK, HOT
from keystead.messaging.push.models import (
    FailureInfo,
    Identifier,
    PushCheck,
    PushFailure,
    PushReceipt,
    PushSuccess,
    SentPush,
    SuccessInfo,
)
from keystead.messaging.push.sender import COUNTED, forget_job
from keystead.messaging.push.stats import CHECK_RUN, COLD_TO_HOT_RUN, RECEIPTS
from keystead.messaging.sending import queue_job, trace
from keystead.patterns import Writes

MOVE_DUE = Script("keystead.patterns", "scripts/delayed/move_due.lua")

MOST_MOVED: Final = 100
MOST_IDS: Final = 1000
_OF_RECEIPT: Final = frozenset({
    Identifier.DEVICE_GONE, Identifier.TOO_BIG, Identifier.RATE_EXCEEDED, Identifier.MISMATCHED_SENDER,
    Identifier.CREDENTIALS,
})
_SLOWS_DOWN: Final = frozenset({Identifier.NETWORK, Identifier.SERVER, Identifier.CLIENT_429})


class ColdToHotJob(SweepJob):
    """Moves tickets whose wait is over to where their receipts are asked for, and ends messages whose ticket was given
    up."""

    lock = COLD_LOCK
    runs = COLD_TO_HOT_RUN
    every_seconds = 5.0

    def __init__(
        self, valkey: Valkey, clock: Clock, cold_seconds: float, *, trace_seconds: float = 172_800.0,
        stopping: Callable[[], bool] = lambda: False, hostname: str = "",
    ) -> None:
        super().__init__(valkey, clock, stopping=stopping, hostname=hostname)
        self._cold_seconds = cold_seconds
        self._given_up = GivenUp(valkey, clock, trace_seconds=trace_seconds)

    async def sweep(self, run: SweepRun) -> StopReason:
        await self._given_up.end_all()
        until = float(int(run.started_at - self._cold_seconds))
        while True:
            if (reason := run.reason_to_stop()) is not None:
                return reason
            why, moved = await MOVE_DUE(self.valkey, keys=[COLD.at(), HOT.queue], args=(until, MOST_MOVED, -1))
            run.count("num_moved", moved)
            if why != b"max_count":
                return StopReason.LIST_EXHAUSTED


class CheckJob(BatchJob[PushCheck]):
    """Asks for receipts, a thousand in a request, and lets each message's callback know."""

    source = HOT
    lock = CHECK_LOCK
    runs = CHECK_RUN
    batch_items = MOST_IDS
    slice_items = MOST_IDS

    def __init__(
        self, valkey: Valkey, clock: Clock, gateway: Gateway, *, trace_seconds: float = 172_800.0,
        stopping: Callable[[], bool] = lambda: False, hostname: str = "",
    ) -> None:
        super().__init__(valkey, clock, stopping=stopping, hostname=hostname)
        self._gateway, self._trace_seconds = gateway, trace_seconds

    async def process(self, value: PushCheck, step: Step) -> None:
        await self.process_slice([value], step)

    async def process_slice(self, values: list[PushCheck], step: Step) -> None:
        answer = await self._gateway.receipts([check.push_ticket.id or "" for check in values])
        if isinstance(answer, FailureInfo) and answer.identifier in _SLOWS_DOWN:
            step.slow_down()
        for check in values:
            info = answer if isinstance(answer, FailureInfo) else failure_of(answer.get(check.push_ticket.id or ""))
            writes = Writes(self.valkey.layout)
            if check.given_up:  # and tried again by hand; its callbacks have heard of it
                said = info.identifier.value if info is not None else "ok"
                self._trace(writes, check, "receipt after it was given up", self.clock.now(), said=said)
                step.settle(check, writes)
                continue
            step.count("num_checked")
            if info is None:
                assert not isinstance(answer, FailureInfo)
                self._tell_success(writes, check, answer[check.push_ticket.id or ""])
                step.count("num_succeeded")
            else:
                self._tell_failure(writes, check, info)
                step.count("num_failed_transiently" if info.retryable else "num_failed_permanently")
            step.settle(check, writes)

    def _tell_success(self, writes: Writes, check: PushCheck, receipt: PushReceipt) -> None:
        now = self.clock.now()
        sent = SentPush(uid=check.uid, initially_queued_at=check.attempt_initially_queued_at,
                        push_token=check.push_token, contents=check.contents, user_sub=check.user_sub)
        result = SuccessInfo(check.push_ticket_created_at, check.push_ticket, now, receipt)
        queue_job(writes, check.success_job, PushSuccess(sent, result), now)
        RECEIPTS.tally().incr("succeeded", at=check.attempt_initially_queued_at).store(writes)
        self._trace(writes, check, "receipt", now, status="ok")

    def _tell_failure(self, writes: Writes, check: PushCheck, info: FailureInfo) -> None:
        now = self.clock.now()
        queue_job(writes, check.failure_job, PushFailure(check, info), now)
        if info.identifier is Identifier.DEVICE_GONE:
            queue_job(writes, forget_job(check.push_token, "receipt"), None, now)
        RECEIPTS.tally().incr(COUNTED[info.identifier], at=check.attempt_initially_queued_at).store(writes)
        self._trace(writes, check, "receipt", now, failed=info.identifier.value, retryable=int(info.retryable))

    def _trace(self, writes: Writes, check: PushCheck, what: str, at: float, **facts: str | int) -> None:
        trace(writes, check.uid, what, at, kept_seconds=self._trace_seconds, retry=check.retry, **facts)


def failure_of(receipt: PushReceipt | None) -> FailureInfo | None:
    """Why a message failed, by its receipt; None if it did not."""
    if receipt is None:
        return FailureInfo("check", Identifier.NOT_READY, retryable=True)
    if receipt.status == "ok":
        return None
    error = (receipt.details or {}).get("error")
    identifier = next((each for each in _OF_RECEIPT if each == error), Identifier.INTERNAL)
    # The device gets too many at once: this one is sent again, later.
    again = identifier is Identifier.RATE_EXCEEDED
    return FailureInfo("check", identifier, retryable=again, receipt=receipt, extra=receipt.message)
