"""The keys of Lua scripts: what ``redis.call`` is given, as far as it is text, ``KEYS`` and ``ARGV`` joined by dots.

Lua is read without a grammar: a few kinds of tokens are enough for the expressions that keys are made of.
"""

import re
from dataclasses import dataclass
from typing import Final

from keystead.inventory.code.commands import Keys, command_named
from keystead.inventory.code.expressions import Call, Expr, Joined, Member, Name, Number, Opaque, Text
from keystead.inventory.code.wishes import Wish, wishes_of

_COMMENT: Final = re.compile(r"--\[(=*)\[.*?\]\1\]|--[^\n]*", re.DOTALL)
_TOKEN: Final = re.compile(
    r"""\s+|(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|\[\[.*?\]\])|(?P<table>(?:KEYS|ARGV)\s*\[\s*\d+\s*\])"""
    r"""|(?P<number>\d+(?:\.\d+)?)|(?P<name>[A-Za-z_][\w.]*)|(?P<join>\.\.)|(?P<other>.)""", re.DOTALL)
_CALL: Final = re.compile(r"\b(?:redis|server)\s*\.\s*p?call\s*\(")
_LOCAL: Final = re.compile(r"\blocal\s+([\w\s,]+?)\s*=\s*([^\n;]+)|^\s*(\w+)\s*=\s*([^=\n;][^\n;]*)", re.MULTILINE)
_SPEAKS: Final = re.compile(r"\b(?:redis|server)\s*\.\s*p?call\b")


@dataclass(frozen=True, slots=True)
class ScriptWish:
    """A key that a script touches, and the line of the script."""

    wish: Wish
    line: int


def is_script(text: str) -> bool:
    """Whether this is Lua for a Redis."""
    return _SPEAKS.search(text) is not None


def script_wishes(text: str) -> list[ScriptWish]:
    """The keys of a script, in the order of its lines. ``KEYS[1]`` appears as a name of that spelling."""
    plain = _COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)
    known: dict[str, Expr] = {}
    for found in _LOCAL.finditer(plain):
        names = [name.strip() for name in (found[1] or found[3]).split(",")]
        values = _arguments(found[2] or found[4])[0]
        for name, value in zip(names, values, strict=False):
            known.setdefault(name, _filled(value, known))
    wishes: list[ScriptWish] = []
    for found in _CALL.finditer(plain):
        args, _ = _arguments(plain[found.end() : found.end() + 2000], closing=True)
        args = [_filled(arg, known) for arg in args]
        if not args or not isinstance(args[0], Text):
            continue
        command = command_named(args[0].value)
        if command is None or command.keys is Keys.SCRIPT:
            continue
        line = plain.count("\n", 0, found.start()) + 1
        call = Call(Member(Name("redis"), "call"), args[1:], {}, line)
        wishes += [ScriptWish(wish, line) for wish in wishes_of(call, command, "lua")]
    return wishes


def with_keys(expr: Expr, keys: list[Expr], arguments: list[Expr]) -> Expr:
    """The expression with ``KEYS[n]`` and ``ARGV[n]`` as a caller gives them."""
    if isinstance(expr, Joined):
        return Joined([with_keys(part, keys, arguments) for part in expr.parts])
    if isinstance(expr, Name) and (found := re.match(r"(KEYS|ARGV)\[(\d+)\]$", expr.name)):
        given = keys if found[1] == "KEYS" else arguments
        number = int(found[2]) - 1
        if any(isinstance(each, Call) and each.method == "each of" for each in given[: number + 1]):
            return Opaque(f"{found[1].lower()}_{found[2]}")  # so many may come before it
        return given[number] if number < len(given) else Opaque(f"{found[1].lower()}_{found[2]}")
    return expr


def named_keys(expr: Expr) -> list[str]:
    """The ``KEYS[n]`` in an expression."""
    if isinstance(expr, Joined):
        return [name for part in expr.parts for name in named_keys(part)]
    return [expr.name] if isinstance(expr, Name) and expr.name.startswith("KEYS[") else []


def _arguments(text: str, closing: bool = False) -> tuple[list[Expr], int]:
    """Expressions with commas between them, up to the bracket that closes them or the end."""
    found: list[Expr] = []
    parts: list[Expr] = []
    plain = True  # nothing but pieces and joins so far
    depth = 0

    def end() -> None:
        nonlocal parts, plain
        if parts or not plain:
            found.append(Opaque() if not plain or not parts else parts[0] if len(parts) == 1 else Joined(parts))
        parts, plain = [], True

    for token in _TOKEN.finditer(text):
        if token["string"]:
            raw = token["string"]
            parts.append(Text(raw[2:-2] if raw.startswith("[[") else raw[1:-1]))
        elif token["table"]:
            parts.append(Name(re.sub(r"\s", "", token["table"])))
        elif token["number"]:
            parts.append(Number(float(token["number"])))
        elif token["name"]:
            if token["name"] in ("then", "do", "end", "and", "or") and depth == 0:
                plain = plain and token["name"] in ("then", "do", "end")
                if token["name"] in ("then", "do", "end"):
                    break
            parts.append(Name(token["name"]))
        elif token["other"]:
            mark = token["other"]
            if mark in "([{":
                depth += 1
                if depth > 0 and not (mark == "(" and parts and isinstance(parts[-1], Name)
                                      and parts[-1].name == "tostring"):
                    plain = False
                elif parts:
                    parts.pop()
            elif mark in ")]}":
                depth -= 1
                if depth < 0:
                    break
            elif mark == "," and depth == 0:
                end()
            elif mark not in ",":
                plain = False
    end()
    return found, 0


def _filled(expr: Expr, known: dict[str, Expr]) -> Expr:
    if isinstance(expr, Name):
        return known.get(expr.name, expr)
    if isinstance(expr, Joined):
        parts: list[Expr] = []
        for part in expr.parts:
            made = _filled(part, known)
            parts += made.parts if isinstance(made, Joined) else [made]
        return Joined(parts)
    return expr
