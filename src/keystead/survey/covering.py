"""Which patterns speak of the same keys: those of a document and those of code are written by different people.

``user:{id}:cart`` and ``user:{user_id}:cart`` are the same; ``lock:{name}`` covers ``lock:reports``; and code that
builds ``stats:{kind}:daily`` uses what a document lists as ``stats:views:daily``.
"""

import re
from collections import defaultdict
from collections.abc import Iterable

from keystead.inventory import Entry

_VARIABLE = re.compile(r"\{[^{}]*\}")
_FILLED = "\x01"  # stands for a variable's value: in no literal


class Patterns:
    """Entries, to be asked which of them speak of the same keys as another one."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._same: dict[tuple[str, str], list[Entry]] = defaultdict(list)
        self._heads: dict[str, list[tuple[Entry, re.Pattern[str], str]]] = defaultdict(list)
        for entry in entries:
            self._same[_family(entry), _filled(entry.pattern)].append(entry)
            self._heads[_head(entry.pattern)].append((entry, _expression(entry), _filled(entry.pattern)))

    def like(self, other: Entry) -> list[Entry]:
        """The entries that are the same but for the names of variables; if there are none, those that cover the
        other or are covered by it, the most literal first."""
        filled = _filled(other.pattern)
        if same := self._same.get((_family(other), filled)):
            return same
        expression, found = _expression(other), []
        for entry, of_entry, filled_entry in self._near(other):
            if _family(entry) != _family(other):
                continue
            if of_entry.fullmatch(filled) or expression.fullmatch(filled_entry):
                found.append(entry)
        return sorted(found, key=lambda entry: -len(_VARIABLE.sub("", entry.pattern)))

    def _near(self, other: Entry) -> Iterable[tuple[Entry, re.Pattern[str], str]]:
        """Those whose first literal text could be the beginning of the other's, or the other way round."""
        head = _head(other.pattern)
        for known, entries in self._heads.items():
            if known.startswith(head) or head.startswith(known):
                yield from entries


def _family(entry: Entry) -> str:
    return "channel" if entry.kind == "channel" else "key"


def _head(pattern: str) -> str:
    return pattern.split("{", 1)[0]


def _filled(pattern: str) -> str:
    return _VARIABLE.sub(_FILLED, pattern)


def _expression(entry: Entry) -> re.Pattern[str]:
    """What an entry speaks of: a variable holds no colon, and an opaque prefix is followed by anything."""
    if entry.kind == "opaque":
        return re.compile(re.escape(_head(entry.pattern)) + ".*", re.DOTALL)
    return re.compile("[^:]+".join(re.escape(piece) for piece in _VARIABLE.split(entry.pattern)))
