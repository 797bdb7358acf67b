"""How the providers misbehave: what was set for each of them, and what that means for one request.

The same seed gives the same sequence: the nth request of a channel since the faults were set meets the same fate,
whatever else happens. Each fate draws for every fault whether it is set or not, so that turning one on moves no other.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from keystead.engine import Valkey
from keystead.errors import Invalid
from keystead.messaging.sandbox.keys import FAULTS, STOPPED
from keystead.messaging.sandbox.models import CHANNELS, Channel, Faults

_DRAWN: Final = (
    "throttle", "server_error", "cut_before", "cut_after", "undelivered", "complaint", "reordered", "early", "unknown",
)


@dataclass(frozen=True, slots=True)
class Fate:
    """What befalls one request. ``meets("early")`` is the same however often it is asked."""

    faults: Faults
    _drawn: Mapping[str, float]
    _more: random.Random

    def meets(self, fault: str) -> bool:
        share: float = getattr(self.faults, fault)
        return self._drawn[fault] < share

    def meets_again(self, share: float) -> bool:
        """For what befalls each of several things in one request."""
        return self._more.random() < share


class FaultBoard:
    """The faults of each provider, shared by all processes of the sandbox over the server.

    Asking is free: what is set elsewhere is known after ``refresh``, which the sandbox calls every second.
    """

    def __init__(self, valkey: Valkey) -> None:
        self._valkey = valkey
        self._faults: dict[Channel, Faults] = {channel: Faults() for channel in CHANNELS}
        self._requests: dict[Channel, int] = dict.fromkeys(CHANNELS, 0)
        self.stopped: set[str] = set()

    def of(self, channel: Channel) -> Faults:
        return self._faults[channel]

    def all(self) -> dict[Channel, Faults]:
        return dict(self._faults)

    async def refresh(self) -> None:
        async with self._valkey.pipeline(transaction=False) as pipeline:
            FAULTS.at().all(pipeline)
            STOPPED.at().members(pipeline)
            found, stopped = await pipeline.execute()
        self.stopped = set(stopped)
        for channel in CHANNELS:
            self._put(channel, found.get(channel, Faults()))

    async def change(self, channel: Channel | None, changes: Mapping[str, object]) -> dict[Channel, Faults]:
        """Change some faults of one provider, or of all; ``Invalid`` says what is wrong with them."""
        for each in CHANNELS if channel is None else (channel,):
            await self.set(each, changed(self._faults[each], changes))
        return self.all()

    async def set(self, channel: Channel, faults: Faults) -> None:
        """All faults of a provider; the sequence of fates begins anew."""
        await FAULTS.at().set(self._valkey, channel, faults)
        self._faults[channel] = faults
        self._requests[channel] = 0

    async def clear(self) -> None:
        """Every provider behaves again."""
        for channel in CHANNELS:
            await self.set(channel, Faults())

    def fate(self, channel: Channel) -> Fate:
        """What befalls the next request of a channel."""
        faults = self._faults[channel]
        drawing = random.Random(f"{faults.seed}:{channel}:{self._requests[channel]}")
        self._requests[channel] += 1
        return Fate(faults, {name: drawing.random() for name in _DRAWN}, drawing)

    def _put(self, channel: Channel, faults: Faults) -> None:
        if self._faults[channel] != faults:
            self._faults[channel] = faults
            self._requests[channel] = 0


def changed(faults: Faults, changes: Mapping[str, object]) -> Faults:
    """These faults with changes; ``Invalid`` if there is no such fault or it cannot have that value."""
    try:
        return msgspec.convert({**msgspec.structs.asdict(faults), **changes}, Faults)
    except msgspec.ValidationError as error:
        raise Invalid(f"the faults cannot be set so: {error}") from None


class Rate:
    """At most so many requests a second; 0 means any number. Half a second's worth may come at once."""

    def __init__(self) -> None:
        self._tokens = 0.0
        self._at = 0.0

    def allows(self, per_second: float, now: float) -> bool:
        if not per_second:
            return True
        most = max(1.0, per_second / 2)
        self._tokens = min(most, self._tokens + (now - self._at) * per_second) if self._at else most
        self._at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
