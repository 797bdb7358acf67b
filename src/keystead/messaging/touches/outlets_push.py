"""Push messages, as touches use them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from keystead.engine import Valkey
from keystead.ids import UserSub
from keystead.jobs import decode_data_raw
from keystead.keys import ListRef, SortedSetRef, StringRef
from keystead.members import Contacts
from keystead.messaging.push import (
    Failures,
    OutgoingPush,
    Push,
    PushContents,
    PushFailure,
    PushSuccess,
    Settled,
    check_contents,
)
from keystead.messaging.push.keys import COLD, HOT, SENDING
from keystead.messaging.push.stats import TICKETS
from keystead.messaging.sending import Lane, TraceEntry
from keystead.messaging.touches.models import Channel
from keystead.messaging.touches.outlets import After, Arrived, Failed, Prepared, last_fact
from keystead.messaging.touches.places import Place, find, purgatories
from keystead.patterns import WorkList, Writes
from keystead.tracing import carried

_AFTER: Final = {Settled.RETRIED: After.RETRIED, Settled.ABANDONED: After.ABANDONED, Settled.FINAL: After.FINAL}


class PushOutlet:
    """Push messages. ``final`` gives up whatever fails."""

    channel: Channel = "push"

    def __init__(self, push: Push, contacts: Contacts, failures: Failures, final: Failures) -> None:
        self._push, self._contacts, self._failures, self._final = push, contacts, failures, final

    @property
    def work(self) -> WorkList[Any]:
        return SENDING.work

    def intent(self, uid: str) -> StringRef[str]:
        return SENDING.intent(uid)

    async def is_with_provider(self, valkey: Valkey, uid: str, steps: Sequence[TraceEntry]) -> bool:
        if not last_fact(steps, "ticket"):
            return False
        places: tuple[Place, ...] = (COLD.at(), HOT.queue, *await purgatories(valkey, HOT))
        return any([bool(await find(valkey, place, lambda check: check.uid == uid)) for place in places])

    @property
    def waiting(self) -> tuple[ListRef[Any], ...]:
        return tuple(SENDING.waiting(lane) for lane in (Lane.NORMAL, Lane.HIGH, Lane.LOW))

    @property
    def retrying(self) -> tuple[SortedSetRef[Any], ...]:
        return tuple(SENDING.retrying(lane) for lane in Lane)

    def abandoned(self, writes: Writes, message: OutgoingPush, now: float) -> None:
        TICKETS.tally().incr("abandoned", at=message.initially_queued_at).store(writes)

    async def addresses(self, subs: Iterable[UserSub]) -> Mapping[UserSub, list[str]]:
        return await self._contacts.tokens_of(subs)

    def queue(self, writes: Writes, message: Prepared) -> None:
        shown = message.shown
        contents = PushContents(shown["title"], shown["body"], shown["channel_id"])
        check_contents(contents)
        self._push.push_writes(writes, OutgoingPush(
            uid=message.uid, initially_queued_at=message.now, last_queued_at=message.now, push_token=message.address,
            contents=contents, success_job=message.success, failure_job=message.failure, user_sub=message.user_sub,
            lane=message.lane, trace=carried(),
        ))

    def arrived(self, data_raw: str) -> Arrived:
        told = decode_data_raw(data_raw, PushSuccess)
        return Arrived(told.attempt.uid, told.attempt.push_token, msgspec.to_builtins(told.attempt.contents),
                       told.result.receipt_checked_at)

    async def failed(self, data_raw: str, *, give_up: bool = False) -> Failed:
        told = decode_data_raw(data_raw, PushFailure)
        attempt = told.attempt
        after = _AFTER[await (self._final if give_up else self._failures).settle(told)]
        step = f"send {attempt.retry}" if isinstance(attempt, OutgoingPush) else (
            f"check {attempt.send_retry} {attempt.retry}")
        return Failed(attempt.uid, attempt.push_token, after, msgspec.to_builtins(told.failure_info), step)
