"""Being asked to stop: a flag that signals raise, and a sleep that ends with it. Nothing is cut off by force."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from keystead.clock import Clock

POLL_SECONDS: Final = 0.1
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class TermSignal(BaseException):
    """Raised where the program stands when a signal arrives, if so wished; no ``except Exception`` eats it."""


class Shutdown:
    """Whether this process was asked to stop.

    ``received_term_signal`` is what everything that works in steps asks between two of them; it is handed down as
    ``stopping``. It never becomes false again.
    """

    def __init__(self) -> None:
        self._received = False

    def received_term_signal(self) -> bool:
        return self._received

    def request(self) -> None:
        """Ask to stop, as a signal would."""
        self._received = True

    @contextmanager
    def on_signals(self, *, raises: bool = False) -> Iterator[None]:
        """Let SIGTERM and SIGINT ask to stop while the block runs, instead of ending the process.

        ``raises``: also raise ``TermSignal`` where the program stands, for code that cannot ask. Only in the main
        thread, where Python handles signals; the former handlers are put back at the end.
        """

        def handle(number: int, frame: FrameType | None) -> None:
            self.request()
            if raises:
                raise TermSignal

        former = [(number, signal.signal(number, handle)) for number in SIGNALS]
        try:
            yield
        finally:
            for number, handler in former:
                signal.signal(number, handler)


async def graceful_sleep(seconds: float, *, stopping: Callable[[], bool], clock: Clock) -> bool:
    """Sleep for so long by this clock; ends early, within 0.1 s, with False when ``stopping`` says so."""
    until = clock.now() + seconds
    while not stopping():
        left = until - clock.now()
        if left <= 0:
            return True
        await asyncio.sleep(min(left, POLL_SECONDS))
    return False
