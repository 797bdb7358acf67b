"""What every queue shares: where the server is, the bodies of the jobs, and the board on which jobs leave their marks.

The board is a file that all processes of one measurement map into memory. A job that writes there asks nothing of the
server, so marks cost every library the same few hundred nanoseconds, and they outlive a worker that is killed.
"""

import asyncio
import itertools
import mmap
import os
import time
from pathlib import Path

URL = os.environ.get("BENCH_URL", "redis://127.0.0.1:6379").replace("valkey://", "redis://", 1)
VARIANT = os.environ.get("BENCH_VARIANT", "")
QUICK_RECOVERY = os.environ.get("BENCH_QUICK_RECOVERY") == "1"  # the shortest sensible settings, not the defaults

NAP_SECONDS = 4.0
SLOTS, CELLS, WAITS = 8, 8, 4096
COUNT, FIRST_AT, LAST_AT, NAPS_BEGUN, NAP_BEGUN_AT, NAPS_ENDED, NAPPER = range(7)


class Board:
    """Numbers in shared memory: a slot of cells for each worker process, then the waits of single jobs."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)
        self.numbers = memoryview(self._map).cast("d")

    @staticmethod
    def make(path: Path) -> "Board":
        path.write_bytes(bytes(8 * (SLOTS * CELLS + WAITS)))
        return Board(path)

    def wipe(self) -> None:
        self._map[:] = bytes(len(self._map))

    def cells(self, slot: int) -> memoryview:
        return self.numbers[slot * CELLS : (slot + 1) * CELLS]

    @property
    def waits(self) -> memoryview:
        return self.numbers[SLOTS * CELLS :]


_board = Board(Path(os.environ["BENCH_BOARD"])) if "BENCH_BOARD" in os.environ else None
_cells = _board.cells(int(os.environ.get("BENCH_SLOT", "0"))) if _board else memoryview(bytearray(CELLS * 8)).cast("d")
_waits = _board.waits if _board else memoryview(bytearray(WAITS * 8)).cast("d")
_numbers = itertools.count(1)


def tick(sent: float) -> None:
    """The no-op job: it counts itself and, when ``sent`` is not 0, notes how long it waited."""
    now = time.monotonic()  # the same clock in every process of this machine
    number = next(_numbers)
    if number == 1:
        _cells[FIRST_AT] = now
    if sent:
        _waits[number - 1] = now - sent
    _cells[LAST_AT] = now
    _cells[COUNT] = number


def begin_nap() -> None:
    _cells[NAP_BEGUN_AT] = time.monotonic()
    _cells[NAPPER] = os.getpid()
    _cells[NAPS_BEGUN] += 1


def end_nap() -> None:
    _cells[NAPS_ENDED] += 1


def nap() -> None:
    begin_nap()
    time.sleep(NAP_SECONDS)
    end_nap()


async def async_nap() -> None:
    begin_nap()
    await asyncio.sleep(NAP_SECONDS)
    end_nap()
