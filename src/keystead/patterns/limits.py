"""Limits: what every kind shares, and several limits checked as one.

The kinds are modules of their own: ``limits_windows`` (cooldown, fixed window, restarting window), ``limits_logs``
(sliding log, distinct values) and ``limits_slots`` (evenly spaced slots, last used at, GCRA).
"""

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

import msgspec

from keystead.engine import Script
from keystead.engine.scripts import ScriptRunner
from keystead.errors import DeclarationError
from keystead.keys import Executor, KeyReference, Reply
from keystead.patterns.gathering import OrElse, answered, is_client
from keystead.telemetry import counts

CHECK_ALL = Script("keystead.patterns", "scripts/limits/check_all.lua")
MOST_LIMITS = 50

T = TypeVar("T")

counts.describe("limits_degraded", "uses that a limit let through unseen, because the server was away")


class WhenAway(Enum):
    """What a limit does while the server that keeps it is away."""

    OPEN = "let through"
    CLOSED = "refuse as unavailable"


class Decision(msgspec.Struct, frozen=True, gc=False):
    """What a limit says to one use. (A struct, since one is made for every check: a dataclass would cost it a tenth.)

    ``remaining`` further uses would be allowed right now. ``retry_after_seconds`` is 0 for an allowed use, else the
    time after which it is worth trying again. After ``reset_after_seconds`` without a use all is forgotten.
    ``starts_at`` is when an allowed use may begin: the given now, or the place that was reserved for it. A ``degraded``
    decision was made without the server.
    """

    allowed: bool
    remaining: int
    retry_after_seconds: float
    reset_after_seconds: float = 0.0
    starts_at: float = 0.0
    degraded: bool = False


class LimitAt:
    """One limit with its variables filled in. Its kind adds ``use`` and ``rule``."""

    __slots__ = ("reference", "when_away")

    def __init__(self, reference: KeyReference, when_away: WhenAway) -> None:
        self.reference = reference
        self.when_away = when_away

    def __repr__(self) -> str:
        return f"<limit {self.reference.logical}>"

    def look(self, on: ScriptRunner, *, now: float) -> Awaitable[Decision]:
        """What a use would be told now, without counting one."""
        return _checked(on, [self.rule(now)], lambda checked: checked.decisions[0], now=now, counting=False)

    def forget(self, on: Executor) -> Awaitable[bool]:
        """Forget every use; says whether there was one."""
        return self.reference.delete(on)

    def rule(self, now: float) -> "Rule":
        """This use of the limit, for ``check_all``."""
        raise DeclarationError(f"{self.reference.declaration.pattern} cannot be checked together with other limits")

    def _run(
        self, on: ScriptRunner, script: Script, arguments: Sequence[str | bytes | int], now: float
    ) -> Awaitable[Decision]:
        asked = script(on, keys=[self.reference], args=arguments, decode=decision)
        if is_client(on):
            asked = answered(asked)
        return asked if self.when_away is WhenAway.CLOSED else OrElse(asked, lambda: open_decision(now))


@dataclass(frozen=True, slots=True)
class Rule:
    """One use of one limit, as the script that checks several takes it."""

    limit: LimitAt
    kind: str
    values: tuple[str | bytes | int, ...]


@dataclass(frozen=True, slots=True)
class Checked:
    """What several limits said to one use. ``allowed`` when all of them allowed it; only then it was counted."""

    allowed: bool
    decisions: tuple[Decision, ...]

    @property
    def retry_after_seconds(self) -> float:
        """The time after which no limit refuses any more, if nobody else uses them."""
        return max(each.retry_after_seconds for each in self.decisions)

    @property
    def degraded(self) -> bool:
        return self.decisions[0].degraded


def check_all(on: ScriptRunner, uses: Sequence[LimitAt | Rule], *, now: float) -> Awaitable[Checked]:
    """Use several limits at once: counted on all of them if all allow it, else on none. One atomic step.

    Give a limit (``PER_HOUR.at(sub)``) or, where a use says more, its rule (``EMAILS.at(sub).rule(now, email)``).
    Their keys must share a tag. A refused use counts nowhere here, whatever a limit does when it is used alone.
    While the server is away the use is let through only if every limit is declared ``OPEN``.
    """
    rules = [use if isinstance(use, Rule) else use.rule(now) for use in uses]
    if not 1 <= len(rules) <= MOST_LIMITS:
        raise DeclarationError(f"one to {MOST_LIMITS} limits are checked together, got {len(rules)}")
    if len({rule.limit.reference for rule in rules}) < len(rules):
        raise DeclarationError("a limit cannot be checked twice for one use; give it a cost instead")
    return _checked(on, rules, lambda checked: checked, now=now, counting=True)


def _checked(
    on: ScriptRunner, rules: Sequence[Rule], shape: Callable[[Checked], T], *, now: float, counting: bool
) -> Awaitable[T]:
    arguments: list[str | bytes | int] = [microseconds(now), int(counting)]
    for rule in rules:
        values = [value if isinstance(value, bytes) else str(value) for value in rule.values]
        arguments += [rule.kind, *values, *[""] * (5 - len(values))]
    asked: Awaitable[T] = CHECK_ALL(
        on, keys=[rule.limit.reference for rule in rules], args=arguments, decode=lambda reply: shape(_all(reply))
    )
    if is_client(on):
        asked = answered(asked)
    if any(rule.limit.when_away is WhenAway.CLOSED for rule in rules):
        return asked
    return OrElse(asked, lambda: shape(Checked(True, (open_decision(now),) * len(rules))))


def _all(reply: Reply) -> Checked:
    return Checked(reply[0] == 1, tuple(decision(each) for each in reply[1]))


def decision(reply: Reply) -> Decision:
    """Read what the scripts of limits return."""
    allowed, remaining, retry_ms, reset_ms, start = reply
    return Decision(allowed == 1, remaining, retry_ms / 1000, reset_ms / 1000, int(start) / 1_000_000)


def open_decision(now: float) -> Decision:
    """What a limit that is open says while the server is away."""
    counts.add("limits_degraded")
    return Decision(True, 0, 0.0, 0.0, now, degraded=True)


def microseconds(seconds: float) -> int:
    return int(seconds * 1_000_000)


def milliseconds(seconds: float) -> int:
    """A length in whole milliseconds, refused where it makes no window."""
    if not math.isfinite(seconds) or seconds < 0.001:
        raise DeclarationError(f"a limit's time must be at least a millisecond, got {seconds!r} seconds")
    return round(seconds * 1000)


def positive(name: str, value: int, most: int = 1_000_000_000) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise DeclarationError(f"{name} must be a whole number from 1 to {most}, got {value!r}")
    return value
