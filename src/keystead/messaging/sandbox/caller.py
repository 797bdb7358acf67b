"""Calls webhooks: when they are due, signed, again until somebody took them. What a killed sandbox owes is not lost."""

import asyncio
import re
import secrets
from collections.abc import Mapping
from html import unescape
from typing import Final, Literal
from urllib.parse import urlencode

import aiohttp
import msgspec

from keystead.clock import Clock, clock_seconds, real_seconds
from keystead.engine import Valkey
from keystead.errors import Invalid, Unavailable
from keystead.messaging.sandbox.faults import FaultBoard
from keystead.messaging.sandbox.keys import DUE, STOPPED
from keystead.messaging.sandbox.ledger import Ledger
from keystead.messaging.sandbox.models import Channel, Delivery, Message, Step
from keystead.messaging.sandbox.sns import Sns
from keystead.messaging.sandbox.twilio import API_VERSION, SENDER, Account, is_number, new_sid
from keystead.messaging.signatures import twilio_signature
from keystead.telemetry import logger

_log = logger("messaging.sandbox")

AT_ONCE: Final = 64
TIMEOUT_SECONDS: Final = 5.0
# Longer than a call can take; a webhook that a killed sandbox was calling is called again after it.
CLAIM_SECONDS: Final = 15.0
GIVE_UP_SECONDS: Final = 3600.0
PAUSE_SECONDS: Final = 0.01
LOOK_SECONDS: Final = 0.25
QUIET_LOOKS: Final = 40  # in a row that found nothing owed; then it looks less often
IDLE_SECONDS: Final = 1.0
_STOP: Final = frozenset(("stop", "stopall", "unsubscribe", "cancel", "end", "quit"))
_START: Final = frozenset(("start", "yes", "unstop"))
_REPLIES: Final = re.compile(r"<Message[^>]*>\s*(?:<Body>)?(.*?)(?:</Body>)?\s*</Message>", re.DOTALL)
_FORM: Final = "application/x-www-form-urlencoded; charset=UTF-8"

Outcome = Literal["called", "refused", "failed", "dropped"]


class Caller:
    """Calls what is due. Several at once do not disturb each other: what one has claimed the others leave alone."""

    def __init__(
        self, valkey: Valkey, clock: Clock, ledger: Ledger, board: FaultBoard, sns: Sns, account: Account,
        inbound_url: str, reached: tuple[str, str] = ("", ""),
    ) -> None:
        """``reached``: addresses that begin with the first are reached at the second, whatever way the world takes."""
        self._reached = reached
        self._valkey = valkey
        self._clock = clock
        self._ledger = ledger
        self._board = board
        self._sns = sns
        self._account = account
        self._inbound_url = inbound_url
        self._latest: dict[str, asyncio.Task[None]] = {}
        self._quiet_looks = 0
        self._http: aiohttp.ClientSession | None = None

    async def work(self, stop: asyncio.Event) -> None:
        """Until told to stop. What is on its way then is waited for."""
        calls: set[asyncio.Task[None]] = set()
        try:
            async with asyncio.TaskGroup() as group:
                while not stop.is_set():
                    pause = LOOK_SECONDS
                    try:
                        pause = await self._begin(group, calls)
                    except Unavailable as problem:
                        _log.warning("the sandbox cannot reach the server", problem=str(problem))
                        pause = IDLE_SECONDS
                    try:
                        await asyncio.wait_for(stop.wait(), pause)
                    except TimeoutError:
                        continue
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        if self._http is not None:
            await self._http.close()
            self._http = None

    async def _begin(self, group: asyncio.TaskGroup, calls: set[asyncio.Task[None]]) -> float:
        """Begin what is due, as far as hands are free; says when to look again."""
        free = AT_ONCE - len(calls)
        if not free:
            return PAUSE_SECONDS
        self._latest = {of: task for of, task in self._latest.items() if not task.done()}
        now = self._clock.now()
        again_at = now + clock_seconds(self._clock, CLAIM_SECONDS)
        claimed = (await DUE.claim(self._valkey, free, now=now, again_at=again_at)).values
        about = await self._ledger.find([each.of for each in claimed if each.kind != "confirm"])
        messages = {message.id: message for message in about if message is not None}
        for each in claimed:
            task = group.create_task(self._quietly(each, messages.get(each.of), self._latest.get(each.of)))
            self._latest[each.of] = task
            calls.add(task)
            task.add_done_callback(calls.discard)
        if claimed:
            self._quiet_looks = 0
            return PAUSE_SECONDS
        next_at = await DUE.next_at(self._valkey)
        if next_at is None:
            self._quiet_looks += 1
            return LOOK_SECONDS if self._quiet_looks < QUIET_LOOKS else IDLE_SECONDS
        self._quiet_looks = 0
        return min(max(real_seconds(self._clock, next_at - now), PAUSE_SECONDS), LOOK_SECONDS)

    async def _quietly(self, delivery: Delivery, message: Message | None, before: asyncio.Task[None] | None) -> None:
        """One message's news is told one after the other, so that it comes in order unless told otherwise."""
        if before is not None:
            await asyncio.wait((before,))
        try:
            await self.call(delivery, message)
        except Unavailable:
            return  # it is due again when the claim ends

    async def call(self, delivery: Delivery, message: Message | None) -> Outcome:
        """Call one webhook and settle it: done, or due again."""
        outcome = await self._call(delivery, message)
        channel: Channel = "sms" if delivery.kind in ("status", "inbound") else "email"
        now = self._clock.now()
        if outcome == "failed" and now - delivery.due_at < GIVE_UP_SECONDS:
            await DUE.schedule(self._valkey, delivery, now + min(max((now - delivery.due_at) / 2, 1.0), 60.0))
        else:
            await DUE.cancel(self._valkey, delivery)
            gone = delivery.of if delivery.kind == "confirm" else delivery.to
            if outcome == "failed" and gone:
                await self._sns.forget(gone)
        await self._ledger.count(channel, f"webhooks_{outcome}")
        return outcome

    async def _call(self, delivery: Delivery, message: Message | None) -> Outcome:
        if delivery.kind == "confirm":
            known = (await self._sns.subscribers()).get(delivery.of)
            if known is None or known.confirmed:
                return "dropped"
            outcome = await self._post(delivery.of, *await self._sns.confirmation(known))
            return "failed" if outcome == "refused" else outcome
        if message is None or delivery.step >= len(message.steps):
            return "dropped"
        if delivery.kind == "status":
            return await self._post_form(message.callback, status_fields(message, message.steps[delivery.step]))
        if delivery.kind == "inbound":
            return await self._inbound(message)
        return await self._notify(delivery, message)

    async def _notify(self, delivery: Delivery, message: Message) -> Outcome:
        """Tell all subscribers; one that is not reached is told by itself later, and the others not again."""
        known = await self._sns.subscribers()
        wanted = {endpoint: each for endpoint, each in known.items()
                  if each.confirmed and delivery.to in ("", endpoint)}
        outcomes: list[Outcome] = []
        for endpoint, each in wanted.items():
            outcome = await self._post(endpoint, *await self._sns.notification(message, delivery, each.arn))
            if outcome == "failed" and not delivery.to and len(wanted) > 1:
                alone = msgspec.structs.replace(delivery, to=endpoint)
                await DUE.schedule(self._valkey, alone, self._clock.now() + 1.0)
                outcome = "called"
            outcomes.append(outcome)
        if not wanted:
            return "failed" if known and not delivery.to else "dropped"
        return max(outcomes, key=("called", "refused", "failed").index)

    async def _inbound(self, message: Message) -> Outcome:
        """Somebody wrote to us. Words of the network are obeyed by the network too, as the real one does."""
        word = message.text.strip().lower()
        fields = inbound_fields(message)
        if word in _STOP:
            await STOPPED.at().add(self._valkey, message.to)
            self._board.stopped.add(message.to)
            fields["OptOutType"] = "STOP"
        elif word in _START:
            await STOPPED.at().remove(self._valkey, message.to)
            self._board.stopped.discard(message.to)
            fields["OptOutType"] = "START"
        answered: list[str] = []
        outcome = await self._post_form(self._inbound_url, fields, answered)
        if outcome == "called" and answered:
            await self._keep_replies(message, answered[0])
        return outcome

    async def _keep_replies(self, message: Message, answered: str) -> None:
        """What the webhook answered is texted back."""
        now = self._clock.now()
        replies = [
            Message(f"{message.id}r{place}", "sms", message.to, now, (Step("queued", now), Step("delivered", now)),
                    sender=SENDER, text=unescape(text.strip()), account=message.account, direction="outbound-reply")
            for place, text in enumerate(_REPLIES.findall(answered))
        ]
        if replies:
            await self._ledger.accept("sms", replies)

    async def _post_form(self, url: str, fields: Mapping[str, str], answered: list[str] | None = None) -> Outcome:
        headers = {
            "X-Twilio-Signature": twilio_signature(self._account.auth_token, url, fields), "Content-Type": _FORM,
            "I-Twilio-Idempotency-Token": secrets.token_hex(16), "User-Agent": "TwilioProxy/1.1",
        }
        return await self._post(url, urlencode(fields).encode(), headers, answered)

    def _where(self, url: str) -> str:
        public, local = self._reached
        return local + url[len(public):] if local and url.startswith(public + "/") else url

    async def _post(
        self, url: str, body: bytes, headers: Mapping[str, str], answered: list[str] | None = None
    ) -> Outcome:
        if self._http is None or self._http.closed:
            self._http = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=TIMEOUT_SECONDS), connector=aiohttp.TCPConnector(limit=AT_ONCE)
            )
        try:
            async with self._http.post(
                self._where(url), data=body, headers=dict(headers), allow_redirects=False
            ) as response:
                text = await response.text(errors="replace")
        except (aiohttp.ClientError, TimeoutError, ValueError) as problem:
            _log.info("a webhook was not reached", problem=type(problem).__name__)
            return "failed"
        if response.status >= 500 or response.status == 429:
            return "failed"
        if response.status >= 300:
            return "refused"
        if answered is not None:
            answered.append(text)
        return "called"


def status_fields(message: Message, step: Step) -> dict[str, str]:
    """The form of a status callback."""
    fields = {
        "SmsSid": message.id, "SmsStatus": step.status, "MessageStatus": step.status, "To": message.to,
        "MessageSid": message.id, "AccountSid": message.account, "From": message.sender or SENDER,
        "ApiVersion": API_VERSION,
    }
    if message.service:
        fields["MessagingServiceSid"] = message.service
    if step.code:
        fields["ErrorCode"] = str(step.code)
    return fields


async def text_us(ledger: Ledger, clock: Clock, account_sid: str, number: str, text: str) -> str:
    """Somebody texts us: it lies in their inbox, and the inbound webhook is called by whoever works. The sid."""
    if not is_number(number) or not text.strip():
        raise Invalid("a reply needs a phone number such as +15550001 that it comes from, and words")
    now = clock.now()
    message = Message(new_sid(), "sms", number, now, (Step("received", now),), sender=number, text=text,
                      account=account_sid, direction="inbound")
    await ledger.accept("sms", [message], [Delivery("inbound", message.id, now)], counted="received")
    return message.id


def inbound_fields(message: Message) -> dict[str, str]:
    """The form of an incoming text. What the network does not know of the sender is there, and blank."""
    return {
        "ToCountry": "US", "ToState": "", "SmsMessageSid": message.id, "NumMedia": "0", "ToCity": "", "FromZip": "",
        "SmsSid": message.id, "FromState": "", "SmsStatus": "received", "FromCity": "", "Body": message.text,
        "FromCountry": "US", "To": SENDER, "ToZip": "", "NumSegments": "1", "MessageSid": message.id,
        "AccountSid": message.account, "From": message.to, "ApiVersion": API_VERSION,
    }
