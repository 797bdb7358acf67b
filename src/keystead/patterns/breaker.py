"""Breaker: stop calling what keeps failing, and find out with one call at a time whether it works again."""

import asyncio
import math
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from types import TracebackType
from typing import Unpack

from keystead.clock import Clock
from keystead.engine import Script
from keystead.engine.scripts import ScriptRunner
from keystead.errors import DeclarationError, LimitReached, Unavailable
from keystead.ids import new_uid
from keystead.keys import Argument, AtMost, Keyspace, SortedSetKey, SortedSetRef, StringKey, StringRef, Value
from keystead.patterns.facts import PatternFacts, told
from keystead.patterns.gathering import OrElse
from keystead.telemetry import counts

ASK = Script("keystead.patterns", "scripts/breaker/ask.lua")
RECORD = Script("keystead.patterns", "scripts/breaker/record.lua")

KEPT_LONGER_SECONDS = 60
STORE_WAIT_SECONDS = 1.0
RETRY_AFTER_SECONDS = 1.0

counts.describe("breaker_degraded", "calls that a breaker judged without its server, by breaker")
counts.describe("breaker_opened", "failures that opened a breaker or found it open, by breaker")


class BreakerState(IntEnum):
    """Closed lets every call through, open none; half open is the one call that tries whether it may close."""

    CLOSED = 0
    HALF_OPEN = 1
    OPEN = 2


class FailMode(Enum):
    """What becomes of calls while the server that keeps the breaker is away."""

    OPEN = "let them through"
    CLOSED = "refuse them"


@dataclass(frozen=True, slots=True)
class Failures:
    """Opens at so many failures in the window."""

    count: int
    within_seconds: float = 300.0

    def arguments(self) -> list[Argument]:
        return [self.within_seconds, self.count, 0, 0]


@dataclass(frozen=True, slots=True)
class FailureShare:
    """Opens when so great a part of the last calls failed; calls older than the window do not count."""

    percent: int
    of_calls: int = 20
    within_seconds: float = 300.0

    def arguments(self) -> list[Argument]:
        return [self.within_seconds, 1, self.of_calls, self.percent]


@dataclass(frozen=True, slots=True)
class Permit:
    """The answer to one question, to be given back with how the call ended.

    ``retry_after_seconds`` is 0 for an allowed call, else the time after which a try may be free. A ``degraded``
    answer was given without the server.
    """

    uid: str
    state: BreakerState
    failures: int = 0
    retry_after_seconds: float = 0.0
    degraded: bool = False

    @property
    def allowed(self) -> bool:
        return self.state is not BreakerState.OPEN

    @property
    def is_probe(self) -> bool:
        return self.state is BreakerState.HALF_OPEN


class BreakerOpen(LimitReached):
    """The breaker is open; the call was not made."""


class Breaker:
    """Counts failures of calls to something outside.

    Declares a sorted set of recent failures (by share: of recent calls), and the key of the probe, ``{pattern}:probe``
    unless named. Once open it rests for ``rest_seconds`` (unless said otherwise as long as ``probe_seconds``; 0: not at
    all). Then one call every ``probe_seconds`` is let through. One that goes well closes the breaker, and so do
    failures that leave the window.
    """

    def __init__(
        self, keyspace: Keyspace, pattern: str, *, trips: Failures | FailureShare, probe: str = "",
        probe_seconds: float = 10.0, rest_seconds: float | None = None, fails: FailMode = FailMode.OPEN,
        **facts: Unpack[PatternFacts],
    ) -> None:
        _check(pattern, trips, probe_seconds)
        self.trips = trips
        self.fails = fails
        self.probe_seconds = probe_seconds
        self.rest_seconds = probe_seconds if rest_seconds is None else rest_seconds
        scripts = ("breaker/ask.lua", "breaker/record.lua")
        good = ", or s: and that of a good one" if isinstance(trips, FailureShare) else ""
        self.calls: SortedSetKey[str] = SortedSetKey(
            keyspace, pattern, str, member=f"f: and the uid of a failed call{good}", score="unix seconds",
            **told(facts, scripts=scripts, ttl=AtMost(trips.within_seconds + KEPT_LONGER_SECONDS)),
        )
        self.probe: StringKey[str] = StringKey(
            keyspace, probe or f"{pattern}:probe", str,
            **told(facts, "who tries whether it works again", scripts=scripts,
                   ttl=AtMost(max(probe_seconds, self.rest_seconds))),
        )

    def at(self, *variables: Value, **named: Value) -> "BreakerAt":
        calls = self.calls.at(*variables, **named)
        return BreakerAt(self, calls, self.probe.at(**calls.arguments))


class BreakerAt:
    """One breaker."""

    __slots__ = ("_calls", "_probe", "breaker")

    def __init__(self, breaker: Breaker, calls: SortedSetRef[str], probe: StringRef[str]) -> None:
        self.breaker = breaker
        self._calls = calls
        self._probe = probe

    @property
    def name(self) -> str:
        return self._calls.logical

    def ask(self, on: ScriptRunner, *, now: float) -> Awaitable[Permit]:
        """May a call be made now? One atomic step. While the server is away the declared mode answers."""
        uid = new_uid("call")

        def read(reply: list[int]) -> Permit:
            wait = max(0, reply[2]) / 1000 if reply[0] == BreakerState.OPEN else 0.0
            return Permit(uid, BreakerState(reply[0]), reply[1], wait)

        trips = self.breaker.trips.arguments()
        asked = ASK(
            on, keys=[self._calls, self._probe],
            args=[now, *trips, uid, round(self.breaker.probe_seconds * 1000)], decode=read,
        )
        return OrElse(asked, lambda: self.without_server(uid))

    def record(
        self, on: ScriptRunner, permit: Permit, *, went_well: bool, now: float, also: Sequence[Permit] = ()
    ) -> Awaitable[BreakerState]:
        """Note how an allowed call ended; says whether the breaker is open now. May be repeated.

        ``also``: further calls that ended the same way, none of them a probe; at most a hundred.
        """
        breaker = self.breaker
        by_count = isinstance(breaker.trips, Failures)
        kept_ms = round((breaker.trips.within_seconds + KEPT_LONGER_SECONDS) * 1000)
        return RECORD(
            on, keys=[self._calls, self._probe],
            args=[math.floor(now) if by_count else now, *breaker.trips.arguments(), permit.uid, int(went_well),
                  int(permit.is_probe), kept_ms, round(breaker.rest_seconds * 1000), *(each.uid for each in also)],
            decode=lambda reply: BreakerState(reply[0]),
        )

    def call(self, on: ScriptRunner, clock: Clock, *, failures: tuple[type[Exception], ...] = (Exception,)) -> "Call":
        """A block around one call: ``BreakerOpen`` when it may not be made, recorded by whether one of ``failures``
        leaves the block. A cancelled block counts as neither.
        """
        return Call(self, on, clock, failures)

    def without_server(self, uid: str) -> Permit:
        """What the declared mode answers while the server is away."""
        counts.add("breaker_degraded", breaker=self.breaker.calls.pattern)
        if self.breaker.fails is FailMode.OPEN:
            return Permit(uid, BreakerState.CLOSED, degraded=True)
        return Permit(uid, BreakerState.OPEN, retry_after_seconds=RETRY_AFTER_SECONDS, degraded=True)


class Call:
    """One call through a breaker. Decides within a second, also when the server does not answer."""

    def __init__(
        self, breaker: BreakerAt, on: ScriptRunner, clock: Clock, failures: tuple[type[Exception], ...]
    ) -> None:
        self._breaker = breaker
        self._on = on
        self._clock = clock
        self._failures = failures
        self._permit: Permit | None = None

    async def __aenter__(self) -> Permit:
        try:
            async with asyncio.timeout(STORE_WAIT_SECONDS):
                permit = await self._breaker.ask(self._on, now=self._clock.now())
        except TimeoutError:
            permit = self._breaker.without_server(new_uid("call"))
        if not permit.allowed:
            raise BreakerOpen(
                f"the breaker is open, so the call was not made: {self._breaker.name}",
                retry_after_seconds=permit.retry_after_seconds,
            )
        self._permit = permit
        return permit

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        permit = self._permit
        assert permit is not None
        went_well = error is None or (isinstance(error, Exception) and not isinstance(error, self._failures))
        failed = isinstance(error, self._failures)
        kept = failed or permit.is_probe or isinstance(self._breaker.breaker.trips, FailureShare)
        if permit.degraded or not (went_well or failed) or not kept:
            return
        try:
            async with asyncio.timeout(STORE_WAIT_SECONDS):
                state = await self._breaker.record(
                    self._on, permit, went_well=went_well, now=self._clock.now()
                )
        except (TimeoutError, Unavailable):
            counts.add("breaker_degraded", breaker=self._breaker.breaker.calls.pattern)
            return
        if failed and state is BreakerState.OPEN:
            counts.add("breaker_opened", breaker=self._breaker.breaker.calls.pattern)


def _check(pattern: str, trips: Failures | FailureShare, probe_seconds: float) -> None:
    if trips.within_seconds <= 0 or probe_seconds <= 0:
        raise DeclarationError(f"{pattern}: the window and the time between two tries must be above 0 s")
    if isinstance(trips, Failures) and trips.count < 1:
        raise DeclarationError(f"{pattern}: a breaker opens at 1 failure or more, got {trips.count}")
    if isinstance(trips, FailureShare) and not (1 <= trips.percent <= 100 and 1 <= trips.of_calls <= 1000):
        raise DeclarationError(f"{pattern}: the share must be 1 to 100 percent of 1 to 1000 calls")
