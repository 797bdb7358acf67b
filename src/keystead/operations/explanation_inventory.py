"""What one key is, by an inventory that somebody wrote down."""

from dataclasses import replace

from keystead.engine import Valkey
from keystead.inventory import Entry, Found, Matcher, judge_expiry
from keystead.inventory.rows import entry_row
from keystead.keys import Registry, key_slot, spell_key
from keystead.operations.explanation import AS_DECLARED, Explanation, explain


async def explain_by_inventory(valkey: Valkey, matcher: Matcher, raw_key: bytes) -> Explanation:
    """Look at one key, as ``explain`` does; values are shown as they are, because no payload is declared."""
    seen = await explain(valkey, Registry([]), raw_key)
    known = explain_by_inventory_alone(matcher, raw_key)
    if not seen.exists or known.kind == "channel":
        return known
    found = matcher.find(raw_key)
    findings = list(known.findings)
    verdict = None
    if found is not None and found.entry.kind == "key" and not found.loose:
        entry = found.entry
        if entry.server_type is not None and seen.type != entry.server_type:
            findings.append(f"is a {seen.type}, but is written down as {entry.type.value if entry.type else ''}")
        if entry.ttl is not None:
            broken = judge_expiry(entry.ttl.value, seen.ttl_seconds)
            verdict = broken or AS_DECLARED
            findings += [broken] if broken else []
    return replace(
        known, exists=True, type=seen.type, ttl_seconds=seen.ttl_seconds, ttl_verdict=verdict,
        memory_bytes=seen.memory_bytes, length=seen.length, value=seen.value, truncated=seen.truncated, note=seen.note,
        findings=tuple(findings),
    )


def explain_by_inventory_alone(matcher: Matcher, raw_key: bytes) -> Explanation:
    """What the key would be, from the inventory alone."""
    found = matcher.find(raw_key)
    if found is None or found.loose:
        found = matcher.find_channel(raw_key) or found
    entry = found.entry if found is not None and not found.loose else None
    return Explanation(
        key=spell_key(raw_key),
        kind="key" if entry is None else entry.kind,
        exists=False,
        pattern=entry.pattern if entry else None,
        purpose=entry.purpose.value if entry and entry.purpose else None,
        room=" / ".join(entry.section) or None if entry else None,
        declaration=_row(entry) if entry else None,
        arguments=dict(found.arguments) if found and entry else {},
        personal=bool(entry and entry.personal and entry.personal.value),
        writers=tuple(fact.value for fact in entry.writers) if entry else (),
        readers=tuple(fact.value for fact in entry.readers) if entry else (),
        scripts=(),
        slot=key_slot(raw_key),
        findings=() if entry else (_unknown(matcher, found),),
    )


def _unknown(matcher: Matcher, found: Found | None) -> str:
    says = f"{matcher.inventory.name} does not describe this key"
    if found is None:
        return says
    values = ", ".join(f"{name} = {value}" for name, value in found.arguments.items())
    return f"{says}, unless it is meant as {found.entry.pattern} with {values}"


def _row(entry: Entry) -> dict[str, object]:
    row: dict[str, object] = entry_row(entry)
    return row | {"personal": ["yes"] if row["personal"] else []}
