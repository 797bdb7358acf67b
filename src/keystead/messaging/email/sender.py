"""Takes email to the provider: renders it, hands it over, and says what follows from the answer."""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.messaging.email.gateway import Accepted, EmailGateway, Mail, NoCredentials, NotAccepted
from keystead.messaging.email.keys import EARLY, NEWS, RECEIPT_PENDING, SENDING, UNANSWERED
from keystead.messaging.email.models import (
    TYPES,
    Delivery,
    EmailEvent,
    EmailFailure,
    FailureInfo,
    OutgoingEmail,
    PendingEmail,
    Step,
    parked_as,
)
from keystead.messaging.email.stats import SENDS
from keystead.messaging.email.suppressed import Suppressed
from keystead.messaging.email.templates import NotRendered, Templates
from keystead.messaging.email.unsubscribe import Unsubscribing
from keystead.messaging.sending import Carried, CredentialsMissing, Health, Lane, Verdict, queue_job
from keystead.patterns import Writes

VERIFY_SECONDS: Final = 600.0
LOOK_AGAIN_SECONDS: Final = 30.0
_MESSAGE_ID: Final = re.compile(r"[A-Za-z0-9_.-]{1,200}")


class Sender:
    """The carrier of email: one request for each.

    An email whose answer was lost, with ``on_ambiguous`` verify, waits ten minutes for news that it was sent, and only
    then counts as failed; with resend, or where nobody reports, it counts as failed at once. Either way it is sent
    again as others that failed are, so often and no more. With drop it is not sent again. ``lane`` is the number of
    the cluster's lane that the connection is for.
    """

    batch_items: Final = 1

    def __init__(
        self, valkey: Valkey, clock: Clock, gateway: EmailGateway, templates: Templates, suppressed: Suppressed,
        unsubscribing: Unsubscribing, *, on_ambiguous: str = "verify", verify_seconds: float = VERIFY_SECONDS,
        lane: int = 0,
    ) -> None:
        self._valkey, self._clock, self._gateway, self._lane = valkey, clock, gateway, lane
        self._templates, self._suppressed, self._unsubscribing = templates, suppressed, unsubscribing
        self._may_verify, self._may_repeat = on_ambiguous == "verify" and gateway.reports, on_ambiguous != "drop"
        self._verify_seconds = verify_seconds
        self._look_again_seconds = min(LOOK_AGAIN_SECONDS, verify_seconds / 4)

    async def expect(self, items: Sequence[OutgoingEmail]) -> None:
        await self._suppressed.expect(item.email for item in items)

    async def carry(self, items: Sequence[OutgoingEmail]) -> Sequence[Carried]:
        return [await self._carry(item) for item in items]

    async def _carry(self, item: OutgoingEmail) -> Carried:
        if item.asked_at:
            return await self._known(item)
        if await self._suppressed.has(item.email):
            return self._failed(item, "template", "Suppressed", "template:Suppressed", health=Health.NOT_CALLED)
        rendered = self._templates.render(item.template, item.template_parameters)
        if isinstance(rendered, NotRendered):
            return self._failed(item, "template", rendered.identifier, rendered.breakdown, extra=rendered.reason,
                                health=Health.NOT_CALLED)
        # What somebody asked for just now, such as a code, is no bulk email.
        headers = () if item.lane == Lane.HIGH else self._unsubscribing.headers(item.email)
        mail = Mail(item.uid, item.email, item.subject, rendered.html, rendered.text, item.template, headers,
                    self._lane)
        outcome = await self._gateway.send(mail)
        if isinstance(outcome, NoCredentials):
            raise CredentialsMissing(f"email waits: {outcome.reason}")
        if isinstance(outcome, Accepted):
            return self._accepted(item, outcome)
        return self._not_accepted(item, outcome)

    # -- what follows -----------------------------------------------------------------------------------------------

    def _accepted(self, item: OutgoingEmail, outcome: Accepted) -> Carried:
        if _MESSAGE_ID.fullmatch(outcome.message_id) is None:
            return self._failed(item, "send", "SESInternalError", "ses:MessageId")
        now = self._clock.now()
        writes = self._writes(item)
        SENDS.tally(now).incr("attempted", at=now).incr("templated", at=now).incr(
            "accepted", item.template, at=now).store(writes)
        pending = PendingEmail.of(item, outcome.message_id, now)
        RECEIPT_PENDING.write(writes, outcome.message_id, pending, now)
        if outcome.delivered:
            NEWS.queue.push_right(writes, EmailEvent(outcome.message_id, Delivery(), now, item.uid, item.uid))
        return Carried(writes, counts={"attempted": 1, "templated": 1, "accepted": 1},
                       facts={"message_id": outcome.message_id})

    def _not_accepted(self, item: OutgoingEmail, outcome: NotAccepted) -> Carried:
        if outcome.maybe_sent and self._may_verify:
            now = self._clock.now()
            writes = Writes(self._valkey.layout)
            UNANSWERED.at(item.uid).raise_flag(writes)
            asked = msgspec.structs.replace(item, asked_at=now)
            SENDING.retry_later(writes, asked, now + self._look_again_seconds)
            return Carried(writes, Health.FAILED, facts={"answer": "lost"})
        is_ill = outcome.retryable and not outcome.of_recipient
        health = Health.THROTTLED if outcome.throttled else Health.FAILED if is_ill else Health.FINE
        retryable = outcome.retryable and (self._may_repeat or not outcome.maybe_sent)
        return self._failed(
            item, "send", outcome.identifier, outcome.breakdown, retryable=retryable, extra=outcome.extra,
            health=health, retry_after_seconds=outcome.retry_after_seconds, status=outcome.status,
        )

    def _failed(
        self, item: OutgoingEmail, step: Step, identifier: str, breakdown: str, *, retryable: bool = False,
        extra: str = "", health: Health = Health.FINE, retry_after_seconds: float = 0.0, status: int = 0,
    ) -> Carried:
        now, kind = self._clock.now(), "failed_transiently" if retryable else "failed_permanently"
        writes = self._writes(item)
        tally = SENDS.tally(now).incr("attempted", at=now).incr(kind, breakdown[:100], at=now)
        counts = {"attempted": 1, kind: 1}
        if step == "send":
            tally.incr("templated", at=now)
            counts["templated"] = 1
        tally.store(writes)
        info = FailureInfo(step, identifier, retryable, extra[:500] or None, retry_after_seconds)
        queue_job(writes, item.failure_job, EmailFailure(msgspec.structs.replace(item, asked_at=0.0), info), now)
        return Carried(writes, health, retry_after_seconds, counts, {"error": identifier, "status": status})

    def _writes(self, item: OutgoingEmail) -> Writes:
        writes = Writes(self._valkey.layout)
        if item.asked_at:
            UNANSWERED.at(item.uid).lower_flag(writes)
        return writes

    # -- what may have been sent ------------------------------------------------------------------------------------

    async def verify(self, item: OutgoingEmail) -> Carried | Verdict:
        """News that carry our uid prove that it was sent; ten minutes without any count as proof that it was not."""
        if not self._may_verify:
            return Verdict.NOT_SENT
        message_id = await self._told_of(item.uid)
        if message_id is not None:
            return self._accepted(item, Accepted(message_id))
        asked = await SENDING.asked_since(self._valkey, item.uid)
        return Verdict.WAIT if asked is not None and asked < self._verify_seconds else Verdict.NOT_SENT

    def drop(self, item: OutgoingEmail) -> Carried:
        return self._failed(item, "send", "SESNetworkError", "ses:Dropped", extra="it may have been sent",
                            health=Health.NOT_CALLED)

    async def _known(self, item: OutgoingEmail) -> Carried:
        """What is known of an email whose answer was lost. When enough was waited, that try of it has failed."""
        message_id = await self._told_of(item.uid)
        if message_id is not None:
            carried = self._accepted(item, Accepted(message_id))
        elif self._clock.now() - item.asked_at >= self._verify_seconds:
            carried = self._failed(item, "send", "SESNetworkError", "ses:ConnectionError", retryable=True,
                                   extra="no answer, and no news")
        else:
            carried = Carried(Writes(self._valkey.layout))
            SENDING.retry_later(carried.writes, item, self._clock.now() + self._look_again_seconds)
        carried.health = Health.NOT_CALLED
        return carried

    async def _told_of(self, uid: str) -> str | None:
        for kind in TYPES:
            early = await EARLY.get(self._valkey, parked_as(uid, kind))
            if early is not None:
                return early.record.event.message_id
        return None
