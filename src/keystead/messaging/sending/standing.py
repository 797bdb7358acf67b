"""How a channel stands with its provider: breaker, pauses and the last calls, looked at without asking the breaker."""

import asyncio
from dataclasses import dataclass
from typing import Any, Literal

from keystead.engine import Valkey
from keystead.messaging.sending.channel import Channel
from keystead.patterns import FailureShare

BreakerSays = Literal["closed", "open", "probing"]


@dataclass(frozen=True, slots=True)
class Standing:
    """A channel now. ``calls`` and ``failed``: those that the breaker judges by, and how many of them failed.

    ``paused_seconds``: until it goes on by itself, as after the provider asked for a rest; None: when somebody
    resumes it.
    """

    channel: str
    breaker: BreakerSays
    calls: int
    failed: int
    paused: bool
    paused_seconds: float | None

    @property
    def is_held(self) -> bool:
        """Whether somebody paused it."""
        return self.paused and self.paused_seconds is None

    @property
    def is_sending(self) -> bool:
        return self.breaker == "closed" and not self.paused


async def standing(valkey: Valkey, channel: Channel[Any], now: float) -> Standing:
    """As the breaker would judge, without asking it: a question may be taken for a try. One lane, two round trips.

    ``now`` is of the real clock, as all that the breaker was told.
    """
    breaker, paused = channel.breaker, channel.paused_key.at()
    assert isinstance(breaker.trips, FailureShare)
    calls, probe, is_paused, seconds = await asyncio.gather(
        breaker.calls.at().range(valkey, -breaker.trips.of_calls, -1), breaker.probe.at().get(valkey),
        paused.exists(valkey), paused.remaining_seconds(valkey),
    )
    recent = [member for member, at in calls if abs(at - now) < breaker.trips.within_seconds]
    says, failed = judged(recent, probe, breaker.trips)
    return Standing(channel.name, says, len(recent), failed, is_paused, seconds)


def judged(calls: list[str], probe: str | None, trips: FailureShare) -> tuple[BreakerSays, int]:
    """Whether the last calls open it, and how many of them failed."""
    failed = sum(call.startswith("f") for call in calls)
    is_open = len(calls) >= trips.of_calls and failed * 100 >= trips.percent * len(calls)
    if not is_open and probe != "opened":
        return "closed", failed
    return "open" if probe is None or probe == "opened" else "probing", failed
