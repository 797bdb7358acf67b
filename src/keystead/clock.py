"""What time it is. Injected everywhere, so that hosts agree and tests can move it."""

import time
from dataclasses import dataclass
from typing import Final, Protocol


class Clock(Protocol):
    """Unix time in seconds. Scripts get it as an argument; nothing else asks the machine for the time of day."""

    def now(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a clock runs: at real time ``real_at`` it shows ``shown_at``, and goes on ``speed`` times as fast."""

    speed: float = 1.0
    real_at: float = 0.0
    shown_at: float = 0.0

    def shows(self, real_at: float) -> float:
        """What the clock shows at this real time."""
        return self.shown_at + (real_at - self.real_at) * self.speed


REAL_PACE: Final = Pace()


class SystemClock:
    """The machine's clock, shifted by the offset last measured against the server.

    The engine measures (``engine.sync_clock``); everyone else only reads. Before the first measurement the offset
    is zero. With a ``pace`` it shows the time of a demonstration, in which days pass quickly; leases and lifetimes on
    the server stay real, and ``real`` shows what counts for people at their keyboards.
    """

    __slots__ = ("offset_seconds", "pace")

    def __init__(self, offset_seconds: float = 0.0, pace: Pace = REAL_PACE) -> None:
        self.offset_seconds = offset_seconds
        self.pace = pace

    def now(self) -> float:
        if self.pace is REAL_PACE:
            return time.time() + self.offset_seconds
        return self.pace.shows(time.time() + self.offset_seconds)


class RealClock:
    """The real time of a clock that may run faster: same offset, no pace."""

    __slots__ = ("_of",)

    def __init__(self, of: SystemClock) -> None:
        self._of = of

    def now(self) -> float:
        return time.time() + self._of.offset_seconds


def real(clock: Clock) -> Clock:
    """For what lasts in real time however fast the installation's clock runs: log-in links, sessions, tokens."""
    return RealClock(clock) if isinstance(clock, SystemClock) and clock.pace is not REAL_PACE else clock


def speed_of(clock: Clock) -> float:
    """How many of this clock's seconds pass in a real one; a clock moved by hand counts as real."""
    return clock.pace.speed if isinstance(clock, SystemClock) else 1.0


def real_seconds(clock: Clock, seconds: float) -> float:
    """How long to really wait until so many seconds have passed by this clock."""
    return seconds / speed_of(clock)


def clock_seconds(clock: Clock, real_seconds: float) -> float:
    """How much this clock goes on while so many seconds really pass."""
    return real_seconds * speed_of(clock)
