"""The sandbox: three providers behind one handler, and the work that goes on behind them."""

import asyncio
import contextlib
from typing import Final, Protocol
from urllib.parse import parse_qs

import msgspec

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.errors import Invalid, Unavailable
from keystead.messaging.sandbox.caller import Caller, text_us
from keystead.messaging.sandbox.expo import Expo
from keystead.messaging.sandbox.faults import Fate, FaultBoard, Rate
from keystead.messaging.sandbox.http import Answer, Asked, SandboxApp, json_answer
from keystead.messaging.sandbox.ledger import Ledger
from keystead.messaging.sandbox.models import CHANNELS, Channel
from keystead.messaging.sandbox.outbox import Outbox
from keystead.messaging.sandbox.ses import Ses
from keystead.messaging.sandbox.sns import TOPIC_ARN, Sns
from keystead.messaging.sandbox.twilio import Account, Twilio

PREFIX: Final = "/sandbox"
REFRESH_SECONDS: Final = 1.0
DROP_SECONDS: Final = 30.0
_CHANNEL_OF: Final[dict[str, Channel]] = {"expo": "push", "twilio": "sms", "ses": "email"}


class Provider(Protocol):
    """One provider: answers, and has its own words for being overloaded and for being broken."""

    async def handle(self, asked: Asked, fate: Fate) -> Answer: ...

    def throttled(self, fate: Fate) -> Answer: ...

    def broken(self) -> Answer: ...


class Sandbox:
    """Providers that deliver to nobody. ``url`` is where the server that serves it is reached, without the prefix.

    ``app`` answers HTTP; ``work`` calls webhooks and must run beside it. All that was accepted lies in the server
    before it is answered, so either may be killed at any time. ``inbound_url`` is told of texts that people send,
    ``events_url`` of what becomes of email, once it has confirmed that it wants to know. ``local_url``: where webhooks
    under ``url`` are called in fact, if we run beside who answers them: the way through the world may not be open.
    """

    def __init__(
        self, valkey: Valkey, clock: Clock, *, url: str, account: Account, inbound_url: str = "",
        events_url: str = "", keep_messages: int = 10_000, key_bits: int = 2048, local_url: str = "",
    ) -> None:
        self._clock = clock
        self._valkey = valkey
        self._account = account
        self._inbound_url = inbound_url
        self._events_url = events_url
        self.base_url = url.rstrip("/") + PREFIX
        self.ledger = Ledger(valkey, clock, keep_messages=keep_messages)
        self.faults = FaultBoard(valkey)
        self.outbox = Outbox(valkey)
        self._sns = Sns(valkey, clock, self.base_url, key_bits=key_bits)
        self._caller = Caller(valkey, clock, self.ledger, self.faults, self._sns, account, inbound_url,
                              (url.rstrip("/"), local_url.rstrip("/")))
        self._providers: dict[str, Provider] = {
            "expo": Expo(self.ledger, clock),
            "twilio": Twilio(self.ledger, self.faults, clock, account, self._caller.call),
            "ses": Ses(self.ledger, clock, self._caller.call),
        }
        self._rates = {name: Rate() for name in self._providers}
        self.app = SandboxApp(self.handle, PREFIX)

    # -- where the channels find it ---------------------------------------------------------------------------------

    @property
    def push_url(self) -> str:
        """In place of Expo's host."""
        return f"{self.base_url}/expo"

    @property
    def sms_url(self) -> str:
        """In place of Twilio's host."""
        return f"{self.base_url}/twilio"

    @property
    def email_url(self) -> str:
        """In place of the SES endpoint."""
        return f"{self.base_url}/ses"

    @property
    def certificate_url(self) -> str:
        """Where the certificate is that notifications of email are signed with."""
        return self._sns.certificate_url

    @property
    def topic_arn(self) -> str:
        """The topic that notifications of email come from."""
        return TOPIC_ARN

    # -- what a test or a person does to it -------------------------------------------------------------------------

    async def subscribe(self, endpoint: str) -> None:
        """Tell this address what becomes of email; it is asked to confirm first. Harmless when repeated."""
        await self._sns.subscribe(endpoint)

    async def reply(self, number: str, text: str) -> str:
        """Somebody texts us; the inbound webhook is called with it. Returns the sid."""
        if not self._inbound_url:
            raise Invalid("the sandbox does not know where incoming texts go: it was made without an inbound_url")
        return await text_us(self.ledger, self._clock, self._account.sid, number, text)

    async def work(self, stop: asyncio.Event) -> None:
        """Call webhooks, learn of faults set elsewhere, drop what is old. Until told to stop."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._caller.work(stop))
            group.create_task(self._keep_up(stop))

    async def follow(self, stop: asyncio.Event) -> None:
        """Only learn of faults set elsewhere, for one that answers while another calls. Until told to stop."""
        while not stop.is_set():
            with contextlib.suppress(Unavailable):  # the next look may find it back
                await self.faults.refresh()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), REFRESH_SECONDS)

    async def fetch(self, url: str) -> bytes | None:
        """What a GET of an address of ours would give, without going there; None if it is not ours, or not there."""
        if not url.startswith(self.base_url + "/"):
            return None
        path, _, query = url.removeprefix(self.base_url).partition("?")
        answer = await self.handle(Asked("GET", path, query))
        return answer.body if answer is not None and answer.status == 200 else None

    async def aclose(self) -> None:
        """For one that only answered and never worked: closes what early webhooks opened."""
        await self._caller.aclose()

    # -- answering --------------------------------------------------------------------------------------------------

    async def handle(self, asked: Asked) -> Answer | None:
        """The answer to a request, or None to cut the connection."""
        name, _, rest = asked.path.removeprefix("/").partition("/")
        provider = self._providers.get(name)
        if provider is None:
            return await self._own(name, asked)
        channel = _CHANNEL_OF[name]
        fate = self.faults.fate(channel)
        if fate.faults.latency_ms:
            await asyncio.sleep(fate.faults.latency_ms / 1000)
        allowed = self._rates[name].allows(fate.faults.rate_per_second, self._clock.now())
        if not allowed or fate.meets("throttle"):
            await self.ledger.count(channel, "throttled")
            return provider.throttled(fate)
        if fate.meets("server_error"):
            await self.ledger.count(channel, "server_errors")
            return provider.broken()
        if fate.meets("cut_before"):
            await self.ledger.count(channel, "cut_before")
            return None
        inner = Asked(asked.method, "/" + rest, asked.query, asked.headers, asked.body)
        answer = await provider.handle(inner, fate)
        if fate.meets("cut_after"):
            await self.ledger.count(channel, "cut_after")
            return None
        return answer

    async def _own(self, name: str, asked: Asked) -> Answer:
        """What the sandbox offers beside the providers."""
        try:
            if name == "sns":
                return await self._sns.handle(asked)
            if name == "faults":
                return await self._faults(asked)
            if name == "outbox" and asked.method == "GET":
                return await self._outbox(asked)
            if name == "counts" and asked.method == "GET":
                return json_answer(200, await self.outbox.counts())
            if name == "reply" and asked.method == "POST":
                said = _object(asked)
                return json_answer(202, {"sid": await self.reply(str(said.get("from", "")), str(said.get("body", "")))})
            if name == "subscribe" and asked.method == "POST":
                await self.subscribe(str(_object(asked).get("endpoint", "")))
                return json_answer(202, {})
        except (Invalid, ValueError) as problem:
            return json_answer(400, {"message": str(problem)})
        return json_answer(404, {"message": "the sandbox has nothing here"})

    async def _faults(self, asked: Asked) -> Answer:
        if asked.method == "DELETE":
            await self.faults.clear()
        elif asked.method == "POST":
            changes = _object(asked)
            channel = changes.pop("channel", "all")
            if channel != "all" and channel not in CHANNELS:
                raise Invalid(f"channel must be all or one of {', '.join(CHANNELS)}")
            await self.faults.change(None if channel == "all" else channel, changes)
        return json_answer(200, {name: msgspec.to_builtins(faults) for name, faults in self.faults.all().items()})

    async def _outbox(self, asked: Asked) -> Answer:
        query = {name: values[-1] for name, values in parse_qs(asked.query).items()}
        channel, to = query.get("channel", ""), query.get("to", "")
        if channel not in CHANNELS or not to:
            found = await self.outbox.recipients()
            return json_answer(200, {"recipients": [{
                "channel": each.channel, "to": each.address, "last_at": each.last_at, "messages": each.messages,
            } for each in found]})
        messages = await self.outbox.messages(channel, to)
        return json_answer(200, {"messages": [msgspec.to_builtins(message) for message in messages]})

    # -- behind it --------------------------------------------------------------------------------------------------

    async def _keep_up(self, stop: asyncio.Event) -> None:
        dropped_at = 0.0
        while not stop.is_set():
            try:
                await self.faults.refresh()
                if self._events_url and self._events_url not in await self._sns.subscribers():
                    await self.subscribe(self._events_url)
                if self._clock.now() - dropped_at >= DROP_SECONDS:
                    dropped_at = self._clock.now()
                    await self.ledger.drop_old()
            except Unavailable:
                pass  # the next look may find it back
            try:
                await asyncio.wait_for(stop.wait(), REFRESH_SECONDS)
            except TimeoutError:
                continue


def _object(asked: Asked) -> dict[str, object]:
    found = asked.json()
    if not isinstance(found, dict):
        raise Invalid("the body must be a JSON object")
    return found
