"""Several worker processes under one parent, which starts them, starts them again when they die, and ends them.

The parent does no work of its own, so there is little that could kill it. Its children read from a pipe that ends when
it is gone, however it went: nothing is left behind that nobody looks after.
"""

import asyncio
import contextlib
import os
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from typing import Final

from keystead.errors import DeclarationError

FIRST_PAUSE_SECONDS: Final = 1.0
MOST_PAUSE_SECONDS: Final = 30.0
STEADY_SECONDS: Final = 60.0  # whoever lived so long did not die of how it was started
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
PARENT: Final = "KEYSTEAD_PARENT"  # tells a child that its standard input is the pipe
# Asked to stop before it could listen, a process dies of the signal: that is no failure.
CLEAN: Final = (0, 130, *(-number for number in SIGNALS))


class Processes:
    """Keeps ``count`` processes of one command running until ``stop``.

    One that ends unasked is started again, at once if it went well, else after a pause that doubles from
    ``first_pause_seconds`` up to ``most_pause_seconds`` for as long as it keeps dying young. ``say`` is told in plain
    words of everything that happens. Children get sessions of their own, so that Ctrl-C reaches them through us only.
    """

    def __init__(
        self, command: Sequence[str], count: int, *, say: Callable[[str], None] = lambda text: None,
        first_pause_seconds: float = FIRST_PAUSE_SECONDS, most_pause_seconds: float = MOST_PAUSE_SECONDS,
        steady_seconds: float = STEADY_SECONDS,
    ) -> None:
        if count < 1:
            raise DeclarationError(f"there must be one process at least, not {count}")
        self._command, self._count, self._say = tuple(command), count, say
        self._first, self._most, self._steady = first_pause_seconds, most_pause_seconds, steady_seconds
        self._stopping = asyncio.Event()
        self._last_signal = signal.SIGTERM
        self._running: dict[int, Process] = {}
        self._codes: list[int] = []

    @property
    def pids(self) -> list[int]:
        """The processes that run now."""
        return [process.pid for process in self._running.values()]

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Pass the signal on to every process and start none any more. A worker asked twice gives back at once."""
        self._stopping.set()
        self._last_signal = signal.Signals(number)
        for process in self._running.values():
            _send(process, number)

    async def run(self, *, signals: bool = False) -> int:
        """Run until stopped and every process has ended; with ``signals`` also SIGTERM and SIGINT stop.

        Returns an exit code: 0 if all ended as they should, 1 if one that was asked to stop failed.
        """
        loop = asyncio.get_running_loop()
        if signals:
            for number in SIGNALS:
                loop.add_signal_handler(number, self.stop, number)
        try:
            async with asyncio.TaskGroup() as places:
                for place in range(1, self._count + 1):
                    places.create_task(self._keep(place))
        finally:
            self.stop()  # only does something when we leave by an exception
            if signals:
                for number in SIGNALS:
                    loop.remove_signal_handler(number)
        return 0 if all(code in CLEAN for code in self._codes) else 1

    async def _keep(self, place: int) -> None:
        """Keep one process running."""
        pause = self._first
        while not self._stopping.is_set():
            began = time.monotonic()
            code = await self._run_one(place)
            if self._stopping.is_set():
                self._codes.append(code)
                return
            if code == 0:
                self._say(f"process {place} was ended by someone, it starts again")
                pause = self._first
                continue
            if time.monotonic() - began >= self._steady:
                pause = self._first
            self._say(f"process {place} {_told(code)}, it starts again in {pause:g} s")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._stopping.wait()
            pause = min(pause * 2, self._most)

    async def _run_one(self, place: int) -> int:
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command, stdin=PIPE, start_new_session=True, env={**os.environ, PARENT: str(os.getpid())}
            )
        except OSError as error:
            self._say(f"process {place} cannot be started: {error}")
            return os.EX_OSERR
        self._running[place] = process
        try:
            if self._stopping.is_set():  # asked while it was being started
                _send(process, self._last_signal)
            return await process.wait()
        finally:
            del self._running[place]


def _send(process: Process, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(number)


def _told(code: int) -> str:
    if code >= 0:
        return f"failed with exit code {code}"
    try:
        return f"died of {signal.Signals(-code).name}"
    except ValueError:
        return f"died of signal {-code}"


def stop_without_parent(stop: Callable[[], None]) -> None:
    """Call ``stop`` when the parent is gone, in a process that ``Processes`` started; in any other do nothing.

    Needs a running loop.
    """
    # What this process starts itself has another standard input.
    if os.environ.pop(PARENT, None) is None:
        return
    loop, pipe = asyncio.get_running_loop(), sys.stdin.fileno()

    def read() -> None:
        if not os.read(pipe, 1024):
            loop.remove_reader(pipe)
            stop()

    loop.add_reader(pipe, read)
