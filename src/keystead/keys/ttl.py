"""How long a key may live: a rule that is declared once, sent with every write, and checked by the audit.

A write never chooses its expiry freely. A rule turns the little that a caller may say (``lasting`` or ``until`` on a
reference) and the value itself into a ``Moment``, and refuses what does not fit. Remaining times count in
milliseconds, as the server keeps them.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from keystead.errors import DeclarationError
from keystead.keys.executor import Argument, Command
from keystead.lengths import in_one_unit, in_whole_units

# The server's remaining time is rounded, and a clock may differ a little from ours.
_SLACK_SECONDS: Final = 1.5
_LONGEST_SECONDS: Final = 10 * 366 * 86400
_LATEST_UNIX_SECONDS: Final = 100_000_000_000


@dataclass(frozen=True, slots=True)
class Moment:
    """When a key is to expire: so many milliseconds from now, or at a unix time in milliseconds."""

    milliseconds: int
    absolute: bool = False

    def set_options(self) -> tuple[Argument, ...]:
        return ("PXAT" if self.absolute else "PX", self.milliseconds)

    def expire(self, key: bytes, *condition: str) -> Command:
        return ("PEXPIREAT" if self.absolute else "PEXPIRE", key, self.milliseconds, *condition)


@lru_cache(maxsize=1024)
def lasting(seconds: float) -> Moment:
    return Moment(_milliseconds(seconds))


def at_instant(unix_seconds: float) -> Moment:
    # Beyond the upper bound someone has counted in milliseconds.
    if not 0 < unix_seconds < _LATEST_UNIX_SECONDS:
        raise DeclarationError(f"an expiry must be a unix time in seconds, got {unix_seconds!r}")
    return Moment(math.ceil(unix_seconds * 1000), absolute=True)


class Ttl:
    """A rule. Each kind says how it reads, what a write sends, and whether an observed time fits it."""

    # Whether a write that adds to something existing leaves the time that is already running.
    keeps_running = False
    # A SET drops the expiry of what it overwrites unless it is told otherwise.
    overwrites_with: tuple[Argument, ...] = ()

    def describe(self) -> str:
        """The rule in plain words, as documents show it."""
        raise NotImplementedError

    def check(self, seconds: float | None) -> str | None:
        """Why an observed remaining time (None: no expiry) breaks the rule; None if it does not."""
        raise NotImplementedError

    def moment(self, chosen: Moment | None, value: object) -> Moment | None:
        """What a write sends: ``chosen`` is what the caller asked for, ``value`` what is written (None if unknown)."""
        if chosen is not None:
            raise DeclarationError(f"the expiry is declared ({self.describe()}), so a write cannot choose another")
        return None

    def renewal(self) -> Moment | None:
        """What a read sends, for a rule that counts from the last use."""
        return None


@dataclass(frozen=True, slots=True)
class NoTtl(Ttl):
    """Never expires."""

    def describe(self) -> str:
        return "none"

    def check(self, seconds: float | None) -> str | None:
        return None if seconds is None else f"expires in {in_one_unit(seconds)}, but must not expire"


@dataclass(frozen=True, slots=True)
class NoneUntilEnded(Ttl):
    """No expiry while in use; once ended (a contested lock, a rotated day) at most ``seconds``.

    Writes leave an expiry that is already running, so what has been ended stays so.
    """

    seconds: float
    overwrites_with = ("KEEPTTL",)

    def __post_init__(self) -> None:
        _milliseconds(self.seconds)

    def describe(self) -> str:
        return f"none until ended, then at most {in_whole_units(self.seconds)}"

    def check(self, seconds: float | None) -> str | None:
        return None if seconds is None else _too_long(seconds, self.seconds)

    def ending(self) -> Moment:
        """What ends the key."""
        return lasting(self.seconds)


@dataclass(frozen=True, slots=True)
class Exactly(Ttl):
    """Lives ``seconds`` from the write that made it; adding to it later does not prolong it, writing it anew does."""

    seconds: float
    keeps_running = True

    def __post_init__(self) -> None:
        _milliseconds(self.seconds)

    def describe(self) -> str:
        return in_whole_units(self.seconds)

    def check(self, seconds: float | None) -> str | None:
        return _missing(self) if seconds is None else _too_long(seconds, self.seconds)

    def moment(self, chosen: Moment | None, value: object) -> Moment | None:
        Ttl.moment(self, chosen, value)
        return lasting(self.seconds)


@dataclass(frozen=True, slots=True)
class AtMost(Ttl):
    """Each write says how long, up to ``seconds``; without a word it is the longest."""

    seconds: float

    def __post_init__(self) -> None:
        _milliseconds(self.seconds)

    def describe(self) -> str:
        return f"at most {in_whole_units(self.seconds)}"

    def check(self, seconds: float | None) -> str | None:
        return _missing(self) if seconds is None else _too_long(seconds, self.seconds)

    def moment(self, chosen: Moment | None, value: object) -> Moment | None:
        if chosen is None:
            return lasting(self.seconds)
        if chosen.absolute:
            raise DeclarationError("an expiry declared as at most so long is chosen by lasting(seconds), not until()")
        if chosen.milliseconds > _milliseconds(self.seconds):
            raise DeclarationError(
                f"{in_whole_units(chosen.milliseconds / 1000)} is longer than the declared {self.describe()}"
            )
        return chosen


@dataclass(frozen=True, slots=True)
class Sliding(Ttl):
    """Lives ``seconds`` from its last use. With ``reads=False`` only writes count as use."""

    seconds: float
    reads: bool = True

    def __post_init__(self) -> None:
        _milliseconds(self.seconds)

    def describe(self) -> str:
        return f"{in_whole_units(self.seconds)} after the last {'use' if self.reads else 'write'}"

    def check(self, seconds: float | None) -> str | None:
        return _missing(self) if seconds is None else _too_long(seconds, self.seconds)

    def moment(self, chosen: Moment | None, value: object) -> Moment | None:
        Ttl.moment(self, chosen, value)
        return lasting(self.seconds)

    def renewal(self) -> Moment | None:
        return lasting(self.seconds) if self.reads else None


@dataclass(frozen=True, slots=True)
class Until(Ttl):
    """Lives until an instant: a field of the payload (unix seconds), or what the caller gives with ``until``.

    ``at_most`` bounds how far ahead the audit accepts it.
    """

    field: str | None = None
    at_most: float | None = None

    def describe(self) -> str:
        bound = f", at most {in_whole_units(self.at_most)}" if self.at_most is not None else ""
        return (f"until {self.field} of the payload" if self.field else "until an instant given by the writer") + bound

    def check(self, seconds: float | None) -> str | None:
        if seconds is None:
            return _missing(self)
        return None if self.at_most is None else _too_long(seconds, self.at_most)

    def moment(self, chosen: Moment | None, value: object) -> Moment | None:
        if chosen is not None:
            if not chosen.absolute:
                raise DeclarationError(f"the expiry is declared {self.describe()}: give it with until(unix_seconds)")
            return chosen
        instant = None
        if self.field is not None:
            instant = value.get(self.field) if isinstance(value, dict) else getattr(value, self.field, None)
        if isinstance(instant, bool) or not isinstance(instant, int | float):
            raise DeclarationError(f"the expiry is declared {self.describe()}, and this write does not say when")
        return at_instant(instant)


NO_TTL: Final = NoTtl()


def _milliseconds(seconds: float) -> int:
    if not math.isfinite(seconds) or not 0.001 <= seconds <= _LONGEST_SECONDS:
        raise DeclarationError(f"an expiry must lie between a millisecond and ten years, got {seconds!r} seconds")
    return round(seconds * 1000)


def _missing(rule: Ttl) -> str:
    return f"never expires, but is declared: {rule.describe()}"


def _too_long(seconds: float, limit: float) -> str | None:
    if seconds <= limit + _SLACK_SECONDS:
        return None
    return f"expires in {in_one_unit(seconds)}, but at most {in_whole_units(limit)} is declared"
