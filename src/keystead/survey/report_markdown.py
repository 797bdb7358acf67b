"""An audit as a short Markdown page: the summary of a build, or a comment on a change."""

from keystead.survey.audit import Audit
from keystead.survey.findings import Finding

SHOWN = 50
LARGEST = 10
_MARKS = {"error": "🔴", "warning": "🟡", "note": "⚪"}


def to_markdown(audit: Audit) -> str:
    """The verdict first, then the findings, then what uses the memory."""
    lines = [f"## Keys: {_verdict(audit)}", ""]
    looked = [f"inventory `{audit.inventory.name}` ({len(audit.inventory.entries):,} patterns)"]
    if audit.server:
        seen = f", {audit.tally.keys:,} keys, {audit.tally.memory_bytes / 1024 / 1024:,.1f} MiB" if audit.tally else ""
        looked.append(f"server `{audit.server}`{seen}")
    if audit.code:
        looked.append(f"code `{audit.code}`")
    lines.append("Compared: " + "; ".join(looked) + ".")
    lines += ["", *(f"> **Partial:** {reason}" for reason in audit.partial)]
    if audit.findings:
        lines += ["", "| | finding | pattern | what | where |", "|---|---|---|---|---|"]
        lines += [_row(found) for found in audit.findings[:SHOWN]]
        if len(audit.findings) > SHOWN:
            lines.append(f"\n… and {len(audit.findings) - SHOWN:,} more.")
    if audit.known:
        lines += ["", f"{len(audit.known):,} more are in the baseline."]
    if largest := audit.by_memory()[:LARGEST]:
        lines += ["", "<details><summary>Memory by pattern</summary>", ""]
        lines += ["| pattern | keys | memory |", "|---|---:|---:|"]
        lines += [f"| {_code(entry.pattern) if entry else 'not in the inventory'} | {tally.keys:,} | "
                  f"{tally.memory_bytes / 1024:,.0f} KiB |" for entry, tally in largest]
        lines += ["", "</details>"]
    return "\n".join(lines) + "\n"


def _verdict(audit: Audit) -> str:
    if not audit.findings:
        return "not seen whole" if audit.unfinished else "as described"
    counts = [f"{count} {name}{'' if count == 1 else 's'}" for name, count in audit.counted().items() if count]
    return ", ".join(counts)


def _row(found: Finding) -> str:
    lines = [str(source) for source in found.sources if source.line][:2]
    where = ", ".join(map(_code, lines or found.examples[:1] or [str(source) for source in found.sources[:1]]))
    cells = _MARKS[found.severity.value], found.kind.label, _code(found.pattern), _cell(found.says), where
    return f"| {' | '.join(cells)} |"


def _code(text: str) -> str:
    return "`" + text.replace("`", "'").replace("|", "\\|").replace("\n", " ") + "`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
