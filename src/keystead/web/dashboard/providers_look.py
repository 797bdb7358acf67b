"""How each provider is doing: what its breaker judges by, how long it takes to answer, and what went wrong lately."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from keystead.app import Running
from keystead.clock import real
from keystead.messaging.sandbox import FaultBoard
from keystead.messaging.sending import Call, Health, calls
from keystead.messaging.touches.stats import SENDS as TOUCH_SENDS
from keystead.web.dashboard.messages_failed import Failure, failures
from keystead.web.dashboard.messages_look import CHANNELS, ChannelLook
from keystead.web.dashboard.messages_look import look_at as look_at_messages
from keystead.web.dashboard.sandbox_faults import faults_set

SANDBOX: Final = "sandbox"
LATELY_SECONDS: Final = 300.0
HOUR_SECONDS: Final = 3600.0
FAMILIES: Final[Mapping[str, tuple[str, ...]]] = {
    "push": ("push_tickets", "push_receipts"), "sms": ("sms_send", "sms_events"),
    "email": ("email_send", "email_events"),
}
NAMED: Final = {"twilio": "Twilio", "ses": "Amazon SES", "smtp": "SMTP", "expo": "Expo", SANDBOX: "our sandbox"}


@dataclass(frozen=True, slots=True)
class Trouble:
    """What went wrong with some calls of the last hour, and when it last did."""

    why: str
    count: int
    last_at: float


@dataclass(frozen=True, slots=True)
class Answers:
    """Calls of this process in the last hour. ``seconds``: how long each took, oldest first."""

    seconds: tuple[float, ...] = ()
    failed: int = 0
    last_at: float | None = None
    troubles: tuple[Trouble, ...] = ()

    def within(self, share: float) -> float | None:
        """How long this share of the calls took at most."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None


@dataclass(frozen=True, slots=True)
class ProviderLook:
    """One channel's provider now. ``faults``: how many the sandbox was told to make; ``counted``: today's failures."""

    channel: str
    provider: str
    now: ChannelLook
    answers: Answers
    counted: tuple[Failure, ...]
    faults: int = 0

    @property
    def is_sandbox(self) -> bool:
        return self.provider == SANDBOX

    @property
    def state(self) -> str:
        """``down``, ``probing``, ``paused``, ``resting``, ``refusing`` (every call fails, too few yet for the breaker),
        ``failing`` (some calls fail), ``answering`` or ``idle``."""
        one = self.now
        if one.breaker != "closed":
            return "down" if one.breaker == "open" else "probing"
        if one.is_held:
            return "paused"
        if one.paused:
            return "resting"
        if one.calls and one.failed_calls >= one.calls:
            return "refusing"
        if one.calls and one.failed_calls * 5 >= one.calls:
            return "failing"
        return "answering" if one.calls else "idle"


async def look_at(running: Running) -> tuple[ProviderLook, ...]:
    """A few round trips; the calls are in memory."""
    settings, now = running.settings, real(running.clock).now()
    providers = {"push": settings.push.provider, "sms": settings.sms.provider, "email": settings.email.provider}
    board = FaultBoard(running.valkey)
    messages, counted = await asyncio.gather(look_at_messages(running), _counted(running))
    faults: dict[str, int] = {}
    if SANDBOX in providers.values():
        await board.refresh()
        faults = {str(name): faults_set(each) for name, each in board.all().items()}
    return tuple(
        ProviderLook(name, providers[name], next(one for one in messages.channels if one.name == name),
                     answers(calls.of(name), now), counted[name],
                     faults.get(name, 0) if providers[name] == SANDBOX else 0)
        for name in CHANNELS
    )


def answers(made: Sequence[Call], now: float) -> Answers:
    """The last hour of calls, what was wrong most frequent first."""
    lately = [call for call in made if call.at > now - HOUR_SECONDS]
    counts: Counter[str] = Counter()
    last: dict[str, float] = {}
    for call in lately:
        if call.why:
            counts[call.why] += max(1, call.refused)
            last[call.why] = call.at
    return Answers(
        tuple(call.seconds for call in lately),
        sum(call.health in (Health.FAILED, Health.THROTTLED) for call in lately),
        lately[-1].at if lately else None,
        tuple(Trouble(why, count, last[why]) for why, count in counts.most_common()),
    )


async def _counted(running: Running) -> dict[str, tuple[Failure, ...]]:
    """Today's and yesterday's failures by channel, counted over all processes."""
    end = TOUCH_SENDS.day_of(running.clock.now()) + 1
    names = [name for families in FAMILIES.values() for name in families]
    found = dict(zip(names, await asyncio.gather(*(
        running.charts.series(name, end - 2, end) for name in names)), strict=True))
    return {channel: tuple(failures({name: found[name] for name in families}))
            for channel, families in FAMILIES.items()}
