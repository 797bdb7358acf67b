"""Getting alerts to somebody: by webhook, by mail, into the log. At least once each, several in one message."""

import asyncio
import contextlib
import hashlib
import hmac
import json
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from keystead.clock import Clock, clock_seconds, real, real_seconds
from keystead.engine import Valkey
from keystead.engine.failures import ErrorReply
from keystead.errors import Invalid, KeysteadError
from keystead.jobs import ROOMS_QUEUE, Jobs
from keystead.operations.alerts import Alerts
from keystead.operations.keys import DELIVERIES, TRIED
from keystead.operations.models import AlertDelivery, AlertEvent, Way
from keystead.patterns import DueItem
from keystead.telemetry import counts, logger

BATCH_ITEMS: Final = 50  # events in one message, so that much trouble at once is no storm
POLL_SECONDS: Final = 5.0
ADOPT_SECONDS: Final = 15.0
REQUEST_SECONDS: Final = 10.0
SOONEST_AGAIN_SECONDS: Final = 5.0
LATEST_AGAIN_SECONDS: Final = 900.0
TRIED_SECONDS: Final = 7 * 86400.0
MAIL_JOB: Final = "alerts.mail"  # registered by the wiring: messaging lies above
SIGNATURE_HEADER: Final = "Keystead-Signature"
UNDELIVERED: Final = "alert_undelivered"

counts.describe("alert_deliveries", "messages about alerts that were handed over, by way and outcome")

_log = logger("operations")

Deliver = Callable[[Sequence[AlertEvent]], Awaitable[None]]


class NotDelivered(KeysteadError):
    """Whoever was to be told could not be, this time. ``perhaps``: or was, and no answer came back."""

    def __init__(self, message: str, *, perhaps: bool = False) -> None:
        super().__init__(message)
        self.perhaps = perhaps


@dataclass(frozen=True, slots=True)
class Webhook:
    """Posts events as JSON to an address that the operator set.

    The address may be in a private network, where such receivers are; it comes from the settings and never from a
    request. Redirects are not followed, and nothing of the answer but its status is read.
    """

    url: str
    secret: str = ""

    def __post_init__(self) -> None:
        require_address(self.url, "alerts.webhook_url")

    async def __call__(self, events: Sequence[AlertEvent], *, now: float) -> None:
        """``NotDelivered`` unless the receiver answered with 2xx."""
        import aiohttp

        raw = webhook_body(events)
        headers = {"Content-Type": "application/json", "User-Agent": "keystead"}
        if self.secret:
            headers[SIGNATURE_HEADER] = signature_of(raw, self.secret, now)
        limit = aiohttp.ClientTimeout(total=REQUEST_SECONDS)
        try:
            async with (
                aiohttp.ClientSession(timeout=limit) as session,
                session.post(self.url, data=raw, headers=headers, allow_redirects=False) as answer,
            ):
                status = answer.status
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            never_left = isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError | ValueError)
            why = f"the webhook cannot be reached: {type(error).__name__}"
            raise NotDelivered(why, perhaps=not never_left) from None
        if not 200 <= status < 300:
            raise NotDelivered(f"the webhook answered with {status}")


def require_address(url: str, setting: str) -> None:
    """Refuse what nobody can call. The address is not said: it may hold a secret."""
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_one = False
    if not is_one:
        raise Invalid(f"{setting} must begin with http:// or https:// and name a host")


def webhook_body(events: Sequence[AlertEvent]) -> bytes:
    """``text`` is for chats that show it; ``events`` for programs, which know one they saw by its ``uid``. Both say
    what may have been told before."""
    return json.dumps({"text": shown(events), "events": [msgspec.to_builtins(event) for event in events]}).encode()


def signature_of(raw: bytes, secret: str, now: float) -> str:
    """``t=UNIX,v1=HEX``: the HMAC-SHA256 of time, a dot and the body. Receivers refuse an old time."""
    at = str(int(now))
    return f"t={at},v1={hmac.new(secret.encode(), at.encode() + b'.' + raw, hashlib.sha256).hexdigest()}"


def shown(events: Sequence[AlertEvent]) -> str:
    """Events in words, one line each."""
    return "\n".join(f"[{event.severity}] {event.event}: {event.kind} ({event.subject}): {event.says}"
                     f"{' (perhaps told before)' if event.perhaps_told else ''}" for event in events)


class Delivery:
    """Takes what is due and hands it over. Any number may run at once, in any number of processes."""

    def __init__(
        self, valkey: Valkey, clock: Clock, alerts: Alerts, *, webhook: Webhook | None = None, mail_to: str = ""
    ) -> None:
        self._valkey, self._clock, self._alerts, self._webhook, self._mail_to = valkey, clock, alerts, webhook, mail_to
        self._ways: Mapping[Way, Deliver] = {"webhook": self._by_webhook, "mail": self._by_mail, "log": self._by_log}
        name = f"{socket.gethostname().replace(':', '-')}-{os.getpid()}-{secrets.token_hex(3)}"
        self._worker = DELIVERIES.worker(name)

    async def run(self) -> None:
        """Deliver until cancelled. A server that is away is waited for."""
        loop = asyncio.get_running_loop()
        adopt_at = 0.0
        stirred = self._alerts.stirred
        while True:
            try:
                if loop.time() >= adopt_at:
                    await DELIVERIES.adopt(self._valkey, now=self._clock.now())
                    adopt_at = loop.time() + ADOPT_SECONDS
                while await self.deliver():
                    pass
            except (KeysteadError, ErrorReply) as error:
                _log.warning("alerts cannot be delivered", error=type(error).__name__)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await stirred.wait()
            stirred.clear()

    async def deliver(self) -> int:
        """Hand over what is due now, each way in one message; says how many deliveries were taken."""
        if await DELIVERIES.next_at(self._valkey) is None and not await self._worker.purgatory.size(self._valkey):
            return 0
        taken = await self._worker.take(self._valkey, BATCH_ITEMS, now=self._clock.now())
        if not taken.items:
            return 0
        async with self._worker.alive(self._valkey):
            ways = sorted({item.value.way for item in taken.items})
            for way in ways:
                await self._hand_over(way, [item for item in taken.items if item.value.way == way])
        return len(taken.items)

    async def _hand_over(self, way: Way, items: Sequence[DueItem[AlertDelivery]]) -> None:
        events = await self._begin(way, [item.value.event for item in items])
        try:
            await self._ways[way](sorted(events, key=lambda event: event.at))
        except (KeysteadError, ErrorReply) as error:
            if isinstance(error, NotDelivered) and not error.perhaps:
                # This try told nobody; of an earlier one that is still not known.
                await self._end(way, [event for event in events if not event.perhaps_told])
            counts.add("alert_deliveries", way=way, outcome="failed")
            _log.warning("an alert did not reach anybody yet", way=way, error=str(error))
            await self._failed(way, items, str(error))
            return
        counts.add("alert_deliveries", way=way, outcome="done")
        await self._worker.finish(self._valkey, items)
        await self._end(way, events)
        await self._alerts.clear(UNDELIVERED, way)

    async def _begin(self, way: Way, events: Sequence[AlertEvent]) -> list[AlertEvent]:
        """Note that these are being handed over; those of which that was noted before come back marked so."""
        tried, now = TRIED.at(), self._clock.now()
        async with self._valkey.pipeline(transaction=True) as block:
            forgotten = now - clock_seconds(self._clock, TRIED_SECONDS)
            block.run(("ZREMRANGEBYSCORE", tried.name(block.layout), "-inf", forgotten), int)
            new = [tried.add(block, f"{way} {event.uid}", now) for event in events]
            await block.execute()
        return [event if await first else msgspec.structs.replace(event, perhaps_told=True)
                for event, first in zip(events, new, strict=True)]

    async def _end(self, way: Way, events: Sequence[AlertEvent]) -> None:
        if events:
            await TRIED.at().remove(self._valkey, *(f"{way} {event.uid}" for event in events))

    async def _failed(self, way: Way, items: Sequence[DueItem[AlertDelivery]], error: str) -> None:
        now, gone = self._clock.now(), 0
        for item in items:
            # Longer each time: half as long again as the event is old.
            age = real_seconds(self._clock, now - item.value.event.at)
            wait = min(max(age / 2, SOONEST_AGAIN_SECONDS), LATEST_AGAIN_SECONDS)
            failed = await self._worker.fail(
                self._valkey, item, error=error, now=now, again_at=now + clock_seconds(self._clock, wait)
            )
            gone += failed.dead
        if gone and any(item.value.event.kind != UNDELIVERED for item in items):
            await self._alerts.raise_(UNDELIVERED, way, f"alerts could not be delivered by {way}: {error}", "critical")

    # -- the ways ---------------------------------------------------------------------------------------------------

    async def _by_webhook(self, events: Sequence[AlertEvent]) -> None:
        if self._webhook is None:
            raise NotDelivered("no webhook is set in this process")
        await self._webhook(events, now=real(self._clock).now())

    async def _by_mail(self, events: Sequence[AlertEvent]) -> None:
        """A job of a room above writes the mail; its uid lets it be written once."""
        if not self._mail_to:
            raise NotDelivered("nobody is set to get mail in this process")
        uid = hashlib.sha256("".join(event.uid for event in events).encode()).hexdigest()[:24]
        kwargs: dict[str, Any] = {"uid": f"alert-{uid}", "to": self._mail_to, "subject": _subject(events),
                                  "text": shown(events).replace("\n", "\n\n")}
        await Jobs(self._valkey, clock=self._clock).options(queue=ROOMS_QUEUE).enqueue(MAIL_JOB, **kwargs)

    async def _by_log(self, events: Sequence[AlertEvent]) -> None:
        for event in events:
            write = _log.info if event.event in ("cleared", "test") else _log.warning
            write("alert", what=event.event, kind=event.kind, subject=event.subject, says=event.says,
                  severity=event.severity, **({"perhaps_told": True} if event.perhaps_told else {}))


def _subject(events: Sequence[AlertEvent]) -> str:
    first = events[0]
    more = f" and {len(events) - 1} more" if len(events) > 1 else ""
    return " ".join(f"Alert {first.event}: {first.kind} ({first.subject}){more}".split())[:200]
