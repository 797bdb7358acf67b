"""What a guard has seen: findings by kind and pattern, counted, with a few examples. Bounded however much it sees."""

import re
import sys
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

_MOST_GROUPS: Final = 1000
_MOST_EXAMPLES: Final = 3
_MOST_COMMANDS: Final = 20
_LONGEST_SHOWN: Final = 120
_VARIABLE: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}|(?=[^:]*[0-9])[A-Za-z0-9._%+=@-]{12,}|[^\s:/|]*@[^\s:/|]+"
    r"|-?[0-9]+(?:\.[0-9]+)*)(?![A-Za-z0-9])|[0-9]{3,}"
)


class Kind(Enum):
    """What may be wrong with a command."""

    UNDOCUMENTED = "undocumented"
    UNDOCUMENTED_CHANNEL = "undocumented channel"
    WRONG_TYPE = "wrong type"
    MISSING_TTL = "missing ttl"
    SUSPECTED_TTL = "suspected missing ttl"  # no EXPIRE came from this client; another may have set it
    TTL_TOO_LONG = "ttl too long"
    UNEXPECTED_TTL = "unexpected ttl"
    LOOSE = "fits only loosely"  # a variable would have to hold separators


# What a strict guard lets pass: it is not sure.
UNSURE: Final = frozenset((Kind.SUSPECTED_TTL,))


@dataclass(slots=True)
class Finding:
    """One kind of trouble with one pattern. ``where`` is the line of your program that did it first."""

    kind: Kind
    pattern: str
    says: str
    mend: str
    where: str
    count: int = 0
    examples: list[str] = field(default_factory=list)
    commands: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.says} ({self.count}x, first at {self.where}). {self.mend}"


@dataclass(frozen=True, slots=True)
class Report:
    """What a guard saw so far. ``clean`` if nothing that is sure was wrong."""

    commands: int
    patterns: dict[str, int]  # how often each pattern of the inventory was used
    unused: tuple[str, ...]  # patterns that no command named
    unknown_commands: dict[str, int]
    findings: tuple[Finding, ...]
    not_kept: int  # findings beyond what is remembered
    waiting: int  # keys made without an expiry whose EXPIRE may still come

    @property
    def clean(self) -> bool:
        return not self.not_kept and all(finding.kind in UNSURE for finding in self.findings)

    def __str__(self) -> str:
        found = sum(finding.count for finding in self.findings) + self.not_kept
        lines = [f"{self.commands} commands, {len(self.patterns)} patterns used, {found} findings"]
        lines += [f"  {finding}" for finding in self.findings]
        if self.unknown_commands:
            lines.append(f"  left alone, unknown commands: {', '.join(sorted(self.unknown_commands))}")
        return "\n".join(lines)


class Tally:
    """Findings as they come."""

    def __init__(self) -> None:
        self._findings: dict[tuple[Kind, str], Finding] = {}
        self.not_kept = 0

    def count(self, kind: Kind, pattern: str, command: str, raw_key: bytes) -> bool:
        """Count one more of a finding that is there, or that there is no room for; false if it must be added first."""
        found = self._findings.get((kind, pattern))
        if found is None:
            if len(self._findings) < _MOST_GROUPS:
                return False
            self.not_kept += 1
            return True
        found.count += 1
        if len(found.examples) < _MOST_EXAMPLES and (key := shown(raw_key)) not in found.examples:
            found.examples.append(key)
        if command in found.commands or len(found.commands) < _MOST_COMMANDS:
            found.commands[command] = found.commands.get(command, 0) + 1
        return True

    def add(self, finding: Finding) -> None:
        self._findings[finding.kind, finding.pattern] = finding

    def findings(self) -> tuple[Finding, ...]:
        """Copies, the most frequent first."""
        kept = sorted(self._findings.values(), key=lambda each: -each.count)
        return tuple(Finding(each.kind, each.pattern, each.says, each.mend, each.where, each.count,
                             list(each.examples), dict(each.commands)) for each in kept)

    def drop(self, kind: Kind) -> None:
        """Forget what was found of one kind."""
        for group in list(self._findings):  # a copy: other threads may find something meanwhile
            if group[0] is kind:
                self._findings.pop(group, None)

    def clear(self) -> None:
        self._findings.clear()
        self.not_kept = 0


def caller() -> str:
    """The line that called the client: the nearest one that belongs neither to a client library nor to the guard."""
    frame = sys._getframe(1)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] not in ("redis", "valkey") and not module.startswith("keystead.guard"):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        if frame.f_back is None:
            break
        frame = frame.f_back
    return "?"


def shown(raw: bytes) -> str:
    """A key for a message: readable, and not endless."""
    text = raw[: _LONGEST_SHOWN + 1].decode(errors="backslashreplace")
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…"


def skeleton(raw: bytes) -> str:
    """A key with its numbers, identifiers and addresses blotted out, so that alike keys are counted together."""
    return _VARIABLE.sub("*", raw[:200].decode(errors="backslashreplace"))
