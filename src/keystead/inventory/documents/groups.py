"""Entries that speak of one another: groups of keys, examples of patterns, keys that are "just like" another one."""

import re
from bisect import bisect_left
from dataclasses import replace
from typing import Final, TypeVar

from keystead.inventory.models import Certainty, Entry, Fact
from keystead.inventory.patterns import VARIABLE

from .spellings import matcher

T = TypeVar("T")

_MOST_GROUPS: Final = 500  # each is compared with every entry


def without_groups(every: list[Entry]) -> list[Entry]:
    """The entries without those that only announce others: a heading ``user:*`` above a table of keys ``user:...``.

    What such a group says of all its keys is handed down to them.
    """
    ordered = sorted(entry.pattern for entry in every)
    groups: list[tuple[str, Entry]] = []
    for entry in every:
        stem = re.sub(r"\{(?:rest|any)\}$", "", entry.pattern)
        says_nothing = stem != entry.pattern and entry.type is None and entry.ttl is None
        if (
            entry.kind == "key"
            and (says_nothing or stem.endswith(":"))
            and len(groups) < _MOST_GROUPS
            and any(
                other != entry.pattern and other.startswith(stem) for other in ordered[bisect_left(ordered, stem) :][:2]
            )
        ):
            groups.append((stem, entry))
    kept: list[Entry] = []
    for entry in every:
        if any(group is entry for _, group in groups):
            continue
        for stem, group in groups:
            if entry.kind == "key" and entry.pattern.startswith(stem):
                entry = replace(
                    entry, type=entry.type or _handed_down(group.type), ttl=entry.ttl or _handed_down(group.ttl)
                )
        kept.append(entry)
    return kept


def without_examples(entries: list[Entry]) -> list[Entry]:
    """The entries without concrete keys that a block of code shows as examples of patterns that are described."""
    general = [entry for entry in entries if VARIABLE.search(entry.pattern)][:_MOST_GROUPS]
    examples = [
        entry
        for entry in entries
        if not entry.type
        and not entry.ttl
        and not VARIABLE.search(entry.pattern)
        and re.search(r"\d{2,}|[0-9a-f]{8}|:\d+(?::|$)", entry.pattern)
    ][:_MOST_GROUPS]
    shown = {
        entry.pattern: owner.pattern
        for entry in examples
        for owner in general
        if matcher(owner.pattern).fullmatch(entry.pattern)
    }
    made = [entry for entry in entries if entry.pattern not in shown]
    return [
        replace(entry, examples=(*entry.examples, *(key for key, owner in shown.items() if owner == entry.pattern))[:5])
        if entry.pattern in shown.values()
        else entry
        for entry in made
    ]


def _handed_down(fact: Fact[T] | None) -> Fact[T] | None:
    return replace(fact, certainty=Certainty.IMPLIED) if fact is not None else None


_LIKE: Final = re.compile(
    r"\b(?:same (?:structure|values?|format|shape|type|as)(?: as)?|just like|identical to|"
    r"similar to|like|containing the same values as)\s+(?:in |the |as )*([\w:{}.-]+)|"
    r"(?:与|和|同)\s*([\w:{}.-]+)\s*(?:相同|一致|一样)|([\w:{}.-]+)\s*(?:와|과)\s*동일|"
    r"([\w:{}.-]+)\s*と同じ"
)


def resolved(entries: list[Entry]) -> list[Entry]:
    """Entries whose type is only said to be that of another one get it from there."""
    made: list[Entry] = []
    for entry in entries:
        words = entry.purpose.value if entry.purpose else ""
        if entry.type is None and entry.kind == "key" and (like := _LIKE.search(words)):
            told = next(group for group in like.groups() if group).rstrip(".,")
            parent = entry.pattern.rsplit(":", 1)[0]
            other = next(
                (
                    each
                    for each in entries
                    if each is not entry
                    and each.type is not None
                    and (each.pattern == told or each.pattern == f"{parent}:{told}" or each.spelling == told)
                ),
                None,
            )
            if other is not None and other.type is not None:
                entry = replace(
                    entry,
                    type=Fact(
                        other.type.value,
                        Certainty.IMPLIED,
                        entry.purpose.source if entry.purpose else None,
                        like.group(),
                    ),
                )
        made.append(entry)
    return made
