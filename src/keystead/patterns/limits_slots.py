"""Limits that lay uses out in time: one number says when the next one may start."""

import math
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Unpack

from keystead.engine import Script
from keystead.engine.scripts import ScriptRunner
from keystead.errors import DeclarationError
from keystead.keys import FLOAT, AtMost, Keyspace, StringKey, Value
from keystead.patterns.facts import PatternFacts
from keystead.patterns.limits import Decision, LimitAt, Rule, WhenAway, microseconds, milliseconds, positive

RESERVE = Script("keystead.patterns", "scripts/limits/reserve.lua")
_SCRIPTS = ("limits/reserve.lua", "limits/check_all.lua")
_NEXT_FREE, _LAST_START, _RATE = range(3)
_LONGEST_SECONDS = 366 * 86400.0


class _Row:
    """Uses in a row. ``gap`` apart and at most ``most_ahead`` from now; both in microseconds."""

    def __init__(
        self, keyspace: Keyspace, pattern: str, *, gap: int, most_ahead: int, mode: int, when_away: WhenAway,
        **facts: Unpack[PatternFacts],
    ) -> None:
        self.gap = gap
        self.most_ahead = most_ahead
        self.mode = mode
        self.when_away = when_away
        self.key = StringKey(
            keyspace, pattern, FLOAT, ttl=AtMost(math.ceil((most_ahead + gap) / 1e6)), scripts=_SCRIPTS, **facts
        )


class _RowAt(LimitAt):
    """One row."""

    __slots__ = ("_row",)

    def __init__(self, row: _Row, *variables: Value, **named: Value) -> None:
        super().__init__(row.key.at(*variables, **named), row.when_away)
        self._row = row

    def _values(self, gap: int, lead: int, most_ahead: int | None = None) -> tuple[int, ...]:
        row = self._row
        ahead = row.most_ahead if most_ahead is None else min(most_ahead, row.most_ahead)
        return (gap, lead, ahead, row.mode)

    def _gap(self, seconds: float | None) -> int:
        """The declared gap, or one that comes with the use, which the key's declared expiry must allow."""
        if seconds is None:
            return self._row.gap
        gap = math.ceil(seconds * 1e6) if math.isfinite(seconds) else 0
        if not 0 < gap <= self._row.gap:
            raise DeclarationError(
                f"{self._row.key.pattern}: a gap of {seconds!r} seconds is not between nothing and the declared "
                f"{self._row.gap / 1e6:g}"
            )
        return gap

    def _reserve(self, on: ScriptRunner, values: tuple[int, ...], now: float) -> Awaitable[Decision]:
        return self._run(on, RESERVE, [microseconds(now), *values], now)


class SpacedSlots(_Row):
    """Starts that lie ``gap_seconds`` apart, none later than ``most_ahead_seconds`` from now.

    For work that is put off: a use gets the next free start and begins ``delay_seconds`` after it. The key holds when
    the next start is free, and expires at that time. A use may bring a shorter gap of its own, from a setting say; what
    is declared is then the longest.
    """

    def __init__(
        self, keyspace: Keyspace, pattern: str, *, gap_seconds: float, most_ahead_seconds: float,
        when_away: WhenAway = WhenAway.OPEN, **facts: Unpack[PatternFacts],
    ) -> None:
        super().__init__(
            keyspace, pattern, gap=milliseconds(gap_seconds) * 1000, most_ahead=microseconds(most_ahead_seconds),
            mode=_NEXT_FREE, when_away=when_away, **facts,
        )

    def at(self, *variables: Value, **named: Value) -> "SpacedSlotsAt":
        return SpacedSlotsAt(self, *variables, **named)


class SpacedSlotsAt(_RowAt):
    """One row of starts."""

    __slots__ = ()

    def use(
        self, on: ScriptRunner, *, now: float, delay_seconds: float = 0.0, gap_seconds: float | None = None
    ) -> Awaitable[Decision]:
        """Reserve the next start; ``starts_at`` is that start and the delay. Refused when that is too far ahead."""
        return self._reserve(on, self._values(self._gap(gap_seconds), _delay(delay_seconds)), now)

    def rule(self, now: float, *, delay_seconds: float = 0.0, gap_seconds: float | None = None) -> Rule:
        return Rule(self, "timeline", self._values(self._gap(gap_seconds), _delay(delay_seconds)))


class LastUsedAt(_Row):
    """Calls of something slow or costly outside, at least ``gap_seconds`` apart over all processes.

    A use is told when to call and must wait until then. The key holds the last call that was given out.
    """

    def __init__(
        self, keyspace: Keyspace, pattern: str, *, gap_seconds: float, most_wait_seconds: float = 86400.0,
        when_away: WhenAway = WhenAway.CLOSED, **facts: Unpack[PatternFacts],
    ) -> None:
        super().__init__(
            keyspace, pattern, gap=milliseconds(gap_seconds) * 1000, most_ahead=microseconds(most_wait_seconds),
            mode=_LAST_START, when_away=when_away, **facts,
        )

    def at(self, *variables: Value, **named: Value) -> "LastUsedAtAt":
        return LastUsedAtAt(self, *variables, **named)


class LastUsedAtAt(_RowAt):
    """The calls of one thing outside."""

    __slots__ = ()

    def use(self, on: ScriptRunner, *, now: float, most_wait_seconds: float | None = None) -> Awaitable[Decision]:
        """Reserve a call at ``starts_at``: now, or the gap after the one before it. Nothing is reserved when refused,
        which is when the wait would be longer than the caller, or the declaration, accepts.
        """
        most = None if most_wait_seconds is None else microseconds(most_wait_seconds)
        return self._reserve(on, self._values(self._row.gap, 0, most), now)

    def rule(self, now: float) -> Rule:
        return Rule(self, "timeline", self._values(self._row.gap, 0))


@dataclass(frozen=True, slots=True)
class GcraRate:
    """A rate that comes with a use: ``most`` in ``per_seconds``, up to ``burst`` at once (``most`` where it is 0)."""

    most: int
    per_seconds: float
    burst: int = 0

    def __post_init__(self) -> None:
        positive("most", self.most)
        milliseconds(self.per_seconds)
        object.__setattr__(self, "burst", positive("burst", self.burst or self.most))

    @property
    def gap(self) -> int:
        """Microseconds that one use takes."""
        return math.ceil(milliseconds(self.per_seconds) * 1000 / self.most)


class Gcra(_Row):
    """``most`` uses in ``per_seconds``, flowing evenly, with up to ``burst`` at once.

    The generic cell rate algorithm: one number, whatever the rate. In any stretch of time ``t`` at most
    ``burst + t * most / per_seconds`` uses are allowed. A use may have a cost, and may bring a rate of its own, from a
    setting say; the time that its burst takes must not be longer than the declared one.
    """

    def __init__(
        self, keyspace: Keyspace, pattern: str, *, most: int, per_seconds: float, burst: int | None = None,
        when_away: WhenAway = WhenAway.OPEN, **facts: Unpack[PatternFacts],
    ) -> None:
        self.burst = positive("burst", most if burst is None else burst)
        gap = GcraRate(most, per_seconds, self.burst).gap
        super().__init__(
            keyspace, pattern, gap=gap, most_ahead=gap * self.burst, mode=_RATE, when_away=when_away, **facts
        )

    def at(self, *variables: Value, **named: Value) -> "GcraAt":
        return GcraAt(self, *variables, **named)


class GcraAt(_RowAt):
    """One rate."""

    __slots__ = ()

    def use(
        self, on: ScriptRunner, *, now: float, cost: int = 1, rate: GcraRate | None = None
    ) -> Awaitable[Decision]:
        """Use it once, or ``cost`` times at once, all or none. ``remaining`` counts uses of the same cost."""
        return self._reserve(on, self._costing(cost, rate), now)

    def rule(self, now: float, *, cost: int = 1, rate: GcraRate | None = None) -> Rule:
        return Rule(self, "timeline", self._costing(cost, rate))

    def _costing(self, cost: int, rate: GcraRate | None) -> tuple[int, ...]:
        row = self._row
        each, most_ahead = (row.gap, row.most_ahead) if rate is None else (rate.gap, rate.gap * rate.burst)
        gap = each * positive("cost", cost)
        if gap > most_ahead:
            raise DeclarationError(f"{row.key.pattern}: a use that costs {cost} is more than a whole burst")
        if most_ahead > row.most_ahead:
            raise DeclarationError(
                f"{row.key.pattern}: a burst of this rate takes {most_ahead / 1e6:g} s, at most the declared "
                f"{row.most_ahead / 1e6:g} s are accepted"
            )
        return self._values(gap, gap, most_ahead)


def _delay(seconds: float) -> int:
    if not 0 <= seconds <= _LONGEST_SECONDS:
        raise DeclarationError(f"a delay must be between nothing and a year, got {seconds!r} seconds")
    return microseconds(seconds)
