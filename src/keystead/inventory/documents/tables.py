"""Keys in tables: a row for each key, a table of properties of one key, or the fields of one key."""

import re
from typing import Final

from .blocks import Table, Text
from .columns import role_of, unit_of
from .durations import is_length
from .heads import is_example, is_relative
from .mentions import MOST_MENTIONS, Findings, Mention, Place, Scope
from .prose_types import is_type_name, type_of_cell
from .tokens import Likeness, is_setting, likeness
from .vocabulary import DITTO

_PROPERTIES: Final = {"type", "ttl", "purpose", "value", "key", "writers", "readers", "example", "personal"}
_DESCRIBING: Final = {"type", "ttl", "personal", "writers", "readers"}


def read_table(table: Table, scope: Scope, found: Findings) -> list[Mention]:
    """The keys that the table lists; a table of properties or fields adds to the key spoken of before it."""
    rows = [row for row in table.rows[: MOST_MENTIONS + 1] if any(cell.plain for cell in row)]
    header = table.header
    if not header and rows and sum(role_of(cell.plain) is not None for cell in rows[0]) >= 2:
        header, rows = rows[0], rows[1:]
    roles = [role_of(cell.plain) for cell in header]
    if _is_record([*([header] if header else []), *rows]):
        return _record([header, *rows], scope, found)
    column = _key_column(header, roles, rows, scope)
    if column is None:
        _add_fields(roles, rows, scope, found)
        return []
    roles = _told_by_content(roles, rows, column)
    mentions: list[Mention] = []
    before: dict[int, Text] = {}
    for row in rows:
        mention = _row(row, column, header, roles, scope)
        if mention is None:
            if (
                column < len(row)
                and row[column].plain
                and any(cell.plain for number, cell in enumerate(row) if number != column)
            ):
                found.notes.append(
                    (
                        f"a row of a table of keys names no key that can be read: {row[column].plain[:60]}",
                        row[column].line,
                    )
                )
            continue
        for number, cell in enumerate(row):
            role = roles[number] if number < len(roles) else None
            if cell.plain.lower() == "same" and role in {"readers", "writers"}:
                mention.cells[role] = mention.cells.get("writers" if role == "readers" else "readers", cell)
            elif number != column and cell.plain.lower() in DITTO and number in before:
                _place(mention, number, before[number], header, roles, ditto=True)
            elif cell.plain:
                before[number] = cell
        mention.lossy = table.lossy
        mentions.append(mention)
    found.mentions.extend(mentions)
    return mentions


def _key_column(
    header: tuple[Text, ...], roles: list[str | None], rows: list[tuple[Text, ...]], scope: Scope
) -> int | None:
    def cells(number: int) -> list[Text]:
        return [row[number] for row in rows if number < len(row) and row[number].plain]

    def share(number: int, least: Likeness) -> float:
        every = cells(number)
        return sum(_best(cell) >= least for cell in every) / len(every) if every else 0.0

    named = [number for number, role in enumerate(roles) if role == "key"]
    about_keys = any(role in _DESCRIBING for role in roles)
    for number in sorted(named, key=lambda number: -share(number, Likeness.LIKELY)):
        if share(number, Likeness.LIKELY) >= 0.3 or (
            share(number, Likeness.WORD) >= 0.5
            and (about_keys or (scope.prefix and any(list(cell.codes()) for cell in cells(number))))
            and not ("command" in roles and share(number, Likeness.LIKELY) == 0)
        ):
            return None if scope.aside and not about_keys else number
    if named and all(likeness(cell.plain) is Likeness.NOT for cell in cells(named[0])):
        named = []
    width = max((len(row) for row in rows), default=0)
    for number in range(width):
        role = roles[number] if number < len(roles) else None
        first_is_other = bool(roles) and roles[0] in {"command", "field"}
        if (
            role in {None, "name", "example"}
            and not first_is_other
            and share(number, Likeness.LIKELY) >= 0.6
            and not scope.aside
        ):
            if role == "example" and not about_keys:
                continue
            return number if about_keys or share(number, Likeness.PLAIN) >= 0.5 else None
    return None


def _told_by_content(roles: list[str | None], rows: list[tuple[Text, ...]], key: int) -> list[str | None]:
    """The roles, with columns whose names say nothing to us known by what they hold: types, expiries, sentences."""
    width = max(len(roles), max((len(row) for row in rows), default=0))
    told = [*roles, *([None] * (width - len(roles)))]
    for number in range(width):
        cells = [row[number].plain for row in rows if number < len(row) and row[number].plain]
        if number == key or told[number] is not None or not cells:
            continue
        if "type" not in told and sum(is_type_name(cell) for cell in cells) >= 0.7 * len(cells):
            told[number] = "type"
        elif "ttl" not in told and sum(is_length(cell) for cell in cells) >= 0.6 * len(cells):
            told[number] = "ttl"
        elif "purpose" not in told and len(told) <= 5 and sum(map(len, cells)) / len(cells) > 25:
            told[number] = "purpose"
    return told


def _best(cell: Text) -> Likeness:
    codes = [
        likeness(code[1].strip()) if not is_relative(code[1].strip()) else Likeness.LIKELY for code in cell.codes()
    ]
    plain = [likeness(cell.plain.rstrip(":")), Likeness.LIKELY if is_relative(cell.plain) else Likeness.NOT]
    return max([*codes, *(plain if not codes else ())], default=Likeness.NOT)


def _row(
    row: tuple[Text, ...], column: int, header: tuple[Text, ...], roles: list[str | None], scope: Scope
) -> Mention | None:
    if column >= len(row):
        return None
    spellings, examples = keys_of_cell(row[column])
    if not spellings:
        return None
    mention = Mention(spellings, row[column].line, Place.ROW, scope, examples=examples)
    for number, cell in enumerate(row):
        if number != column and cell.plain and cell.plain.lower() not in DITTO:
            _place(mention, number, cell, header, roles)
    return mention


def _place(
    mention: Mention, number: int, cell: Text, header: tuple[Text, ...], roles: list[str | None], ditto: bool = False
) -> None:
    role = roles[number] if number < len(roles) else None
    name = header[number].plain if number < len(header) else f"column {number + 1}"
    if role == "number":
        return
    if role == "ttl" and "ttl" not in mention.cells:
        mention.ttl_unit = unit_of(name)
    if role == "example":
        mention.examples += [code[1].strip() for code in cell.codes()] or [cell.plain]
    elif role in _PROPERTIES and role != "key" and role not in mention.cells:
        mention.cells[role] = cell
    elif role == "type" and mention.cells["type"].plain.lower() == "string" and type_of_cell(cell.plain):
        mention.cells["type"] = Text(f"{mention.cells['type'].plain} ({cell.plain})", cell.line)
    else:
        mention.extra.append((name, cell.plain))


def keys_of_cell(cell: Text) -> tuple[list[str], list[str]]:
    """The spellings that a cell of keys holds, and those that it gives as examples."""
    spellings: list[str] = []
    examples: list[str] = []
    for code in cell.codes():
        for token in re.split(r",\s+|\s+/\s+|\s+\|\s+|\s*\n\s*", code[1].strip()):
            if is_example(cell.raw, code.start()):
                examples.append(token)
            elif likeness(token) >= Likeness.WORD or is_relative(token) or token == cell.plain.strip(" `"):
                spellings.append(token)  # a cell of keys that is one name in code means just that
    if spellings:
        if any(likeness(token) >= Likeness.LIKELY for token in spellings):
            spellings = [
                token
                for token in spellings
                if likeness(token) >= Likeness.LIKELY or is_relative(token) or not is_setting(token)
            ]
        return spellings, examples
    plain = cell.unmarked.strip()
    pieces = [
        piece.strip(" `'\"")
        for piece in re.split(r"\n|,\s+|\s+(?:/|and|or|und|y|和|및)\s+", plain)
        if piece.strip(" `'\"")
    ]
    good = [piece for piece in pieces if likeness(piece) >= Likeness.WORD or is_relative(piece)]
    if good and len(good) == len(pieces):
        return good, examples
    found = re.match(r"((?:<[^<>\n]{1,60}>|\$?\{[^{}\n]*\}|[^\s<{(（])+)\s*[(（]", plain)
    if found and likeness(found[1]) >= Likeness.WORD:
        return [found[1]], examples
    first = plain.split()[0] if plain else ""
    return ([first], examples) if likeness(first) >= Likeness.LIKELY else ([], examples)


def _is_record(rows: list[tuple[Text, ...]]) -> bool:
    if not rows or any(len([cell for cell in row if cell.plain]) > 2 for row in rows):
        return False
    labels = [role_of(row[0].plain) for row in rows if row]
    known = sum(label in _PROPERTIES for label in labels)
    return (
        known >= 2
        and known >= len(labels) / 3
        and not (role_of(rows[0][1].plain) in _PROPERTIES and labels[0] == "key" if len(rows[0]) > 1 else False)
    )


def _record(rows: list[tuple[Text, ...]], scope: Scope, found: Findings) -> list[Mention]:
    """A table whose rows are properties of one key: that of its own row "Key", or the one spoken of before."""
    by_role: dict[str, Text] = {}
    extra: list[tuple[str, str]] = []
    for row in rows:
        if len(row) < 2 or not row[1].plain:
            continue
        role = role_of(row[0].plain)
        if role in _PROPERTIES and role not in by_role:
            by_role[role] = row[1]
        else:
            extra.append((row[0].plain, row[1].plain))
    key = by_role.pop("key", None)
    made: list[Mention] = []
    if key is not None and (spellings := keys_of_cell(key)[0]):
        made.append(Mention(spellings, key.line, Place.RECORD, scope))
        found.mentions.append(made[0])
    target = made[0] if made else _spoken_of(found, scope)
    if target is None:
        return []
    if (example := by_role.pop("example", None)) is not None:
        target.examples += [code[1] for code in example.codes()] or [example.plain]
    for role, cell in by_role.items():
        target.cells.setdefault(role, cell)
    target.extra += extra
    return made


def _add_fields(roles: list[str | None], rows: list[tuple[Text, ...]], scope: Scope, found: Findings) -> None:
    """A table of the fields of a hash belongs to the key it stands under."""
    if "field" not in roles[:1]:
        return
    target = _spoken_of(found, scope)
    if target is not None and not target.payload:
        names = [row[0].plain.strip("`") for row in rows if row and row[0].plain]
        target.payload.append("fields " + ", ".join(names[:40]))


def _spoken_of(found: Findings, scope: Scope) -> Mention | None:
    """The key that was described last in the same section."""
    for mention in reversed(found.mentions[-3:]):
        if mention.scope.section == scope.section and mention.place in {
            Place.HEADING,
            Place.LINE,
            Place.RECORD,
            Place.TERM,
            Place.BULLET,
        }:
            return mention
    return None
