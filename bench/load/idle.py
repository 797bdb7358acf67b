"""Measure a whole ``keystead up`` to which nothing happens: what it holds, and what it uses of a processor."""

import tempfile
import time
from importlib.metadata import version
from pathlib import Path

from bench.load import protocol
from bench.load.up import keystead_up

SETTLE_SECONDS = 10.0  # until what follows the start is done: the first census, the calendar, the first beats
LEAST_SECONDS = 20.0
MEGABYTE = 1_000_000


def measure(seconds: float) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="bench-idle-") as directory, keystead_up(Path(directory) / "data") as up:
        time.sleep(SETTLE_SECONDS)
        used, began = up.cpu_seconds(), time.monotonic()
        most = 0
        while time.monotonic() - began < seconds:
            most = max(most, up.resident_bytes())
            time.sleep(1)
        return {"resident_mb": most / MEGABYTE,
                "cpu_percent": 100 * (up.cpu_seconds() - used) / (time.monotonic() - began)}


def main() -> None:
    flags = protocol.parser()
    flags.add_argument("--idle-seconds", type=float, default=60.0)
    given = flags.parse_args()
    quick = given.seconds < 1
    seconds = LEAST_SECONDS if quick else given.idle_seconds
    protocol.answer(measure(seconds), {"library": f"keystead {version('keystead')}", "seconds": seconds})


if __name__ == "__main__":
    main()
