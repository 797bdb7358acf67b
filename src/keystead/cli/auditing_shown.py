"""The outcome of an audit on a terminal: findings first, then what takes the memory, then the verdict."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from keystead.cli.output import human_bytes, printable, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from keystead.survey import Audit, Finding

SHOWN_FINDINGS = 60
SHOWN_PATTERNS = 25
SHOWN_PLACES = 3
_COLOURS = {"error": "red", "warning": "yellow", "note": "dim"}


def shown(audit: "Audit", *, notes: bool = False) -> "Iterator[RenderableType]":
    """What to print. Notes are only counted unless they are asked for."""
    seen = audit.by_memory()
    if seen:
        uses = table("pattern", "type", "keys", "memory", "no ttl", title="On the server",
                     right=("keys", "memory", "no ttl"))
        for entry, tally in seen[:SHOWN_PATTERNS]:
            never = tally.ttls["never"]
            uses.add_row(_plain(entry.pattern) if entry is not None else "[red]not in the inventory[/red]",
                         ", ".join(tally.types), f"{tally.keys:,}", human_bytes(tally.memory_bytes),
                         f"{never:,}" if never else "")
        yield uses
        if len(seen) > SHOWN_PATTERNS:
            yield f" and {len(seen) - SHOWN_PATTERNS:,} smaller patterns; --format json has them all"
    told = [found for found in audit.findings if notes or found.severity.value != "note"]
    if told:
        findings = table("finding", "pattern", "what", "where", title="Not as described")
        for found in told[:SHOWN_FINDINGS]:
            colour = _COLOURS[found.severity.value]
            findings.add_row(f"[{colour}]{found.kind.label}[/{colour}]", _plain(found.pattern), _plain(found.says),
                             _where(found))
        yield findings
        if len(told) > SHOWN_FINDINGS:
            yield f" and {len(told) - SHOWN_FINDINGS:,} more findings; --format json and --html have them all"
    for reason in audit.partial:
        yield f"[yellow]Partial:[/yellow] {_plain(reason)}"
    yield _verdict(audit, notes)


def _where(found: "Finding") -> str:
    places = [str(source) for source in found.sources if source.line][:SHOWN_PLACES] + list(found.examples)
    return "\n".join(_plain(place) for place in places[:SHOWN_PLACES])


def _verdict(audit: "Audit", notes: bool) -> str:
    patterns = len(audit.inventory.entries)
    parts = [f"{patterns:,} {'pattern' if patterns == 1 else 'patterns'} in {_plain(audit.inventory.name)}"]
    if audit.tally is not None:
        total = audit.tally.keys
        parts.append(f"{total:,} {'key' if total == 1 else 'keys'} ({human_bytes(audit.tally.memory_bytes)})")
        if empty := len(audit.without_keys()):
            parts.append(f"{empty:,} {'pattern' if empty == 1 else 'patterns'} without keys now")
        if audit.tally.strays.keys:
            parts.append(f"{audit.tally.strays.keys:,} not in the inventory")
    if audit.code:
        doubts = len(audit.code_notes)  # what could not be followed, above all: it may use what seems unused
        notes_on = f" ({doubts:,} {'note' if doubts == 1 else 'notes'}, see keystead keys code)" if doubts else ""
        parts.append(f"code in {_plain(audit.code)}{notes_on}")
    if audit.known:
        parts.append(f"{len(audit.known):,} known from the baseline")
    counts = {name: count for name, count in audit.counted().items() if count}
    quiet = counts.pop("note", 0) if not notes else 0
    if quiet:
        parts.append(f"{quiet:,} {'note' if quiet == 1 else 'notes'} (--notes shows them)")
    about = ", ".join(parts)
    if not counts and audit.unfinished:
        return f"[yellow]Unfinished[/yellow]: nothing found in what was seen; {about}."
    if not counts:
        return f"[green]Clean[/green]: {about}."
    found = ", ".join(f"{count:,} {name}{'' if count == 1 else 's'}" for name, count in counts.items())
    return f"[red]Drift[/red]: {found}; {about}."


def _plain(text: str) -> str:
    """Names come from the server; what looks like markup in them is not."""
    from rich.markup import escape

    return escape(printable(text))
