"""An inventory as a file: TOML (``keystead.toml``), YAML or JSON of the same shape, each read back exactly as written.

In TOML every entry is a ``[[key]]``, ``[[channel]]`` or ``[[opaque]]`` table, in the order of the document it came
from; comments may stand anywhere, and other tables of the file are left alone. In YAML and JSON the entries are the
list ``keys``, and one that is no key says its ``kind``.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from keystead.errors import Invalid
from keystead.inventory.files_entries import (
    KINDS,
    Complain,
    entry_from_plain,
    entry_to_plain,
    note_from_plain,
    note_to_plain,
)
from keystead.inventory.files_toml import header_lines, table_lines
from keystead.inventory.models import Entry, Inventory
from keystead.setting import INVENTORY_TABLES

FORMATS = ("toml", "yaml", "json")
LARGEST_BYTES = 32 * 1024 * 1024
_PLURALS = {"keys": "key", "channels": "channel", "sections": "section", "notes": "note"}
# What YAML would take for the end of a line, or for nothing at all.
_ODD = re.compile("[^\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_TOML_LINE = re.compile(r"\s*\(at line (\d+), column \d+\)$")


def read_inventory(source: Path | str, *, name: str = "", format: str | None = None) -> Inventory:
    """The inventory in a file, or in the text of one. Refuses with ``Invalid``, which names file and line.

    The format is told by the name's ending, or by what the text looks like. A text that is nothing but a file's name,
    such as ``"keystead.toml"``, is taken for it.
    """
    if isinstance(source, str) and "\n" not in source and format_of(source) is not None:
        source = Path(source)
    if isinstance(source, Path):
        name = name or source.name
        text = _text_of(source)
        format = format or format_of(source.name)
    else:
        text = source
    format = format or format_of(name) or ("json" if text.lstrip()[:1] == "{" else
                                           "toml" if re.search(r"^\s*\[", text, re.MULTILINE) else "yaml")
    named = name or f"inventory.{format}"
    parse = {"toml": _parsed_toml, "yaml": _parsed_yaml, "json": _parsed_json}[format]
    data, items = parse(text, named)
    about = data.get("inventory", {})
    if not isinstance(about, Mapping):
        raise Invalid(f"{named}: inventory must be a table with a name")
    if not items and "inventory" not in data:
        raise Invalid(f"{named}: there are no [[key]] tables; is it an inventory?" if format == "toml" else
                      f"{named}: there is no list named keys; is it an inventory?")
    at_top = _complain(named, 0)
    notes = tuple(note_from_plain(item.plain, item.complain) for item in items if item.kind == "note")
    sections = tuple(_section(item) for item in items if item.kind == "section")
    return Inventory(
        name=_text_in(about, "name", at_top) or name, partial=_text_in(about, "partial", at_top), notes=notes,
        sections=sections, entries=tuple(_entry(item) for item in items if item.kind in KINDS),
    )


def write_inventory(inventory: Inventory, format: str = "toml") -> str:
    """The text of a file that ``read_inventory`` reads back to an equal inventory."""
    about: dict[str, Any] = {"name": inventory.name}
    if inventory.partial:
        about["partial"] = inventory.partial
    sections = [{"path": list(path), "text": text} for path, text in inventory.sections]
    notes = [note_to_plain(note) for note in inventory.notes]
    if format == "toml":
        lines = table_lines("[inventory]", about)
        for section in sections:
            lines += ["", *table_lines("[[section]]", section)]
        for entry in inventory.entries:
            lines += ["", *table_lines(f"[[{entry.kind}]]", entry_to_plain(entry))]
        for note in notes:
            lines += ["", *table_lines("[[note]]", note)]
        return "\n".join(lines) + "\n"
    whole: dict[str, Any] = {"inventory": about} | ({"sections": sections} if sections else {})
    whole["keys"] = [_with_kind(entry) for entry in inventory.entries]
    whole |= {"notes": notes} if notes else {}
    if format == "json":
        return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
    if format == "yaml":
        return yaml.dump(whole, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=110, default_flow_style=None)
    raise Invalid(f"there is no format {format}; an inventory is written as {', '.join(FORMATS)}")


def format_of(name: str) -> str | None:
    """The format that the ending of a file's name says."""
    ending = Path(name).suffix.lower().removeprefix(".")
    return {"yml": "yaml"}.get(ending, ending if ending in FORMATS else None)


class _Item(NamedTuple):
    """One table of a file and where it stands."""

    kind: str
    plain: Any
    complain: Complain


def _complain(name: str, line: int) -> Complain:
    return lambda says: Invalid(f"{name}:{line}: {says}" if line else f"{name}: {says}")


def _entry(item: _Item) -> Entry:
    if not isinstance(item.plain, Mapping):
        raise item.complain("an entry is a table with a pattern")
    return entry_from_plain(item.plain, item.kind, item.complain)


def _section(item: _Item) -> tuple[tuple[str, ...], str]:
    path, text = item.plain.get("path"), item.plain.get("text", "")
    if not isinstance(path, list) or not all(isinstance(each, str) for each in path) or not isinstance(text, str):
        raise item.complain('a section has a path, such as ["Jobs", "Queues"], and a text')
    return tuple(path), text


def _text_in(table: Mapping[str, Any], name: str, complain: Complain) -> str:
    value = table.get(name, "")
    if isinstance(value, str):
        return value
    raise complain(f"{name} of the inventory must be text")


def _with_kind(entry: Entry) -> dict[str, Any]:
    plain = entry_to_plain(entry)
    return plain if entry.kind == "key" else {"pattern": plain.pop("pattern"), "kind": entry.kind, **plain}


def _text_of(path: Path) -> str:
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise Invalid(f"{path} is larger than {LARGEST_BYTES // 1024 // 1024} MiB; that is no inventory")
        return path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise Invalid(f"{path} is not UTF-8 text (byte {error.start}); an inventory is TOML, YAML or JSON") from None
    except OSError as error:
        raise Invalid(f"{path} cannot be read: {error.strerror}") from error


def _parsed_toml(text: str, name: str) -> tuple[Mapping[str, Any], list[_Item]]:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = _TOML_LINE.search(str(error))
        says = _TOML_LINE.sub("", str(error))
        at = int(place[1]) if place else text.count("\n") + 1
        raise _complain(name, at)(says[:1].lower() + says[1:]) from None
    except RecursionError:
        raise Invalid(f"{name} is nested too deeply") from None
    tables = {each: data[each] for each in data if each in INVENTORY_TABLES and each != "inventory"}
    for each, value in tables.items():
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise Invalid(f"{name}: {each} must be written as [[{each}]], a table for each")
    remaining = {each: iter(value) for each, value in tables.items()}
    items: list[_Item] = []
    for each, line in header_lines(text):
        plain = next(remaining.get(each, iter(())), None)
        if plain is not None:
            items.append(_Item(_PLURALS.get(each, each), plain, _complain(name, line)))
    # Tables that stand in a list instead of under a header.
    items += [_Item(_PLURALS.get(each, each), plain, _complain(name, 0))
              for each, rest in remaining.items() for plain in rest]
    return data, items


def _parsed_yaml(text: str, name: str) -> tuple[Mapping[str, Any], list[_Item]]:
    try:
        loader = _LOADER(text)
        node = loader.get_single_node()
        data = None if node is None else loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        hint = "; quote a pattern that begins with a brace" if "flow" in str(error.context or "") else ""
        raise _complain(name, mark.line + 1 if mark else 0)(f"{error.problem or error}{hint}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise Invalid(f"{name}: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise Invalid(f"{name} is nested too deeply") from None
    lines = dict(_lines(node)) if isinstance(node, yaml.MappingNode) else {}
    return _listed(data, name, lines)


def _parsed_json(text: str, name: str) -> tuple[Mapping[str, Any], list[_Item]]:
    try:
        return _listed(json.loads(text), name, {})
    except json.JSONDecodeError as error:
        raise _complain(name, error.lineno)(error.msg[:1].lower() + error.msg[1:]) from None
    except RecursionError:
        raise Invalid(f"{name} is nested too deeply") from None


def _listed(data: Any, name: str, lines: Mapping[tuple[str, int], int]) -> tuple[Mapping[str, Any], list[_Item]]:
    """The tables of a file that has them in lists."""
    if not isinstance(data, Mapping):
        raise Invalid(f"{name}: there is no list named keys; is it an inventory?")
    items: list[_Item] = []
    for each, value in data.items():
        if each not in INVENTORY_TABLES or each == "inventory":
            continue
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise _complain(name, lines.get((each, -1), 0))(f"{each} must be a list of tables")
        kind = _PLURALS.get(str(each), str(each))
        items += [_Item(kind, plain, _complain(name, lines.get((each, index), 0)))
                  for index, plain in enumerate(value)]
    return data, items


def _lines(node: yaml.MappingNode) -> Iterator[tuple[tuple[str, int], int]]:
    """On which line each list and each of its elements begins."""
    for name, value in node.value:
        yield (str(name.value), -1), name.start_mark.line + 1
        if isinstance(value, yaml.SequenceNode):
            for index, element in enumerate(value.value):
                yield (str(name.value), index), element.start_mark.line + 1


_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Dumper(yaml.SafeDumper):
    """Indents lists under their name, and writes text of many lines as a block."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if _ODD.search(text) else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)
