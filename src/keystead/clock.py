"""What time it is. Injected everywhere, so that hosts agree and tests can move it."""

import time
from typing import Protocol


class Clock(Protocol):
    """Unix time in seconds. Scripts get it as an argument; nothing else asks the machine for the time of day."""

    def now(self) -> float: ...


class SystemClock:
    """The machine's clock, shifted by the offset last measured against the server.

    The engine measures (``engine.sync_clock``); everyone else only reads. Before the first measurement the offset
    is zero.
    """

    __slots__ = ("offset_seconds",)

    def __init__(self, offset_seconds: float = 0.0) -> None:
        self.offset_seconds = offset_seconds

    def now(self) -> float:
        return time.time() + self.offset_seconds
