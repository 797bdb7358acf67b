"""What the auditor of declarations saw, in the words of a survey: it looks into values, which a walk does not."""

from keystead.inventory import Inventory, Matcher
from keystead.keys import AuditReport, FindingKind, Observed
from keystead.survey.drift import Live
from keystead.survey.findings import Drift, Finding
from keystead.survey.looking import strays_of
from keystead.survey.tally import Tally
from keystead.survey.tree import Tree

# What only a look into values can find; the rest is found by comparing.
_DEEPER = {
    FindingKind.UNDECODABLE.value: (Drift.UNREADABLE, "find the writer, and delete what cannot be read"),
    FindingKind.BROKEN_PAIR.value: (Drift.BROKEN_PAIR, "write index and record in one step, and mend what is there"),
}


class Watching:
    """Counts the keys that the auditor walks over."""

    def __init__(self, inventory: Inventory, server: str) -> None:
        self._tree = Tree()
        self._tally = Tally(Matcher(inventory), self._tree.add)
        self._server = server

    def saw(self, observed: Observed) -> None:
        """One key, as the auditor saw it."""
        ttl_ms = -1 if observed.ttl_seconds is None else round(observed.ttl_seconds * 1000)
        self._tally.add(observed.raw_key, observed.type, ttl_ms, observed.memory_bytes)

    def live(self, *, whole: bool) -> Live:
        """Everything that was seen. No more keys may come after this."""
        return Live(self._tally, strays_of(self._tree, self._server), whole)


def deeper(report: AuditReport) -> tuple[Finding, ...]:
    """What the auditor found in values."""
    found = []
    for group in report.findings:
        if group.kind in _DEEPER:
            kind, mend = _DEEPER[group.kind]
            says = f"{group.keys:,} {'key' if group.keys == 1 else 'keys'}: {group.examples[0]['says']}"
            examples = tuple(example["key"] for example in group.examples[:3])
            found.append(Finding(kind, group.pattern, says, mend, keys=group.keys, examples=examples))
    return tuple(found)
