"""Push messages on their way to the provider: up to a hundred in a request, and what follows for each."""

from collections.abc import Sequence
from typing import Final

import msgspec

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.jobs import ROOMS_QUEUE, JobRef, closed
from keystead.messaging.push.gateway import NOT_CONNECTED, Gateway
from keystead.messaging.push.keys import COLD
from keystead.messaging.push.models import (
    FailureInfo,
    Identifier,
    OutgoingPush,
    PushCheck,
    PushFailure,
    PushTicket,
)
from keystead.messaging.push.stats import TICKETS
from keystead.messaging.sending import Carried, Health, Verdict, queue_job
from keystead.patterns import Writes

BATCH_ITEMS: Final = 100
FORGET_JOB: Final = "push.forget_token"

COUNTED: Final = {
    Identifier.NETWORK: "failed_due_to_network_error", Identifier.CLIENT_429: "failed_due_to_client_error_429",
    Identifier.SERVER: "failed_due_to_server_error", Identifier.CLIENT_OTHER: "failed_due_to_client_error_other",
    Identifier.INTERNAL: "failed_due_to_internal_error",
    Identifier.DEVICE_GONE: "failed_due_to_device_not_registered",
    Identifier.TOO_BIG: "failed_due_to_message_too_big",
    Identifier.RATE_EXCEEDED: "failed_due_to_message_rate_exceeded",
    Identifier.MISMATCHED_SENDER: "failed_due_to_mismatched_sender_id",
    Identifier.CREDENTIALS: "failed_due_to_invalid_credentials",
    Identifier.NOT_READY: "failed_due_to_not_ready_yet",
}
_HEALTH: Final = {
    Identifier.NETWORK: Health.FAILED, Identifier.SERVER: Health.FAILED, Identifier.CLIENT_OTHER: Health.FAILED,
    Identifier.INTERNAL: Health.FAILED, Identifier.CLIENT_429: Health.THROTTLED,
}


class PushCarrier:
    """Carries push messages. What is written for each happens when it leaves the courier's hands.

    ``may_repeat``: messages whose answer was lost may be sent again, though the provider may have taken them.
    """

    batch_items = BATCH_ITEMS

    def __init__(self, valkey: Valkey, clock: Clock, gateway: Gateway, *, may_repeat: bool = True) -> None:
        self._valkey, self._clock, self._gateway, self._may_repeat = valkey, clock, gateway, may_repeat

    async def expect(self, items: Sequence[OutgoingPush]) -> None:
        """Nothing has to be asked before the provider is."""

    async def carry(self, items: Sequence[OutgoingPush]) -> Sequence[Carried]:
        answer = await self._gateway.send(items)
        if isinstance(answer, FailureInfo):
            unsure = answer.identifier is Identifier.NETWORK and answer.extra != NOT_CONNECTED
            if unsure and not self._may_repeat:
                answer = msgspec.structs.replace(answer, retryable=False)
            return [self._failed(push, answer, _HEALTH[answer.identifier]) for push in items]
        return [self._answered(push, ticket) for push, ticket in zip(items, answer, strict=True)]

    async def verify(self, item: OutgoingPush) -> Carried | Verdict:
        """The provider cannot be asked for a message without its ticket, so it is sent again."""
        return Verdict.NOT_SENT

    def drop(self, item: OutgoingPush) -> Carried:
        info = FailureInfo("send", Identifier.INTERNAL, extra="it may have been sent, and is not sent again")
        return self._failed(item, info, Health.NOT_CALLED)

    # -- what follows -----------------------------------------------------------------------------------------------

    def _answered(self, push: OutgoingPush, ticket: PushTicket) -> Carried:
        if ticket.status == "ok" and ticket.id:
            return self._taken(push, ticket)
        error = (ticket.details or {}).get("error")
        gone = ticket.status == "error" and error == Identifier.DEVICE_GONE
        extra = ticket.message if ticket.status == "error" else f"a ticket without an id, or {ticket.status[:40]!r}"
        identifier = Identifier.DEVICE_GONE if gone else Identifier.INTERNAL
        return self._failed(push, FailureInfo("send", identifier, ticket=ticket, extra=extra), Health.FINE)

    def _taken(self, push: OutgoingPush, ticket: PushTicket) -> Carried:
        now, writes = self._clock.now(), Writes(self._valkey.layout)
        COLD.at().add(writes, PushCheck.of(push, ticket, now), now)
        TICKETS.tally().incr("succeeded", at=push.initially_queued_at).store(writes)
        return Carried(writes, counts={"num_messages_attempted": 1, "num_succeeded": 1},
                       facts={"ticket": ticket.id or ""})

    def _failed(self, push: OutgoingPush, info: FailureInfo, health: Health) -> Carried:
        now, writes = self._clock.now(), Writes(self._valkey.layout)
        queue_job(writes, push.failure_job, PushFailure(push, info), now)
        if info.identifier is Identifier.DEVICE_GONE:
            queue_job(writes, forget_job(push.push_token, "ticket"), None, now)
        TICKETS.tally().incr(COUNTED[info.identifier], at=push.initially_queued_at).store(writes)
        outcome = "num_failed_transiently" if info.retryable else "num_failed_permanently"
        return Carried(
            writes, health, info.retry_after_seconds, {"num_messages_attempted": 1, outcome: 1},
            {"failed": info.identifier.value, "retryable": int(info.retryable)},
        )


def forget_job(token: str, because: str) -> JobRef:
    """The job that forgets a device which the provider says is gone."""
    return JobRef(FORGET_JOB, {"token": closed(token), "because": because}, ROOMS_QUEUE)
