"""What waits in each channel, what guards its provider, and what is stuck: read once for all who look."""

import asyncio
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from keystead.app import Running
from keystead.clock import clock_seconds, real
from keystead.engine import Valkey
from keystead.keys import ListRef, Undecodable
from keystead.messaging.email.keys import RECEIPT_PENDING
from keystead.messaging.email.keys import SENDING as EMAIL
from keystead.messaging.push.keys import COLD, HOT
from keystead.messaging.push.keys import SENDING as PUSH
from keystead.messaging.sending import Channel, Lane, standing
from keystead.messaging.sending.standing import BreakerSays
from keystead.messaging.sms.keys import PENDING as SMS_PENDING
from keystead.messaging.sms.keys import SENDING as SMS
from keystead.messaging.touches import QueueInfo

CHANNELS: Final[dict[str, Channel[Any]]] = {"push": PUSH, "sms": SMS, "email": EMAIL}
NAMES: Final = {"push": "Push", "sms": "Text", "email": "Email", "touches": "Touches"}
# By what became of a touch.
TONES: Final = {
    "arrived": "good", "on its way": "", "queued": "", "tried again": "warn", "unreachable": "warn", "stale": "warn",
    "given up": "bad", "failed": "bad", "improper": "bad",
}
LANES: Final = (Lane.HIGH, Lane.NORMAL, Lane.LOW)
# What looks for news does so every minute; before that nothing is late.
LATE_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class ChannelLook:
    """One channel now. ``lanes``: how many wait, most urgent first; ``pending``: with the provider, news is awaited;
    ``overdue``: of those, how many waited for too long. ``paused_seconds``: until it goes on by itself, as after the
    provider asked for a rest; None: when somebody resumes it."""

    name: str
    lanes: tuple[int, ...]
    retrying: int
    pending: int
    overdue: int
    dead: int
    oldest_at: float | None
    breaker: BreakerSays
    failed_calls: int
    paused: bool
    paused_seconds: float | None
    calls: int = 0

    @property
    def waiting(self) -> int:
        return sum(self.lanes)

    @property
    def is_held(self) -> bool:
        """Whether somebody paused it."""
        return self.paused and self.paused_seconds is None


@dataclass(frozen=True, slots=True)
class MessagesLook:
    """Everything at about one moment."""

    channels: tuple[ChannelLook, ...]
    to_send: QueueInfo
    pending: QueueInfo
    to_log: QueueInfo


async def look_at(running: Running) -> MessagesLook:
    """Read it all; a few round trips, whatever waits."""
    queues = running.switchboard.queues
    channels = await asyncio.gather(*(_channel(running, name) for name in CHANNELS))
    to_send, pending, to_log = await asyncio.gather(queues.to_send(), queues.pending(), queues.to_log())
    return MessagesLook(tuple(channels), to_send, pending, to_log)


async def _channel(running: Running, name: str) -> ChannelLook:
    return together([await _in_lane(running, lane, name) for lane in running.valkey.lanes])


def together(lanes: list[ChannelLook]) -> ChannelLook:
    """A channel in all lanes of a cluster: sums, the oldest of all, and the breaker and pause of the one worst off."""
    if len(lanes) == 1:
        return lanes[0]
    oldest = min((one.oldest_at for one in lanes if one.oldest_at is not None), default=None)
    held = max(lanes, key=lambda one: (one.is_held, one.paused_seconds or 0.0))
    broken = max(lanes, key=lambda one: (("closed", "probing", "open").index(one.breaker), one.failed_calls))
    return ChannelLook(
        lanes[0].name, tuple(map(sum, zip(*(one.lanes for one in lanes), strict=True))),
        sum(one.retrying for one in lanes), sum(one.pending for one in lanes), sum(one.overdue for one in lanes),
        sum(one.dead for one in lanes), oldest, broken.breaker, broken.failed_calls, held.paused,
        held.paused_seconds, broken.calls,
    )


async def _in_lane(running: Running, valkey: Valkey, name: str) -> ChannelLook:
    channel = CHANNELS[name]
    lanes = await asyncio.gather(*(channel.waiting(lane).length(valkey) for lane in LANES))
    retrying = await asyncio.gather(*(channel.retrying(lane).size(valkey) for lane in LANES))
    oldest = await asyncio.gather(*(_queued_at(valkey, channel.waiting(lane)) for lane in LANES))
    pending, overdue = await _pending(running, valkey, name)
    stands = await standing(valkey, channel, real(running.clock).now())
    return ChannelLook(
        name, tuple(lanes), sum(retrying), pending, overdue, await channel.work.dead.length(valkey),
        min((at for at in oldest if at is not None), default=None), stands.breaker, stands.failed, stands.paused,
        stands.paused_seconds, stands.calls,
    )


async def _queued_at(valkey: Valkey, place: ListRef[Any]) -> float | None:
    """Since when the first of a lane waits; None for nothing, and for what does not say."""
    name = place.name(valkey.layout)
    raw: bytes | None = await valkey.run(("LINDEX", name, 0), lambda reply: reply, repeat=True)
    try:
        return None if raw is None else float(place.codec.decode(raw).initially_queued_at)
    except Undecodable:
        return None


async def _pending(running: Running, valkey: Valkey, name: str) -> tuple[int, int]:
    settings, now, patience = running.settings, running.clock.now(), clock_seconds(running.clock, LATE_SECONDS)
    if name == "sms":  # by the time when the provider is asked
        return (await SMS_PENDING.size(valkey),
                await SMS_PENDING.index.count(valkey, most=now - patience))
    if name == "email":
        late = now - settings.email.receipt_seconds - patience
        return await RECEIPT_PENDING.size(valkey), await RECEIPT_PENDING.index.count(valkey, most=late)
    cold = COLD.at()
    late = now - settings.push.cold_seconds - patience
    return await cold.size(valkey) + await HOT.length(valkey), await cold.count(valkey, most=late)


def trace_address(uid: str) -> str:
    """Where the life of a touch, or of a message, is told."""
    return f"/messages/trace?uid={quote(uid, safe='')}"


def is_busy(look: MessagesLook) -> bool:
    """Whether something is on its way, or got stuck on it."""
    return any(one.waiting or one.retrying or one.pending or one.dead or one.is_held for one in look.channels) or bool(
        look.to_send.length or look.pending.length or look.to_log.length)
