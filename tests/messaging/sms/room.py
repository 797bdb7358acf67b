"""The room of texts put together as the app does it, with a provider in memory and a clock that is moved by hand."""

from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from keystead.engine import Valkey
from keystead.jobs import ROOMS_QUEUE, JobBook, JobRecord, JobRef, decode_data_raw
from keystead.jobs.keys import Queue
from keystead.keys import Layout
from keystead.messaging.sending import Retries
from keystead.messaging.sending.keys import JOBS_OUTBOX
from keystead.messaging.sms import Failures, Settled, Sms
from keystead.messaging.sms.gateway import Found, Read
from keystead.messaging.sms.jobs import SmsWorkers, register
from keystead.messaging.sms.keys import PENDING
from keystead.messaging.sms.models import (
    FailureInfo,
    Identifier,
    MessageResource,
    PendingRecord,
    SmsFailure,
    SmsSuccess,
)
from keystead.messaging.sms.stats import EVENTS, POLLING, SENDS, WEBHOOKS
from keystead.messaging.sms.statuses import Status
from keystead.messaging.sms.suppressed import Suppressed
from keystead.patterns import DailyFamily
from keystead.settings import MessagingSettings, SmsSettings
from keystead.testing.clock import MovableClock

NOON = datetime(2026, 3, 2, 12, tzinfo=ZoneInfo("America/Los_Angeles")).timestamp()
NUMBER = "+14155550100"
OK, BAD = JobRef("test.ok", {"mine": 1}), JobRef("test.bad", {"mine": 2})
CUT = "cut"  # the message is made, and the answer is lost
NETWORK = FailureInfo("send", Identifier.NETWORK, None, True)


@dataclass
class Held:
    """A message that the provider has."""

    sid: str
    to: str
    body: str
    callback_url: str
    created_at: float
    status: Status = Status.ACCEPTED
    updated_at: float = 0.0
    error_code: str | None = None

    @property
    def resource(self) -> MessageResource:
        return MessageResource(self.sid, self.status, self.error_code, float(int(self.updated_at)))


class Provider:
    """A gateway whose answers a test decides: ``answers`` are given first, one for each text."""

    def __init__(self, clock: MovableClock) -> None:
        self.clock = clock
        self.messages: dict[str, Held] = {}
        self.answers: deque[FailureInfo | Status | str] = deque()
        self.reads: deque[Read] = deque()
        self.is_away = False
        self.asked: list[str] = []
        self.before_answer: Callable[[Held], Awaitable[None]] | None = None

    async def create(self, to: str, body: str, callback_url: str) -> MessageResource | FailureInfo:
        self.asked.append(f"create {to} {body}")
        answer = self.answers.popleft() if self.answers else Status.ACCEPTED
        if isinstance(answer, FailureInfo):
            return answer
        now = self.clock.now()
        status = Status.ACCEPTED if answer == CUT else Status(answer)
        held = Held(f"SM{len(self.messages)}", to, body, callback_url, now, status, now)
        self.messages[held.sid] = held
        if self.before_answer is not None:
            await self.before_answer(held)
        return NETWORK if answer == CUT else held.resource

    async def read(self, sid: str) -> Read:
        self.asked.append(f"read {sid}")
        if self.reads:
            return self.reads.popleft()
        held = self.messages.get(sid)
        return Read(200, held.resource) if held else Read(404)

    async def search(self, to: str) -> list[Found] | None:
        self.asked.append(f"search {to}")
        found = [Found(held.resource, held.body, float(int(held.created_at))) for held in self.messages.values()
                 if held.to == to]
        return None if self.is_away else found[::-1]


class Numbers:
    """Stands for the table of suppressed numbers."""

    def __init__(self) -> None:
        self.listed: dict[str, tuple[str, Any]] = {}

    async def phones(self, numbers: Iterable[str]) -> set[str]:
        return set(numbers) & set(self.listed)

    async def suppress_phone(self, number: str, reason: str, details: Any = None) -> bool:
        self.listed.setdefault(number, (str(reason), details))
        return True


class Room:
    def __init__(self, valkey: Valkey, *, public_url: str = "https://app.example.com", **messaging: Any) -> None:
        self.valkey, self.clock = valkey, MovableClock(now=NOON)
        self.provider, self.numbers = Provider(self.clock), Numbers()
        self.messaging = MessagingSettings(**messaging)
        self.sms = Sms(valkey, self.clock)
        self.workers = self.with_gateway(self.provider, public_url)
        self.book = JobBook()
        register(self.book, self.workers)
        self.failures = Failures(valkey, self.clock, Retries.of(self.messaging))
        self.succeeded: list[SmsSuccess] = []
        self.failed: list[tuple[SmsFailure, Settled]] = []
        self.book.register(OK.name, self._ok)
        self.book.register(BAD.name, self._bad)

    def with_gateway(self, gateway: Any, public_url: str = "https://app.example.com") -> SmsWorkers:
        numbers: Any = self.numbers
        return SmsWorkers(
            self.valkey, self.clock, gateway, numbers, Suppressed(numbers, self.clock),
            SmsSettings(rate_per_second=0), self.messaging, lambda: public_url,
        )

    async def _ok(self, mine: int, data_raw: str) -> None:
        assert mine == 1
        self.succeeded.append(decode_data_raw(data_raw, SmsSuccess))

    async def _bad(self, mine: int, data_raw: str) -> None:
        assert mine == 2
        failure = decode_data_raw(data_raw, SmsFailure)
        self.failed.append((failure, await self.failures.settle(failure)))

    # -- steps ------------------------------------------------------------------------------------------------------

    async def queue(self, body: str = "Hello", number: str = NUMBER, **more: Any) -> str:
        return await self.sms.queue(number, body, success=OK, failure=BAD, **more)

    async def send(self) -> dict[str, int]:
        """A single run of the sender; its counters."""
        run = await self.workers.courier(self.provider).run()
        assert run is not None
        return dict(run.counts)

    async def tell(self, sid: str, status: str, code: str = "", uid: str = "") -> None:
        assert await self.sms.take_call(sid, status, code, uid)

    async def reconcile(self) -> dict[str, int]:
        run = await self.workers.reconciliation().run()
        assert run is not None
        counts = dict(run.counts)
        assert counts["pending"] + counts["succeeded"] + counts["failed"] == counts["attempted"]
        assert counts["found"] == sum(counts[name] for name in ("updated", "duplicate", "out_of_order", "removed"))
        return counts

    async def find_stale(self) -> int:
        run = await self.workers.stale().run()
        assert run is not None
        return run.counts["callbacks_queued"]

    async def recover(self) -> dict[str, int]:
        run = await self.workers.recovery(self.provider).run()
        assert run is not None
        return {name: amount for name, amount in run.counts.items() if amount}

    async def jobs(self) -> list[JobRecord]:
        """What is queued, taken away; on a cluster after the relay brought it there."""
        if self.valkey.layout is not Layout.PLAIN:
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

    async def pending(self) -> dict[str, PendingRecord]:
        """Every text that is awaited; fails if index and records are out of step."""
        index = {member for member, _ in await PENDING.index.range(self.valkey)}
        records = set()
        for node in await self.valkey.nodes():
            for key in await node.call(("KEYS", "*")):
                name = key.decode().rpartition("}")[2]
                if name.startswith("sms:pending:"):
                    records.add(name.removeprefix("sms:pending:"))
        assert index == records
        found = {}
        for sid in index:
            entry = await PENDING.get(self.valkey, sid)
            assert entry is not None
            found[sid] = entry.record
        return found

    async def due(self) -> dict[str, float]:
        return dict(await PENDING.index.range(self.valkey))

    async def counted(self, family: DailyFamily, at: float | None = None) -> dict[str, Any]:
        """What was counted on a day: amounts, or breakdowns where there are some. Identities are checked."""
        day = await family.read(self.valkey, family.day_of(self.clock.now() if at is None else at))
        assert not day.inconsistencies()
        for identity in family.identities:
            assert identity.check(day.counts) is None, identity
        return {event: day.breakdowns.get(event, amount) for event, amount in day.counts.items() if amount}

    async def check_all(self) -> None:
        """What must hold after every step, whatever was done."""
        await self.pending()
        for family in (SENDS, POLLING, EVENTS, WEBHOOKS):
            await self.counted(family)
