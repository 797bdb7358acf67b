"""An entry as a row of values that JSON can hold, for lists and programs."""

from typing import Any

from keystead.inventory.expiries import spell_expiry
from keystead.inventory.models import Certainty, Entry, Fact, Inventory


def entry_row(entry: Entry) -> dict[str, Any]:
    """Everything that is known of an entry. ``unsure`` names what is a guess, ``uncertain`` why the pattern is."""
    facts: dict[str, Fact[Any] | None] = {
        "type": entry.type, "ttl": entry.ttl, "purpose": entry.purpose, "payload": entry.payload,
        "personal": entry.personal,
    }
    return {
        "pattern": entry.pattern,
        "spelling": entry.spelling or entry.pattern,
        "kind": entry.kind,
        "type": _value(entry.type),
        "server_type": entry.server_type,
        "ttl": "" if entry.ttl is None else spell_expiry(entry.ttl.value),
        "section": list(entry.section),
        "purpose": _value(entry.purpose),
        "payload": _value(entry.payload),
        "personal": None if entry.personal is None else entry.personal.value,
        "variables": dict(entry.variables),
        "writers": [fact.value for fact in entry.writers],
        "readers": [fact.value for fact in entry.readers],
        "examples": list(entry.examples),
        "extra": dict(entry.extra),
        "unsure": [name for name, fact in facts.items() if fact and fact.certainty is Certainty.GUESSED],
        "uncertain": entry.uncertain,
        "sources": [str(source) for source in entry.sources],
    }


def inventory_rows(inventory: Inventory) -> list[dict[str, Any]]:
    """A row for each entry, in order."""
    return [entry_row(entry) for entry in inventory.entries]


def _value(fact: Fact[str] | None) -> str:
    return "" if fact is None else fact.value
