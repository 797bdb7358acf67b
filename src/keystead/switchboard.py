"""Wiring of the rooms that write to people: members' addresses, channels, touches, links, reminders and the sandbox."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

from keystead.clock import Clock, real
from keystead.edge import Tickets
from keystead.engine import Valkey
from keystead.errors import Invalid
from keystead.jobs import JobBook, Recurring, Work
from keystead.members import Contacts, PushTokens, Suppression, Timezones, Veil
from keystead.members import jobs as members_jobs
from keystead.messaging.email import (
    Email,
    EmailGateway,
    Fetch,
    Fetched,
    News,
    Templates,
    TemplateTokens,
    Trust,
    Unsubscribing,
    Verifier,
    allowed_rate,
    fetching,
    open_gateway,
)
from keystead.messaging.email import Failures as EmailFailures
from keystead.messaging.email import Suppressed as SuppressedEmail
from keystead.messaging.email import jobs as email_jobs
from keystead.messaging.links import LinkQueues, Links, Pages
from keystead.messaging.links import Unsubscribing as LinkUnsubscribing
from keystead.messaging.links import jobs as links_jobs
from keystead.messaging.push import ExpoGateway, Push
from keystead.messaging.push import Failures as PushFailures
from keystead.messaging.push import jobs as push_jobs
from keystead.messaging.sending import Retries, callbacks_relay
from keystead.messaging.sms import Failures as SmsFailures
from keystead.messaging.sms import Inbound, Sms, TwilioGateway
from keystead.messaging.sms import Suppressed as SuppressedNumbers
from keystead.messaging.sms import jobs as sms_jobs
from keystead.messaging.touches import (
    EmailOutlet,
    Erasure,
    Handlers,
    History,
    Messaging,
    Pending,
    Planner,
    PushOutlet,
    Queues,
    SmsOutlet,
    Touches,
    TouchLog,
    TouchPoints,
    Tracer,
    Trials,
)
from keystead.messaging.touches import jobs as touches_jobs
from keystead.reminders import CountsCheck, Explaining, ReminderSettings, Rows
from keystead.reminders import jobs as reminders_jobs
from keystead.settings import EmailSettings, PushSettings, Settings, SmsSettings
from keystead.store import Database, SqlOutbox

if TYPE_CHECKING:
    from keystead.messaging.sandbox import Sandbox
    from keystead.messaging.touches import Outlets

API_PREFIX: Final = "/api/1"
SANDBOX: Final = "sandbox"
ChannelSettings = TypeVar("ChannelSettings", SmsSettings, EmailSettings, PushSettings)


@dataclass(frozen=True, slots=True)
class Ground:
    """What everything here stands on. ``public_url``: how the world, and the sandbox, reach this server."""

    settings: Settings
    valkey: Valkey
    database: Database
    outbox: SqlOutbox
    clock: Clock
    tickets: Tickets
    secret: bytes
    public_url: str


class Switchboard:
    """The services, built once. Making one opens nothing; ``working`` adds those who work, and the rooms' jobs."""

    def __init__(self, ground: Ground) -> None:
        """``Invalid`` for settings that would let anybody speak for a provider."""
        _check(ground.settings)
        settings, valkey, clock, database = ground.settings, ground.valkey, ground.clock, ground.database
        kept = settings.messaging.trace_seconds
        retries = Retries.of(settings.messaging)
        never = Retries.of(replace(settings.messaging, retries=0))
        self.ground = ground
        self.veil = Veil(ground.secret)
        self.contacts = Contacts(database, ground.outbox, clock, self.veil)
        self.suppression = Suppression(database, ground.outbox, clock, self.veil)
        self.tokens = PushTokens(database, ground.outbox, clock)
        self.timezones = Timezones(valkey, database, ground.outbox, clock)

        self.push = Push(valkey, clock, trace_seconds=kept)
        self.sms_rooms = [Sms(lane, clock, trace_seconds=kept) for lane in valkey.lanes]
        self.sms = self.sms_rooms[0]
        self.email = Email(valkey, clock, trace_seconds=kept)
        self.suppressed_numbers = SuppressedNumbers(self.suppression, clock)
        self.suppressed_email = SuppressedEmail(self.suppression, clock)
        self.inbound = Inbound(self.suppression, sender_name=settings.email.sender_name,
                               suppressed=self.suppressed_numbers)
        self.news_rooms = [News(lane, clock) for lane in valkey.lanes]
        self.templates = Templates(settings.email.templates)
        self.template_tokens = TemplateTokens(ground.secret, real(clock))
        self.unsubscribing = Unsubscribing(
            ground.tickets, self.suppression, self.suppressed_email, ground.public_url
        )

        self.points = TouchPoints(valkey, database, clock)
        self.touches = Touches(valkey, clock, settings.messaging)
        self.pending = Pending(valkey, trace_seconds=kept)
        push_failures, sms_failures, email_failures = (
            [PushFailures(valkey, clock, each, cold_seconds=settings.push.cold_seconds) for each in (retries, never)],
            [SmsFailures(valkey, clock, retries), SmsFailures(valkey, clock, never, most_failures=0)],
            [EmailFailures(valkey, clock, self.suppression, self.suppressed_email, each) for each in (retries, never)],
        )
        self.email_failures = email_failures[0]
        self.outlets: Outlets = {
            "push": PushOutlet(self.push, self.contacts, *push_failures),
            "sms": SmsOutlet(self.sms, self.contacts, *sms_failures),
            "email": EmailOutlet(self.email, self.contacts, *email_failures),
        }
        self.messaging = Messaging(self.touches, self.points, self.outlets, self.sms, self.email, self.push)
        self.trials = Trials(self.messaging, self.outlets)
        self.history = History(valkey, database)
        self.tracer = Tracer(valkey, database, self.outlets)
        self.queues = Queues(valkey, clock)

        self.links = Links(valkey, database, clock, settings=settings.links)
        self.link_queues = LinkQueues(valkey, clock, settings=settings.links)
        self.link_unsubscribing = LinkUnsubscribing(
            self.links, database, self.suppression, self.suppressed_email.forget
        )
        self.pages = Pages(app_url=settings.messaging.app_url, site_name=settings.messaging.site_name)

        self.reminder_rows = Rows(database, ground.outbox, clock)
        self.reminders = ReminderSettings(
            valkey, database, ground.outbox, self.reminder_rows, self.timezones, clock
        )
        self.reminders_explained = Explaining(
            valkey, database, clock, self.contacts, self.history, settings.reminders, settings.messaging
        )

    @property
    def in_sandbox(self) -> bool:
        """Whether some channel delivers to nobody, through a sandbox that this process serves itself."""
        settings = self.ground.settings
        channels = (settings.sms, settings.email, settings.push)
        return any(channel.provider == SANDBOX and not channel.url for channel in channels)

    @asynccontextmanager
    async def hearing(self, local_url: str) -> AsyncIterator["Heard"]:
        """For a process that answers HTTP at ``local_url``: who judges calls of providers, and the sandbox it shows."""
        import aiohttp

        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10)) as session:
            sandbox = self._sandbox(local_url)
            fetch = fetching(session)
            if sandbox is not None:
                await sandbox.faults.refresh()
                fetch = _fetching_here(sandbox, fetch)
            yield Heard(sandbox, Verifier(self._trust(sandbox), self.ground.clock, fetch))

    @asynccontextmanager
    async def working(self, book: JobBook, heard: "Heard | None" = None) -> AsyncIterator["Crewed"]:
        """Open the ways to the providers and put the jobs of the rooms into the book, for as long as the block runs.

        Whoever sends to the sandbox serves it for itself on a loopback port that nobody else is told. All of them are
        one sandbox, since what they hold lies in the server; those that are ``heard`` call the webhooks.
        """
        async with AsyncExitStack() as stack:
            provider_url = ""
            if self.in_sandbox:
                from keystead.messaging.sandbox import serving

                sandbox = heard.sandbox if heard is not None else self._sandbox()
                assert sandbox is not None
                listener = serving.listening()
                provider_url = serving.url_of(listener) + "/sandbox"
                await sandbox.faults.refresh()
                await stack.enter_async_context(
                    serving.serving(sandbox, listener, calls=False, follows=heard is None)
                )
            yield await self._crewed(stack, book, provider_url)

    async def _crewed(self, stack: AsyncExitStack, book: JobBook, sandbox_url: str) -> "Crewed":
        ground, settings = self.ground, self.ground.settings
        valkey, clock, database = ground.valkey, ground.clock, ground.database
        sms = await stack.enter_async_context(TwilioGateway.open(
            settings.sms, f"{sandbox_url}/twilio" if sandbox_url and settings.sms.provider == SANDBOX else ""
        ))
        push = await stack.enter_async_context(ExpoGateway.open(
            settings.push, f"{sandbox_url}/expo" if sandbox_url and settings.push.provider == SANDBOX else ""
        ))
        email = await stack.enter_async_context(
            open_gateway(settings.email, sandbox_url=f"{sandbox_url}/ses" if sandbox_url else "")
        )
        await self.points.ensure_built_in()

        lanes = valkey.lanes
        push_workers = [
            push_jobs.PushWorkers(lane, clock, push, self.tokens, _share(settings.push, len(lanes)), settings.messaging)
            for lane in lanes
        ]
        sms_workers = [
            sms_jobs.SmsWorkers(
                lane, clock, sms, self.suppression, self.suppressed_numbers, _share(settings.sms, len(lanes)),
                settings.messaging, lambda: ground.public_url, number,
            ) for number, lane in enumerate(lanes)
        ]
        email_rate = await self._email_rate(email) / len(lanes)
        email_workers = [
            email_jobs.EmailWorkers(
                lane, clock, email, self.templates, self.suppressed_email, self.unsubscribing, self.email_failures,
                _share(settings.email, len(lanes)), settings.messaging, email_rate, number,
            ) for number, lane in enumerate(lanes)
        ]
        planner = Planner(
            valkey, database, clock, self.points, self.contacts, self.outlets, settings.messaging
        )
        handlers = Handlers(valkey, clock, self.outlets, self.pending, trace_seconds=settings.messaging.trace_seconds)
        log = TouchLog(database, self.tokens)
        erasure = Erasure(valkey, database, clock, self.outlets, self.pending)
        reminders = reminders_jobs.ReminderWorkers(
            valkey, database, clock, self.touches, self.links, settings.reminders, ground.secret, ground.public_url,
        )

        members_jobs.register_tokens(book, self.tokens)
        push_jobs.register(book, *push_workers)
        sms_jobs.register(book, *sms_workers)
        email_jobs.register(book, *email_workers)
        touches_jobs.register(
            book, valkey, clock, planner, self.outlets, handlers, self.pending, log, erasure
        )
        links_jobs.register(book, self.links, valkey, database, clock, settings=settings.links)
        reminders_jobs.register(book, reminders)
        reminders_jobs.register_rows(
            book, valkey, self.reminder_rows, CountsCheck(valkey, database), clock, moved=reminders.again().moved
        )
        always: list[Work] = [callbacks_relay(lane, clock) for lane in lanes]
        crew: list[Work] = [
            *push_jobs.crew(*push_workers), *sms_jobs.crew(*sms_workers),
            *email_jobs.crew(*email_workers),
            *touches_jobs.crew(valkey, clock, planner, self.outlets, self.pending, log,
                               workers=settings.messaging.workers),
            *links_jobs.crew(valkey, database, clock, settings=settings.links), *reminders_jobs.crew(reminders),
        ]
        single_runs = (
            *push_jobs.recurring(), *sms_jobs.recurring(), *email_jobs.recurring(), *touches_jobs.recurring(),
            *links_jobs.recurring(), *reminders_jobs.recurring(),
        )
        continuous = settings.messaging.workers > 0
        return Crewed(
            crew=(*always, *(crew if continuous else ())),
            # What works all the time needs no single runs, and a run that is killed holds its lock for minutes.
            recurring=(*reminders_jobs.recurring_rows(), *(() if continuous else single_runs)),
        )

    def _sandbox(self, local_url: str = "") -> "Sandbox | None":
        if not self.in_sandbox:
            return None
        from keystead.messaging.sandbox import Account, Sandbox

        ground, sms = self.ground, self.ground.settings.sms
        return Sandbox(
            ground.valkey, ground.clock, url=ground.public_url, account=Account(sms.account_sid, sms.auth_token),
            inbound_url=f"{ground.public_url}{API_PREFIX}/sms/inbound_webhook",
            events_url=f"{ground.public_url}{API_PREFIX}/emails/sns-mail", local_url=local_url,
        )

    def _trust(self, sandbox: "Sandbox | None") -> Trust:
        email = self.ground.settings.email
        if email.provider == SANDBOX:
            from keystead.messaging.sandbox import CERTIFICATE_PATH, TOPIC_ARN

            base = sandbox.base_url if sandbox is not None and not email.url else email.url.removesuffix("/ses")
            return Trust(frozenset((TOPIC_ARN,)), base + CERTIFICATE_PATH)
        return Trust(frozenset(filter(None, (topic.strip() for topic in email.topics.split(",")))))

    async def _email_rate(self, gateway: EmailGateway) -> float:
        email = self.ground.settings.email
        return await allowed_rate(gateway, email) if email.provider == "ses" else email.rate_per_second


@dataclass(frozen=True, slots=True)
class Heard:
    """Where providers are heard: who judges their calls, and the sandbox, whose ``work`` calls us in their place."""

    sandbox: "Sandbox | None"
    verifier: Verifier


@dataclass(frozen=True, slots=True)
class Crewed:
    """Those who work: ``crew`` all the time, ``recurring`` by the calendar."""

    crew: tuple[Work, ...]
    recurring: tuple[Recurring, ...]


def _share(settings: ChannelSettings, lanes: int) -> ChannelSettings:
    """What one lane may ask of the provider: together they ask what the settings allow."""
    if lanes == 1:
        return settings
    return replace(settings, rate_per_second=settings.rate_per_second / lanes,
                   concurrent_requests=max(1, settings.concurrent_requests // lanes))


def _fetching_here(sandbox: "Sandbox", fetch: Fetch) -> Fetch:
    """What the sandbox has is not fetched from outside, where the way to us may lead through a proxy."""

    async def found(url: str) -> Fetched | None:
        if not url.startswith(sandbox.base_url + "/"):
            return await fetch(url)
        raw = await sandbox.fetch(url)
        return None if raw is None else Fetched(raw, "max-age=86400")

    return found


def _check(settings: Settings) -> None:
    sms = settings.sms
    if sms.provider != SANDBOX and sms.auth_token in ("", SmsSettings().auth_token):
        raise Invalid("sms.auth_token is not set: whoever knows the default could sign calls in the provider's name; "
                      "set it to the token of your Twilio account")
