"""Tables that have lost their marks, as they do when a page is pasted into a text file.

Four ways a table is left behind: cells parted by tabs, by bars, by several spaces, or by nothing but one space; and one
cell on each line. The names of the columns tell where such a table begins. Where cells are parted by one space their
borders are worked out from what they hold, and the table says that it is ``lossy``.
"""

import re
from typing import Final

from .blocks import Block, Code, Paragraph, Table, Text, marked
from .columns import role_of
from .durations import durations
from .prose_types import type_of_cell
from .tokens import Likeness, likeness
from .vocabulary import COLUMNS

_PHRASES: Final = frozenset(phrase for phrases in COLUMNS.values() for phrase in phrases)
_KEY: Final = re.compile(r"(?P<key>(?:<[^<>\n]{1,60}>|\$?\{[^{}\n]*\}|[^\s<{])+)\s*")
_PATH: Final = re.compile(r"[\w./-]+\.\w+(?:::?[\w().]+)*|[\w-]+(?:/[\w.-]+)+|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_PARTERS: Final = (re.compile(r"\t+"), re.compile(r"\s*\|\s*"), re.compile(r"\s{2,}"))


def restore_tables(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """The blocks, with a table in place of each text that was one."""
    restored: list[Block] = []
    pending: list[Paragraph] = []

    def flush() -> None:
        restored.extend(_one_cell_a_line(pending) or [piece for paragraph in pending for piece in _of_lines(paragraph)])
        pending.clear()

    for block in blocks:
        if isinstance(block, Paragraph):
            pending.append(block)
            continue
        flush()
        table = (
            _parted([Text(line, block.line + number) for number, line in enumerate(block.text.split("\n"))])
            if (isinstance(block, Code) and not block.language)
            else None
        )
        restored.append(table or block)
    flush()
    return tuple(restored)


def _of_lines(paragraph: Paragraph) -> list[Block]:
    lines = paragraph.text.lines()
    if len(lines) < 2:
        return [paragraph]
    for number, line in enumerate(lines[:-1]):
        if number > 3:
            break
        table = _parted(lines[number:]) or _spaced(lines[number:])
        if table is not None:
            before = [Paragraph(Text("\n".join(each.raw for each in lines[:number]), lines[0].line))] if number else []
            return [*before, table]
        if not line.raw:
            break
    return [paragraph]


def _parted(lines: list[Text]) -> Table | None:
    """A table whose cells are parted by tabs, bars or several spaces."""
    lines = [line for line in lines if line.plain and not re.fullmatch(r"[\s|+=─━-]+", line.raw)]
    if len(lines) < 2:
        return None
    for parter in _PARTERS:
        names = [name for name in parter.split(lines[0].raw.strip().strip("|")) if name.strip()]
        roles = [role_of(re.sub(r"[\x01-\x06]", "", name)) for name in names]
        if len(names) < 2 or roles.count(None) > len(roles) / 2 or "key" not in roles:
            continue
        rows = []
        for line in lines[1:]:
            cells = parter.split(line.raw.strip().strip("|").strip(), maxsplit=len(names) - 1)
            rows.append(
                tuple(Text(marked(cell.strip()) if "\x01" not in cell else cell.strip(), line.line) for cell in cells)
            )
        if sum(len(row) > 1 for row in rows) >= len(rows) / 2:
            return Table(tuple(Text(name.strip(), lines[0].line) for name in names), tuple(rows), lines[0].line)
    return None


def _spaced(lines: list[Text]) -> Table | None:
    """A table whose cells are parted by one space each."""
    names = _column_names(lines[0].plain)
    if names is None:
        return None
    roles = [role_of(name) for name in names]
    rows = []
    for line in lines[1:]:
        cells = _cells(line.unmarked.strip(), roles)
        if cells is None:
            break
        rows.append(tuple(Text(cell, line.line) for cell in cells))
    if not rows:
        return None
    return Table(tuple(Text(name, lines[0].line) for name in names), tuple(rows), lines[0].line, lossy=True)


def _column_names(line: str) -> list[str] | None:
    """The names of columns that a line consists of, or ``None`` if it is anything else."""
    words = line.split()
    if not 3 <= len(words) <= 16:
        return None
    names: list[str] = []
    at = 0
    while at < len(words):
        for length in (4, 3, 2, 1):
            name = " ".join(words[at : at + length])
            if (
                at + length <= len(words)
                and name.lower().strip("?:") in _PHRASES
                and (name[0].isupper() or not name[0].isascii())
            ):
                names.append(name)
                at += length
                break
        else:
            return None
    roles = [role_of(name) for name in names]
    return names if len(names) >= 3 and roles[0] == "key" and len({*roles} & {"type", "ttl", "purpose"}) >= 2 else None


def _cells(line: str, roles: list[str | None]) -> list[str] | None:
    found = _KEY.match(line)
    if not found or likeness(found["key"]) < Likeness.WORD:
        return None
    if likeness(found["key"]) is Likeness.WORD and type_of_cell(line[found.end() :].split(" ")[0]) is None:
        return None
    cells = [found["key"]]
    rest = line[found.end() :]
    tail = [role for role in roles if role in {"writers", "readers"}]
    ends_with_people = len(tail) > 0 and roles[-len(tail) :] == tail
    for number, role in enumerate(roles[1:], 1):
        if role == "type":
            cell, rest = _type(rest)
        elif role == "ttl" and roles[number + 1 : number + 2] == ["purpose"]:
            cell, rest = _until_a_sentence(rest)
        elif role == "purpose" and ends_with_people and number == len(roles) - len(tail) - 1:
            cell, people = _sentences(rest)
            cells.append(cell)
            cells += _people(people, len(tail))
            return cells
        elif number == len(roles) - 1:
            cell, rest = rest, ""
        else:
            cell, _, rest = rest.partition(" ")
        cells.append(cell.strip())
    return cells


def _type(rest: str) -> tuple[str, str]:
    words = rest.split(" ")
    for length in (3, 2, 1):
        name = " ".join(words[:length])
        said = type_of_cell(name)
        if (
            said
            and (length == 1 or type_of_cell(words[length - 1]) is not None or "(" in name)
            and not re.search(r"[.,]$", name)
        ):
            end = len(name)
            opened = re.match(r"\s*\((?:[^()]|\([^()]*\))*\)", rest[len(words[0]) :])
            if opened:
                end = max(len(words[0]) + opened.end(), 0)
            elif length > 1 and "(" in name:
                end = len(words[0])
            return rest[:end].strip(), rest[end:].strip()
    return "", rest


def _until_a_sentence(rest: str) -> tuple[str, str]:
    """Words up to the first one with a capital, at least one, and a whole length of time if they begin with one."""
    every = durations(rest[:30])
    at = every[0][2] if every and every[0][1] == 0 else len(rest.split(" ", 1)[0])
    for found in re.finditer(r"\s+(\S+)", rest):
        if found.start() >= at and found[1][0].isupper():
            return rest[: found.start()], rest[found.start() :].strip()
    return rest[:at], rest[at:].strip()


def _sentences(rest: str) -> tuple[str, str]:
    """The sentences of a line, and what stands behind the last one."""
    ends = [found.end() for found in re.finditer(r"[.!?)](?=\s+\S)", rest)]
    for end in reversed(ends):
        if rest[end - 1] == ")" and not re.search(r"\)\.?$", rest[:end]):
            continue
        before, after = rest[:end], rest[end:].strip()
        if rest[end - 1] != ")" and after and not re.search(r"[.!?]\s", after.rstrip(".")):
            return before, after
    path = _PATH.search(rest)
    return (rest[: path.start()].strip(), rest[path.start() :]) if path else (rest, "")


def _people(text: str, count: int) -> list[str]:
    if count == 1 or not text:
        return [text] + [""] * (count - 1)
    path = _PATH.match(text)
    if path:
        end = path.end()
        opened = re.match(r"\s*\([^()]*\)", text[end:])
        end += opened.end() if opened else 0
        while more := re.match(r",\s*" + _PATH.pattern, text[end:]):
            end += more.end()
        return [text[:end].strip(), text[end:].strip(" ,")]
    units = re.findall(r"\S+(?:\s+\([^()]*\))?", text)
    again = next((number for number in range(1, len(units)) if units[number] == units[0]), (len(units) + 1) // 2)
    return [" ".join(units[:again]), " ".join(units[again:])]


def _one_cell_a_line(paragraphs: list[Paragraph]) -> list[Block] | None:
    """A table of which every cell stands on a line of its own, below the names of its columns."""
    lines = [line for paragraph in paragraphs for line in paragraph.text.lines() if line.plain]
    for start in range(min(len(lines), 2000)):
        width = 0
        while (
            start + width < len(lines)
            and width < 9
            and role_of(lines[start + width].plain) is not None
            and lines[start + width].plain.lower().strip("?:") in _PHRASES
        ):
            width += 1
        if width < 2 or role_of(lines[start].plain) != "key":
            continue
        rows: list[tuple[Text, ...]] = []
        at = start + width
        while at + width <= len(lines) and likeness(lines[at].plain) >= Likeness.LIKELY:
            rows.append(tuple(lines[at : at + width]))
            at += width
        if rows:
            table = Table(tuple(lines[start : start + width]), tuple(rows), lines[start].line)
            return [*(Paragraph(line) for line in lines[:start]), table, *(Paragraph(line) for line in lines[at:])]
    return None
