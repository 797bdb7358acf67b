"""Texts, as touches use them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from keystead.engine import Valkey
from keystead.errors import Invalid
from keystead.ids import UserSub
from keystead.jobs import decode_data_raw
from keystead.keys import ListRef, SortedSetRef, StringRef
from keystead.members import Contacts
from keystead.messaging.sending import Lane, TraceEntry
from keystead.messaging.sms import Failures, OutgoingSms, Settled, Sms, SmsFailure, SmsSuccess
from keystead.messaging.sms.keys import PENDING, SENDING
from keystead.messaging.sms.sms import MOST_CHARACTERS
from keystead.messaging.sms.stats import SENDS
from keystead.messaging.touches.models import Channel
from keystead.messaging.touches.outlets import After, Arrived, Failed, Prepared, last_fact
from keystead.patterns import WorkList, Writes
from keystead.tracing import carried

_AFTER: Final = {Settled.RETRIED: After.RETRIED, Settled.ABANDONED: After.ABANDONED, Settled.FINAL: After.FINAL,
                 Settled.IGNORED: After.IGNORED}


class SmsOutlet:
    """Texts. ``final`` gives up whatever fails."""

    channel: Channel = "sms"

    def __init__(self, sms: Sms, contacts: Contacts, failures: Failures, final: Failures) -> None:
        self._sms, self._contacts, self._failures, self._final = sms, contacts, failures, final

    @property
    def work(self) -> WorkList[Any]:
        return SENDING.work

    def intent(self, uid: str) -> StringRef[str]:
        return SENDING.intent(uid)

    async def is_with_provider(self, valkey: Valkey, uid: str, steps: Sequence[TraceEntry]) -> bool:
        sid = last_fact(steps, "sid")
        entry = await PENDING.get(valkey, sid) if sid else None
        return entry is not None and entry.record.uid == uid

    @property
    def waiting(self) -> tuple[ListRef[Any], ...]:
        return tuple(SENDING.waiting(lane) for lane in (Lane.NORMAL, Lane.HIGH, Lane.LOW))

    @property
    def retrying(self) -> tuple[SortedSetRef[Any], ...]:
        return tuple(SENDING.retrying(lane) for lane in Lane)

    def abandoned(self, writes: Writes, message: OutgoingSms, now: float) -> None:
        SENDS.tally().incr("abandoned", at=message.initially_queued_at).store(writes)

    async def addresses(self, subs: Iterable[UserSub]) -> Mapping[UserSub, list[str]]:
        return await self._contacts.phones_of(subs)

    def queue(self, writes: Writes, message: Prepared) -> None:
        body = str(message.shown["body"])
        if not body.strip() or len(body) > MOST_CHARACTERS:
            raise Invalid(f"a text has 1 to {MOST_CHARACTERS} characters, this has {len(body)}")
        self._sms.sms_writes(writes, OutgoingSms(
            uid=message.uid, initially_queued_at=message.now, last_queued_at=message.now,
            phone_number=message.address, body=body, success_job=message.success, failure_job=message.failure,
            user_sub=message.user_sub, lane=message.lane, trace=carried(),
        ))

    def arrived(self, data_raw: str) -> Arrived:
        told = decode_data_raw(data_raw, SmsSuccess)
        return Arrived(told.sms.uid, told.sms.phone_number, {"body": told.sms.body},
                       told.result.message_resource_succeeded_at)

    async def failed(self, data_raw: str, *, give_up: bool = False) -> Failed:
        told = decode_data_raw(data_raw, SmsFailure)
        after = _AFTER[await (self._final if give_up else self._failures).settle(told)]
        sms = told.sms
        step = f"send {sms.retry}" if isinstance(sms, OutgoingSms) else f"pending {sms.num_changes}"
        return Failed(sms.uid, sms.phone_number, after, msgspec.to_builtins(told.failure_info), step)
