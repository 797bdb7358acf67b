"""What a rotation did."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy.exc import SQLAlchemyError

from keystead.engine.failures import ErrorReply
from keystead.errors import KeysteadError, Unavailable

# What may come of one thing that is counted, and must not stop the others: what lies there, or what SQL says to it.
TROUBLE: Final = (KeysteadError, ErrorReply, SQLAlchemyError, ValueError, ArithmeticError)


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

    def note(self, error: Exception, where: str = "") -> None:
        """Make trouble a problem of this one thing. What is out of reach is raised: it would be so for the others."""
        if isinstance(error, Unavailable):
            raise error
        said = str(error).splitlines()
        self.problems.append(f"{where}{said[0] if said else type(error).__name__}; nothing of it was removed")


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
