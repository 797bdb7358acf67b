"""How many messages leave and arrive each second, by channel: looked at while someone watches, for all who do."""

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from keystead.clock import Clock, real
from keystead.engine import Valkey
from keystead.engine.failures import ErrorReply
from keystead.errors import KeysteadError
from keystead.messaging.email.stats import EVENTS as EMAIL_EVENTS
from keystead.messaging.email.stats import SENDS as EMAIL_SENDS
from keystead.messaging.push.stats import RECEIPTS as PUSH_RECEIPTS
from keystead.messaging.push.stats import TICKETS as PUSH_TICKETS
from keystead.messaging.sms.stats import EVENTS as SMS_EVENTS
from keystead.messaging.sms.stats import SENDS as SMS_SENDS
from keystead.patterns import DailyFamily
from keystead.web.sampler import ANSWER_SECONDS, KEPT_SAMPLES, on_a_beat

# Someone who comes back within this time finds the minutes between drawn.
WANTED_SECONDS: Final = 600.0
# After a stall two beats come at once; a message in a few milliseconds would look like hundreds in a second.
LEAST_SECONDS: Final = 0.5
STEPS: Final = ("queued", "sent", "arrived")

# Which counts say that a message was queued, taken by the provider, and arrived.
_Counts = tuple[tuple[DailyFamily, tuple[str, ...]], ...]
COUNTED: Final[Mapping[str, _Counts]] = {
    "push": ((PUSH_TICKETS, ("queued",)), (PUSH_TICKETS, ("succeeded",)), (PUSH_RECEIPTS, ("succeeded",))),
    "sms": ((SMS_SENDS, ("queued",)), (SMS_SENDS, ("succeeded_pending", "succeeded_immediate")),
            (SMS_EVENTS, ("succeeded",))),
    "email": ((EMAIL_SENDS, ("queued",)), (EMAIL_SENDS, ("accepted",)), (EMAIL_EVENTS, ("succeeded",))),
}
_FAMILIES: Final = tuple(dict.fromkeys(family for counts in COUNTED.values() for family, _ in counts))
_HELD_DAYS: Final = 2

Totals = dict[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class MessageRates:
    """Messages per second over the second before, by channel; each as long as ``STEPS``."""

    by_channel: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class MessageRateSample:
    """``rates`` is None while the server was away, had just come back, or a day began."""

    at: float
    rates: MessageRates | None


class MessageRateSampler:
    """Samples while ``run`` runs and someone wants it. ``samples`` are the last ten minutes, oldest first."""

    def __init__(self, valkey: Valkey, clock: Clock) -> None:
        self._valkey, self._clock, self._real = valkey, clock, real(clock)
        self._last: tuple[float, Totals] | None = None
        self._wanted_until = 0.0
        self.samples: deque[MessageRateSample] = deque(maxlen=KEPT_SAMPLES)

    @property
    def newest(self) -> MessageRates | None:
        return self.samples[-1].rates if self.samples else None

    def want(self) -> None:
        """Someone looks: go on for ten minutes."""
        self._wanted_until = asyncio.get_running_loop().time() + WANTED_SECONDS

    async def run(self) -> None:
        """Sample until cancelled; an idle server stays idle while nobody looks."""
        await on_a_beat(self._beat)

    async def _beat(self) -> None:
        now = asyncio.get_running_loop().time()
        if now >= self._wanted_until:
            self._last = None
        elif self._last is None or now - self._last[0] >= LEAST_SECONDS:
            await self.sample()

    async def sample(self) -> None:
        """Look once. Never raises for a server that is away."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                totals = await self._totals()
        except (KeysteadError, TimeoutError, ErrorReply):
            self._last = None
            self.samples.append(MessageRateSample(self._real.now(), None))
            return
        now, rates = asyncio.get_running_loop().time(), None
        if self._last is not None and now > self._last[0]:
            rates = rates_between(self._last[1], totals, now - self._last[0])
        self._last = now, totals
        self.samples.append(MessageRateSample(self._real.now(), rates))

    async def _totals(self) -> Totals:
        """Of the days that are still counted on: what was queued before midnight may arrive after it."""
        now = self._clock.now()
        hashes = [key.at(family.day_of(now) - back) for family in _FAMILIES for back in range(_HELD_DAYS)
                  for key in family.day_keys[:1]]
        lanes = [self._valkey.lanes_of(each.declaration) for each in hashes]
        found = await asyncio.gather(*(
            each.all(lane) for each, in_lanes in zip(hashes, lanes, strict=True) for lane in in_lanes
        ))
        families = [_FAMILIES[place // _HELD_DAYS].name for place, in_lanes in enumerate(lanes) for _ in in_lanes]
        days: dict[str, dict[str, int]] = {family.name: {} for family in _FAMILIES}
        for family, counts in zip(families, found, strict=True):
            target = days[family]
            for event, count in counts.items():
                target[event] = target.get(event, 0) + count
        return {
            channel: tuple(sum(days[family.name].get(event, 0) for event in events) for family, events in steps)
            for channel, steps in COUNTED.items()
        }


def rates_between(before: Totals, after: Totals, seconds: float) -> MessageRates | None:
    """None when some total went back: a day was put away, or someone emptied the server."""
    grown = {channel: tuple(new - old for new, old in zip(counts, before[channel], strict=True))
             for channel, counts in after.items()}
    if any(count < 0 for counts in grown.values() for count in counts):
        return None
    return MessageRates({channel: tuple(count / seconds for count in counts) for channel, counts in grown.items()})
