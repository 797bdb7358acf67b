"""News of texts: what the provider's calls and polling told, held against what is known, until each text is settled."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import msgspec

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.errors import Corrupt, Unavailable
from keystead.jobs import BatchJob, BatchRun, Step
from keystead.messaging.sending import queue_job, trace
from keystead.messaging.sms.failures import queue_unreachable
from keystead.messaging.sms.gateway import WITHOUT_CODE
from keystead.messaging.sms.keys import EARLY, NEWS, PENDING, RECONCILIATION_LOCK, SENDING
from keystead.messaging.sms.models import (
    FailureInfo,
    Identifier,
    MessageResource,
    PendingRecord,
    SentSms,
    SmsEvent,
    SmsFailure,
    SmsSuccess,
    SuccessInfo,
)
from keystead.messaging.sms.sender import SenderSettings
from keystead.messaging.sms.stats import EVENTS, RECONCILIATION_RUN
from keystead.messaging.sms.statuses import Category, is_out_of_order
from keystead.patterns import PendingEntry, PendingOutcome, Tally, Writes
from keystead.patterns.delayed import MOVE_DUE
from keystead.telemetry import logger, span

# News of a message that nobody knows may be earlier than the note that it was sent: for so long it is kept.
EARLY_SECONDS: Final = 60.0
# While our own mark says that a text is on its way, for as long as the mark can stand.
LONGEST_EARLY_SECONDS: Final = 86_400.0
AGAIN_SECONDS: Final = 2.0
SLOWLY_AGAIN_SECONDS: Final = 15.0
MOST_MOVED: Final = 1000
LOOK_SECONDS: Final = 1.0
_TRIES: Final = 20

_log = logger("messaging.sms")


@dataclass(slots=True)
class Applied:
    """What one piece of news led to. ``left``: what is still to be written, in the step that finishes the news."""

    left: Writes
    counts: dict[str, int] = field(default_factory=dict)


class Receipts:
    """Applies news, one piece at a time; any number may work at once, also on news of the same text."""

    def __init__(self, valkey: Valkey, clock: Clock, settings: SenderSettings = SenderSettings()) -> None:  # noqa: B008
        self._valkey, self._clock, self._settings = valkey, clock, settings

    async def apply(self, event: SmsEvent) -> Applied:
        """Change, settle or leave what is known of the text. Counts are written with the change they tell of."""
        for _ in range(_TRIES):
            entry, on_its_way = await self._known(event)
            if entry is None:
                return self._unknown(event, on_its_way)
            with span("news of sms", parent=entry.record.trace or "", kind="consumer", uid=entry.record.uid,
                      status=event.status.value, via=event.received_via):
                applied = await self._apply(event, entry)
            if applied is not None:
                return applied
        # Others change it all the time: behind the other news, then.
        behind = Writes(self._valkey.layout)
        NEWS.push(behind, event)
        return Applied(behind)

    async def call_back_early(self, now: float) -> int:
        """Let news that came too early be looked at again; says how much of it."""
        moved: int = await MOVE_DUE(self._valkey, keys=[EARLY.at(), NEWS.queue], args=(now, MOST_MOVED, -1),
                                    decode=lambda reply: reply[1])
        return moved

    async def _known(self, event: SmsEvent) -> tuple[PendingEntry[PendingRecord] | None, bool]:
        """What is known of the message; and if nothing, whether its sending is under way."""
        entry = await PENDING.get(self._valkey, event.sid)
        if entry is not None or not event.uid:
            return entry, False
        # The mark is lowered in the step that notes the message: if it is down, the note is there by now.
        on_its_way = await SENDING.intent(event.uid).exists(self._valkey)
        return await PENDING.get(self._valkey, event.sid), on_its_way

    def _unknown(self, event: SmsEvent, on_its_way: bool) -> Applied:
        now, writes = self._clock.now(), Writes(self._valkey.layout)
        age = now - event.information_received_at
        longest = LONGEST_EARLY_SECONDS if on_its_way else 0.0 if event.uid else EARLY_SECONDS
        if event.received_via == "webhook" and age < longest:
            again = AGAIN_SECONDS if age < EARLY_SECONDS else SLOWLY_AGAIN_SECONDS
            EARLY.at().add(writes, event, now + again)
            return Applied(writes)
        tally, counts = self._attempted(event, now)
        tally.incr("unknown", event.status.value, at=now).store(writes)
        return Applied(writes, counts)

    async def _apply(self, event: SmsEvent, entry: PendingEntry[PendingRecord]) -> Applied | None:
        """None if someone else changed what is known meanwhile."""
        now, writes, record = self._clock.now(), Writes(self._valkey.layout), entry.record
        tally, counts = self._attempted(event, now)
        tally.incr("found", at=now)
        counts["found"] = 1
        stored, new = record.message_resource_status, event.status
        if is_out_of_order(
            event=new, event_updated=event.date_updated, event_at=event.information_received_at, stored=stored,
            stored_updated=record.message_resource_date_updated, stored_at=record.message_resource_last_updated_at,
        ):
            counts["out_of_order"] = 1
            tally.incr("out_of_order", f"{stored}:{new}", at=now).store(writes)
            return Applied(writes, counts)
        if new.category is Category.PENDING and new is stored:
            counts["duplicate"] = 1
            tally.incr("duplicate", new.value, at=now).store(writes)
            return Applied(writes, counts)
        trace(writes, record.uid, "news", now, kept_seconds=self._settings.trace_seconds, status=new.value,
              via=event.received_via, sid=event.sid, code=event.error_code or "")
        if new.category is Category.PENDING:
            counts["updated"] = 1
            tally.incr("updated", f"{stored}:{new}", at=now).store(writes)
            outcome = await self._update(event, record, writes, now)
        else:
            counts["removed"] = 1
            tally.incr("removed", f"{stored}:{new}", at=now).store(writes)
            self._call_back(event, record, writes, now)
            outcome = await PENDING.remove(self._valkey, event.sid, record.num_changes, writes=writes)
        return Applied(Writes(self._valkey.layout), counts) if outcome is PendingOutcome.DONE else None

    async def _update(self, event: SmsEvent, record: PendingRecord, writes: Writes, now: float) -> PendingOutcome:
        updated = event.date_updated if event.date_updated is not None else record.message_resource_date_updated
        return await PENDING.update(
            self._valkey, event.sid, record.num_changes, score=now + self._settings.wait_seconds, writes=writes,
            message_resource_last_updated_at=now, message_resource_status=event.status,
            message_resource_date_updated=updated,
            message_resource_error_code=event.error_code or record.message_resource_error_code,
        )

    def _call_back(self, event: SmsEvent, record: PendingRecord, writes: Writes, now: float) -> None:
        if event.status.category is Category.SUCCEEDED:
            queue_job(writes, record.success_job, _success(event, record, now), now)
            return
        info = FailureInfo("pending", Identifier.APPLICATION, event.error_code or WITHOUT_CODE, False,
                           event.error_message)
        queue_job(writes, record.failure_job, SmsFailure(_failed(event, record, now).nested(), info), now)
        if event.error_code in self._settings.unreachable_codes:
            queue_unreachable(writes, record.phone_number, info, now)

    @staticmethod
    def _attempted(event: SmsEvent, now: float) -> tuple[Tally, dict[str, int]]:
        via = "received_via_webhook" if event.received_via == "webhook" else "received_via_polling"
        category, status, tally = event.status.category.value, event.status.value, EVENTS.tally()
        for name in ("attempted", via, category):
            tally.incr(name, status, at=now)
        return tally, {"attempted": 1, category: 1}


class ReconciliationJob(BatchJob[SmsEvent]):
    """Works off news. News of different texts is applied at the same time."""

    source = NEWS
    lock = RECONCILIATION_LOCK
    runs = RECONCILIATION_RUN
    slice_items = 50

    def __init__(
        self, valkey: Valkey, clock: Clock, receipts: Receipts, *, stopping: Callable[[], bool] = lambda: False,
        hostname: str = "",
    ) -> None:
        super().__init__(valkey, clock, stopping=stopping, hostname=hostname)
        self._receipts = receipts

    async def run(self) -> BatchRun | None:
        await self._receipts.call_back_early(self.clock.now())
        return await super().run()

    async def work(self, stop: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._call_back_early(stop))
            await super().work(stop)

    async def _call_back_early(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                await self._receipts.call_back_early(self.clock.now())
            except Unavailable as error:
                _log.warning("early news of texts cannot be looked at", reason=str(error))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await stop.wait()

    async def process(self, value: SmsEvent, step: Step) -> None:
        await self.process_slice([value], step)

    async def process_slice(self, values: list[SmsEvent], step: Step) -> None:
        """In the order they came for each text."""
        by_text: dict[str, list[SmsEvent]] = {}
        for event in values:
            by_text.setdefault(event.sid, []).append(event)
        await asyncio.gather(*(self._apply_in_order(events, step) for events in by_text.values()))

    async def _apply_in_order(self, events: list[SmsEvent], step: Step) -> None:
        for event in events:
            try:
                applied = await self._receipts.apply(event)
            except Corrupt as error:
                # Asking the provider will not help either; someone has to look at the record, and replays the news.
                _log.error("news of a text whose record does not decode", sid=event.sid, reason=str(error))
                applied = Applied(Writes(self.valkey.layout))
                NEWS.bury(applied.left, event, error=str(error), now=self.clock.now())
            for name, amount in applied.counts.items():
                step.count(name, amount)
            step.settle(event, applied.left)


def _success(event: SmsEvent, record: PendingRecord, now: float) -> SmsSuccess:
    sent = SentSms(uid=record.uid, initially_queued_at=record.send_initially_queued_at,
                   phone_number=record.phone_number, body=record.body, user_sub=record.user_sub)
    resource = MessageResource(event.sid, event.status, event.error_code, event.date_updated)
    return SmsSuccess(sent, SuccessInfo(record.message_resource_created_at, now, resource))


def _failed(event: SmsEvent, record: PendingRecord, now: float) -> PendingRecord:
    """The record as it would be if it were kept."""
    return msgspec.structs.replace(
        record, message_resource_status=event.status, message_resource_error_code=event.error_code,
        message_resource_date_updated=event.date_updated or record.message_resource_date_updated,
        message_resource_last_updated_at=now, num_failures=record.num_failures + 1, num_changes=record.num_changes + 1,
    )
