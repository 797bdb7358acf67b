"""Plain values as TOML text that reads well and changes little from one version to the next."""

import re
from collections.abc import Mapping
from typing import Any

_WIDTH = 116
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_HEADER = re.compile(r"\s*\[\[\s*[\"']?([A-Za-z_]+)[\"']?\s*\]\]\s*(?:#.*)?$")


def table_lines(header: str, plain: Mapping[str, Any]) -> list[str]:
    """``header`` and under it one line for each value; long lists have a line for each element."""
    lines = [header]
    for name, value in plain.items():
        line = f"{spell_name(name)} = {spell_value(value)}"
        if isinstance(value, list) and len(line) > _WIDTH:
            lines.append(f"{spell_name(name)} = [")
            lines += [f"    {spell_value(each)}," for each in value]
            lines.append("]")
        elif isinstance(value, str) and "\n" in value:
            lines += f"{spell_name(name)} = {_spell_lines(value)}".split("\n")
        else:
            lines.append(line)
    return lines


def spell_name(name: str) -> str:
    return name if _BARE.fullmatch(name) else _spell_text(name)


def spell_value(value: Any) -> str:
    """One value on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _spell_text(value)
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        inside = ", ".join(f"{spell_name(name)} = {spell_value(each)}" for name, each in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    return "[" + ", ".join(spell_value(each) for each in value) + "]"


def header_lines(text: str) -> list[tuple[str, int]]:
    """The names of all ``[[tables]]`` and their lines, in the order of the file; what stands in strings is none."""
    found: list[tuple[str, int]] = []
    closing = ""
    for number, line in enumerate(text.split("\n"), 1):
        if not closing:
            header = _HEADER.match(line)
            if header is not None:
                found.append((header[1], number))
                continue
        closing = _open_string(line, closing)
    return found


def _open_string(line: str, closing: str) -> str:
    """Which quotes must close the string of many lines that is open at the end of a line; empty if none is."""
    at = 0
    while at < len(line):
        if closing:
            if closing == '"""' and line[at] == "\\":
                at += 2
            elif line.startswith(closing, at):
                at += 3
                closing = ""
            else:
                at += 1
            continue
        if line[at] == "#":
            return ""
        if line.startswith(('"""', "'''"), at):
            closing = line[at : at + 3]
            at += 3
        elif line[at] in "\"'":
            quote = line[at]
            at += 1
            while at < len(line) and line[at] != quote:
                at += 2 if quote == '"' and line[at] == "\\" else 1
            at += 1
        else:
            at += 1
    return closing


def _spell_text(text: str) -> str:
    return '"' + "".join(map(_spell_character, text)) + '"'


def _spell_lines(text: str) -> str:
    """A string of many lines, as people write them."""
    inside = "\n".join("".join('"' if letter == '"' else _spell_character(letter) for letter in line)
                       for line in text.split("\n")).replace('"""', '""\\"')
    return f'"""\n{inside[:-1]}\\""""' if inside.endswith('"') else f'"""\n{inside}"""'


def _spell_character(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    code = ord(character)
    # Nothing that a terminal or an editor could take for something else.
    if code < 0x20 or 0x7F <= code < 0xA0 or character in "\u2028\u2029\u200e\u200f\ufeff" or 0x202A <= code <= 0x202E:
        return f"\\u{code:04x}"
    return character
