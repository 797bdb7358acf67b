"""Touches over the real channel rooms, without couriers: tests settle messages themselves, as a provider would."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import insert, select, update

from keystead.engine import Valkey
from keystead.ids import UserSub
from keystead.jobs import ROOMS_QUEUE, FailurePolicy, JobBook, JobRecord, JobRef, encode_data_raw
from keystead.jobs.keys import Queue
from keystead.keys import Layout
from keystead.members import Contacts, PushTokens, Suppression
from keystead.members.contact_tables import USER_PHONE_NUMBERS, USER_PUSH_TOKENS
from keystead.members.tables import USERS
from keystead.messaging.email import Email
from keystead.messaging.email import Failures as EmailFailures
from keystead.messaging.email import Suppressed as SuppressedEmails
from keystead.messaging.email.keys import SENDING as EMAIL_SENDING
from keystead.messaging.push import Failures as PushFailures
from keystead.messaging.push import Push
from keystead.messaging.push.keys import SENDING as PUSH_SENDING
from keystead.messaging.sending import Retries
from keystead.messaging.sending.keys import JOBS_OUTBOX
from keystead.messaging.sms import Failures as SmsFailures
from keystead.messaging.sms import OutgoingSms, Sms, SmsFailure, SmsSuccess
from keystead.messaging.sms.keys import SENDING as SMS_SENDING
from keystead.messaging.sms.models import FailureInfo, Identifier, MessageResource, SentSms, SuccessInfo
from keystead.messaging.sms.statuses import Status
from keystead.messaging.touches.dispatcher import Dispatcher
from keystead.messaging.touches.dispatcher_plan import Planner
from keystead.messaging.touches.erased import Erasure
from keystead.messaging.touches.given_up import GivenUp
from keystead.messaging.touches.handlers import Handlers
from keystead.messaging.touches.jobs import register
from keystead.messaging.touches.log import LogJob, TouchLog
from keystead.messaging.touches.messages import EmailMessage, Messages, PushMessage, SmsMessage
from keystead.messaging.touches.models import Channel, Touch
from keystead.messaging.touches.outlets_email import EmailOutlet
from keystead.messaging.touches.outlets_push import PushOutlet
from keystead.messaging.touches.outlets_sms import SmsOutlet
from keystead.messaging.touches.pending import Pending
from keystead.messaging.touches.points import TouchPoint, TouchPoints
from keystead.messaging.touches.stale import StaleJob
from keystead.messaging.touches.stats import SENDS
from keystead.messaging.touches.tables import DEBUG_LOG, STATES, USER_TOUCHES
from keystead.messaging.touches.touches import Touches
from keystead.settings import MessagingSettings
from keystead.store import Database, SqlOutbox
from keystead.testing.clock import MovableClock

NOON = datetime(2026, 3, 2, 12, tzinfo=ZoneInfo("America/Los_Angeles")).timestamp()
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

ON_SUCCESS = JobRef("shop.reached", {"codes": [], "price": 0.1})
ON_FAILURE = JobRef("shop.missed", {"codes": [], "price": 0.1})
SCHEMA: dict[str, Any] = {
    "type": "object", "example": {"name": "Ada"}, "required": ["name"],
    "properties": {"name": {"type": "string", "example": "Ada"}},
}
HELLO = Messages(
    sms=[SmsMessage(priority=1, uid="tpsms_a", body_format="Hi {name}", body_parameters=["name"])],
    push=[PushMessage(priority=1, uid="tppush_a", title_format="Hi", body_format="{name}", body_parameters=["name"])],
    email=[EmailMessage(priority=1, uid="tpem_a", subject_format="Hi {name}", subject_parameters=["name"],
                        template="notice", template_parameters_fixed={"title": "Hi"})],
)


class Room:
    def __init__(
        self, valkey: Valkey, database: Database, *, settings: MessagingSettings | None = None, now: float = NOON
    ) -> None:
        self.valkey, self.database, self.clock = valkey, database, MovableClock(now=now)
        self.settings = settings or MessagingSettings()
        self.book = JobBook()
        outbox = SqlOutbox(database, valkey, self.book)
        self.contacts = Contacts(database, outbox, self.clock)
        self.tokens = PushTokens(database, outbox, self.clock)
        self.suppression = Suppression(database, outbox, self.clock)
        retries, final = Retries.of(self.settings), Retries(FailurePolicy(0))
        self.sms, self.email, self.push = Sms(valkey, self.clock), Email(valkey, self.clock), Push(valkey, self.clock)
        suppressed = SuppressedEmails(self.suppression, self.clock)
        self.outlets: dict[Channel, Any] = {
            "sms": SmsOutlet(self.sms, self.contacts, SmsFailures(valkey, self.clock, retries),
                             SmsFailures(valkey, self.clock, final)),
            "email": EmailOutlet(
                self.email, self.contacts, EmailFailures(valkey, self.clock, self.suppression, suppressed, retries),
                EmailFailures(valkey, self.clock, self.suppression, suppressed, final)),
            "push": PushOutlet(self.push, self.contacts, PushFailures(valkey, self.clock, retries),
                               PushFailures(valkey, self.clock, final)),
        }
        self.points = TouchPoints(valkey, database, self.clock)
        self.touches = Touches(valkey, self.clock, self.settings)
        self.planner = Planner(valkey, database, self.clock, self.points, self.contacts, self.outlets, self.settings)
        trace_seconds = self.settings.trace_seconds
        self.pending = Pending(valkey, trace_seconds=trace_seconds)
        self.handlers = Handlers(valkey, self.clock, self.outlets, self.pending, trace_seconds=trace_seconds)
        self.log = TouchLog(database, self.tokens)
        self.erasure = Erasure(valkey, database, self.clock, self.outlets, self.pending)
        self.dispatcher = Dispatcher(valkey, self.clock, self.planner, self.outlets)
        self.log_job = LogJob(valkey, self.clock, self.log)
        self.stale_job = StaleJob(valkey, self.clock, self.pending, GivenUp(valkey, self.planner))
        register(self.book, valkey, self.clock, self.planner, self.outlets, self.handlers, self.pending, self.log,
                 self.erasure)

    # -- people and touch points ------------------------------------------------------------------------------------

    async def person(
        self, sub: str, *, phones: Iterable[str] = (), emails: Iterable[str] = (), tokens: Iterable[str] = (),
        zone: str | None = None,
    ) -> UserSub:
        async with self.database.transaction() as sql:
            await sql.execute(insert(USERS).values(sub=sub, given_name="Ada", created_at=NOON - 1e6))
            if zone is not None:
                await sql.execute(update(USERS).where(USERS.c.sub == sub).values(timezone=zone))
        for phone in phones:
            await self.contacts.add_phone(UserSub(sub), phone, verified=True)
        for email in emails:
            await self.contacts.add_email(UserSub(sub), email, verified=True)
        for token in tokens:
            await self.tokens.register(UserSub(sub), token, "ios")
        return UserSub(sub)

    async def people(self, amount: int) -> list[UserSub]:
        """So many people with a number each, made at once."""
        subs = [UserSub(f"user_{number}") for number in range(amount)]
        async with self.database.transaction() as sql:
            await sql.execute(insert(USERS), [{"sub": sub, "created_at": NOON - 1e6} for sub in subs])
            ids = dict((await sql.execute(select(USERS.c.sub, USERS.c.id).where(USERS.c.sub.in_(subs)))).all())
            await sql.execute(insert(USER_PHONE_NUMBERS), [
                {"user_id": ids[sub], "phone_number": f"+1500555{number:04}", "verified": True,
                 "receives_notifications": True, "created_at": NOON} for number, sub in enumerate(subs)])
        return subs

    async def point(
        self, slug: str = "hello_there", *, strategy: str = "random_with_replacement", messages: Messages = HELLO,
        schema: dict[str, Any] = SCHEMA,
    ) -> TouchPoint:
        return await self.points.create(slug, schema, strategy, messages)

    def touch(self, sub: str, slug: str = "hello_there", channel: Channel = "sms", **given: Any) -> Touch:
        given.setdefault("parameters", {"name": "Ada"})
        given.setdefault("success", ON_SUCCESS)
        given.setdefault("failure", ON_FAILURE)
        return self.touches.make(UserSub(sub), slug, channel=channel, **given)

    async def send(self, sub: str, slug: str = "hello_there", channel: Channel = "sms", **given: Any) -> str:
        touch = self.touch(sub, slug, channel, **given)
        await self.touches.queue(touch)
        return touch.uid

    # -- what is on its way -----------------------------------------------------------------------------------------

    async def texts(self, lane: str = "normal") -> list[OutgoingSms]:
        return await SMS_SENDING.waiting(lane).range(self.valkey)

    async def emails(self) -> list[Any]:
        return await EMAIL_SENDING.waiting().range(self.valkey)

    async def pushes(self) -> list[Any]:
        return await PUSH_SENDING.waiting().range(self.valkey)

    async def jobs(self, queue: str = "") -> list[JobRecord]:
        """Jobs that wait, in their order; on a cluster brought from the outbox first."""
        if self.valkey.layout is Layout.TAGGED:
            await JOBS_OUTBOX.drain(self.valkey, now=self.clock.now())
        return await Queue(queue).work.queue.range(self.valkey)

    async def callbacks(self) -> list[str]:
        return [record.name for record in await self.jobs()]

    async def run_handlers(self, times: int = 1) -> int:
        """Run the room's own jobs, each so many times."""
        await self.jobs()
        worker, ran = Queue(ROOMS_QUEUE).work.worker("test"), 0
        while taken := (await worker.take(self.valkey, 100, now=self.clock.now())).items:
            for item in taken * times:
                await self.book.jobs[item.value.name](**item.value.kwargs)
                ran += 1
            await worker.finish(self.valkey, taken)
            await self.jobs()
        await worker.leave(self.valkey)
        return ran

    # -- what providers say -----------------------------------------------------------------------------------------

    def arrived(self, sms: OutgoingSms) -> str:
        """What the success job of a text is told."""
        sent = SentSms(uid=sms.uid, initially_queued_at=sms.initially_queued_at, phone_number=sms.phone_number,
                       body=sms.body, user_sub=sms.user_sub)
        now = self.clock.now()
        return encode_data_raw(SmsSuccess(sent, SuccessInfo(now, now, MessageResource("SM1", Status.DELIVERED))))

    def refused(self, sms: OutgoingSms, *, retryable: bool = False) -> str:
        """What the failure job of a text is told."""
        info = FailureInfo("send", Identifier.NETWORK if retryable else Identifier.INTERNAL, retryable=retryable)
        return encode_data_raw(SmsFailure(sms, info))

    async def succeed(self, sms: OutgoingSms) -> None:
        await self.book.jobs[sms.success_job.name](**sms.success_job.kwargs, data_raw=self.arrived(sms))

    async def fail(self, sms: OutgoingSms, *, retryable: bool = False) -> None:
        await self.book.jobs[sms.failure_job.name](
            **sms.failure_job.kwargs, data_raw=self.refused(sms, retryable=retryable))

    # -- what was written -------------------------------------------------------------------------------------------

    async def rows(self, table: Any) -> list[Any]:
        async with self.database.reading() as sql:
            return list((await sql.execute(select(table).order_by(table.c.id))).all())

    async def events(self) -> list[dict[str, Any]]:
        return [row.event for row in await self.rows(DEBUG_LOG)]

    async def rows_of_log(self) -> list[Any]:
        return await self.rows(DEBUG_LOG)

    async def confirmed_at(self, token: str) -> float | None:
        tokens = USER_PUSH_TOKENS.c
        async with self.database.reading() as sql:
            found: float | None = await sql.scalar(select(tokens.last_confirmed_at).where(tokens.token == token))
        return found

    async def touched(self) -> list[Any]:
        return await self.rows(USER_TOUCHES)

    async def states(self) -> list[Any]:
        return await self.rows(STATES)

    async def counted(self) -> dict[str, int]:
        day = await SENDS.read(self.valkey, SENDS.day_of(self.clock.now()))
        assert not day.inconsistencies()
        counts = dict(day.counts)
        assert counts["attempted"] == sum(
            counts[name] for name in ("stale", "improper", "unreachable", "reachable"))
        return {name: amount for name, amount in counts.items() if amount}
