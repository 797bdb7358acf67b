"""Texts on their way to the provider: one request each, and everything that follows from the answer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

import msgspec

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.messaging.sending import Carried, Health, Verdict, queue_job, trace
from keystead.messaging.sms.failures import UNREACHABLE_JOB, queue_unreachable
from keystead.messaging.sms.gateway import NOT_CONNECTED, Gateway, resource_failure
from keystead.messaging.sms.keys import OWNER, PENDING, SENDING
from keystead.messaging.sms.models import (
    FailureInfo,
    Identifier,
    MessageResource,
    OutgoingSms,
    PendingRecord,
    SentSms,
    SmsFailure,
    SmsSuccess,
    SuccessInfo,
)
from keystead.messaging.sms.stats import SENDS
from keystead.messaging.sms.statuses import Category
from keystead.messaging.sms.suppressed import Suppressed
from keystead.patterns import Writes
from keystead.settings import MessagingSettings, SmsSettings

# Kept for tests: nobody answers there, and the provider is not asked.
RESERVED_NUMBERS: Final = frozenset({"+15555555555"})
# The provider's clock may be behind ours by so much.
SKEW_SECONDS: Final = 60.0
CALLBACK_PATH: Final = "/api/1/sms/webhook"

UNSURE: Final = FailureInfo(
    "send", Identifier.NETWORK, retryable=True, extra="whether an earlier try was heard could not be found out"
)

_COUNTED: Final = {
    Identifier.NETWORK: "failed_due_to_network_error", Identifier.SERVER: "failed_due_to_server_error",
    Identifier.CLIENT_429: "failed_due_to_client_error_429",
    Identifier.CLIENT_OTHER: "failed_due_to_client_error_other",
    Identifier.INTERNAL: "failed_due_to_internal_error",
    Identifier.RATELIMIT: "failed_due_to_application_error_ratelimit",
    Identifier.APPLICATION: "failed_due_to_application_error_other",
}
_BROKEN_DOWN: Final = frozenset(
    {Identifier.SERVER, Identifier.CLIENT_OTHER, Identifier.RATELIMIT, Identifier.APPLICATION}
)
# An answer that says something of one text, and nothing of the provider, is a fine one.
_HEALTH: Final = {
    Identifier.NETWORK: Health.FAILED, Identifier.SERVER: Health.FAILED, Identifier.CLIENT_OTHER: Health.FAILED,
    Identifier.CLIENT_429: Health.THROTTLED, Identifier.RATELIMIT: Health.THROTTLED,
}


@dataclass(frozen=True, slots=True)
class SenderSettings:
    """What the room needs of the settings. ``public_url`` says how the provider reaches us; empty if it cannot."""

    wait_seconds: float = 900.0
    public_url: Callable[[], str] = str
    lane: int = 0
    unreachable_codes: frozenset[str] = frozenset()
    trace_seconds: float = 172_800.0
    on_ambiguous: str = "verify"

    @classmethod
    def of(
        cls, sms: SmsSettings, messaging: MessagingSettings, public_url: Callable[[], str], lane: int = 0
    ) -> "SenderSettings":
        codes = frozenset(code.strip() for code in sms.unreachable_codes.split(",") if code.strip())
        return cls(sms.wait_seconds, public_url, lane, codes, messaging.trace_seconds, messaging.on_ambiguous)

    def callback_of(self, uid: str) -> str:
        """Where news of one text go: the address itself says which text it is, and in which lane."""
        url = self.public_url().rstrip("/")
        return f"{url}{CALLBACK_PATH}?{urlencode({'uid': uid, 'lane': self.lane})}" if url else ""


class SmsCarrier:
    """Carries texts one by one. What is written for each happens when it leaves the courier's hands."""

    batch_items = 1

    def __init__(
        self, valkey: Valkey, clock: Clock, gateway: Gateway, suppressed: Suppressed,
        settings: SenderSettings = SenderSettings(),  # noqa: B008
    ) -> None:
        self._valkey, self._clock, self._gateway, self._suppressed = valkey, clock, gateway, suppressed
        self._settings = settings

    async def expect(self, items: Sequence[OutgoingSms]) -> None:
        await self._suppressed.expect(sms.phone_number for sms in items)

    async def carry(self, items: Sequence[OutgoingSms]) -> Sequence[Carried]:
        return [await self._carry(sms) for sms in items]

    async def _carry(self, sms: OutgoingSms) -> Carried:
        if sms.phone_number in RESERVED_NUMBERS:
            return self._failed(sms, FailureInfo("send", Identifier.CLIENT_OTHER, "418"), called=False)
        if await self._suppressed.has(sms.phone_number):
            return self._failed(sms, FailureInfo("send", Identifier.APPLICATION, "suppressed"), called=False)
        # A try that failed may have been heard all the same.
        if sms.retry and self._settings.on_ambiguous == "verify":
            found = await self._found(sms, sms.initially_queued_at)
            if found is not Verdict.NOT_SENT:
                return self._failed(sms, UNSURE) if isinstance(found, Verdict) else found
        answer = await self._gateway.create(sms.phone_number, sms.body, self._settings.callback_of(sms.uid))
        if isinstance(answer, MessageResource):
            return self._taken(sms, answer)
        unsure = answer.identifier is Identifier.NETWORK and answer.extra != NOT_CONNECTED
        if unsure and self._settings.on_ambiguous == "drop":
            answer = msgspec.structs.replace(answer, retryable=False)
        return self._failed(sms, answer)

    async def verify(self, item: OutgoingSms) -> Carried | Verdict:
        """Look for it among the newest messages to its number: the same words, and not known to be another text's."""
        standing = await SENDING.asked_since(self._valkey, item.uid)
        return await self._found(item, item.last_queued_at if standing is None else self._clock.now() - standing)

    async def _found(self, sms: OutgoingSms, since: float) -> Carried | Verdict:
        found = await self._gateway.search(sms.phone_number)
        if found is None:
            return Verdict.WAIT
        for message in found:
            if message.body != sms.body or message.created_at < since - SKEW_SECONDS:
                continue
            owner = await OWNER.at(message.resource.sid).get(self._valkey)
            if owner is None or owner == sms.uid:
                failed = resource_failure(message.resource)
                if failed is not None and failed.retryable:
                    continue  # the provider held it back for now, so nobody has it: it is to be sent
                return self._failed(sms, failed) if failed else self._taken(sms, message.resource)
        return Verdict.NOT_SENT

    def drop(self, item: OutgoingSms) -> Carried:
        info = FailureInfo("send", Identifier.INTERNAL, extra="it may have been sent, and is not sent again")
        return self._failed(item, info, called=False)

    # -- what follows -----------------------------------------------------------------------------------------------

    def _taken(self, sms: OutgoingSms, resource: MessageResource) -> Carried:
        now, writes = self._clock.now(), Writes(self._valkey.layout)
        pending = resource.status.category is Category.PENDING
        OWNER.at(resource.sid).set(writes, sms.uid)
        if pending:
            record = PendingRecord.of(sms, resource, now)
            PENDING.write(writes, resource.sid, record, now + self._settings.wait_seconds)
        else:
            queue_job(writes, sms.success_job, succeeded(sms, resource, now), now)
        event = "succeeded_pending" if pending else "succeeded_immediate"
        SENDS.tally().incr(event, resource.status.value, at=sms.initially_queued_at).store(writes)
        return Carried(
            writes, counts={"attempted": 1, "pending" if pending else "succeeded": 1},
            facts={"sid": resource.sid, "status": resource.status.value},
        )

    def _failed(self, sms: OutgoingSms, info: FailureInfo, *, called: bool = True) -> Carried:
        now, writes = self._clock.now(), Writes(self._valkey.layout)
        queue_job(writes, sms.failure_job, SmsFailure(sms, info), now)
        if info.identifier is Identifier.APPLICATION and info.subidentifier in self._settings.unreachable_codes:
            queue_unreachable(writes, sms.phone_number, info, now)
            trace(writes, sms.uid, "suppressed", now, kept_seconds=self._settings.trace_seconds, job=UNREACHABLE_JOB)
        breakdown = (info.subidentifier or "") if info.identifier in _BROKEN_DOWN else None
        SENDS.tally().incr(_COUNTED[info.identifier], breakdown, at=sms.initially_queued_at).store(writes)
        facts = {"failed": info.identifier.value, "why": info.subidentifier or "", "retryable": int(info.retryable)}
        return Carried(
            writes, _HEALTH.get(info.identifier, Health.FINE) if called else Health.NOT_CALLED,
            info.retry_after_seconds,
            {"attempted": 1, "failed_transiently" if info.retryable else "failed_permanently": 1}, facts,
        )


def succeeded(sms: OutgoingSms, resource: MessageResource, now: float) -> SmsSuccess:
    """What the success job of a text that succeeded at once is told."""
    sent = SentSms(uid=sms.uid, initially_queued_at=sms.initially_queued_at, phone_number=sms.phone_number,
                   body=sms.body, user_sub=sms.user_sub)
    return SmsSuccess(sent, SuccessInfo(now, now, resource))
