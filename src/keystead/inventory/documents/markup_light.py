"""Other light markup into blocks: reStructuredText, AsciiDoc, and the wikis of Confluence, Jira and MediaWiki.

Tables are carved out by their own rules; what remains differs from Markdown in few things, is brought to them line by
line (the number of lines stays the same), and is read by the Markdown parser.
"""

import csv
import itertools
import re
from collections.abc import Callable
from typing import Final

from .blocks import Block, Heading, Listing, Paragraph, Table, Terms, Text, marked
from .markup_markdown import markdown_blocks

_UNDERLINE: Final = re.compile(r"([=\-~^\"'`#*+.:_])\1{2,}\s*")
_GRID: Final = re.compile(r"\s*\+[-=+]{3,}\+\s*")
_SIMPLE: Final = re.compile(r"\s*={2,}(?:\s+={2,})+\s*")
_DIRECTIVE: Final = re.compile(r"(\s*)\.\.\s+([\w-]+)::\s*(.*)")
_DELIMITER: Final = re.compile(r"```.*|-{4,}|\.{4,}|\{(?:code|noformat)[^}]*\}|</?(?:pre|source|syntaxhighlight)[^>]*>")
_BOX: Final = re.compile(r"[┌┬┐├┼┤└┴┘─│╔╦╗╠╬╣╚╩╝═║]")


def line_of(block: Block) -> int:
    """The line where a block begins."""
    if isinstance(block, Heading | Paragraph):
        return block.text.line
    if isinstance(block, Listing):
        return block.items[0].line if block.items else 0
    if isinstance(block, Terms):
        return block.pairs[0][0].line if block.pairs else 0
    return block.line


def rst_blocks(text: str) -> tuple[Block, ...]:
    return _carved(text, (_grid_table, _simple_table, _directive_table), _rst_line)


def asciidoc_blocks(text: str) -> tuple[Block, ...]:
    return _carved(text, (_asciidoc_table,), _asciidoc_line)


def wiki_blocks(text: str) -> tuple[Block, ...]:
    return _carved(text, (_mediawiki_table, _jira_table), _wiki_line)


def plain_blocks(text: str) -> tuple[Block, ...]:
    """Markdown, with tables drawn in lines or boxes."""
    return _carved(text, (_grid_table, _box_table), None)


def delimited_blocks(text: str, delimiter: str) -> tuple[Block, ...]:
    """A file of rows of cells, the first of which are the names of the columns."""
    rows: list[tuple[Text, ...]] = []
    reader = csv.reader(text.split("\n"), delimiter=delimiter)
    before = 0
    try:
        for row in reader:
            if any(cell.strip() for cell in row) and not row[0].startswith("#"):
                rows.append(tuple(Text(marked(cell.strip()), before + 1) for cell in row))
            before = reader.line_num
    except csv.Error:
        pass  # a cell without end: what was read before it stands
    return (Table(rows[0], tuple(rows[1:]), rows[0][0].line),) if rows else ()


Carver = Callable[[list[str], int], tuple[Table | None, int]]


def _carved(text: str, carvers: tuple[Carver, ...], line: Callable[[list[str], int], None] | None) -> tuple[Block, ...]:
    lines = text.split("\n")
    tables: list[Block] = []
    at = 0
    while at < len(lines):
        for carver in carvers:
            table, end = carver(lines, at)
            if end > at:
                if table is not None:
                    tables.append(table)
                lines[at:end] = [""] * (end - at)
                at = end - 1
                break
        at += 1
    if line is not None:
        inside = False
        for number in range(len(lines)):
            if inside and not _DELIMITER.fullmatch(lines[number].strip()):
                continue
            if not lines[number].startswith("```"):
                line(lines, number)
            inside ^= lines[number].startswith("```")
    blocks = [*markdown_blocks("\n".join(lines)), *tables]
    return tuple(sorted(blocks, key=line_of)) if tables else tuple(blocks)


def _table(rows: list[tuple[list[str], int]], has_header: bool = True) -> Table | None:
    texts = [tuple(Text(marked(cell.strip()), line) for cell in cells) for cells, line in rows if any(cells)]
    if not texts:
        return None
    header = texts[0] if has_header and len(texts) > 1 else ()
    return Table(header, tuple(texts[1:] if header else texts), texts[0][0].line)


def _grid_table(lines: list[str], at: int) -> tuple[Table | None, int]:
    if not _GRID.fullmatch(lines[at]) or at + 2 >= len(lines) or "|" not in lines[at + 1]:
        return None, at
    edges = [place for place, mark in enumerate(lines[at]) if mark == "+"]
    end = at
    rows: list[tuple[list[str], int]] = []
    cells: list[str] | None = None
    start = at + 2
    while end < len(lines) and re.match(r"\s*[+|]", lines[end]):
        line = lines[end]
        if _GRID.fullmatch(line):
            if cells is not None:
                rows.append((cells, start))
            cells, start = None, end + 2
        else:
            whole = len(line.rstrip()) <= len(lines[at].rstrip()) + 1 and not re.search(r"[^\x00-\x7f]", line)
            pieces = ([line[left + 1:right] for left, right in itertools.pairwise(edges)] if whole
                      else line.strip().strip("|").split("|"))
            if cells is None:
                cells = [piece.strip() for piece in pieces]
            else:
                cells = [f"{old} {new.strip()}".strip() for old, new in zip(cells, pieces, strict=False)]
        end += 1
    if cells is not None:
        rows.append((cells, start))
    return _table(rows), end


def _simple_table(lines: list[str], at: int) -> tuple[Table | None, int]:
    if not _SIMPLE.fullmatch(lines[at]):
        return None, at
    columns = [(found.start(), found.end()) for found in re.finditer(r"=+", lines[at])]
    rows: list[tuple[list[str], int]] = []
    end, rules = at + 1, 1
    while end < len(lines) and end < at + 5000:
        line = lines[end]
        end += 1
        if _SIMPLE.fullmatch(line) or re.fullmatch(r"\s*=+\s*", line):
            rules += 1
            if rules == 3 or (rules == 2 and not _closes_later(lines, end)):
                break
            continue
        if not line.strip():
            continue
        cells = [line[left:(columns[number + 1][0] if number + 1 < len(columns) else None)].strip()
                 for number, (left, _) in enumerate(columns)]
        if cells[0] or not rows:
            rows.append((cells, end))
        else:
            rows[-1] = ([f"{old} {new}".strip() for old, new in zip(rows[-1][0], cells, strict=True)], rows[-1][1])
    return _table(rows, has_header=rules == 3), end


def _closes_later(lines: list[str], at: int) -> bool:
    for line in lines[at:at + 2000]:
        if _SIMPLE.fullmatch(line):
            return True
        if _UNDERLINE.fullmatch(line) and "=" not in line:
            return False
    return False


def _directive_table(lines: list[str], at: int) -> tuple[Table | None, int]:
    found = _DIRECTIVE.fullmatch(lines[at])
    if not found or found[2] not in {"list-table", "csv-table"}:
        return None, at
    end = at + 1
    while end < len(lines) and (not lines[end].strip() or lines[end].startswith(found[1] + " ")):
        end += 1
    body = [(line.strip(), number) for number, line in enumerate(lines[at + 1:end], at + 2)]
    options = dict(re.findall(r":([\w-]+):\s*(.*)", "\n".join(line for line, _ in body)))
    rows: list[tuple[list[str], int]] = []
    if found[2] == "csv-table":
        if "header" in options:
            rows.append((next(csv.reader([options["header"]], skipinitialspace=True)), at + 1))
        rows += [(next(csv.reader([line], skipinitialspace=True)), number) for line, number in body
                 if line and not line.startswith(":")]
        return _table(rows), end
    for line, number in body:
        if line.startswith("* -"):
            rows.append(([line[3:].strip()], number))
        elif line.startswith("- ") or line == "-":
            if rows:
                rows[-1][0].append(line[1:].strip())
        elif line and rows and not line.startswith(":"):
            rows[-1][0][-1] += " " + line
    return _table(rows, has_header="header-rows" in options or bool(rows)), end


def _asciidoc_table(lines: list[str], at: int) -> tuple[Table | None, int]:
    if not re.fullmatch(r"[|,:!]===\s*", lines[at]):
        return None, at
    end = next((number for number in range(at + 1, len(lines)) if lines[number].strip() == lines[at].strip()), at)
    if end == at:
        return None, at
    if lines[at].startswith(","):
        inside = [(line, number) for number, line in enumerate(lines[at + 1:end], at + 2) if line.strip()]
        rows = [(next(csv.reader([line])), number) for line, number in inside]
        return _table(rows), end + 1
    options = lines[at - 1] if at and lines[at - 1].startswith("[") else ""
    found = re.search(r"cols=\"?(\d+)\*|cols=\"([^\"]*)\"", options)
    width = int(found[1]) if found and found[1] else len(found[2].split(",")) if found else 0
    cells: list[tuple[str, int]] = []
    for number, line in enumerate(lines[at + 1:end], at + 2):
        pieces = re.split(r"(?<!\\)(?:(?<=\s)[\d.+<>^aehlmsd]*)?\|", line)
        if len(pieces) > 1:
            if not width:
                width = len(pieces) - 1
            cells += [(piece.strip().replace("\\|", "|"), number) for piece in pieces[1:]]
        elif line.strip() and cells:
            cells[-1] = (f"{cells[-1][0]} {line.strip()}", cells[-1][1])
    width = max(1, width)
    starts = range(0, len(cells), width)
    rows = [([cell for cell, _ in cells[start:start + width]], cells[start][1]) for start in starts]
    return _table(rows), end + 1


def _mediawiki_table(lines: list[str], at: int) -> tuple[Table | None, int]:
    if not lines[at].lstrip().startswith("{|"):
        return None, at
    rows: list[tuple[list[str], int]] = [([], at + 1)]
    end = at + 1
    while end < len(lines) and not lines[end].lstrip().startswith("|}"):
        line = lines[end].strip()
        end += 1
        if line.startswith("|-"):
            rows.append(([], end + 1))
        elif line.startswith("!"):
            rows[-1][0].extend(_wiki_cells(line[1:], "!!"))
        elif line.startswith("|") and not line.startswith("|+"):
            rows[-1][0].extend(_wiki_cells(line[1:], "||"))
        elif line and rows[-1][0]:
            rows[-1][0][-1] += " " + line
    return _table([row for row in rows if row[0]]), min(end + 1, len(lines))


def _wiki_cells(line: str, mark: str) -> list[str]:
    pieces = re.split(r"\|\||!!", line) if mark == "!!" else line.split(mark)
    return [_wiki_inline(re.sub(r"^\s*(?:\w+=\"[^\"]*\"\s*)+\|", "", piece).strip()) for piece in pieces]


def _jira_table(lines: list[str], at: int) -> tuple[Table | None, int]:
    if not re.match(r"\s*\|\|.*\|\|\s*$", lines[at]):
        return None, at
    header = [_wiki_inline(cell) for cell in lines[at].strip().strip("|").split("||")]
    rows = [(header, at + 1)]
    end = at + 1
    while end < len(lines) and lines[end].lstrip().startswith("|"):
        rows.append(([_wiki_inline(cell) for cell in lines[end].strip()[1:].removesuffix("|").split("|")], end + 1))
        end += 1
    return _table(rows), end


def _box_table(lines: list[str], at: int) -> tuple[Table | None, int]:
    if not lines[at].lstrip().startswith(("┌", "╔")) or not re.search(r"[┬╦]", lines[at]):
        return None, at
    rows: list[tuple[list[str], int]] = []
    end = at + 1
    while end < len(lines) and _BOX.match(lines[end].lstrip()):
        if lines[end].lstrip().startswith(("│", "║")):
            rows.append(([cell.strip() for cell in re.split(r"[│║]", lines[end].strip())[1:-1]], end + 1))
        end += 1
    return _table(rows), end


def _rst_line(lines: list[str], at: int) -> None:
    line = lines[at]
    found = _DIRECTIVE.fullmatch(line)
    if found and found[2] in {"code-block", "code", "sourcecode", "literalinclude", "parsed-literal"}:
        lines[at] = ""
        _fence(lines, at, found[3].strip())
    elif found and found[2] in {"note", "warning", "tip", "important"}:
        lines[at] = found[3]
    elif line.rstrip().endswith("::") and at + 1 < len(lines) and not found:
        lines[at] = line.rstrip()[:-1]
        _fence(lines, at, "")
    elif at and _UNDERLINE.fullmatch(line) and lines[at - 1].strip() and not lines[at - 1].startswith((" ", "#", "-")):
        lines[at] = ""
        lines[at - 1] = {"=": "#", "-": "##"}.get(line[0], "###") + " " + lines[at - 1]
    elif _UNDERLINE.fullmatch(line):
        lines[at] = ""
    else:
        field = re.fullmatch(r"(\s*):([\w /-]+):\s+(.*)", line)
        if field:
            lines[at] = f"{field[1]}- {field[2]}: {field[3]}"
        elif line.strip() and at + 1 < len(lines) and re.match(r" {2,}\S", lines[at + 1]) and re.match(r"\S", line) \
                and not re.match(r"[-*+#.|>]|\d+\.", line):
            lines[at] = f"- {line}"  # a term with its definition


def _fence(lines: list[str], at: int, language: str) -> None:
    """Make a fence of the indented lines after ``at``, if there are any; the lines around it are blank."""
    start = at + 1
    while start < len(lines) and not lines[start].strip():
        start += 1
    while start < len(lines) and re.match(r"\s+:\w+:", lines[start]):
        lines[start] = ""
        start += 1
        while start < len(lines) and not lines[start].strip():
            start += 1
    if start >= len(lines) or not lines[start].startswith((" ", "\t")):
        return
    end = start
    while end < len(lines) and (not lines[end].strip() or lines[end].startswith((" ", "\t"))):
        end += 1
    if start - 1 > at or not lines[start - 1].strip():
        lines[start - 1] = "```" + language
        indent = min(len(line) - len(line.lstrip()) for line in lines[start:end] if line.strip())
        lines[start:end] = [line[indent:] for line in lines[start:end]]
        if end <= len(lines) - 1 and end > start and not lines[end - 1].strip():
            lines[end - 1] = "```"


def _asciidoc_line(lines: list[str], at: int) -> None:
    line = lines[at]
    if re.match(r"={1,6}\s+\S", line):
        marks = line.split()[0]
        lines[at] = "#" * len(marks) + line[len(marks):]
    elif re.fullmatch(r"-{4,}|\.{4,}", line.rstrip()):
        lines[at] = "```"
    elif re.fullmatch(r"\[.*\]|\+|====|\*{4}|--", line.strip()) or re.match(r":[\w-]+:", line):
        lines[at] = ""
    elif (found := re.match(r"(\s*)(\S.*?)::(?:\s+(.*))?$", line)) and not line.startswith(("-", "*", "//")):
        lines[at] = f"- {found[2]}: {found[3] or ''}".rstrip(" ")
    elif found := re.match(r"(\*{2,5})\s+", line):
        lines[at] = "  " * (len(found[1]) - 1) + "* " + line[found.end():]
    if lines[at].startswith("//"):
        lines[at] = ""
    lines[at] = re.sub(r"`\+(.+?)\+`", r"`\1`", lines[at])


def _wiki_line(lines: list[str], at: int) -> None:
    line = lines[at]
    if found := re.fullmatch(r"h([1-6])\.\s*(.+)", line):
        lines[at] = "#" * int(found[1]) + " " + _wiki_inline(found[2])
    elif found := re.fullmatch(r"(={2,6})\s*(.+?)\s*\1\s*", line):
        lines[at] = "#" * len(found[1]) + " " + _wiki_inline(found[2])
    elif re.fullmatch(r"\{(?:code|noformat)[^}]*\}|</?(?:pre|source|syntaxhighlight)[^>]*>", line.strip()):
        lines[at] = "```"
    elif found := re.match(r"([*#]{1,5})\s+(.*)", line):
        lines[at] = "  " * (len(found[1]) - 1) + "- " + _wiki_inline(found[2])
    else:
        lines[at] = _wiki_inline(line)


def _wiki_inline(text: str) -> str:
    text = re.sub(r"\{\{([^{}]+)\}\}|<(?:code|tt|nowiki)>(.*?)</(?:code|tt|nowiki)>",
                  lambda found: "`" + (found[1] or found[2]).strip() + "`", text)
    text = re.sub(r"\[([^\[\]|]+)\|(https?://[^\]]+)\]", r"[\1](\2)", text)
    return text.replace("'''", "**").replace("''", "*")
