"""The room's front for other rooms: email is checked and queued here."""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.errors import Invalid, LimitReached
from keystead.ids import new_uid
from keystead.jobs import ROOMS_QUEUE, JobRef
from keystead.jobs.callbacks import check_callback
from keystead.members import normal_email
from keystead.messaging.email.keys import SENDING
from keystead.messaging.email.models import OutgoingEmail
from keystead.messaging.email.stats import SENDS
from keystead.messaging.email.templates import SLUG
from keystead.messaging.sending import Lane, lane_of, trace
from keystead.patterns import Once, Writes
from keystead.tracing import carried

SUCCEEDED_JOB: Final = "email.succeeded"
FAILED_JOB: Final = "email.failed"
MOST_SUBJECT: Final = 998
MOST_BYTES: Final = 64 * 1024
FULL_RETRY_SECONDS: Final = 15.0
_UID: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")
_LINE_BREAK: Final = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")


class Email:
    """Queues email."""

    def __init__(self, valkey: Valkey, clock: Clock, *, trace_seconds: float = 172_800.0) -> None:
        self._valkey, self._clock, self._trace_seconds = valkey, clock, trace_seconds

    def outgoing(
        self, to: str, subject: str, template: str, parameters: Mapping[str, Any] | None = None, *,
        success: JobRef | None = None, failure: JobRef | None = None, uid: str | None = None, user_sub: str = "",
        lane: str = Lane.NORMAL, now: float | None = None, is_normal: bool = False,
    ) -> OutgoingEmail:
        """An email that can be queued; ``Invalid`` says what is wrong with it. Nothing is sent yet.

        ``is_normal``: the address is one that was checked when it was stored, and the callbacks are our own.
        """
        at = self._clock.now() if now is None else now
        success = success or JobRef(SUCCEEDED_JOB, queue=ROOMS_QUEUE)
        failure = failure or JobRef(FAILED_JOB, queue=ROOMS_QUEUE)
        if not is_normal:
            for callback in (success, failure):
                check_callback(callback)
        item = OutgoingEmail(
            uid=uid or new_uid("em"), email=to if is_normal else normal_email(to), subject=_subject(subject),
            template=template, template_parameters=dict(parameters or {}), initially_queued_at=at, last_queued_at=at,
            failure_job=failure, success_job=success, user_sub=user_sub, lane=lane_of(lane).value,
            trace=carried(),
        )
        if _UID.fullmatch(item.uid) is None:
            raise Invalid("the uid of an email has up to 100 letters, digits, _ or -")
        if SLUG.fullmatch(template) is None:
            raise Invalid("a template is named by letters, digits, _ and -")
        try:
            size = len(msgspec.json.encode(item))
        except (TypeError, ValueError, OverflowError) as error:
            raise Invalid(f"what an email says must be writable as JSON: {error}") from None
        if size > MOST_BYTES:
            raise Invalid(f"an email may have {MOST_BYTES:,} bytes of parameters and callbacks, this has {size:,}")
        return item

    async def queue(
        self, to: str, subject: str, template: str, parameters: Mapping[str, Any] | None = None, *,
        success: JobRef | None = None, failure: JobRef | None = None, uid: str | None = None, user_sub: str = "",
        lane: str = Lane.NORMAL, limit: int | None = None,
    ) -> str:
        """Queue an email and return its uid. A uid that was seen within a day is not queued again.

        The callbacks are jobs that are told, as ``data_raw``, how it ended; without them the room's own do what is
        needed. ``LimitReached`` when ``limit`` email wait in the lane already.
        """
        item = self.outgoing(
            to, subject, template, parameters, success=success, failure=failure, uid=uid, user_sub=user_sub, lane=lane
        )
        valkey = self._valkey.lane_for(user_sub)
        writes, now = Writes(valkey.layout), item.initially_queued_at
        SENDS.tally(now).incr("queued", at=now).store(writes)
        queued = await SENDING.queue(
            valkey, item, writes=writes, now=now, limit=limit, trace_seconds=self._trace_seconds
        )
        if queued is Once.FULL:
            raise LimitReached("too many email wait to be sent already", retry_after_seconds=FULL_RETRY_SECONDS)
        return item.uid

    def email_writes(self, writes: Writes, item: OutgoingEmail) -> None:
        """Queue an email, with its count, as part of someone else's step. Whoever guards that step sees to repeats."""
        now = item.initially_queued_at
        SENDS.tally(now).incr("queued", at=now).store(writes)
        SENDING.push(writes, item)
        trace(writes, item.uid, "queued", now, kept_seconds=self._trace_seconds, channel="email",
              lane=item.lane)


def _subject(text: str) -> str:
    """A subject that is one line: whatever could begin another header is refused."""
    if not text.strip() or len(text) > MOST_SUBJECT or _LINE_BREAK.search(text):
        raise Invalid(f"the subject of an email is one line of 1 to {MOST_SUBJECT} characters")
    return text.strip()
