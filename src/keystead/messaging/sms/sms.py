"""Texts: how one is queued, and where each is."""

import re
from dataclasses import dataclass
from typing import Final

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.errors import Invalid, LimitReached
from keystead.ids import new_uid
from keystead.jobs import ROOMS_QUEUE, JobRef, check_callback
from keystead.members import normal_phone
from keystead.messaging.sending import Lane, TraceEntry, trace, traced
from keystead.messaging.sms.gateway import is_sid
from keystead.messaging.sms.keys import NEWS, PENDING, SENDING
from keystead.messaging.sms.models import OutgoingSms, PendingSms, SmsEvent
from keystead.messaging.sms.sender import RESERVED_NUMBERS
from keystead.messaging.sms.stats import SENDS, WEBHOOKS
from keystead.messaging.sms.statuses import told_status
from keystead.patterns import Once, Writes
from keystead.telemetry import logger
from keystead.tracing import carried

MOST_CHARACTERS: Final = 1600  # more the provider refuses
FULL_RETRY_SECONDS: Final = 5.0
SUCCEEDED_JOB: Final = "sms.succeeded"
FAILED_JOB: Final = "sms.failed"
SUCCEEDED: Final = JobRef(SUCCEEDED_JOB, {}, ROOMS_QUEUE)
FAILED: Final = JobRef(FAILED_JOB, {}, ROOMS_QUEUE)

_UID: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")
_CODE: Final = re.compile(r"[A-Za-z0-9_-]{1,20}")
_log = logger("messaging.sms")


@dataclass(frozen=True, slots=True)
class SmsState:
    """Where a text is: the provider is being asked, or has taken it (``pending``); and its life so far."""

    uid: str
    in_flight: bool
    pending: PendingSms | None
    steps: list[TraceEntry]


class Sms:
    """Queues texts and takes the provider's calls. Any number may be used at once; each step is atomic.

    On a cluster a text waits in the lane of its person. Calls are taken for the lane that ``valkey`` is for.
    """

    def __init__(self, valkey: Valkey, clock: Clock, *, trace_seconds: float = 172_800.0) -> None:
        self._valkey, self._clock, self._trace_seconds = valkey, clock, trace_seconds

    # -- queueing ---------------------------------------------------------------------------------------------------

    def outgoing(
        self, phone_number: str, body: str, *, success: JobRef | None = None, failure: JobRef | None = None,
        uid: str = "", lane: str = "normal", user_sub: str = "",
    ) -> OutgoingSms:
        """A text that can be queued. ``Invalid`` says what is wrong with the number, the words or the jobs."""
        number = phone_number if phone_number in RESERVED_NUMBERS else normal_phone(phone_number)
        if not body.strip():
            raise Invalid("a text needs words")
        if len(body) > MOST_CHARACTERS:
            raise Invalid(f"a text has at most {MOST_CHARACTERS} characters, this has {len(body)}: shorten it")
        if uid and not _UID.fullmatch(uid):
            raise Invalid("the uid of a text is made of 1 to 100 letters, digits, _ and -")
        if lane not in tuple(Lane):
            raise Invalid(f"a text goes by the lane {', '.join(Lane)}, not by {lane[:40]!r}")
        for callback in (success, failure):
            if callback is not None:
                check_callback(callback)
        now = self._clock.now()
        return OutgoingSms(
            uid=uid or new_uid("sms"), initially_queued_at=now, last_queued_at=now, phone_number=number, body=body,
            success_job=success or SUCCEEDED, failure_job=failure or FAILED, user_sub=user_sub, lane=str(lane),
            trace=carried(),
        )

    async def queue(
        self, phone_number: str, body: str, *, success: JobRef | None = None, failure: JobRef | None = None,
        uid: str = "", lane: str = "normal", user_sub: str = "", limit: int | None = None,
    ) -> str:
        """Let a text be sent, and return its uid. With a uid that was queued within a day, nothing is sent again.

        Exactly one of both jobs is run when it is settled; ``failure`` may be run before, while it can be tried again,
        and then has to call ``Failures.settle``. Without them the text is retried and otherwise only counted.
        ``LimitReached`` while ``limit`` texts wait in the lane.
        """
        sms = self.outgoing(
            phone_number, body, success=success, failure=failure, uid=uid, lane=lane, user_sub=user_sub
        )
        valkey = self._valkey.lane_for(user_sub)
        writes = Writes(valkey.layout)
        self._count_queued(writes, sms)
        outcome = await SENDING.queue(valkey, sms, writes=writes, now=sms.initially_queued_at, limit=limit,
                                      trace_seconds=self._trace_seconds)
        if outcome is Once.FULL:
            raise LimitReached(f"{limit} texts wait already; try again later", retry_after_seconds=FULL_RETRY_SECONDS)
        return sms.uid

    def sms_writes(self, writes: Writes, sms: OutgoingSms) -> None:
        """Queue a text among the writes of someone else, who makes sure that it happens once."""
        SENDING.push(writes, sms)
        self._count_queued(writes, sms)
        trace(writes, sms.uid, "queued", sms.initially_queued_at, kept_seconds=self._trace_seconds, channel="sms",
              lane=sms.lane)

    @staticmethod
    def _count_queued(writes: Writes, sms: OutgoingSms) -> None:
        SENDS.tally().incr("queued", at=sms.initially_queued_at).store(writes)

    # -- the provider's calls ---------------------------------------------------------------------------------------

    async def refuse_call(self, counted_as: str) -> None:
        """Count a call that was not believed."""
        now = self._clock.now()
        await WEBHOOKS.tally().incr("received", at=now).incr(counted_as, at=now).store(self._valkey)

    async def take_call(self, sid: str, status: str, error_code: str = "", uid: str = "") -> bool:
        """Keep the news of a believed call, and count it, in one step; says whether it could be understood."""
        now, tally = self._clock.now(), WEBHOOKS.tally()
        tally.incr("received", at=now).incr("verified", at=now)
        event = _event(sid, status, error_code, uid, now)
        if event is None:
            _log.error("a call of the provider cannot be understood", sid=sid[:64], status=status[:40])
            await tally.incr("unprocessable", at=now).store(self._valkey)
            return False
        tally.incr("accepted", at=now)
        async with self._valkey.pipeline(transaction=True) as together:
            NEWS.push(together, event)
            tally.store(together)
            await together.execute()
        return True

    async def knows(self, sid: str) -> bool:
        """Whether a message of this sid is awaited here."""
        return is_sid(sid) and await PENDING.get(self._valkey, sid) is not None

    # -- looking ----------------------------------------------------------------------------------------------------

    async def state(self, uid: str) -> SmsState:
        """Where a text is, as far as its trace is kept."""
        valkey, steps = self._valkey, list[TraceEntry]()
        for lane in self._valkey.lanes:
            if steps := await traced(lane, uid):
                valkey = lane
                break
        in_flight = await SENDING.intent(uid).exists(valkey)
        sid = next((str(step.facts["sid"]) for step in reversed(steps) if "sid" in step.facts), "")
        entry = await PENDING.get(valkey, sid) if is_sid(sid) else None
        mine = entry is not None and entry.record.uid == uid
        return SmsState(uid, in_flight, entry.record.nested() if entry is not None and mine else None, steps)

    async def waiting(self) -> int:
        """How many texts wait to be sent, over all lanes: for whoever must not send more than can be carried."""
        return sum([await SENDING.waiting(lane).length(valkey) for valkey in self._valkey.lanes for lane in Lane])


def _event(sid: str, status: str, error_code: str, uid: str, now: float) -> SmsEvent | None:
    known = told_status(status)
    if not is_sid(sid) or known is None or (error_code and not _CODE.fullmatch(error_code)):
        return None
    return SmsEvent(sid=sid, status=known, error_code=error_code or None, information_received_at=now,
                    received_via="webhook", uid=uid)
