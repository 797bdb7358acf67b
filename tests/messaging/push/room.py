"""The room of push messages put together as the app does it, with a provider in memory and a clock moved by hand."""

from collections import deque
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from keystead.engine import Valkey
from keystead.jobs import ROOMS_QUEUE, JobBook, JobRecord, JobRef, decode_data_raw
from keystead.jobs.keys import Queue
from keystead.keys import Layout
from keystead.messaging.push import Failures, OutgoingPush, Push, PushFailure, PushSuccess, Settled
from keystead.messaging.push.jobs import PushWorkers, register
from keystead.messaging.push.keys import COLD, HOT, SENDING
from keystead.messaging.push.models import FailureInfo, PushReceipt, PushTicket
from keystead.messaging.push.stats import RECEIPTS, TICKETS
from keystead.messaging.sending import Lane
from keystead.messaging.sending.keys import JOBS_OUTBOX
from keystead.patterns import DailyFamily
from keystead.settings import MessagingSettings, PushSettings
from keystead.testing.clock import MovableClock

NOON = datetime(2026, 3, 2, 12, tzinfo=ZoneInfo("America/Los_Angeles")).timestamp()
TOKEN = "ExponentPushToken[abc-1]"
OK, BAD = JobRef("test.ok", {"mine": 1}), JobRef("test.bad", {"mine": 2})


class Provider:
    """A gateway whose answers a test decides: ``answers`` and ``receipt_answers`` are given first, one per request;
    otherwise every message gets a ticket, and the receipt that ``fates`` says for its device."""

    def __init__(self) -> None:
        self.answers: deque[list[PushTicket] | FailureInfo] = deque()
        self.receipt_answers: deque[FailureInfo] = deque()
        self.fates: dict[str, str | None] = {}  # by device: ok, an error, or None for no receipt
        self.tickets: dict[str, str] = {}  # id of a ticket -> device
        self.sent: list[str] = []  # uids
        self.requests: list[int] = []
        self.checked: list[int] = []

    async def send(self, messages: Sequence[OutgoingPush]) -> list[PushTicket] | FailureInfo:
        self.requests.append(len(messages))
        self.sent += [message.uid for message in messages]
        if self.answers:
            return self.answers.popleft()
        made = []
        for message in messages:
            ticket = PushTicket("ok", f"t{len(self.tickets)}")
            self.tickets[ticket.id or ""] = message.push_token
            made.append(ticket)
        return made

    async def receipts(self, ids: Sequence[str]) -> Mapping[str, PushReceipt] | FailureInfo:
        self.checked.append(len(ids))
        if self.receipt_answers:
            return self.receipt_answers.popleft()
        found = {}
        for each in ids:
            fate = self.fates.get(self.tickets[each], "ok")
            if fate == "ok":
                found[each] = PushReceipt("ok")
            elif fate is not None:
                found[each] = PushReceipt("error", "no", {"error": fate})
        return found


class Tokens:
    """Stands for the table of devices."""

    def __init__(self) -> None:
        self.forgotten: list[tuple[str, str]] = []
        self.confirmed: list[tuple[str, float]] = []

    async def forget(self, token: str, because: str) -> bool:
        self.forgotten.append((token, because))
        return True

    async def confirm(self, token: str, at: float) -> bool:
        self.confirmed.append((token, at))
        return True


class Room:
    def __init__(self, valkey: Valkey, **messaging: Any) -> None:
        self.valkey, self.clock = valkey, MovableClock(now=NOON)
        self.provider, self.tokens = Provider(), Tokens()
        self.messaging = MessagingSettings(**messaging)
        self.push = Push(valkey, self.clock)
        self.workers = self.with_client(valkey)
        self.book = JobBook()
        register(self.book, self.workers)
        self.failures: Failures = self.workers.failures()
        self.succeeded: list[PushSuccess] = []
        self.failed: list[tuple[PushFailure, Settled]] = []
        self.book.register(OK.name, self._ok)
        self.book.register(BAD.name, self._bad)

    def with_client(self, valkey: Any, gateway: Any = None) -> PushWorkers:
        tokens: Any = self.tokens
        return PushWorkers(valkey, self.clock, gateway or self.provider, tokens, PushSettings(rate_per_second=0),
                           self.messaging)

    async def _ok(self, mine: int, data_raw: str) -> None:
        assert mine == 1
        self.succeeded.append(decode_data_raw(data_raw, PushSuccess))

    async def _bad(self, mine: int, data_raw: str) -> None:
        assert mine == 2
        failure = decode_data_raw(data_raw, PushFailure)
        self.failed.append((failure, await self.failures.settle(failure)))

    # -- steps ------------------------------------------------------------------------------------------------------

    async def queue(self, token: str = TOKEN, **more: Any) -> str:
        return await self.push.queue(token, title="Hello", body="World", **{"success": OK, "failure": BAD, **more})

    async def send(self) -> dict[str, int]:
        """A single run of the sender; its counters."""
        run = await self.workers.courier().run()
        assert run is not None
        return {name: amount for name, amount in run.counts.items() if amount}

    async def move(self) -> int:
        run = await self.workers.cold_to_hot().run()
        assert run is not None
        return run.counts["num_moved"]

    async def check(self) -> dict[str, int]:
        run = await self.workers.check().run()
        assert run is not None
        return {name: amount for name, amount in run.counts.items() if amount}

    async def jobs(self) -> list[JobRecord]:
        """What is queued, taken away; on a cluster after the relay brought it there."""
        if self.valkey.layout is Layout.TAGGED:
            await JOBS_OUTBOX.drain(self.valkey, now=self.clock.now())
        found = []
        for queue in ("", ROOMS_QUEUE):
            worker = Queue(queue).work.worker("test")
            while taken := (await worker.take(self.valkey, 100, now=self.clock.now())).items:
                found += [item.value for item in taken]
                await worker.finish(self.valkey, taken)
            await worker.leave(self.valkey)
        return found

    async def run_jobs(self, times: int = 1) -> int:
        """Run what is queued, each job so many times; says how many there were."""
        ran = 0
        while found := await self.jobs():
            ran += len(found)
            for job in found:
                for _ in range(times):
                    await self.book.jobs[job.name](**job.kwargs)
        return ran

    # -- looking ----------------------------------------------------------------------------------------------------

    async def counted(self, family: DailyFamily, at: float | None = None) -> dict[str, int]:
        day = await family.read(self.valkey, family.day_of(NOON if at is None else at))
        assert not day.inconsistencies()
        return {event: amount for event, amount in day.counts.items() if amount}

    async def places(self) -> dict[str, list[str]]:
        """The uids that lie in each place."""
        waiting = [item.uid for lane in Lane for item in await SENDING.waiting(lane).range(self.valkey)]
        retrying = [item.uid for lane in Lane for item, _ in await SENDING.retrying(lane).range(self.valkey)]
        found = {
            "to_send": waiting, "retry": retrying,
            "purgatory": [item.uid for item in await SENDING.work.worker().purgatory.range(self.valkey)],
            "cold": [item.uid for item, _ in await COLD.at().range(self.valkey)],
            "hot": [item.uid for item in await HOT.queue.range(self.valkey)],
            "hot purgatory": [item.uid for item in await HOT.worker().purgatory.range(self.valkey)],
        }
        return {place: uids for place, uids in found.items() if uids}

    async def check_all(self) -> None:
        """What must hold after every step, whatever was done."""
        places = await self.places()
        everywhere = [uid for uids in places.values() for uid in uids]
        assert len(everywhere) == len(set(everywhere)), "a message is in two places"
        tickets = await self.counted(TICKETS)
        failed = sum(amount for event, amount in tickets.items() if event.startswith("failed_due_to"))
        waits = len([uid for place in ("to_send", "retry", "purgatory") for uid in places.get(place, [])])
        assert tickets.get("queued", 0) + tickets.get("retried", 0) == tickets.get("succeeded", 0) + failed + waits
        receipts = await self.counted(RECEIPTS)
        asked = sum(amount for event, amount in receipts.items()
                    if event == "succeeded" or event.startswith("failed_due_to"))
        waits = len([uid for place in ("cold", "hot", "hot purgatory") for uid in places.get(place, [])])
        assert tickets.get("succeeded", 0) + receipts.get("retried", 0) == asked + waits
