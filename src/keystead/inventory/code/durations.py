"""How long an expression says: ``60 * 60``, ``timedelta(hours=1)``, ``5*time.Minute``, ``Duration.ofDays(1)``."""

import re
from dataclasses import dataclass, replace
from typing import Final

from keystead.inventory.code.expressions import Arithmetic, Call, Choice, Expr, Member, Name, Number, Text, spell
from keystead.inventory.code.resolving import Frame, Resolver
from keystead.inventory.code.resolving_calls import field_of_getter
from keystead.inventory.models import Certainty, Expiry, Fact, Rule, Source

_UNITS: Final = {
    "nanosecond": 1e-9, "microsecond": 1e-6, "millisecond": 1e-3, "milli": 1e-3, "nano": 1e-9, "micro": 1e-6,
    "ms": 1e-3,
    "second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0, "week": 604800.0, "month": 2629746.0,
    "year": 31556952.0,
    "fortnight": 1209600.0,
}
_SPELLED: Final = re.compile(
    r"^\s*(\d+(?:\.\d+)?)\s*(ms|s|sec|secs|m|min|mins|h|hr|hrs|d|w|minutes?|hours?|days?|weeks?|seconds?)?\s*$")
_SHORT: Final = {"ms": 1e-3, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "hr": 3600.0, "d": 86400.0,
                 "w": 604800.0}
_TO: Final = re.compile(r"^(?:to|get|as|in|total)_?(nanos|millis|milliseconds|seconds|secs|minutes|hours|days)$", re.I)
_SAME: Final = frozenset(("int", "float", "to_i", "to_f", "Number", "parseInt", "floor", "ceil", "round", "Duration",
                          "int64",
                          "intValue", "longValue", "value", "Int", "Math", "timedelta_to_seconds", "to_s",
                          "seconds_of"))


@dataclass(frozen=True, slots=True)
class Length:
    """A number, in seconds if ``timed``, else in the unit its reader expects. ``at_most``: part of it is chance."""

    number: float
    timed: bool = False
    followed: bool = False
    at_most: bool = False


class Durations:
    """Works out lengths of time."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._budget = 0

    def length(self, expr: Expr, frame: Frame) -> Length | None:
        """The length, or None if only a run knows."""
        self._budget = 300
        self._resolver.refill()
        return self._length(expr, frame, 0)

    def _length(self, expr: Expr, frame: Frame, depth: int) -> Length | None:
        self._budget -= 1
        if depth > 12 or self._budget < 0:
            return None
        match expr:
            case Number(value):
                return Length(value)
            case Text(value):
                return _spelled_out(value)
            case Name(name):
                return self._one(self._resolver.values(name, frame), expr, depth)
            case Member(Number(value), name) if _unit(name) is not None:
                return Length(value * (_unit(name) or 0), True)
            case Member(Name("time" | "TimeUnit" | "ChronoUnit"), name) if _unit(name) is not None:
                return Length(_unit(name) or 0, True)
            case Member(base, name):
                inner = self._length(base, frame, depth + 1) if name in ("seconds", "to_i", "total_seconds") else None
                if inner is not None and inner.timed:
                    return inner
                unit = _unit(name)
                if unit is not None and (length := self._length(base, frame,
                                                                depth + 1)) is not None and not length.timed:
                    return replace(length, number=length.number * unit, timed=True)
                return self._one(self._resolver.members(base, name, frame, depth), expr, depth)
            case Arithmetic(sign, left, right):
                return self._reckoned(sign, self._length(left, frame, depth + 1), self._length(right, frame, depth + 1))
            case Choice(options):
                found = [length for each in options if (length := self._length(each, frame, depth + 1)) is not None]
                return found[-1] if found else None
            case Call():
                return self._called(expr, frame, depth)
        return None

    def _one(self, values: "list[tuple[Expr, Frame]]", asked: Expr, depth: int) -> Length | None:
        for value, where in values:
            if value is not asked and (length := self._length(value, where, depth + 1)) is not None:
                return replace(length, followed=True)
        return None

    def _reckoned(self, sign: str, left: Length | None, right: Length | None) -> Length | None:
        if left is None or right is None:
            return None
        timed, followed = left.timed or right.timed, left.followed or right.followed
        at_most = left.at_most or right.at_most
        if sign == "+":
            return Length(left.number + right.number, timed, followed, at_most)
        if sign == "-":
            return Length(left.number - right.number, timed, followed, at_most)
        if sign == "*":
            return Length(left.number * right.number, timed, followed, at_most)
        if sign in ("/", "//") and right.number:
            return Length(left.number / right.number, timed and not right.timed, followed, at_most)
        if sign == "**" and abs(right.number) < 20:
            return Length(left.number**right.number, timed, followed, at_most)
        return None

    def _called(self, call: Call, frame: Frame, depth: int) -> Length | None:
        method, receiver, args = call.method, call.receiver, call.args
        if method == "in unit":
            return self._in_unit(args, frame, depth)
        field = field_of_getter(call)
        if field is not None and (length := self._length(field, frame, depth + 1)) is not None:
            return length
        if method in ("timedelta", "relativedelta"):
            return self._timedelta(call, frame, depth)
        if method in ("randint", "randrange", "uniform", "Intn", "nextInt", "rand", "random_int") and args:
            most = self._length(args[-1], frame, depth + 1)
            return replace(most, at_most=True) if most is not None else None
        if isinstance(receiver, Name) and receiver.name == "Duration":
            unit = _unit(method.removeprefix("of"))
            if unit is not None and args and (length := self._length(args[0], frame, depth + 1)) is not None:
                return replace(length, number=length.number * unit, timed=True)
        # TimeUnit.HOURS.toSeconds(1) and Duration.ofHours(1).toSeconds(): the first gives its argument a unit.
        if (to := _TO.match(method)) and receiver is not None:
            wanted = _UNITS.get(to[1].lower().rstrip("s"), 1.0) if to[1].lower() != "secs" else 1.0
            inner = self._length(receiver, frame, depth + 1)
            if args and isinstance(receiver, Member) and (given := self._length(args[0], frame, depth + 1)) is not None:
                return Length(given.number * (inner.number if inner else 1.0) / wanted, False, given.followed)
            if inner is not None:
                return Length(inner.number / wanted, False, inner.followed, inner.at_most) if inner.timed else inner
        if receiver is not None and not args and (unit := _unit(method)) is not None:  # 5.minutes
            inner = self._length(receiver, frame, depth + 1)
            if inner is not None:
                return inner if inner.timed else replace(inner, number=inner.number * unit, timed=True)
        if method == "ms" and args and isinstance(args[0], Text) and (length := _spelled_out(args[0].value)):
            return Length(length.number * 1000 if length.timed else length.number)
        if method in ("ofSeconds", "ofMinutes", "ofHours", "ofDays", "ofMillis") and args:
            inner = self._length(args[0], frame, depth + 1)
            return None if inner is None else replace(inner, number=inner.number * (_unit(method[2:]) or 1), timed=True)
        if method in _SAME:
            inside = args[0] if args else receiver
            return self._length(inside, frame, depth + 1) if inside is not None else None
        if method in ("getenv", "get", "fetch", "env", "getOrDefault", "config") and (len(args) == 2
                                                                                      or "default" in call.named):
            inner = self._length(call.named.get("default", args[-1]), frame, depth + 1)
            return replace(inner, followed=True) if inner is not None else None
        return None

    def _in_unit(self, args: list[Expr], frame: Frame, depth: int) -> Length | None:
        """A number and the unit it is in, wherever that is said."""
        number, unit = self._length(args[0], frame, depth + 1), self._length(args[1], frame, depth + 1)
        if number is None or number.timed or unit is None:
            return number
        return Length(number.number * unit.number, True, True)

    def _timedelta(self, call: Call, frame: Frame, depth: int) -> Length | None:
        seconds, followed = 0.0, False
        given = list(call.named.items()) + list(zip(("days", "seconds", "microseconds"), call.args, strict=False))
        for name, value in given:
            length, unit = self._length(value, frame, depth + 1), _unit(name)
            if length is None or unit is None:
                return None
            seconds += length.number * unit
            followed = followed or length.followed
        return Length(seconds, True, followed)

    def expiry(self, expr: Expr, frame: Frame, unit: float, source: Source, rule: Rule = Rule.EXACTLY) -> Fact[Expiry]:
        """What an argument says about a key's life. ``unit`` is what a bare number of it means, in seconds."""
        length = self.length(expr, frame)
        words = spell(expr)
        if length is None:
            return Fact(Expiry(Rule.SOME, None, words), Certainty.IMPLIED, source, words)
        seconds = length.number if length.timed else length.number * unit
        certainty = Certainty.IMPLIED if length.followed else Certainty.STATED
        if seconds <= 0:
            return Fact(Expiry(Rule.NONE), certainty, source, words)
        seconds = round(seconds, 3)
        return Fact(Expiry(Rule.AT_MOST if length.at_most else rule, seconds), certainty, source, words)


def _unit(name: str) -> float | None:
    plain = name.lower().replace("_", "")
    return _UNITS.get(plain) or _UNITS.get(plain.removesuffix("s"))


def _spelled_out(text: str) -> Length | None:
    found = _SPELLED.match(text)
    if found is None:
        return None
    unit = found[2]
    if unit is None:
        return Length(float(found[1]))
    plain = unit if unit in ("ms", "s") else unit.rstrip("s")
    return Length(float(found[1]) * (_SHORT.get(plain) or _UNITS.get(plain, 1.0)), True)
