"""The room of email put together as the app does it, with a provider in memory and a clock that is moved by hand."""

from collections import deque
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from keystead.edge import Tickets
from keystead.engine import Valkey
from keystead.jobs import ROOMS_QUEUE, AfterFailure, JobBook, JobRecord, JobRef
from keystead.jobs.keys import Queue
from keystead.keys import Layout
from keystead.members import Suppression
from keystead.messaging.email import (
    Email,
    EmailFailure,
    EmailSuccess,
    Failures,
    News,
    PendingEmail,
    Suppressed,
    Templates,
    Unsubscribing,
    read_failure,
    read_success,
)
from keystead.messaging.email.gateway import Accepted, EmailGateway, Mail, NoCredentials, NotAccepted
from keystead.messaging.email.jobs import EmailWorkers, register
from keystead.messaging.email.keys import RECEIPT_PENDING
from keystead.messaging.email.news import Told
from keystead.messaging.email.sns import Believed
from keystead.messaging.sending import Retries
from keystead.messaging.sending.keys import JOBS_OUTBOX
from keystead.patterns import DailyFamily
from keystead.settings import EmailSettings, MessagingSettings
from keystead.store import Database, SqlOutbox
from keystead.testing.clock import _SHORTEN, MovableClock

NOON = datetime(2026, 3, 2, 12, tzinfo=ZoneInfo("America/Los_Angeles")).timestamp()
OK, BAD = JobRef("test.ok", {"mine": 1, "codes": []}), JobRef("test.bad", {"mine": 2})
ADA = "ada@example.com"
LOST = NotAccepted("SESNetworkError", "ses:ConnectionError", retryable=True, maybe_sent=True)
DOWN = NotAccepted("SESServerError", "ses:503", retryable=True, status=503)
REJECTED = NotAccepted("SESClientError", "ses:MessageRejected", retryable=False, status=400)

# What the databases differ in is tested where the tables are.
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


class Provider:
    """A gateway whose answers a test decides: ``answers`` are given first, one for each email."""

    def __init__(self) -> None:
        self.reports = True
        self.delivers = False
        self.answers: deque[NotAccepted | NoCredentials | str] = deque()
        self.sent: list[Mail] = []
        self.before_answer: Callable[[Mail, str], Awaitable[None]] | None = None

    async def send(self, mail: Mail) -> Accepted | NotAccepted | NoCredentials:
        answer = self.answers.popleft() if self.answers else f"m-{len(self.sent)}"
        if isinstance(answer, NoCredentials) or (isinstance(answer, NotAccepted) and not answer.maybe_sent):
            return answer
        message_id = answer if isinstance(answer, str) else f"m-{len(self.sent)}"
        self.sent.append(mail)
        if self.before_answer is not None:
            await self.before_answer(mail, message_id)
        return answer if isinstance(answer, NotAccepted) else Accepted(message_id, self.delivers)

    async def rate_per_second(self) -> float | None:
        return None


class Room:
    def __init__(
        self, valkey: Valkey, database: Database, *, gateway: EmailGateway | None = None, clock: Any = None,
        public_url: str = "https://app.example.com", **messaging: Any,
    ) -> None:
        self.valkey, self.database, self.clock = valkey, database, clock or MovableClock(now=NOON)
        self.provider = Provider()
        self.messaging = MessagingSettings(**messaging)
        self.suppression = Suppression(database, SqlOutbox(database, valkey, JobBook()), self.clock)
        self.suppressed = Suppressed(self.suppression, self.clock)
        self.tickets = Tickets(b"k" * 32, self.clock)
        self.email = Email(valkey, self.clock)
        self.news = News(valkey, self.clock)
        self.failures = Failures(valkey, self.clock, self.suppression, self.suppressed, Retries.of(self.messaging))
        self.unsubscribing = Unsubscribing(self.tickets, self.suppression, self.suppressed, public_url)
        self.workers = EmailWorkers(
            valkey, self.clock, gateway or self.provider, Templates(), self.suppressed, self.unsubscribing,
            self.failures, EmailSettings(), self.messaging, 0.0,
        )
        self.book = JobBook()
        register(self.book, self.workers)
        self.succeeded: list[EmailSuccess] = []
        self.failed: list[tuple[EmailFailure, AfterFailure]] = []
        self.book.register(OK.name, self._ok)
        self.book.register(BAD.name, self._bad)

    async def _ok(self, mine: int, codes: list[str], data_raw: str) -> None:
        assert (mine, codes) == (1, [])
        self.succeeded.append(read_success(data_raw))

    async def _bad(self, mine: int, data_raw: str) -> None:
        assert mine == 2
        failure = read_failure(data_raw)
        self.failed.append((failure, await self.failures.retry_or_abandon(failure)))

    # -- steps ------------------------------------------------------------------------------------------------------

    async def queue(self, to: str = ADA, template: str = "code", **more: Any) -> str:
        parameters = more.pop("parameters", {"code": "123456"})
        return await self.email.queue(to, "A subject", template, parameters, success=OK, failure=BAD, **more)

    async def send(self) -> dict[str, int]:
        """A single run of the sender; its counters, whose identities are checked."""
        run = await self.workers.courier().run()
        assert run is not None
        counts = dict(run.counts)
        sent_badly = counts["failed_permanently"] + counts["failed_transiently"]
        assert counts["attempted"] == counts["accepted"] + sent_badly
        assert counts["accepted"] <= counts["templated"] <= counts["attempted"]
        return counts

    async def tell(self, message_id: str, news: Any, *, uid: str = "", sns_id: str = "") -> bool:
        """A notification comes in, that was believed."""
        given = sns_id or f"sns-{message_id}-{type(news).__name__}"
        return await self.news.take(Told(message_id, news, uid), Believed("Notification", given, {}))

    async def reconcile(self) -> dict[str, int]:
        run = await self.workers.reconciliation().run()
        assert run is not None
        counts = dict(run.counts)
        assert counts["attempted"] == sum(counts.values()) - counts["attempted"]
        return {name: amount for name, amount in counts.items() if amount}

    async def sweep(self) -> int:
        run = await self.workers.stale().run()
        assert run is not None
        return run.counts["abandoned"]

    async def jobs(self) -> list[JobRecord]:
        """What is queued, taken away; on a cluster after the relay brought it there."""
        if self.valkey.layout is Layout.TAGGED:
            await JOBS_OUTBOX.drain(self.valkey, now=self.clock.now())
        found: list[JobRecord] = []
        for queue in ("", ROOMS_QUEUE):
            worker = Queue(queue).work.worker("test")
            while taken := (await worker.take(self.valkey, 100, now=self.clock.now())).items:
                found += [item.value for item in taken]
                await worker.finish(self.valkey, taken)
            await worker.leave(self.valkey)
        return found

    async def run_jobs(self, times: int = 1) -> list[str]:
        """Run what is queued, each job so many times; the names of those there were."""
        ran: list[str] = []
        while found := await self.jobs():
            for job in found:
                ran.append(job.name)
                for _ in range(times):
                    await self.book.jobs[job.name](**job.kwargs)
        return ran

    def later(self, seconds: float) -> None:
        """Time passes for the program; expiries on the server do not move."""
        self.clock.advance(seconds)

    async def let_pass(self, seconds: float) -> None:
        """Time passes for the program and for every expiry on the server."""
        self.clock.advance(seconds)
        for node in await self.valkey.nodes():
            await node.call(("EVAL", _SHORTEN, 0, round(seconds * 1000)))

    # -- looking ----------------------------------------------------------------------------------------------------

    async def pending(self) -> dict[str, PendingEmail]:
        """Every email that waits for news; fails if index and records are out of step."""
        index = dict(await RECEIPT_PENDING.index.range(self.valkey))
        assert set(index) == {name.removeprefix("email:receipt_pending:") for name in await self.names()
                              if name.startswith("email:receipt_pending:")}
        found = {}
        for member, score in index.items():
            entry = await RECEIPT_PENDING.get(self.valkey, member)
            assert entry is not None and entry.record.send_accepted_at == score
            found[member] = entry.record
        return found

    async def names(self) -> set[str]:
        """Every key there is, by its documented name."""
        found: set[str] = set()
        for node in await self.valkey.nodes():
            found.update(key.decode().rpartition("}")[2] for key in await node.call(("KEYS", "*")))
        return found

    async def counted(self, family: DailyFamily, at: float | None = None) -> dict[str, Any]:
        """What was counted on a day: amounts, or breakdowns where there are some. Identities are checked."""
        day = await family.read(self.valkey, family.day_of(self.clock.now() if at is None else at))
        assert not day.inconsistencies()
        for identity in family.identities:
            broken = identity.check({name: day.counts.get(name, 0) for name in family.events})
            assert broken is None, broken
        return {event: day.breakdowns.get(event, amount) for event, amount in day.counts.items() if amount}
