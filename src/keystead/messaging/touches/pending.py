"""Touches that wait for news: the first destination that is reached ends one well, the last that fails ends it badly.

Index entry, record and the set of messages that remain are there together or not at all; each step is one script, which
also writes the log and, if it ends the touch, queues the callback. Callbacks are stored as text and never taken apart
on the server. A step may be repeated: only the first has an effect on the touch, and log rows are known by their uid.
"""

from enum import Enum
from typing import Final

import msgspec

from keystead.engine import Script, Valkey
from keystead.engine.failures import ErrorReply
from keystead.jobs import JobRef
from keystead.keys import Reference
from keystead.messaging.sending import trace
from keystead.messaging.touches.callbacks import call_back
from keystead.messaging.touches.keys import BY_USER, PENDING, REMAINING
from keystead.messaging.touches.models import PendingTouch, Touch
from keystead.patterns import Writes

SUCCESS: Final = Script("keystead.messaging.touches", "scripts/success.lua")
FAILED: Final = Script("keystead.messaging.touches", "scripts/failed.lua")
DROP: Final = Script("keystead.messaging.touches", "scripts/drop.lua")


class Ended(Enum):
    """What a step led to."""

    NOW = 1
    OTHERS_REMAIN = 0
    BEFORE = -1


def open_pending(writes: Writes, touch: Touch, messages: list[str], now: float) -> bool:
    """Let a touch wait for news of these channel messages; one without callbacks does not. Says whether it waits."""
    if touch.success_callback is None and touch.failure_callback is None:
        return False
    record = PendingTouch(_text(touch.success_callback), _text(touch.failure_callback))
    PENDING.write(writes, touch.uid, record, now)
    REMAINING.at(touch.uid).add(writes, *messages)
    return True


class Pending:
    """Ends touches that wait, in the lane that the writes of whoever ends one are for."""

    def __init__(self, valkey: Valkey, *, trace_seconds: float) -> None:
        self._valkey, self._trace_seconds = valkey, trace_seconds

    async def succeeded(self, uid: str, always: Writes, now: float, user_sub: str = "") -> Ended:
        """A destination was reached. ``always`` is written in any case, in the same step.

        ``user_sub``: on whose way the touch is no more, if it ends.
        """
        valkey = self._valkey.lane(always.layout.lane)
        names, packed = always.packed(valkey.layout)
        more, ending = (await self._ending(valkey, uid, "success", now, user_sub=user_sub)).packed(valkey.layout)
        done = await SUCCESS(valkey, keys=[*_three(uid), *names, *more], args=(uid, len(names), packed, ending))
        return Ended.NOW if done else Ended.BEFORE

    async def failed(self, uid: str, message: str, always: Writes, now: float, user_sub: str = "") -> Ended:
        """A channel message failed for good. ``always`` is written in any case, in the same step."""
        valkey = self._valkey.lane(always.layout.lane)
        names, packed = always.packed(valkey.layout)
        more, ending = (await self._ending(valkey, uid, "failure", now, user_sub=user_sub)).packed(valkey.layout)
        return Ended(await FAILED(
            valkey, keys=[*_three(uid), *names, *more], args=(uid, message, len(names), packed, ending)
        ))

    async def drop(self, uid: str, counted: Writes, now: float, why: str) -> Ended:
        """End a touch as failed, whatever its destinations. ``counted`` is written if it was there, whole or not."""
        valkey = self._valkey.lane(counted.layout.lane)
        names, packed = counted.packed(valkey.layout)
        ending = (await self._ending(valkey, uid, "failure", now, why)).add(counted)
        more, packed_ending = ending.packed(valkey.layout)
        found = await DROP(
            valkey, keys=[*_three(uid), *names, *more], args=(uid, packed, len(names), packed_ending)
        )
        return Ended.BEFORE if found == 0 else Ended.NOW

    async def _ending(
        self, valkey: Valkey, uid: str, which: str, now: float, why: str = "", *, user_sub: str = ""
    ) -> Writes:
        """What ending the touch leads to. What is stored of a touch never changes, so it may be read beforehand."""
        writes = Writes(valkey.layout)
        record = await self._record(valkey, uid)
        if record is None:
            return writes
        if user_sub:
            BY_USER.at(user_sub).remove(writes, uid)
        text = record.success_callback if which == "success" else record.failure_callback
        facts = {"outcome": which, "callback": call_back(writes, uid, text, now), **({"why": why} if why else {})}
        trace(writes, uid, "ended", now, kept_seconds=self._trace_seconds, **facts)
        return writes

    @staticmethod
    async def _record(valkey: Valkey, uid: str) -> PendingTouch | None:
        try:
            return await PENDING.record(uid).get(valkey)
        except ErrorReply as error:
            if not str(error).startswith("WRONGTYPE"):
                raise
            return None  # the scripts remove what is left of such a touch


def _three(uid: str) -> tuple[Reference, ...]:
    return PENDING.index, PENDING.record(uid), REMAINING.at(uid)


def _text(callback: JobRef | None) -> str | None:
    return None if callback is None else msgspec.json.encode(callback).decode()
