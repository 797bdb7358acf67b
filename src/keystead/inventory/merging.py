"""Several inventories as one: what they say of the same pattern is put together, and what they disagree on is noted."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from keystead.inventory.expiries import spell_expiry
from keystead.inventory.models import SERVER_TYPES, Certainty, Entry, Expiry, Fact, Inventory, Note, Rule, Source
from keystead.inventory.shapes import shape_of

T = TypeVar("T")
_SURENESS = {Certainty.STATED: 2, Certainty.IMPLIED: 1, Certainty.GUESSED: 0}


def merge_inventories(inventories: Iterable[Inventory], name: str = "") -> Inventory:
    """One inventory of all, in the order of the first that names each pattern.

    Patterns are the same if their text is, or, in different inventories, if they differ only in the names of
    variables. Of two facts that disagree the surer one stays, of two equally sure ones the first, and a note tells.
    """
    given = list(inventories)
    if len(given) == 1 and not name:
        given.append(Inventory(given[0].name))
    merging = _Merging()
    for inventory in given:
        merging.take(inventory)
    names = dict.fromkeys(inventory.name for inventory in given if inventory.name)
    sections = dict(section for inventory in reversed(given) for section in reversed(inventory.sections))
    order = dict.fromkeys(path for inventory in given for path, _ in inventory.sections)
    return Inventory(
        name or (" + ".join(names) if len(names) < 4 else f"{next(iter(names))} and {len(names) - 1} more"),
        tuple(merging.entries),
        notes=(*(note for inventory in given for note in inventory.notes), *merging.notes),
        partial="; ".join(f"{inventory.name}: {inventory.partial}" if len(names) > 1 else inventory.partial
                          for inventory in given if inventory.partial),
        sections=tuple((path, sections[path]) for path in order),
    )


class _Merging:
    """The entries so far, and where each pattern is among them."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.notes: list[Note] = []
        self._exact: dict[tuple[str, str], int] = {}
        self._alike: dict[tuple[str, str], list[int]] = {}

    def take(self, inventory: Inventory) -> None:
        before = len(self.entries)
        for entry in inventory.entries:
            at = self._place(entry, before)
            if at is None:
                self._exact[entry.kind, entry.pattern] = len(self.entries)
                self._alike.setdefault((entry.kind, _skeleton(entry)), []).append(len(self.entries))
                self.entries.append(entry)
            else:
                self.entries[at] = self._joined(self.entries[at], entry)

    def _place(self, entry: Entry, before: int) -> int | None:
        """Where the same pattern is already; one with other names counts only from an inventory taken earlier."""
        exact = self._exact.get((entry.kind, entry.pattern))
        if exact is not None:
            return exact
        alike = [at for at in self._alike.get((entry.kind, _skeleton(entry)), ()) if at < before]
        return alike[0] if len(alike) == 1 and _kinds_agree(self.entries[alike[0]], entry) else None

    def _joined(self, first: Entry, second: Entry) -> Entry:
        renamed = dict(zip(shape_of(second).names, shape_of(first).names, strict=True))
        known = dict(first.variables)
        return replace(
            first,
            spelling=first.spelling or second.spelling,
            type=self._fact(first, "type", first.type, second.type, _type_settles),
            ttl=self._fact(first, "expiry", first.ttl, second.ttl, _expiry_settles),
            purpose=_text(first.purpose, second.purpose),
            payload=_text(first.payload, second.payload),
            personal=self._fact(first, "personal data", first.personal, second.personal, lambda one, other: one),
            writers=_together(first.writers, second.writers),
            readers=_together(first.readers, second.readers),
            variables=first.variables + tuple(
                (renamed.get(name, name), kind) for name, kind in second.variables
                if renamed.get(name, name) not in known),
            examples=tuple(dict.fromkeys(first.examples + second.examples)),
            section=first.section or second.section,
            sources=tuple(dict.fromkeys(first.sources + second.sources)),
            extra=tuple(dict.fromkeys((*first.extra, *second.extra, *_other_words(first, second)))),
            observed=first.observed or second.observed,
            uncertain=first.uncertain and second.uncertain,
        )

    def _fact(
        self, entry: Entry, what: str, first: Fact[T] | None, second: Fact[T] | None,
        settles: Callable[[T, T], bool],
    ) -> Fact[T] | None:
        """The fact that stays. ``settles`` says whether the first value includes the second, so that both hold."""
        if first is None or second is None:
            return first or second
        if first.value == second.value:
            return second if _SURENESS[second.certainty] > _SURENESS[first.certainty] else first
        if settles(first.value, second.value) and first.sure:
            return first
        if settles(second.value, first.value) and second.sure:
            return second
        stays, goes = (second, first) if _SURENESS[second.certainty] > _SURENESS[first.certainty] else (first, second)
        self.notes.append(Note(
            f"{entry.pattern}: {what} is {_spelled(stays.value)}{_where(stays)}, but {_spelled(goes.value)}"
            f"{_where(goes)}", goes.source,
        ))
        return stays


def _skeleton(entry: Entry) -> str:
    """The pattern without the names of its variables."""
    return "".join(part if isinstance(part, str) else "{}" if part.name else "*" for part in shape_of(entry).parts)


def _kinds_agree(first: Entry, second: Entry) -> bool:
    kinds = [dict(entry.variables) for entry in (first, second)]
    names = zip(shape_of(first).names, shape_of(second).names, strict=True)
    return all(kinds[0].get(one, kinds[1].get(other)) == kinds[1].get(other, kinds[0].get(one)) for one, other in names)


def _type_settles(one: str, other: str) -> bool:
    """A counter is a string too."""
    return SERVER_TYPES.get(one) == other


def _expiry_settles(one: Expiry, other: Expiry) -> bool:
    """A length says more than that there is one."""
    if other.rule is Rule.SOME and other.seconds is None:
        return one.rule is not Rule.NONE
    return one.seconds == other.seconds and one.rule is not Rule.EXACTLY and other.rule is Rule.EXACTLY


def _text(first: Fact[str] | None, second: Fact[str] | None) -> Fact[str] | None:
    return first if first is not None and first.value else second or first


def _other_words(first: Entry, second: Entry) -> list[tuple[str, str]]:
    """What the second says in words of its own, under the name of where it says so."""
    others: list[tuple[str, str]] = []
    for name, one, other in (("purpose", first.purpose, second.purpose), ("payload", first.payload, second.payload)):
        if one is not None and other is not None and one.value and other.value and one.value != other.value:
            others.append((f"{name}{f' in {other.source.file}' if other.source else ', also'}", other.value))
    return others


def _together(first: tuple[Fact[str], ...], second: tuple[Fact[str], ...]) -> tuple[Fact[str], ...]:
    known = {fact.value for fact in first}
    return first + tuple(fact for fact in second if fact.value not in known)


def _spelled(value: object) -> str:
    if isinstance(value, Expiry):
        return spell_expiry(value)
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _where(fact: Fact[T]) -> str:
    guess = ", a guess" if fact.certainty is Certainty.GUESSED else ""
    source: Source | None = fact.source
    return f" ({source}{guess})" if source else " (a guess)" if guess else ""
