"""What a room says of a pattern, and what each key of the pattern is declared with."""

from collections.abc import Mapping
from typing import Required, TypedDict

from keystead.keys import NO_TTL, Kind, OnCorrupt, Personal, Tag, Ttl
from keystead.keys.keyspace import DeadLetter, Facts


class PatternFacts(TypedDict, total=False):
    """What a room says of a pattern; passed on to every key. Expiry and scripts are the pattern's own business."""

    purpose: Required[str]
    writers: tuple[str, ...]
    readers: tuple[str, ...]
    personal: Personal | bool
    tag: str | Tag | None
    kinds: Mapping[str, Kind] | None


def told(
    facts: PatternFacts, what: str = "", *, scripts: tuple[str, ...] = (), ttl: Ttl = NO_TTL,
    dead: DeadLetter = OnCorrupt.ERROR, personal: bool = True,
) -> Facts:
    """What to declare of one key of a pattern: the room's facts, with ``what`` the key holds before its purpose.

    ``personal=False`` is for a key that holds nothing of the payload: it is personal only if its name says of whom.
    """
    of_person = facts.get("personal", False)
    if not personal:
        of_person = isinstance(of_person, Personal) and bool(of_person.variables) and Personal(of_person.variable)
    return {
        "purpose": f"{what}: {facts['purpose']}" if what else facts["purpose"],
        "writers": facts.get("writers", ()),
        "readers": facts.get("readers", ()),
        "personal": of_person,
        "tag": facts.get("tag"),
        "kinds": facts.get("kinds"),
        "scripts": scripts,
        "ttl": ttl,
        "dead_letter": dead,
    }
