"""Alerts: what somebody should look at. Each opens once, is told again after a pause at the earliest, and clears.

All state lies in Valkey. A change of an alert, what is noted of it and what is to reach somebody of it are one atomic
step that happens once, however many processes see the same trouble; so a process that is killed has either changed
nothing or left a delivery behind that another one makes.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from keystead.clock import Clock, real_seconds
from keystead.engine import Valkey
from keystead.errors import Invalid, NotFound
from keystead.ids import new_uid
from keystead.keys import Executor
from keystead.operations.keys import ALERT, CLEARED_SECONDS, DELIVERIES, OPEN, RECENT, STEP
from keystead.operations.models import Alert, AlertDelivery, AlertEvent, Event, Severity, Way
from keystead.patterns import Once, Writes, once
from keystead.telemetry import counts

KEPT_EVENTS: Final = 200
MOST_OPEN: Final = 500
SEEN_SECONDS: Final = 60.0  # so old may be what an open alert says of when it was last seen
MOST_SAYS: Final = 500
MOST_NAME: Final = 120
TRIES: Final = 3  # of a change that another process was faster with

counts.describe("alerts_told", "events of alerts that were handed to a way, by kind and event")
counts.describe("alerts_kept_quiet", "alerts that opened again within the pause, so that nobody was told, by kind")


@dataclass(frozen=True, slots=True)
class AlertRules:
    """``repeat_seconds``: nobody is told of the same alert again sooner. ``ways``: how somebody is told."""

    repeat_seconds: float = 4 * 3600.0
    ways: tuple[Way, ...] = ("log",)

    def __post_init__(self) -> None:
        if not 0 < self.repeat_seconds < CLEARED_SECONDS:
            raise Invalid(f"alerts.repeat_seconds is {self.repeat_seconds:g}; it may be up to {CLEARED_SECONDS - 1:,}")


class Alerts:
    """Raise, clear, look. ``stirred`` is set when something of ours is to be delivered."""

    def __init__(self, valkey: Valkey, clock: Clock, rules: AlertRules | None = None) -> None:
        self._valkey, self._clock = valkey, clock
        self.rules = rules or AlertRules()
        self.stirred = asyncio.Event()

    # -- changing ---------------------------------------------------------------------------------------------------

    async def raise_(self, kind: str, subject: str, says: str, severity: Severity = "warning") -> Alert:
        """There is trouble: open an alert, or note that it is still there.

        Somebody is told when it opens, when it becomes critical, and after the pause again, unless it was acknowledged.
        One that opens again within the pause, or becomes critical again within it, does so without telling. ``says``
        must hold no personal data.
        """
        kind, subject, says = _name(kind, "kind"), _name(subject, "subject"), says.strip()[:MOST_SAYS]
        for _ in range(TRIES):
            before = await self.get(kind, subject)
            now = self._clock.now()
            if before is None or not before.is_open:
                done = await self._open(before, kind, subject, says, severity, now)
            else:
                done = await self._again(before, says, severity, now)
            if done is not None:
                return done
        return before or await self._known(kind, subject)

    async def _open(
        self, before: Alert | None, kind: str, subject: str, says: str, severity: Severity, now: float
    ) -> Alert | None:
        version, told_at, critical_at = (
            (before.version, before.told_at, before.critical_told_at) if before is not None else (0, 0.0, 0.0))
        # Who heard of a warning lately has not heard that it is critical.
        tells = not self._is_lately(critical_at if severity == "critical" else told_at, now)
        alert = Alert(
            kind=kind, subject=subject, says=says, severity=severity, opened_at=now, seen_at=now, version=version + 1,
            told_at=now if tells else told_at, told=int(tells),
            critical_told_at=now if tells and severity == "critical" else critical_at,
        )
        if await OPEN.at().size(self._valkey) >= MOST_OPEN:
            raise Invalid(f"{MOST_OPEN} alerts are open; no more are kept")
        if not await self._step(alert, "opened", tells):
            return None
        if not tells:
            counts.add("alerts_kept_quiet", kind=kind)
        return alert

    async def _again(self, before: Alert, says: str, severity: Severity, now: float) -> Alert | None:
        # What goes to and fro over the line is told once in a pause.
        is_worse = (severity == "critical" and before.severity != "critical"
                    and not self._is_lately(before.critical_told_at, now))
        is_quiet = before.acked_at is not None or self._is_lately(before.told_at, now)
        tells = is_worse or not is_quiet
        if not tells and self._within(now - before.seen_at, SEEN_SECONDS) and before.severity == severity:
            return before
        alert = msgspec.structs.replace(
            before, says=says, severity=severity, seen_at=now, version=before.version + 1,
            told_at=now if tells else before.told_at, told=before.told + tells,
            acked_at=None if is_worse else before.acked_at, acked_by="" if is_worse else before.acked_by,
            critical_told_at=now if tells and severity == "critical" else before.critical_told_at,
        )
        event: Event | None = "worsened" if is_worse else "repeated" if tells else None
        return alert if await self._step(alert, event, tells) else None

    def _is_lately(self, told_at: float, now: float) -> bool:
        return bool(told_at) and self._within(now - told_at, self.rules.repeat_seconds)

    def _within(self, passed: float, seconds: float) -> bool:
        """Whether less than so long really passed: people are not told more often where days pass quickly."""
        return 0 <= real_seconds(self._clock, passed) < seconds

    async def clear(self, kind: str, subject: str, why: str = "") -> bool:
        """The trouble is over; says whether it was open. Whoever was told of it is told that, too, with ``why``, if it
        is for another reason than that all is well."""
        kind, subject = _name(kind, "kind"), _name(subject, "subject")
        for _ in range(TRIES):
            before = await self.get(kind, subject)
            if before is None or not before.is_open:
                return False
            now = self._clock.now()
            says = f"{before.says[:MOST_SAYS - len(why) - 2]}; {why}" if why else before.says
            after = msgspec.structs.replace(
                before, cleared_at=now, seen_at=now, says=says, version=before.version + 1
            )
            if await self._step(after, "cleared", before.told > 0):
                return True
        return False

    async def acknowledge(self, kind: str, subject: str, by: str = "") -> Alert:
        """Somebody knows: nobody is told again until it clears, or becomes critical. ``NotFound`` if it is not open."""
        for _ in range(TRIES):
            before = await self._known(kind, subject)
            after = msgspec.structs.replace(
                before, acked_at=self._clock.now(), acked_by=by[:MOST_NAME], version=before.version + 1
            )
            if before.acked_at is not None or await self._step(after, None, False):
                return after
        return before

    async def test(self, says: str = "This is a test of how alerts reach you.") -> AlertEvent:
        """Tell somebody, by every way, that nothing happened. Nothing is opened."""
        now = self._clock.now()
        event = AlertEvent(uid=new_uid("alert"), event="test", kind="test", subject="keystead", says=says[:MOST_SAYS],
                           severity="warning", at=now, opened_at=now)
        async with self._valkey.pipeline(transaction=True) as block:
            self._note(block, event)
            for way in self.rules.ways:
                DELIVERIES.due.add(block, AlertDelivery(way=way, event=event), now)
            await block.execute()
        self.stirred.set()
        return event

    async def _step(self, alert: Alert, event: Event | None, tells: bool) -> bool:
        """Make one change, unless another process made it; says which. All of it happens, or nothing."""
        writes, record, now = Writes(self._valkey.layout), ALERT.at(alert.kind, alert.subject), self._clock.now()
        record.delete(writes)
        record.set(writes, alert)
        member = f"{alert.kind} {alert.subject}"
        if alert.is_open:
            OPEN.at().add(writes, member, alert.opened_at)
        else:
            record.end(writes)
            OPEN.at().remove(writes, member)
        if event is not None:
            happened = AlertEvent(
                uid=new_uid("alert"), event=event, kind=alert.kind, subject=alert.subject, says=alert.says,
                severity=alert.severity, at=now, opened_at=alert.opened_at,
            )
            self._note(writes, happened)
            if tells:
                for way in self.rules.ways:
                    DELIVERIES.due.add(writes, AlertDelivery(way=way, event=happened), now)
        mark = STEP.at(alert.version, alert.kind, alert.subject)
        if await once(self._valkey, mark, writes) is not Once.DONE:
            return False
        if event is not None and tells:
            counts.add("alerts_told", kind=alert.kind, event=event)
            self.stirred.set()
        return True

    def _note(self, on: Executor, event: AlertEvent) -> None:
        recent = RECENT.at()
        recent.push_left(on, event)
        on.run(("LTRIM", recent.name(on.layout), 0, KEPT_EVENTS - 1), _nothing)

    # -- looking ----------------------------------------------------------------------------------------------------

    async def get(self, kind: str, subject: str) -> Alert | None:
        """One alert, open or cleared within the last week."""
        return await ALERT.at(kind, subject).get(self._valkey)

    async def _known(self, kind: str, subject: str) -> Alert:
        found = await self.get(_name(kind, "kind"), _name(subject, "subject"))
        if found is None or not found.is_open:
            raise NotFound(f"no alert {kind[:MOST_NAME]!r} of {subject[:MOST_NAME]!r} is open")
        return found

    async def open(self) -> list[Alert]:
        """What is open: critical first, then the oldest."""
        members = await OPEN.at().range(self._valkey, 0, MOST_OPEN - 1)
        async with self._valkey.pipeline(transaction=False) as pipeline:
            asked = [ALERT.at(*member.split(" ", 1)).get(pipeline) for member, _ in members]
            await pipeline.execute()
        found = [alert for each in asked if (alert := await each) is not None and alert.is_open]
        return sorted(found, key=lambda alert: (alert.severity != "critical", alert.opened_at))

    def now(self) -> float:
        """The time by which ages are told."""
        return self._clock.now()

    async def count_open(self) -> int:
        """How many are open; one command."""
        return await OPEN.at().size(self._valkey)

    async def recent(self, most: int = 50) -> Sequence[AlertEvent]:
        """The last changes, newest first; 200 at most."""
        return await RECENT.at().range(self._valkey, 0, most - 1)


def _name(text: str, what: str) -> str:
    named = text.strip()
    if not named or len(named) > MOST_NAME or (what == "kind" and (" " in named or ":" in named)):
        raise Invalid(f"the {what} of an alert has 1 to {MOST_NAME} characters, a kind no spaces or colons")
    return named


def _nothing(reply: object) -> None:
    return None
