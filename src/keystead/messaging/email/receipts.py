"""Works off what the provider tells of email: each is found among those that wait, or counted as unknown.

News that come before we noted that an email was sent are not lost: they are looked for again for five seconds. Those
that carry our uid, while the email may be on its way, are laid aside after one second, until it is known.
"""

import asyncio
import hashlib
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import msgspec

from keystead.engine import Valkey
from keystead.errors import Corrupt
from keystead.jobs import ROOMS_QUEUE, BatchJob, JobRef, Step, closed
from keystead.keys import RecordKey
from keystead.keys.sealed import lacks_key
from keystead.messaging.email.keys import (
    EARLY,
    NEWS,
    RECEIPT_PENDING,
    RECONCILED,
    RECONCILIATION_LOCK,
    SENDING,
    UNANSWERED,
)
from keystead.messaging.email.models import (
    Bounce,
    Complaint,
    Delivery,
    DeliveryInfo,
    EarlyEvent,
    EmailEvent,
    EmailFailure,
    EmailSuccess,
    FailureInfo,
    Notification,
    PendingEmail,
    parked_as,
)
from keystead.messaging.email.stats import EVENTS, RECONCILIATION_RUN
from keystead.messaging.sending import queue_job, trace
from keystead.patterns import PendingEntry, PendingOutcome, SmartLock, WorkList, Writes
from keystead.telemetry import logger, span

ABANDONED_JOB: Final = "abandoned_email_callback"
UNREACHABLE_JOB: Final = "email.unreachable"
GRACE_SECONDS: Final = 5.0
UNDER_WAY_SECONDS: Final = 1.0  # where our uid says that the email is under way, news can be laid aside sooner
LOOK_SECONDS: Final = 0.1
LOOKS: Final = 50
EARLY_SECONDS: Final = 2.0
KEY_SECONDS: Final = 60.0  # after so long it is looked whether there is a key for what was sealed
_RUN_NAMES: Final = {"succeeded": ("succeeded_and_found", "succeeded_but_abandoned"),
                     "bounced": ("bounced_and_found", "bounced_but_abandoned"),
                     "complaint": ("complaint_and_found", "complaint_and_abandoned")}

_log = logger("messaging.email")


@dataclass(frozen=True, slots=True)
class Looked:
    """What there is of an email at one moment. ``is_under_way``: its provider may have been asked, without a result."""

    pending: PendingEntry[PendingEmail] | None
    is_under_way: bool
    ended_by: str | None


class ReconciliationJob(BatchJob[EmailEvent]):
    """Each email gets one callback: whoever removes it from those that wait queues it in the same step."""

    source: ClassVar[WorkList[Any]] = NEWS
    lock: ClassVar[SmartLock] = RECONCILIATION_LOCK
    runs: ClassVar[RecordKey[Any]] = RECONCILIATION_RUN
    slice_items = 50

    async def process_slice(self, values: list[EmailEvent], step: Step) -> None:
        """Together, so that those which must be looked for again do not hold up the others."""
        # Two news of one email come one after the other: the first decides.
        by_message: dict[str, list[EmailEvent]] = {}
        for value in values:
            by_message.setdefault(value.message_id, []).append(value)
        async with asyncio.TaskGroup() as group:
            for events in by_message.values():
                group.create_task(self._process_all(events, step))

    async def _process_all(self, events: list[EmailEvent], step: Step) -> None:
        for event in events:
            await self.process(event, step)

    async def process(self, value: EmailEvent, step: Step) -> None:
        try:
            await self._process(value, step)
        except Corrupt as error:
            # Someone has to look at the record of the email, and replays the news.
            _log.error("news of an email whose record does not decode", reason=str(error))
            writes = Writes(self.valkey.layout)
            NEWS.bury(writes, value, error=str(error), now=self.clock.now())
            step.settle(value, writes)

    async def _process(self, value: EmailEvent, step: Step) -> None:
        while True:
            looked = await self._look_long_enough(value)
            if looked.ended_by == identity(value):
                return  # done before a crash, and only not finished
            if looked.pending is None:
                self._settle_missing(value, looked, step)
                return
            email = looked.pending.record
            with span("news of email", parent=email.trace or "", kind="consumer", uid=email.uid,
                      told=type(value.notification).__name__):
                writes = self._found(value, email)
                outcome = await RECEIPT_PENDING.remove(self.valkey, value.message_id, None, writes=writes)
            if outcome is PendingOutcome.DONE:
                self._count(step, value.notification, found=True)
                return

    # -- looking ----------------------------------------------------------------------------------------------------

    async def _look_long_enough(self, event: EmailEvent) -> Looked:
        looked = await self._look(event)
        for _ in range(LOOKS):  # counted as well, should the clock stand still
            waits = looked.is_under_way or not event.uid
            if looked.pending is not None or looked.ended_by is not None or not waits:
                break
            grace = UNDER_WAY_SECONDS if looked.is_under_way else GRACE_SECONDS
            if self.clock.now() - event.received_at >= grace:
                break
            await asyncio.sleep(LOOK_SECONDS)
            looked = await self._look(event)
        return looked

    async def _look(self, event: EmailEvent) -> Looked:
        """All of it at one moment: an email is always either under way or written down, once its provider was asked."""
        async with self.valkey.pipeline(transaction=True) as block:
            pending = RECEIPT_PENDING.get(block, event.message_id)
            ended_by = RECONCILED.at(event.message_id).get(block)
            signs: list[Awaitable[bool]] = []
            if event.uid:
                signs = [SENDING.intent(event.uid).exists(block), UNANSWERED.at(event.uid).is_raised(block)]
            await block.execute()
        return Looked(await pending, any([await sign for sign in signs]), await ended_by)

    # -- what follows -----------------------------------------------------------------------------------------------

    def _found(self, event: EmailEvent, email: PendingEmail) -> Writes:
        now, news = self.clock.now(), event.notification
        writes = Writes(self.valkey.layout)
        kind, breakdown = counted_as(news, "found")
        EVENTS.tally(now).incr("attempted", "found", at=email.send_initially_queued_at).incr(
            kind, breakdown, at=email.send_initially_queued_at).store(writes)
        RECONCILED.at(event.message_id).set(writes, identity(event))
        if isinstance(news, Delivery):
            queue_job(writes, email.success_job, EmailSuccess(email, DeliveryInfo(event.received_at)), now)
        else:
            queue_job(writes, email.failure_job, EmailFailure(email, failure_of(news)), now)
            # Whatever the failure job does, the address is noted.
            queue_job(writes, _with_event(UNREACHABLE_JOB, msgspec.structs.replace(event, uid=email.uid)), None, now)
        trace(writes, email.uid, "receipt", now, told=type(news).__name__)
        return writes

    def _settle_missing(self, event: EmailEvent, looked: Looked, step: Step) -> None:
        now, news = self.clock.now(), event.notification
        writes = Writes(self.valkey.layout)
        if looked.is_under_way:
            EARLY.write(writes, parked_as(event.uid, type(news).__name__), EarlyEvent(event, now), now + EARLY_SECONDS)
            trace(writes, event.uid, "receipt laid aside", now, told=type(news).__name__)
        else:
            kind, breakdown = counted_as(news, "abandoned")
            EVENTS.tally(now).incr("attempted", "abandoned", at=now).incr(kind, breakdown, at=now).store(writes)
            if not isinstance(news, Delivery):
                queue_job(writes, _with_event(ABANDONED_JOB, event), None, now)
            self._count(step, news, found=False)
        step.settle(event, writes)

    @staticmethod
    def _count(step: Step, news: Notification, *, found: bool) -> None:
        step.count("attempted")
        step.count(_RUN_NAMES[counted_as(news, "")[0]][0 if found else 1])


def _with_event(job: str, event: EmailEvent) -> JobRef:
    return JobRef(job, {"event_obj": closed(msgspec.to_builtins(event))}, ROOMS_QUEUE)


def identity(event: EmailEvent) -> str:
    """What tells this news from other news of the same email."""
    return event.event_id or hashlib.sha256(msgspec.json.encode(event)).hexdigest()[:32]


def counted_as(news: Notification, found: str) -> tuple[str, str]:
    """The event and the breakdown that news are counted under."""
    if isinstance(news, Bounce):
        return "bounced", f"{found}:{news.reason.primary[:60]}:{news.reason.secondary[:60]}"
    if isinstance(news, Complaint):
        return "complaint", f"{found}:{(news.feedback_type or 'None')[:60]}"
    return "succeeded", found


def failure_of(news: Bounce | Complaint) -> FailureInfo:
    """What a failure job is told of bad news."""
    if isinstance(news, Bounce):
        return FailureInfo("receipt", "Bounce", False, f"{news.reason.primary}/{news.reason.secondary}")
    return FailureInfo("receipt", "Complaint", False, news.feedback_type)


async def return_early(valkey: Valkey, now: float, *, most: int = 200) -> int:
    """Let news that were laid aside be worked off again, where it is known by now whether their email was sent."""
    entries = await EARLY.due(valkey, most, until=now)
    returned = 0
    for entry in entries:
        event = entry.record.event
        async with valkey.pipeline(transaction=True) as block:
            signs = [SENDING.intent(event.uid).exists(block), UNANSWERED.at(event.uid).is_raised(block)]
            await block.execute()
        if any([await sign for sign in signs]):
            await EARLY.update(valkey, entry.member, None, score=now + EARLY_SECONDS)
            continue
        writes = Writes(valkey.layout)
        NEWS.queue.push_right(writes, event)
        if await EARLY.remove(valkey, entry.member, None, writes=writes) is PendingOutcome.DONE:
            returned += 1
    for broken in entries.broken:
        if lacks_key(broken.error):
            await EARLY.index.add(valkey, broken.member, now + KEY_SECONDS)
        else:
            await EARLY.remove(valkey, broken.member, None)
    return returned
