"""The patrol: looks with every watcher now and then, and raises and clears alerts by what they say.

Every process of an installation may have one: each round is made by one of them. While the server that keeps alerts is
away, or refuses to write, each process tells by itself what it can: into its log and by webhook.
"""

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from keystead.clock import Clock, real, real_seconds
from keystead.engine import Valkey
from keystead.engine.failures import ErrorReply
from keystead.errors import Invalid, Unavailable
from keystead.ids import new_uid
from keystead.operations.alerts import MOST_NAME, Alerts
from keystead.operations.delivery import NotDelivered, Webhook
from keystead.operations.keys import ROUND
from keystead.operations.models import AlertEvent, Event
from keystead.operations.watchers import Watcher
from keystead.telemetry import counts, logger

AWAY: Final = "valkey_away"
AWAY_SECONDS: Final = 30.0  # a server that restarts is away for a moment
LOOK_SECONDS: Final = 60.0  # a watcher that takes longer is given up for this round

counts.describe("alert_watch_failures", "looks of a watcher that failed, by kind")

_log = logger("operations")


@dataclass(frozen=True, slots=True)
class Retired:
    """A kind of alert that nobody here watches for, and ``why``, in words for whoever was told of one.

    Another process may watch for it still, so one counts as forgotten when nobody has seen it for ``silent_seconds``.
    With ``subject`` only that one.
    """

    kind: str
    why: str
    silent_seconds: float = 900.0
    subject: str = ""


class Patrol:
    """Looks every ``every_seconds``, over all processes together. What was ``retired`` does not stay open."""

    def __init__(
        self, valkey: Valkey, clock: Clock, alerts: Alerts, watchers: Sequence[Watcher], *, every_seconds: float = 15.0,
        webhook: Webhook | None = None, retired: Sequence[Retired] = (),
    ) -> None:
        self._valkey, self._clock, self._alerts, self._watchers = valkey, clock, alerts, tuple(watchers)
        self._retired = tuple(retired)
        self._every = max(1.0, every_seconds)
        self._alone = _Alone(clock, alerts.rules.repeat_seconds, webhook)

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(self._every * random.uniform(0.9, 1.1))
            await self.beat()

    async def beat(self) -> bool:
        """One round, unless another process makes or just made it; says whether it was made here."""
        try:
            if not await ROUND.at().lasting(self._every * 0.8).try_raise(self._valkey):
                await self._alone.back()
                return False
            for watcher in self._watchers:
                await self.look(watcher)
            await self.close_retired()
        except (Unavailable, ErrorReply) as error:
            await self._alone.away(type(error).__name__)
            return False
        await self._alone.back()
        return True

    async def look(self, watcher: Watcher) -> None:
        """Raise what it says, clear what it does not say any more. A look that fails changes nothing."""
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                troubles = await watcher.look()
        except Unavailable as error:
            self._failed(watcher, error)
            raise
        except Exception as error:  # whatever is wrong with one watcher, the others look
            self._failed(watcher, error)
            return
        if troubles is None:
            return
        # First what is over: where too many are open, there is room again.
        named = {trouble.subject[:MOST_NAME].strip() for trouble in troubles}
        for alert in await self._alerts.open():
            if alert.kind == watcher.kind and alert.subject not in named:
                await self._alerts.clear(alert.kind, alert.subject)
        for trouble in troubles:
            try:
                await self._alerts.raise_(watcher.kind, trouble.subject[:MOST_NAME], trouble.says, trouble.severity)
            except Invalid as error:  # too many are open: those are told, and say enough
                self._failed(watcher, error)
                return

    async def close_retired(self) -> None:
        """Clear what is open though nobody watches for it any more, and say so."""
        if not self._retired:
            return
        now = self._clock.now()
        for alert in await self._alerts.open():
            silent = real_seconds(self._clock, now - alert.seen_at)
            for one in self._retired:
                if (one.kind, one.subject or alert.subject) == (alert.kind, alert.subject) \
                        and silent >= one.silent_seconds:
                    await self._alerts.clear(alert.kind, alert.subject, f"closed, because {one.why}")

    def _failed(self, watcher: Watcher, error: Exception) -> None:
        counts.add("alert_watch_failures", kind=watcher.kind)
        _log.warning("a watcher cannot look", kind=watcher.kind, error=type(error).__name__)


class _Alone:
    """What one process tells while alerts cannot be kept: that they cannot, once in a pause, and when it is over."""

    def __init__(self, clock: Clock, repeat_seconds: float, webhook: Webhook | None) -> None:
        self._clock, self._repeat, self._webhook = clock, repeat_seconds, webhook
        self._since: float | None = None
        self._told_at: float | None = None

    async def away(self, why: str) -> None:
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        if now - self._since < AWAY_SECONDS or (self._told_at is not None and now - self._told_at < self._repeat):
            return
        if await self._tell("opened", f"alerts cannot be kept: {why} for {now - self._since:.0f} s"):
            self._told_at = now

    async def back(self) -> None:
        self._since = None
        if self._told_at is not None and await self._tell("cleared", "alerts can be kept again"):
            self._told_at = None

    async def _tell(self, event: Event, says: str) -> bool:
        now = self._clock.now()
        _log.error("alert", what=event, kind=AWAY, subject="server", says=says, severity="critical")
        if self._webhook is None:
            return True
        told = AlertEvent(uid=new_uid("alert"), event=event, kind=AWAY, subject="server", says=says,
                          severity="critical", at=now, opened_at=now)
        try:
            await self._webhook([told], now=real(self._clock).now())
        except NotDelivered as error:
            _log.warning("an alert did not reach anybody yet", way="webhook", error=str(error))
            return False
        return True
