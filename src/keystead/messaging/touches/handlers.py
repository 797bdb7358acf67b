"""What follows from news of a channel message: the log, and perhaps the end of its touch.

These are the jobs ``touch.{channel}_{success,failure}_handler``. A job may run again, even much later: the channel then
gives the same answer as before, rows of the log have uids that follow from the message, and a touch ends once.
"""

import hashlib
from typing import Any, Final

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.keys import Executor
from keystead.messaging.sending import trace
from keystead.messaging.touches.keys import BY_USER, ERASED, TO_LOG
from keystead.messaging.touches.models import (
    Channel,
    DebugFields,
    Fields,
    LogEntry,
    TokenFields,
    TouchFields,
    entry_of,
)
from keystead.messaging.touches.outlets import After, Failed, Outlets
from keystead.messaging.touches.pending import Ended, Pending
from keystead.patterns import Writes

_SUCCESS: Final = "send_success"


class Handlers:
    """Takes news of the channels."""

    def __init__(
        self, valkey: Valkey, clock: Clock, outlets: Outlets, pending: Pending, *, trace_seconds: float
    ) -> None:
        self._valkey, self._clock, self._outlets, self._pending = valkey, clock, outlets, pending
        self._trace_seconds = trace_seconds

    async def succeeded(
        self, channel: Channel, attempt_uid: str, touch_uid: str, touch_point_uid: str, user_sub: str, data_raw: str
    ) -> Ended:
        """A message reached its destination: the first one ends its touch."""
        news, now = self._outlets[channel].arrived(data_raw), self._clock.now()
        rows: list[Fields] = [
            DebugFields(_row_uid("utbl", news.message_uid, _SUCCESS), touch_uid, user_sub,
                        {"type": _SUCCESS, "parent": attempt_uid, "destination": news.destination}, now),
            TouchFields(_row_uid("tch_r", news.message_uid), touch_uid, user_sub, channel, touch_point_uid,
                        news.destination, news.shown, news.at),
        ]
        if channel == "push":
            rows.append(TokenFields(news.destination, news.at))
        writes = Writes(self._valkey.lane_for(user_sub).layout)
        TO_LOG.queue.push_right(writes, *map(entry_of, rows))
        BY_USER.at(user_sub).remove(writes, news.message_uid)
        trace(writes, touch_uid, "destination reached", now, kept_seconds=self._trace_seconds,
              message=news.message_uid)
        return await self._pending.succeeded(touch_uid, writes, now, user_sub)

    async def failed(
        self, channel: Channel, attempt_uid: str, touch_uid: str, user_sub: str, data_raw: str
    ) -> Ended:
        """A message failed: it is tried again, or that destination is given up, and the last one ends its touch."""
        valkey = self._valkey.lane_for(user_sub)
        erased = await ERASED.at(user_sub).is_raised(valkey)
        news, now = await self._outlets[channel].failed(data_raw, give_up=erased), self._clock.now()
        if news.after is After.IGNORED:
            return Ended.OTHERS_REMAIN
        kind = news.after.value
        event: dict[str, Any] = {
            "type": kind, "parent": attempt_uid, "destination": news.destination, "info": news.info
        }
        uid = _row_uid("utbl", news.message_uid, news.step)
        row = entry_of(DebugFields(uid, touch_uid, user_sub, event, now))
        if news.after is After.RETRIED:
            async with valkey.pipeline(transaction=True) as pipeline:
                self._note(pipeline, row, touch_uid, news, now)
                await pipeline.execute()
            return Ended.OTHERS_REMAIN
        writes = Writes(valkey.layout)
        self._note(writes, row, touch_uid, news, now)
        BY_USER.at(user_sub).remove(writes, news.message_uid)
        return await self._pending.failed(touch_uid, news.message_uid, writes, now, user_sub)

    def _note(self, on: Executor, row: LogEntry, touch_uid: str, news: Failed, now: float) -> None:
        TO_LOG.queue.push_right(on, row)
        trace(on, touch_uid, news.after.value, now, kept_seconds=self._trace_seconds, message=news.message_uid)


def _row_uid(prefix: str, *parts: str) -> str:
    """The uid of a row that follows from a message, the same each time."""
    return f"{prefix}_{hashlib.sha256('/'.join(parts).encode()).hexdigest()[:22]}"
