"""Email, as touches use it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from keystead.engine import Valkey
from keystead.ids import UserSub
from keystead.jobs import AfterFailure
from keystead.keys import ListRef, SortedSetRef, StringRef
from keystead.members import Contacts
from keystead.messaging.email import Email, Failures
from keystead.messaging.email.keys import RECEIPT_PENDING, SENDING
from keystead.messaging.email.models import OutgoingEmail, read_failure, read_success
from keystead.messaging.email.stats import SENDS
from keystead.messaging.sending import Lane, TraceEntry
from keystead.messaging.touches.models import Channel
from keystead.messaging.touches.outlets import After, Arrived, Failed, Prepared, last_fact
from keystead.patterns import WorkList, Writes

_AFTER: Final = {AfterFailure.RETRY: After.RETRIED, AfterFailure.ABANDON: After.ABANDONED,
                 AfterFailure.NOTHING: After.FINAL}


class EmailOutlet:
    """Email. ``final`` gives up whatever fails."""

    channel: Channel = "email"

    def __init__(self, email: Email, contacts: Contacts, failures: Failures, final: Failures) -> None:
        self._email, self._contacts, self._failures, self._final = email, contacts, failures, final

    @property
    def work(self) -> WorkList[Any]:
        return SENDING.work

    def intent(self, uid: str) -> StringRef[str]:
        return SENDING.intent(uid)

    async def is_with_provider(self, valkey: Valkey, uid: str, steps: Sequence[TraceEntry]) -> bool:
        message_id = last_fact(steps, "message_id")
        entry = await RECEIPT_PENDING.get(valkey, message_id) if message_id else None
        return entry is not None and entry.record.uid == uid

    @property
    def waiting(self) -> tuple[ListRef[Any], ...]:
        return tuple(SENDING.waiting(lane) for lane in (Lane.NORMAL, Lane.HIGH, Lane.LOW))

    @property
    def retrying(self) -> tuple[SortedSetRef[Any], ...]:
        return tuple(SENDING.retrying(lane) for lane in Lane)

    def abandoned(self, writes: Writes, message: OutgoingEmail, now: float) -> None:
        SENDS.tally().incr("abandoned", at=now).store(writes)

    async def addresses(self, subs: Iterable[UserSub]) -> Mapping[UserSub, list[str]]:
        return await self._contacts.emails_of(subs)

    def queue(self, writes: Writes, message: Prepared) -> None:
        shown = message.shown
        self._email.email_writes(writes, self._email.outgoing(
            message.address, shown["subject"], shown["template"], shown["template_parameters"],
            success=message.success, failure=message.failure, uid=message.uid, user_sub=message.user_sub,
            lane=message.lane, now=message.now, is_normal=True,
        ))

    def arrived(self, data_raw: str) -> Arrived:
        told = read_success(data_raw)
        shown = {"subject": told.email.subject, "template": told.email.template,
                 "template_parameters": told.email.template_parameters}
        return Arrived(told.email.uid, told.email.email, shown, told.info.delivery_received_at)

    async def failed(self, data_raw: str, *, give_up: bool = False) -> Failed:
        told = read_failure(data_raw)
        failures = self._final if give_up else self._failures
        after = _AFTER[await failures.retry_or_abandon(told)]
        if after is After.FINAL:
            await failures.unreachable(told)
        step = f"send {told.email.retry}" if isinstance(told.email, OutgoingEmail) else "receipt"
        return Failed(told.email.uid, told.email.email, after, msgspec.to_builtins(told.info), step)
