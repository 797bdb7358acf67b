"""Which reader a document needs, told from its text and name, and the reading itself."""

import re
from pathlib import Path
from typing import Final

from keystead.inventory.models import Entry, Inventory, Note, Source

from .asides import add_asides
from .assembling import assemble
from .blocks import Block, Code
from .columns import role_of
from .markup_html import html_blocks
from .markup_light import asciidoc_blocks, delimited_blocks, plain_blocks, rst_blocks, wiki_blocks
from .mentions import MOST_MENTIONS, Findings
from .opening import Opened, open_document, open_text
from .pasted import restore_tables
from .walking import walk

_MOST_NOTES: Final = 200


def read_document(source: Path | str, name: str | None = None) -> Inventory:
    """The inventory that a hand-kept document is: a path, or the text itself with ``name`` for its sources.

    Raises ``NotADocument`` if there is no text in it. Never fails on text, whatever it says: what is not understood is
    in the notes, what is doubtful is marked, and ``partial`` says why something may be missing.
    """
    if isinstance(source, Path):
        opened, name = open_document(source), name or str(source)
    else:
        name = name or "document"
        opened = open_text(source, name)
    found = Findings()
    walk(restore_tables(blocks_of(opened.text, name)), found)
    partial = opened.partial
    if len(found.mentions) > MOST_MENTIONS:
        del found.mentions[MOST_MENTIONS:]
        partial = "; ".join(filter(None, (partial, f"only the first {MOST_MENTIONS} keys were taken")))
    entries, notes = assemble(found, name)
    entries = add_asides(entries, found, notes, name)
    return Inventory(
        name=name,
        entries=entries,
        notes=_notes(opened, entries, notes, name),
        partial=partial,
        sections=tuple(_sections(found)),
    )


def blocks_of(text: str, name: str) -> tuple[Block, ...]:
    """The blocks of a document, by the reader for its kind."""
    kind = kind_of(text, name)
    if kind == "records":
        return (Code("", text, 1),)
    if kind == "html":
        return html_blocks(text)
    if kind in {"csv", "tsv"}:
        return delimited_blocks(text, {"tsv": "\t", "csv": _delimiter(text)}[kind])
    readers = {"rst": rst_blocks, "asciidoc": asciidoc_blocks, "wiki": wiki_blocks}
    return readers.get(kind, plain_blocks)(text)


def kind_of(text: str, name: str) -> str:
    """What kind of document this is, by name or text: html, csv, tsv, rst, asciidoc, wiki, records, markdown."""
    ending = name.rsplit(".", 1)[-1].lower() if "." in name else ""
    if ending in {"csv", "tsv", "rst", "adoc", "asciidoc", "html", "htm", "wiki", "mediawiki"}:
        return {"adoc": "asciidoc", "htm": "html", "mediawiki": "wiki"}.get(ending, ending)
    if ending in {"yaml", "yml", "toml", "json"}:
        return "records"
    beginning = text[:20000]
    if re.match(
        r"\s*(?:<!doctype html|<html|<\?xml[^>]*>\s*<html|<body|<table|<h[1-6][ >])", beginning, re.IGNORECASE
    ) or (
        len(re.findall(r"</(?:td|th|tr|li|p|h\d|dd|dt)>", beginning, re.IGNORECASE)) > 8
        and not re.search(r"^#{1,4} ", beginning, re.MULTILINE)
    ):
        return "html"
    marks = {
        "rst": r"^\.\. (?:[\w-]+::|_[\w-]+:)|^\s*={2,}(?:\s+={2,})+\s*$|^[^\n]+\n([=~^\"*+#])\1{3,}\s*$|"
        r"^\+-{3,}[-+=]*\+\s*$|``[^`\n]+``",
        "asciidoc": r"^\|===|^={1,5} \S|^:\w[\w-]*:(?:\s|$)|^\[(?:cols|source|options)",
        "wiki": r"^h[1-6]\. |^\|\|.*\|\|\s*$|^\{\||^(={2,5}) [^=\n]+ \1\s*$|\{\{[\w:.<>{}*-]+\}\}|^\{(?:code|noformat)",
        "markdown": r"^#{1,6} \S|^```|^\s*\|?(?:\s*:?-{3,}:?\s*\|)+|\[[^\]\n]+\]\([^)\n]+\)|\*\*[^*\n]+\*\*|"
        r"(?<!`)`[^`\n]+`(?!`)",
    }
    counts = {kind: len(re.findall(expression, beginning, re.MULTILINE)) for kind, expression in marks.items()}
    if (
        counts["asciidoc"] >= 2
        and counts["asciidoc"] >= counts["rst"]
        and not re.search(r"^#{1,4} |^```", beginning, re.MULTILINE)
        and re.search(r"^\|===|^= \S", beginning, re.MULTILINE)
    ):
        return "asciidoc"
    if counts["wiki"] >= 2 and not re.search(r"^#{1,4} \w|^```", beginning, re.MULTILINE):
        return "wiki"
    if (
        counts["rst"] >= 2
        and counts["rst"] > counts["markdown"] / 2
        and not re.search(
            r"^#{1,4} \S|^```|"
            r"^\|[ :-]*-{3}",
            beginning,
            re.MULTILINE,
        )
    ):
        return "rst"
    lines = [line for line in beginning.split("\n") if line.strip()][:30]
    if counts["markdown"] == 0 and len(lines) >= 2:
        for mark, kind in (("\t", "tsv"), (",", "csv"), (";", "csv")):
            widths = [line.count(mark) for line in lines]
            if min(widths) >= 1 and widths.count(widths[0]) >= 0.7 * len(widths) and _names_columns(lines[0], mark):
                return kind
    return "markdown"


def _names_columns(line: str, mark: str) -> bool:
    roles = [role_of(name.strip('" ')) for name in line.split(mark)]
    return "key" in roles and sum(role is not None for role in roles) >= 2


def _delimiter(text: str) -> str:
    first = next((line for line in text.split("\n") if line.strip() and not line.startswith("#")), "")
    return max(",;\t|", key=first.count)


def _notes(opened: Opened, entries: tuple[Entry, ...], notes: list[Note], name: str) -> tuple[Note, ...]:
    every = list(dict.fromkeys(notes))
    if opened.damaged:
        lines = ", ".join(map(str, opened.damaged[:5])) + ("…" if len(opened.damaged) > 5 else "")
        every.append(
            Note(f"bytes that are not valid text were replaced (line {lines})", Source(name, opened.damaged[0]))
        )
    if not entries:
        every.append(Note("no key was found in it", Source(name)))
    return tuple(every[:_MOST_NOTES])


def _sections(found: Findings) -> list[tuple[tuple[str, ...], str]]:
    joined: dict[tuple[str, ...], list[str]] = {}
    for section, text in found.intros:
        joined.setdefault(section, []).append(text)
    return [(section, "\n\n".join(texts)) for section, texts in joined.items()]
