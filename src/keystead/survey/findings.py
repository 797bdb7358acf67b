"""What an audit finds: one finding for each thing that is wrong with one pattern, and what to do about it."""

from dataclasses import dataclass
from enum import Enum
from hashlib import sha256

from keystead.inventory import Source


class Severity(Enum):
    """How much a finding matters. Ordered: an error is worse than a warning."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"

    def at_least(self, other: "Severity") -> bool:
        order = list(Severity)
        return order.index(self) >= order.index(other)


class Drift(Enum):
    """The kinds of findings: a name for tools, how much it matters, and what it means."""

    UNDOCUMENTED = "undocumented", Severity.ERROR, "keys on the server that the inventory does not know"
    WRONG_TYPE = "wrong-type", Severity.ERROR, "keys of another type than the inventory says"
    NEVER_EXPIRES = "never-expires", Severity.ERROR, "keys that should expire and do not"
    EXPIRES_LATE = "expires-late", Severity.WARNING, "keys that live longer than the inventory says"
    UNEXPECTED_EXPIRY = "unexpected-expiry", Severity.ERROR, "keys that will vanish although they should stay"
    UNREADABLE = "unreadable", Severity.ERROR, "values that do not decode as declared"
    BROKEN_PAIR = "broken-pair", Severity.ERROR, "an index and its records disagree"
    ONLY_IN_CODE = "only-in-code", Severity.ERROR, "the code uses keys that the inventory does not know"
    CODE_TYPE = "code-type", Severity.ERROR, "the code uses a key as another type than the inventory says"
    CODE_EXPIRY = "code-expiry", Severity.WARNING, "the code gives a key another expiry than the inventory says"
    UNUSED = "unused", Severity.WARNING, "the inventory describes keys that are nowhere to be found"
    NOT_IN_CODE = "not-in-code", Severity.NOTE, "keys that no line of the code was seen to use"
    PERSONAL = "personal-data", Severity.WARNING, "personal data that the inventory does not mark"
    AMBIGUOUS = "ambiguous", Severity.NOTE, "two patterns of the inventory could own the same key"
    LARGE = "large", Severity.NOTE, "single keys that are very large"

    def __init__(self, label: str, severity: Severity, means: str) -> None:
        self.label, self.severity, self.means = label, severity, means


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with one pattern. ``says`` tells what, ``mend`` how to set it right.

    ``sources`` are the lines that disagree; ``keys`` and ``examples`` the keys it was seen at. ``about`` tells findings
    of one kind at one pattern apart, and must not change while the fault stays the same.
    """

    kind: Drift
    pattern: str
    says: str
    mend: str
    sources: tuple[Source, ...] = ()
    keys: int = 0
    examples: tuple[str, ...] = ()
    about: str = ""
    weaker: Severity | None = None  # where less is known than usual, the finding matters less

    @property
    def severity(self) -> Severity:
        return self.weaker or self.kind.severity

    @property
    def fingerprint(self) -> str:
        """The same for the same fault on every run, whatever its numbers are."""
        return sha256("\x00".join((self.kind.label, self.pattern, self.about)).encode()).hexdigest()[:16]


def in_order(findings: "list[Finding]") -> tuple[Finding, ...]:
    """The worst first, then by kind, then by how many keys are concerned."""
    ranks = {severity: -number for number, severity in enumerate(Severity)}
    kinds = {kind: number for number, kind in enumerate(Drift)}
    return tuple(sorted(findings, key=lambda found: (ranks[found.severity], kinds[found.kind], -found.keys,
                                                     found.pattern, found.about)))
