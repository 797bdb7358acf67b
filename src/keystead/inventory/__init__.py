"""What somebody says about the keys of a server: read from documents, code and servers, written as a file."""

from keystead.inventory.expiries import judge_expiry, parse_expiry, spell_expiry
from keystead.inventory.files import read_inventory, write_inventory
from keystead.inventory.from_registry import from_registry
from keystead.inventory.matching import Found, Matcher
from keystead.inventory.merging import merge_inventories
from keystead.inventory.models import (
    SERVER_TYPES,
    Certainty,
    Entry,
    Expiry,
    Fact,
    Inventory,
    Note,
    Observation,
    Rule,
    Source,
)
from keystead.inventory.patterns import shape

__all__ = [
    "Certainty",
    "Entry",
    "Expiry",
    "Fact",
    "Found",
    "Inventory",
    "Matcher",
    "Note",
    "Observation",
    "Rule",
    "SERVER_TYPES",
    "Source",
    "from_registry",
    "judge_expiry",
    "merge_inventories",
    "parse_expiry",
    "read_inventory",
    "shape",
    "spell_expiry",
    "write_inventory",
]
