"""What a rotation did."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class Rotated:
    """What was done for one thing that is counted: days that left, counts that came late and were added, trouble.

    ``problems`` are sentences for whoever looks after the numbers. ``settled``: nothing of it is left under way.
    """

    name: str
    days: int = 0
    late: int = 0
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0
    settled: bool = False


@dataclass(frozen=True, slots=True)
class RotationReport:
    """One run. ``stopped``: it was asked to end before it was through; the next run goes on."""

    by_name: Mapping[str, Rotated]
    stopped: bool = False

    @property
    def days(self) -> int:
        return sum(one.days for one in self.by_name.values())

    @property
    def late(self) -> int:
        return sum(one.late for one in self.by_name.values())

    @property
    def problems(self) -> list[str]:
        """All of them, each with the name of what it is about."""
        return [f"{one.name}: {problem}" for one in self.by_name.values() for problem in one.problems]
