"""An audit as one HTML file that needs nothing beside it: to be sent, kept, and opened years later."""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from html import escape

from keystead.inventory import Entry, spell_expiry
from keystead.survey.audit import Audit
from keystead.survey.findings import Finding
from keystead.survey.report_style import PAGE
from keystead.survey.tally import LONGER, NEVER, TTL_CLASSES, EntryTally
from keystead.survey.treemap import layout

MAP_WIDTH, MAP_HEIGHT = 1200.0, 420.0
MAP_BOXES = 120
LETTER_WIDTH = 7.3
UNEXPLAINED = "not in the inventory"


def to_html(audit: Audit) -> str:
    """The whole report: verdict, treemap of memory, remaining times, findings, personal data, all patterns."""
    parts = [_head(audit)]
    if audit.tally is not None and audit.tally.keys:
        parts += [_treemap(audit), _times(audit.tally.entries.values(), audit.tally.strays)]
    parts += [_findings(audit), _personal(audit)]
    if audit.tally is not None:
        parts.append(_patterns(audit))
    title = f"Keys of {audit.server or audit.inventory.name}"
    return PAGE.replace("@title@", escape(title)).replace("@body@", "\n".join(filter(None, parts)))


def _head(audit: Audit) -> str:
    counts = audit.counted()
    chips = "".join(f'<span class="chip {name}">{count:,} {name}{"" if count == 1 else "s"}</span>'
                    for name, count in counts.items() if count) or '<span class="chip fine">as described</span>'
    facts = [("inventory", f"{audit.inventory.name}, {len(audit.inventory.entries):,} patterns")]
    if audit.server:
        facts.append(("server", audit.server))
    if audit.at:
        facts.append(("looked at", f"{datetime.fromtimestamp(audit.at, UTC):%Y-%m-%d %H:%M} UTC"))
    if audit.tally is not None:
        facts.append(("keys", f"{audit.tally.keys:,}, {_bytes(audit.tally.memory_bytes)}"))
    if audit.code:
        facts.append(("code", audit.code))
    if audit.known:
        facts.append(("in the baseline", f"{len(audit.known):,} findings"))
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts)
    partial = "".join(f'<p class="partial">Partial: {escape(reason)}</p>' for reason in audit.partial)
    return f"<header><h1>Keys</h1><p>{chips}</p><dl class=facts>{listed}</dl>{partial}</header>"


def _treemap(audit: Audit) -> str:
    """Memory by pattern; the colour is that of the worst finding."""
    worst: dict[str, str] = {}
    for found in audit.findings:
        worst.setdefault(found.pattern, found.severity.value)
    seen = audit.by_memory()
    shown, rest = seen[:MAP_BOXES], seen[MAP_BOXES:]
    names = [entry.pattern if entry is not None else UNEXPLAINED for entry, _ in shown]
    colours = [worst.get(entry.pattern, "fine") if entry is not None else "error" for entry, _ in shown]
    sizes = [float(tally.memory_bytes or tally.keys) for _, tally in shown]
    keys = [tally.keys for _, tally in shown]
    if rest:
        names.append(f"{len(rest):,} smaller patterns")
        colours.append("fine")
        sizes.append(float(sum(tally.memory_bytes or tally.keys for _, tally in rest)))
        keys.append(sum(tally.keys for _, tally in rest))
    boxes = []
    for box in layout(sizes, MAP_WIDTH, MAP_HEIGHT):
        name = names[box.index]
        says = f"{name}: {_bytes(sizes[box.index])}, {keys[box.index]:,} keys"
        letters = int((box.width - 10) / LETTER_WIDTH)
        text = ""
        if box.height > 18 and letters >= 4:
            cut = name if len(name) <= letters else name[:letters - 1] + "…"
            text = f'<text x="{box.x + 5:.1f}" y="{box.y + 15:.1f}">{escape(cut)}</text>'
            if box.height > 34 and letters >= 8:
                text += f'<text class=small x="{box.x + 5:.1f}" y="{box.y + 30:.1f}">{_bytes(sizes[box.index])}</text>'
        wide, high = max(0.0, box.width - 1.5), max(0.0, box.height - 1.5)
        boxes.append(f'<g><title>{escape(says)}</title><rect class="{colours[box.index]}" x="{box.x:.1f}" '
                     f'y="{box.y:.1f}" width="{wide:.1f}" height="{high:.1f}" rx="2"/>{text}</g>')
    return (f"<section><h2>Memory by pattern</h2><svg class=map role=img aria-label='memory by pattern' "
            f'viewBox="0 0 {MAP_WIDTH:.0f} {MAP_HEIGHT:.0f}">{"".join(boxes)}</svg>'
            "<p class=legend><i class=fine></i> as described <i class=note></i> note <i class=warning></i> warning "
            "<i class=error></i> error, or not in the inventory</p></section>")


def _times(tallies: Iterable[EntryTally], strays: EntryTally) -> str:
    """How many keys expire how soon."""
    total: Counter[str] = Counter(strays.ttls)
    for tally in tallies:
        total.update(tally.ttls)
    names = [*(name for _, name in TTL_CLASSES), LONGER, NEVER]
    most = max(total.values(), default=1)
    bars = []
    for number, name in enumerate(names):
        count = total[name]
        height = 120.0 * count / most
        x = number * 110 + 20
        label = name if name in (LONGER, NEVER) else f"≤ {name}"
        bars.append(f'<g><title>{label}: {count:,} keys</title><rect class="{"warning" if name == NEVER else "fine"}" '
                    f'x="{x}" y="{140 - height:.1f}" width="80" height="{height:.1f}" rx="2"/>'
                    f'<text class=count x="{x + 40}" y="{134 - height:.1f}">{count:,}</text>'
                    f'<text class=count x="{x + 40}" y="158">{label}</text></g>')
    return (f'<section><h2>Time until keys expire</h2><svg class=times role=img aria-label="time until keys expire" '
            f'viewBox="0 0 {len(names) * 110 + 20} 166">{"".join(bars)}</svg></section>')


def _findings(audit: Audit) -> str:
    if not audit.findings and not audit.known:
        return "<section><h2>Findings</h2><p>None.</p></section>"
    rows = "".join(_finding_row(found, False) for found in audit.findings)
    rows += "".join(_finding_row(found, True) for found in audit.known)
    return ('<section><h2>Findings</h2><input id=filter type=search placeholder="Filter by pattern, kind or text" '
            'aria-label="Filter findings"><div class=wide><table id=findings><thead><tr><th>severity<th>finding'
            f"<th>pattern<th>what<th>where</tr></thead><tbody>{rows}</tbody></table></div></section>")


def _finding_row(found: Finding, known: bool) -> str:
    where = [f"<code>{escape(str(source))}</code>" for source in found.sources if source.line]
    where += [f"<code class=key>{escape(example)}</code>" for example in found.examples]
    state = " <small>in the baseline</small>" if known else ""
    severity = found.severity.value
    return (f"<tr{' class=known' if known else ''}><td><span class='chip {severity}'>{severity}</span>{state}"
            f"<td title='{escape(found.kind.means, quote=True)}'>{escape(found.kind.label)}"
            f"<td><code>{escape(found.pattern)}</code>"
            f"<td>{escape(found.says)}<br><small>{escape(found.mend)}</small><td>{'<br>'.join(where)}")


def _personal(audit: Audit) -> str:
    """Where personal data lies, by section: what is marked, and what only looks like it."""
    suspected = {found.pattern: found.says for found in audit.findings if found.kind.label == "personal-data"}
    rows = []
    for entry in audit.inventory.entries:
        marked = entry.personal is not None and entry.personal.value
        if not marked and entry.pattern not in suspected:
            continue
        tally = audit.tally.entries.get(entry.pattern) if audit.tally is not None else None
        ends = spell_expiry(entry.ttl.value) if entry.ttl is not None else "not said"
        says = "marked" if marked else \
            f"<span class='chip warning'>not marked</span> {escape(suspected[entry.pattern])}"
        keys = f"{tally.keys:,}" if tally is not None else ""
        rows.append(f"<tr><td>{escape(' / '.join(entry.section))}<td><code>{escape(entry.pattern)}</code><td>{says}"
                    f"<td>{escape(ends)}<td class=number>{keys}")
    if not rows:
        return ""
    return ("<section><h2>Personal data</h2><div class=wide><table><thead><tr><th>section<th>pattern<th>personal data"
            f"<th>kept for<th class=number>keys</tr></thead><tbody>{''.join(rows)}</tbody></table></div></section>")


def _patterns(audit: Audit) -> str:
    rows = "".join(_pattern_row(entry, tally) for entry, tally in audit.by_memory())
    return ("<section><h2>All patterns on the server</h2><div class=wide><table><thead><tr><th>pattern<th>types"
            "<th class=number>keys<th class=number>memory<th class=number>largest<th class=number>never expire</tr>"
            f"</thead><tbody>{rows}</tbody></table></div></section>")


def _pattern_row(entry: Entry | None, tally: EntryTally) -> str:
    name = f"<code>{escape(entry.pattern)}</code>" if entry is not None else f"<em>{UNEXPLAINED}</em>"
    return (f"<tr><td>{name}<td>{escape(', '.join(tally.types))}<td class=number>{tally.keys:,}"
            f"<td class=number>{_bytes(tally.memory_bytes)}<td class=number>{_bytes(tally.largest_bytes)}"
            f"<td class=number>{tally.ttls[NEVER]:,}")


def _bytes(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"
