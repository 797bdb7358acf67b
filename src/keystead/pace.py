"""A clock that runs faster, kept in the data directory: a restart never shows an earlier time than before.

Only a demonstration has one. Its time is never behind the real one, so an instant that the server is told (a lifetime
that ends at a time of day) is late rather than over at once. While nothing runs, its time passes like any other.
"""

import asyncio
import contextlib
import json
import math
import secrets
import time
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from keystead.clock import REAL_PACE, Pace
from keystead.errors import Invalid

PACE_FILE: Final = "clock.json"
MOST_SPEED: Final = 3600.0
# So often the reserved time is written anew, and so far ahead of now: after a kill the clock leaps this much at most.
KEEP_SECONDS: Final = 5.0
RESERVED_SECONDS: Final = 3 * KEEP_SECONDS


@dataclass(frozen=True, slots=True)
class Kept:
    """What stands in the file: the pace in force, and by real time ``written_at`` nothing later than ``reached_at``
    had been shown."""

    pace: Pace
    reached_at: float
    written_at: float


def read_pace(directory: Path) -> Pace:
    """How fast the clock of this data directory runs; in all but demonstrations it is the real time."""
    kept = _read(directory)
    return REAL_PACE if kept is None else kept.pace


def is_demonstration(directory: Path) -> bool:
    """Whether this data directory is that of a demonstration."""
    return (directory / PACE_FILE).exists()


def next_pace(kept: Kept | None, speed: float, real_now: float) -> Pace:
    """The pace of a start at this real time, after what was kept of the one before."""
    if kept is None:
        return REAL_PACE if speed == 1.0 else Pace(speed, real_now, real_now)
    rested = max(0.0, real_now - kept.written_at)
    return Pace(speed, real_now, max(kept.reached_at + rested, real_now))


@contextlib.asynccontextmanager
async def keeping(directory: Path, speed: float) -> AsyncIterator[Pace]:
    """Begin with this speed where the last run ended, for as long as the block runs. One process at a time may do so.

    Refuses with ``Invalid`` a speed below 1 or above ``MOST_SPEED``: beyond it, days pass faster than work is done.
    """
    if not (math.isfinite(speed) and 1.0 <= speed <= MOST_SPEED):
        raise Invalid(f"clock.speed is {speed:g}; it takes 1, the real time, up to {MOST_SPEED:g}")
    pace = next_pace(_read(directory), speed, time.time())
    if pace is REAL_PACE:
        yield pace
        return
    _write(directory, pace, ahead_seconds=RESERVED_SECONDS)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(_keep(directory, pace))
        try:
            yield pace
        finally:
            task.cancel()
            _write(directory, pace, ahead_seconds=0.0)


async def _keep(directory: Path, pace: Pace) -> None:
    while True:
        await asyncio.sleep(KEEP_SECONDS)
        with contextlib.suppress(OSError):  # a full disk: what is reserved already holds for a while
            _write(directory, pace, ahead_seconds=RESERVED_SECONDS)


def _read(directory: Path) -> Kept | None:
    path = directory / PACE_FILE
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        pace = Pace(**{name: float(value) for name, value in found["pace"].items()})
        return Kept(pace, float(found["reached_at"]), float(found["written_at"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise Invalid(f"{path} cannot be read; it says how far the demonstration's clock has come, and without it "
                      "time would go back: remove the whole directory to begin anew") from None


def _write(directory: Path, pace: Pace, *, ahead_seconds: float) -> None:
    now = time.time()
    kept = Kept(pace, pace.shows(now + ahead_seconds), now)
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = directory / f"{PACE_FILE}.{secrets.token_hex(4)}"
    draft.write_text(json.dumps(asdict(kept)), encoding="utf-8")
    draft.replace(directory / PACE_FILE)
