"""What the machine is, and how much it was disturbed while something was measured."""

import os
import platform
import resource
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.stage import Stage


@dataclass(frozen=True, slots=True)
class Disturbance:
    """Shares of all processor time during a measurement that went elsewhere."""

    stolen: float
    others: float

    @property
    def total(self) -> float:
        return self.stolen + self.others


class Watch:
    """Notes processor times now; ``read`` says what happened since.

    ``stolen`` is time that the host of a virtual machine gave to others. ``others`` is time that other programs on this
    machine used: all busy time without the measured process, the stage and the runner itself.
    """

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._begin = time.monotonic()
        self._before = self._times()

    def read(self) -> Disturbance:
        cores = psutil.cpu_count() or 1
        available = max(time.monotonic() - self._begin, 0.001) * cores
        busy, stolen, known = (now - then for now, then in zip(self._times(), self._before, strict=True))
        return Disturbance(max(0.0, stolen / available), max(0.0, (busy - known) / available))

    def _times(self) -> tuple[float, float, float]:
        times = psutil.cpu_times()
        stolen = float(getattr(times, "steal", 0.0))
        busy = sum(getattr(times, name, 0.0) for name in ("user", "nice", "system", "irq", "softirq"))
        used = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return busy, stolen, used + self._stage.cpu_seconds()


def wait_until_calm(limit_seconds: float) -> None:
    """Hold until other programs leave the machine mostly idle, or the limit is reached."""
    end = time.monotonic() + limit_seconds
    while time.monotonic() < end and psutil.cpu_percent(interval=0.3) > 15:
        pass


def describe() -> dict[str, object]:
    """The facts a reader needs to place the figures."""
    return {
        "measured_at": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def _processor() -> str:
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
