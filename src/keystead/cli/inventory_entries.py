"""``keystead keys list`` and ``show`` for an inventory that is written down instead of declared."""

from typing import TYPE_CHECKING, Any

from keystead.cli.output import Format, fact_grid, human_bytes, note, printable, table, write, write_json
from keystead.errors import NotFound

if TYPE_CHECKING:
    from keystead.inventory import Entry, Inventory


def list_entries(inventory: "Inventory", section: str | None, personal: bool, format: Format) -> None:
    """A table or rows of the entries; a guess has a question mark behind it."""
    from keystead.inventory.rows import inventory_rows

    rows = inventory_rows(inventory)
    if section is not None:
        sections = dict.fromkeys(name for row in rows for name in row["section"])
        if section not in sections:
            raise NotFound(f"no section is named {section}; there are {', '.join(sections) or 'none'}")
        rows = [row for row in rows if section in row["section"]]
    if personal:
        rows = [row for row in rows if row["personal"]]
    if format is Format.JSON:
        write_json(rows)
        return
    shown = table("pattern", "type", "expires", "section", "purpose")
    for row in rows:
        shown.add_row(*(printable(each) for each in (
            row["pattern"] + (" ?" if row["uncertain"] else ""), _sure(row, "type") or row["kind"].replace("key", ""),
            _sure(row, "ttl"), row["section"][-1] if row["section"] else "", _first_sentence(row["purpose"]))))
    write(shown)
    unsure = sum(bool(row["unsure"] or row["uncertain"]) for row in rows)
    note(f"{len(rows)} in {inventory.name}" + (f", {unsure} with something to look at (?)" if unsure else "")
         + (f"; not the whole: {inventory.partial}" if inventory.partial else ""))


def show_entry(inventory: "Inventory", wanted: str, format: Format) -> None:
    """Everything that is known of one entry, with where it stands."""
    from keystead.inventory.rows import entry_row

    entry = find_entry(inventory, wanted)
    row = entry_row(entry)
    if format is Format.JSON:
        write_json(row)
        return
    from rich.text import Text

    facts: list[tuple[str, object]] = [
        ("purpose", _sure(row, "purpose")), ("section", " / ".join(row["section"])), ("type", _sure(row, "type")),
        ("holds", _sure(row, "payload")), ("expires", _sure(row, "ttl")),
        ("variables", "\n".join(f"{name}: {kind}" for name, kind in row["variables"].items())),
        ("writers", ", ".join(row["writers"])), ("readers", ", ".join(row["readers"])),
        ("personal data", "" if row["personal"] is None else ("yes" if row["personal"] else "no")
         + (" ?" if "personal" in row["unsure"] else "")),
        ("examples", "\n".join(row["examples"])), *row["extra"].items(),
        ("written as", row["spelling"] if row["spelling"] != row["pattern"] else ""),
        ("stands in", ", ".join(row["sources"])), ("look at", row["uncertain"]),
    ]
    if entry.observed is not None:
        facts.append(("seen", f"{entry.observed.keys} keys, {human_bytes(entry.observed.memory_bytes)}"))
    write(Text(printable(row["pattern"]), style="bold cyan"), fact_grid(facts))


def find_entry(inventory: "Inventory", wanted: str) -> "Entry":
    """The entry of a pattern, of a key that fits one, or the only one whose pattern holds the text."""
    from keystead.inventory import Matcher

    for entry in inventory.entries:
        if wanted in (entry.pattern, entry.spelling):
            return entry
    raw = wanted.encode("utf-8", "surrogateescape")
    matcher = Matcher(inventory)
    found = matcher.find(raw) or matcher.find_channel(raw)
    if found is not None and not found.loose:
        return found.entry
    near = [entry for entry in inventory.entries if wanted.lower() in entry.pattern.lower()]
    if len(near) == 1:
        return near[0]
    if near:
        shown = ", ".join(entry.pattern for entry in near[:8]) + (", …" if len(near) > 8 else "")
        raise NotFound(f"{wanted} fits {len(near)} patterns: {shown}; give one of them whole")
    from difflib import get_close_matches

    close = get_close_matches(wanted, [entry.pattern for entry in inventory.entries], n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(close)}?" if close else "see `keystead keys list`"
    raise NotFound(f"no pattern in {inventory.name} is {wanted}; {hint}")


def _sure(row: dict[str, Any], name: str) -> str:
    return f"{row[name]} ?" if name in row["unsure"] else str(row[name] or "")


def _first_sentence(text: str) -> str:
    line = text.strip().partition("\n")[0]
    head, stop, _ = line.partition(". ")
    return head + ("." if stop else "")
