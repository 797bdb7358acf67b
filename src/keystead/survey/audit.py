"""The outcome of an audit: what was compared, what was found, and what of it is new."""

from dataclasses import dataclass
from typing import Any

from keystead.inventory import Entry, Inventory, Note
from keystead.survey.findings import Finding, Severity
from keystead.survey.tally import EntryTally, Tally


@dataclass(frozen=True, slots=True)
class Audit:
    """``known`` are findings that the baseline already has: they are shown, and do not count.

    ``server`` and ``code`` say what was looked at, empty if nothing was; ``partial`` why the look was not whole, and
    ``unfinished`` that it ended early. ``at`` is the unix time of its end, and ``seconds`` how long it took.
    ``code_notes`` tell above all what in the code could not be followed.
    """

    inventory: Inventory
    findings: tuple[Finding, ...]
    known: tuple[Finding, ...] = ()
    server: str = ""
    code: str = ""
    partial: tuple[str, ...] = ()
    tally: Tally | None = None
    seconds: float = 0.0
    at: float = 0.0
    unfinished: bool = False
    code_notes: tuple[Note, ...] = ()

    def failing(self, fail_on: Severity | None) -> bool:
        """Whether a finding is as bad as that; None never fails."""
        return fail_on is not None and any(found.severity.at_least(fail_on) for found in self.findings)

    def counted(self) -> dict[str, int]:
        """How many findings of each severity, the worst first."""
        return {severity.value: sum(found.severity is severity for found in self.findings)
                for severity in reversed(Severity)}

    def by_memory(self) -> list[tuple[Entry | None, EntryTally]]:
        """What was seen, the largest first; None stands for what no entry explains."""
        if self.tally is None:
            return []
        entries = {entry.pattern: entry for entry in self.inventory.entries}
        seen: list[tuple[Entry | None, EntryTally]] = [
            (entries[pattern], tally) for pattern, tally in self.tally.entries.items()]
        if self.tally.strays.keys:
            seen.append((None, self.tally.strays))
        return sorted(seen, key=lambda each: (-each[1].memory_bytes, -each[1].keys))

    def without_keys(self) -> list[str]:
        """Patterns of which nothing is on the server now. Keys come and go, so by itself that is no finding."""
        if self.tally is None:
            return []
        seen = self.tally.entries
        return [entry.pattern for entry in self.inventory.entries if entry.kind == "key" and entry.pattern not in seen]

    def as_dict(self) -> dict[str, Any]:
        """Plain values that JSON can hold."""
        return {
            "inventory": self.inventory.name, "server": self.server, "code": self.code, "partial": list(self.partial),
            "clean": not self.unfinished and not self.failing(Severity.WARNING),
            "counts": self.counted(), "known": len(self.known),
            "keys": self.tally.keys if self.tally is not None else None,
            "memory_bytes": self.tally.memory_bytes if self.tally is not None else None,
            "keys_not_in_inventory": self.tally.strays.keys if self.tally is not None else None,
            "seconds": round(self.seconds, 3),
            "findings": [as_dict(found) for found in self.findings],
            "patterns": [
                {"pattern": entry.pattern if entry is not None else None, "keys": tally.keys,
                 "memory_bytes": tally.memory_bytes, "largest_bytes": tally.largest_bytes,
                 "types": dict(tally.types), "ttls": dict(tally.ttls)}
                for entry, tally in self.by_memory()
            ],
            "patterns_without_keys": self.without_keys(),
            "notes": [{"says": note.says, "source": str(note.source or "")}
                      for note in (*self.inventory.notes, *self.code_notes)],
        }


def as_dict(found: Finding) -> dict[str, Any]:
    return {
        "kind": found.kind.label, "severity": found.severity.value, "pattern": found.pattern, "says": found.says,
        "mend": found.mend, "keys": found.keys, "examples": list(found.examples),
        "sources": [str(source) for source in found.sources], "fingerprint": found.fingerprint,
    }
