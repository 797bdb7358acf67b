"""Limits that remember single uses: when they were, or which values they named."""

import secrets
from collections.abc import Awaitable
from enum import Enum
from typing import Unpack

from keystead.engine import Script
from keystead.engine.scripts import ScriptRunner
from keystead.errors import DeclarationError
from keystead.keys import FLOAT, AtMost, Exactly, Keyspace, ListKey, SetKey, Sliding, SortedSetKey, Value
from keystead.patterns.facts import PatternFacts
from keystead.patterns.limits import Decision, LimitAt, Rule, WhenAway, microseconds, milliseconds, positive

LOG = Script("keystead.patterns", "scripts/limits/log.lua")
LOG_LIST = Script("keystead.patterns", "scripts/limits/log_list.lua")
ATTEMPT = Script("keystead.patterns", "scripts/limits/attempt.lua")
DISTINCT = Script("keystead.patterns", "scripts/limits/distinct.lua")
_MOST_USES = 100_000

Windows = tuple[tuple[int, float], ...]


class SlidingLog:
    """So many uses in any stretch of time: ``windows`` are pairs of most uses and seconds, all of which must have room.

    A sorted set of uses by their time; each use needs a name of its own, random unless given, and a name that is there
    already is the same use: it is allowed again and not counted. Exact, and its memory grows with the uses in the
    longest window. ``kept_seconds`` is how long the key outlives its newest use; the longest window unless given.
    """

    def __init__(
        self, keyspace: Keyspace, pattern: str, *, windows: Windows, kept_seconds: float | None = None,
        member: str = "use", when_away: WhenAway = WhenAway.OPEN, **facts: Unpack[PatternFacts],
    ) -> None:
        if not windows:
            raise DeclarationError(f"{pattern}: a sliding log needs at least one window, as in ((10, 60.0),)")
        self.windows = tuple(sorted(windows, key=lambda window: -window[1]))
        longest = self.windows[0][1]
        kept = longest if kept_seconds is None else kept_seconds
        if kept < longest:
            raise DeclarationError(f"{pattern}: kept_seconds {kept:g} is shorter than the window of {longest:g} s")
        self.kept_ms = milliseconds(kept)
        self.when_away = when_away
        self.text = ",".join(
            f"{positive('most', most, _MOST_USES)}/{milliseconds(seconds) * 1000}" for most, seconds in self.windows
        )
        self.key = SortedSetKey(
            keyspace, pattern, str, member=member, score="when it was, in unix seconds",
            ttl=Sliding(kept, reads=False), scripts=("limits/log.lua", "limits/check_all.lua"), **facts,
        )

    def at(self, *variables: Value, **named: Value) -> "SlidingLogAt":
        return SlidingLogAt(self, *variables, **named)


class SlidingLogAt(LimitAt):
    """One sliding log."""

    __slots__ = ("_log",)

    def __init__(self, log: SlidingLog, *variables: Value, **named: Value) -> None:
        super().__init__(log.key.at(*variables, **named), log.when_away)
        self._log = log

    def use(self, on: ScriptRunner, *, now: float, member: str | None = None) -> Awaitable[Decision]:
        """Note one use if every window has room; what is older than the longest window goes. One atomic step."""
        return self._run(
            on, LOG, [microseconds(now), self._log.text, self._log.kept_ms, _name(member)], now
        )

    def rule(self, now: float, *, member: str | None = None) -> Rule:
        return Rule(self, "log", (self._log.text, self._log.kept_ms, _name(member)))


class SlidingList:
    """``most`` uses in any ``window_seconds``, as a list of times, oldest first.

    Smaller than the sorted set, at the price of one window and of uses that cannot be told apart. With
    ``counts_refused`` a refused use is noted too (the list never holds more than ``most``), so that whoever keeps
    trying stays refused.
    """

    def __init__(
        self, keyspace: Keyspace, pattern: str, *, most: int, window_seconds: float, counts_refused: bool = False,
        when_away: WhenAway = WhenAway.OPEN, **facts: Unpack[PatternFacts],
    ) -> None:
        self.most = positive("most", most, _MOST_USES)
        self.window = milliseconds(window_seconds) * 1000
        self.counts_refused = counts_refused
        self.when_away = when_away
        self.key = ListKey(
            keyspace, pattern, FLOAT, ttl=Sliding(window_seconds, reads=False), scripts=("limits/log_list.lua",),
            **facts,
        )

    def at(self, *variables: Value, **named: Value) -> "SlidingListAt":
        return SlidingListAt(self, *variables, **named)


class SlidingListAt(LimitAt):
    """One list of times."""

    __slots__ = ("_log",)

    def __init__(self, log: SlidingList, *variables: Value, **named: Value) -> None:
        super().__init__(log.key.at(*variables, **named), log.when_away)
        self._log = log

    def use(self, on: ScriptRunner, *, now: float) -> Awaitable[Decision]:
        """Note one use if there is room; what is older than the window goes. One atomic step."""
        log = self._log
        return self._run(on, LOG_LIST, [microseconds(now), log.most, log.window, int(log.counts_refused)], now)


class Renewal(Enum):
    """When a set of values ends."""

    FROM_FIRST = "its time runs from the first value"
    BY_EACH_USE = "each use, refused ones too, starts its time again"


class DistinctValues:
    """``most`` different values; one that was used already is free.

    The set ends ``window_seconds`` after its first value or, ``BY_EACH_USE``, after its last use. A refused value is
    not added, so the set never grows beyond ``most``.
    """

    def __init__(
        self, keyspace: Keyspace, pattern: str, *, most: int, window_seconds: float,
        renewal: Renewal = Renewal.BY_EACH_USE, member: str = "value that was tried",
        when_away: WhenAway = WhenAway.OPEN, **facts: Unpack[PatternFacts],
    ) -> None:
        self.most = positive("most", most, _MOST_USES)
        self.length_ms = milliseconds(window_seconds)
        self.renews = renewal is Renewal.BY_EACH_USE
        self.when_away = when_away
        self.key = SetKey(
            keyspace, pattern, str, member=member,
            ttl=Sliding(window_seconds, reads=False) if self.renews else Exactly(window_seconds),
            scripts=("limits/distinct.lua", "limits/check_all.lua"), **facts,
        )

    def at(self, *variables: Value, **named: Value) -> "DistinctValuesAt":
        return DistinctValuesAt(self, *variables, **named)


class DistinctValuesAt(LimitAt):
    """One set of values."""

    __slots__ = ("_limit",)

    def __init__(self, limit: DistinctValues, *variables: Value, **named: Value) -> None:
        super().__init__(limit.key.at(*variables, **named), limit.when_away)
        self._limit = limit

    def use(self, on: ScriptRunner, value: str, *, now: float) -> Awaitable[Decision]:
        """Add the value if it is known or there is room for it. One atomic step, and repeating it changes nothing."""
        limit = self._limit
        return self._run(on, DISTINCT, [microseconds(now), limit.most, limit.length_ms, int(limit.renews), value], now)

    def rule(self, now: float, value: str | None = None) -> Rule:
        """This use for ``check_all``; without a value only for ``look``, which then speaks of a new value."""
        limit = self._limit
        return Rule(self, "distinct", (limit.most, limit.length_ms, int(limit.renews), value or _name(None)))


class DistinctAttempts:
    """``free`` different values at any time, then one new value for each ``pause_seconds``; known ones are free.

    For guesses: repeating the same wrong one costs nothing, trying others gets slow. A sorted set of values by when
    each was first tried. The key lives as long as the thing that is guessed at: each use says how long, up to
    ``longest_seconds``.
    """

    def __init__(
        self, keyspace: Keyspace, pattern: str, *, free: int, pause_seconds: float, longest_seconds: float,
        member: str = "value that was tried", when_away: WhenAway = WhenAway.OPEN, **facts: Unpack[PatternFacts],
    ) -> None:
        self.free = positive("free", free, _MOST_USES)
        self.pause = milliseconds(pause_seconds) * 1000
        self.longest_ms = milliseconds(longest_seconds)
        self.when_away = when_away
        self.key = SortedSetKey(
            keyspace, pattern, str, member=member, score="when it was first tried, in unix seconds",
            ttl=AtMost(longest_seconds), scripts=("limits/attempt.lua",), **facts,
        )

    def at(self, *variables: Value, **named: Value) -> "DistinctAttemptsAt":
        return DistinctAttemptsAt(self, *variables, **named)


class DistinctAttemptsAt(LimitAt):
    """The attempts at one thing."""

    __slots__ = ("_limit",)

    def __init__(self, limit: DistinctAttempts, *variables: Value, **named: Value) -> None:
        super().__init__(limit.key.at(*variables, **named), limit.when_away)
        self._limit = limit

    def use(
        self, on: ScriptRunner, value: str | bytes, *, now: float, lasts_seconds: float | None = None
    ) -> Awaitable[Decision]:
        """Note an attempt with ``value`` if it is known or there is room. One atomic step; a repeat changes nothing."""
        limit = self._limit
        lasts_ms = limit.longest_ms if lasts_seconds is None else milliseconds(lasts_seconds)
        if lasts_ms > limit.longest_ms:
            raise DeclarationError(f"{limit.key.pattern}: {lasts_seconds:g} s is longer than the declared longest")
        return self._run(on, ATTEMPT, [microseconds(now), limit.free, limit.pause, lasts_ms, 1, value], now)

    def look(self, on: ScriptRunner, *, now: float) -> Awaitable[Decision]:
        """Whether a new value would be allowed now; notes nothing."""
        limit = self._limit
        return self._run(on, ATTEMPT, [microseconds(now), limit.free, limit.pause, 1, 0, _name(None)], now)


def _name(member: str | None) -> str:
    return secrets.token_urlsafe(12) if member is None else member
