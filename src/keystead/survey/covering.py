"""Which patterns speak of the same keys: those of a document and those of code are written by different people.

``user:{id}:cart`` and ``user:{user_id}:cart`` are the same; ``lock:{name}`` covers ``lock:reports``; and code that
builds ``stats:{kind}:daily`` uses what a document lists as ``stats:views:daily``.
"""

import re
from collections import defaultdict
from collections.abc import Iterable

from keystead.inventory import Entry
from keystead.inventory.shapes import ANY_TEXT, Hole, shape_of

_FILLED = "\x01"  # stands for a variable's value: in no literal


class Patterns:
    """Entries, to be asked which of them speak of the same keys as another one."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._same: dict[tuple[str, str], list[Entry]] = defaultdict(list)
        self._heads: dict[str, list[tuple[Entry, re.Pattern[str], str]]] = defaultdict(list)
        for entry in entries:
            self._same[_family(entry), _filled(entry)].append(entry)
            self._heads[_head(entry)].append((entry, _expression(entry), _filled(entry)))

    def like(self, other: Entry) -> list[Entry]:
        """The entries that are the same but for the names of variables; if there are none, those that cover the
        other or are covered by it, the most literal first."""
        filled = _filled(other)
        if same := self._same.get((_family(other), filled)):
            return same
        expression, found = _expression(other), []
        for entry, of_entry, filled_entry in self._near(other):
            if _family(entry) != _family(other):
                continue
            if of_entry.fullmatch(filled) or expression.fullmatch(filled_entry):
                found.append(entry)
        return sorted(found, key=lambda entry: -shape_of(entry).weight)

    def _near(self, other: Entry) -> Iterable[tuple[Entry, re.Pattern[str], str]]:
        """Those whose first literal text could be the beginning of the other's, or the other way round."""
        head = _head(other)
        for known, entries in self._heads.items():
            if known.startswith(head) or head.startswith(known):
                yield from entries


def _family(entry: Entry) -> str:
    return "channel" if entry.kind == "channel" else "key"


def _head(entry: Entry) -> str:
    return shape_of(entry).prefix


def _filled(entry: Entry) -> str:
    return "".join(_FILLED if isinstance(part, Hole) else part for part in shape_of(entry).parts)


def _expression(entry: Entry) -> re.Pattern[str]:
    """What an entry speaks of: a variable holds no separator unless it is any text, and an opaque prefix is followed by
    anything."""
    if entry.kind == "opaque":
        return re.compile(re.escape(_head(entry)) + ".*", re.DOTALL)
    shape = shape_of(entry)
    within = f"[^{re.escape(shape.separator)}]+"
    return re.compile("".join(re.escape(part) if isinstance(part, str) else ".+" if part.kind is ANY_TEXT else within
                              for part in shape.parts), re.DOTALL)
