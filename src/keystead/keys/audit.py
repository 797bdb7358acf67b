"""Judges what was seen on a server against what is declared. Reads nothing itself.

Whoever walks the server feeds one ``Observed`` per key and asks for the ``AuditReport`` at the end. Memory stays
bounded for any number of keys: counts per declaration, a few examples per kind of finding, and inferred patterns for
what nobody declared.
"""

from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any, Final

from keystead.errors import DeclarationError
from keystead.keys.executor import Reply
from keystead.keys.infer import Inference, InferredPattern
from keystead.keys.keyspace import Declaration
from keystead.keys.references import Reference
from keystead.keys.registry import Match, Registry
from keystead.keys.spelling import spell_key


class _NotRead(Enum):
    NOT_READ = "not read"


# The value of ``Observed.sample`` for a key whose value was not looked at.
NOT_READ: Final = _NotRead.NOT_READ


class FindingKind(Enum):
    """What can be wrong with a key."""

    WRONG_TYPE = "wrong type"
    TTL_BROKEN = "ttl broken"
    UNDECODABLE = "undecodable"
    BROKEN_PAIR = "broken pair"
    UNDECLARED = "undeclared"


@dataclass(frozen=True, slots=True)
class Observed:
    """One key as it was seen. ``type`` is what TYPE answered; ``sample`` the reply to the declaration's probe."""

    raw_key: bytes
    type: str
    ttl_seconds: float | None
    memory_bytes: int = 0
    sample: Reply = NOT_READ


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong. ``pattern`` is None for a key that nobody declared."""

    kind: FindingKind
    key: str
    pattern: str | None
    says: str


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """Findings of one kind at one declaration, with the first few."""

    kind: str
    pattern: str
    room: str
    keys: int
    examples: tuple[dict[str, str], ...]


@dataclass(frozen=True, slots=True)
class PatternUse:
    """How much of a declared pattern there is."""

    pattern: str
    room: str
    kind: str
    type: str
    keys: int
    memory_bytes: int
    findings: int


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The outcome. ``clean`` means that nothing is wrong and nothing undeclared."""

    clean: bool
    keys: int
    memory_bytes: int
    undeclared_keys: int
    undeclared_memory_bytes: int
    patterns: tuple[PatternUse, ...]
    findings: tuple[FindingGroup, ...]
    undeclared: tuple[InferredPattern, ...]

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values that JSON can hold."""
        return asdict(self)


@dataclass(slots=True)
class _Tally:
    keys: int = 0
    memory_bytes: int = 0


@dataclass(slots=True)
class _Wrong:
    keys: int = 0
    examples: list[dict[str, str]] = field(default_factory=list)


class Audit:
    """Collects what was seen. One object per walk."""

    def __init__(self, registry: Registry, *, most_examples: int = 5, most_patterns: int = 2000) -> None:
        self.registry = registry
        self._most_examples = most_examples
        self._tallies: dict[Declaration, _Tally] = {}
        self._wrong: dict[tuple[FindingKind, Declaration], _Wrong] = {}
        self._inference = Inference(most_patterns=most_patterns)
        self._undeclared = _Tally()

    def observe(self, observed: Observed, match: Match | None = None) -> tuple[Finding, ...]:
        """Judge and count one key. ``match`` saves resolving it again. A key that has gone meanwhile is not counted."""
        if observed.type == "none":
            return ()
        match = match or self.registry.resolve(observed.raw_key)
        if match is None:
            self._undeclared.keys += 1
            self._undeclared.memory_bytes += observed.memory_bytes
            self._inference.add(
                observed.raw_key, type=observed.type, ttl_seconds=observed.ttl_seconds,
                memory_bytes=observed.memory_bytes,
            )
            return (Finding(FindingKind.UNDECLARED, spell_key(observed.raw_key), None, "nobody declared it"),)
        tally = self._tallies.setdefault(match.declaration, _Tally())
        tally.keys += 1
        tally.memory_bytes += observed.memory_bytes
        findings = judge(match.declaration, observed)
        for finding in findings:
            self._record(finding, match.declaration)
        return findings

    def expected_records(self, match: Match, sample: Reply) -> dict[str, Reference]:
        """For the sample of an index: the record that each of its members must have, by member."""
        pair = match.declaration.pairs_with
        if pair is None or sample is NOT_READ:
            return {}
        found: dict[str, Reference] = {}
        for member in match.declaration.sample_members(sample):
            try:
                found[member] = pair.record_of(member, match.arguments)
            except DeclarationError:
                # A member that cannot even be named in the record's pattern has no record.
                self.pair_broken(match, member)
        return found

    def pair_broken(self, match: Match, member: str) -> Finding:
        """Report that a member of an index has no record."""
        pair = match.declaration.pairs_with
        pattern = pair.record.pattern if pair is not None else ""
        index = match.reference.logical
        finding = Finding(
            FindingKind.BROKEN_PAIR, index, match.declaration.pattern, f"member {member[:80]!r} has no {pattern}"
        )
        self._record(finding, match.declaration)
        return finding

    def record_unnamed(self, match: Match, index: Declaration) -> Finding:
        """Report that a record is not named by the index it belongs to; only a look at both keys can tell."""
        finding = Finding(
            FindingKind.BROKEN_PAIR, match.reference.logical, match.declaration.pattern,
            f"is not a member of {index.pattern}",
        )
        self._record(finding, match.declaration)
        return finding

    def report(self) -> AuditReport:
        """Everything so far; the biggest patterns first."""
        findings_by_declaration: dict[Declaration, int] = {}
        groups: list[FindingGroup] = []
        for (kind, declaration), wrong in self._wrong.items():
            findings_by_declaration[declaration] = findings_by_declaration.get(declaration, 0) + wrong.keys
            groups.append(
                FindingGroup(kind.value, declaration.pattern, declaration.room, wrong.keys, tuple(wrong.examples))
            )
        patterns = [
            PatternUse(
                declaration.pattern, declaration.room, declaration.kind, declaration.type, tally.keys,
                tally.memory_bytes, findings_by_declaration.get(declaration, 0),
            )
            for declaration, tally in self._tallies.items()
        ]
        return AuditReport(
            clean=not groups and not self._undeclared.keys,
            keys=self._undeclared.keys + sum(tally.keys for tally in self._tallies.values()),
            memory_bytes=self._undeclared.memory_bytes + sum(tally.memory_bytes for tally in self._tallies.values()),
            undeclared_keys=self._undeclared.keys,
            undeclared_memory_bytes=self._undeclared.memory_bytes,
            patterns=tuple(sorted(patterns, key=lambda use: (-use.memory_bytes, -use.keys, use.pattern))),
            findings=tuple(sorted(groups, key=lambda group: (group.kind, -group.keys, group.pattern))),
            undeclared=tuple(self._inference.patterns()),
        )

    def _record(self, finding: Finding, declaration: Declaration) -> None:
        wrong = self._wrong.setdefault((finding.kind, declaration), _Wrong())
        wrong.keys += 1
        if len(wrong.examples) < self._most_examples:
            wrong.examples.append({"key": finding.key, "says": finding.says})


def judge(declaration: Declaration, observed: Observed) -> tuple[Finding, ...]:
    """What is wrong with a key that this declaration owns. An opaque namespace is never judged."""
    if declaration.kind == "opaque":
        return ()
    if declaration.server_type is not None and observed.type != declaration.server_type:
        says = f"is a {observed.type}, declared {declaration.type}"
        return (_finding(FindingKind.WRONG_TYPE, observed, declaration, says),)
    findings: list[Finding] = []
    broken = declaration.ttl.check(observed.ttl_seconds)
    if broken is not None:
        findings.append(_finding(FindingKind.TTL_BROKEN, observed, declaration, broken))
    if observed.sample is not NOT_READ:
        undecodable = declaration.judge_sample(observed.sample)
        if undecodable is not None:
            findings.append(_finding(FindingKind.UNDECODABLE, observed, declaration, undecodable))
    return tuple(findings)


def _finding(kind: FindingKind, observed: Observed, declaration: Declaration, says: str) -> Finding:
    return Finding(kind, spell_key(observed.raw_key), declaration.pattern, says)

