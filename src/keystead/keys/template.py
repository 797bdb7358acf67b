"""A pattern such as ``sms:pending:{sid}``: how it is written, filled in, and read back.

A placeholder is ``{name}`` or ``{name:kind}``; the kind is one of ``variables.KINDS``, an enumeration ``a|b|c``, or
comes from the declaration's ``kinds``. Colons part a key into segments.
"""

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from keystead.errors import DeclarationError, NotInKey
from keystead.keys.variables import CONTROL, Kind, Value, kind_of_name, kind_of_text

_PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)(?::([^{}]*))?\}")
_LONGEST_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Variable:
    """A named hole in a pattern."""

    name: str
    kind: Kind

    @property
    def spans_colons(self) -> bool:
        return self.kind.spans_colons


Part = str | Variable


@dataclass(frozen=True)
class Segment:
    """What stands between two colons: literal text, a variable, or a mixture."""

    parts: tuple[Part, ...]

    @property
    def literal(self) -> str | None:
        """The text, if there is no variable in the segment."""
        return "".join(str(part) for part in self.parts) if not self.variables else None

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        return tuple(part for part in self.parts if isinstance(part, Variable))

    @property
    def only(self) -> Variable | None:
        """The variable, if the segment is nothing else."""
        return self.variables[0] if len(self.parts) == 1 and self.variables else None

    @property
    def prefix(self) -> str:
        return self.parts[0] if self.parts and isinstance(self.parts[0], str) else ""

    @property
    def suffix(self) -> str:
        return self.parts[-1] if len(self.parts) > 1 and isinstance(self.parts[-1], str) else ""

    @property
    def spans_colons(self) -> bool:
        return any(variable.spans_colons for variable in self.variables)

    @property
    def expression(self) -> str:
        return "".join(
            re.escape(part) if isinstance(part, str) else f"({part.kind.expression})" for part in self.parts
        )


class Template:
    """A checked pattern. ``spelling`` is the pattern as documents show it, without kinds."""

    def __init__(self, pattern: str, kinds: Mapping[str, Kind] | None = None) -> None:
        self.parts = _parse(pattern, kinds or {})
        self.spelling = "".join(part if isinstance(part, str) else f"{{{part.name}}}" for part in self.parts)
        self.variables = tuple(part for part in self.parts if isinstance(part, Variable))
        self.names = tuple(variable.name for variable in self.variables)
        self.segments = _segments(self.parts)
        self._check_readable()
        # Keys are filled in for every command, so what never changes is made here: a format, and how text is checked.
        self._format = "".join(part.replace("%", "%%") if isinstance(part, str) else "%s" for part in self.parts)
        self._checks = tuple((variable, *_check_of(variable.kind)) for variable in self.variables)

    def __repr__(self) -> str:
        return f"<template {self.spelling}>"

    @property
    def literal_prefix(self) -> str:
        """The text before the first variable."""
        return self.parts[0] if self.parts and isinstance(self.parts[0], str) else ""

    def bind(self, positional: tuple[Value, ...], named: Mapping[str, Value]) -> dict[str, str]:
        """The arguments as texts, in the order of the pattern; refuses what is missing, unknown or unfit."""
        if named:
            values = dict(zip(self.names, positional, strict=False))
            for name, value in named.items():
                if name not in self.names or name in values:
                    why = "is given twice" if name in values else "is not in the pattern"
                    raise DeclarationError(f"{self.spelling}: variable {name} {why}")
                values[name] = value
            missing = [name for name in self.names if name not in values]
            if missing:
                raise DeclarationError(f"{self.spelling}: no value for variable {', '.join(missing)}")
            positional = tuple(values[name] for name in self.names)
        if len(positional) != len(self.names):
            raise DeclarationError(
                f"{self.spelling}: takes {len(self.names)} variables ({', '.join(self.names) or 'none'}), "
                f"got {len(positional)}"
            )
        bound = {}
        for (variable, is_usual, accepts), value in zip(self._checks, positional):  # noqa: B905 - checked, and it is hot
            usual = is_usual and value.__class__ is str and value.isascii() and value.isprintable()
            bound[variable.name] = value if usual and value and accepts(value) else self._text(variable, value)  # type: ignore[arg-type]
        return bound  # type: ignore[return-value]

    def fill(self, arguments: Mapping[str, str]) -> str:
        """The key for arguments that ``bind`` made."""
        names = self.names
        if len(names) == 1:
            return self._format % arguments[names[0]]
        return self._format % tuple([arguments[name] for name in names]) if names else self.spelling

    def match(self, text: str) -> dict[str, str] | None:
        """The arguments with which this pattern gives ``text``, if there are any."""
        found = self._full.fullmatch(text)
        if found is None or CONTROL.search(text):
            return None
        values = found.groups()
        if not all(variable.kind.accepts(value) for variable, value in zip(self.variables, values, strict=True)):
            return None
        return dict(zip(self.names, values, strict=True))

    def sample(self, rng: random.Random) -> dict[str, str]:
        """Some arguments that fit."""
        return {variable.name: variable.kind.sample(rng) for variable in self.variables}

    @cached_property
    def _full(self) -> re.Pattern[str]:
        return re.compile(":".join(segment.expression for segment in self.segments))

    def _text(self, variable: Variable, value: Value) -> str:
        text = variable.kind.to_text(value) if not isinstance(value, bool) else ""
        if text and not (text.isascii() and text.isprintable()):
            if CONTROL.search(text):
                text = ""
            else:
                try:
                    text.encode()
                except UnicodeEncodeError:
                    text = ""
        if not text or not variable.kind.accepts(text):
            shown = repr(value)
            if len(shown) > _LONGEST_SHOWN:
                shown = shown[:_LONGEST_SHOWN] + "..."
            raise NotInKey(
                f"{self.spelling}: variable {variable.name} must be {variable.kind.says}, "
                f"without control characters; got {shown}"
            )
        return text

    def _check_readable(self) -> None:
        """Refuse a pattern from whose keys the arguments could not be told apart."""
        if sum(variable.spans_colons for variable in self.variables) > 1:
            raise DeclarationError(
                f"{self.spelling}: only one variable may hold colons; give the others a narrower kind"
            )
        for segment in self.segments:
            for left, right in zip(segment.parts, segment.parts[1:], strict=False):
                if not isinstance(left, Variable):
                    continue
                if isinstance(right, Variable):
                    raise DeclarationError(
                        f"{self.spelling}: put a separator between {{{left.name}}} and {{{right.name}}}"
                    )
                if len(segment.variables) > 1 and left is not segment.variables[-1] and left.kind.may_contain(right[0]):
                    raise DeclarationError(
                        f"{self.spelling}: {{{left.name}}} may itself contain {right[0]!r}, so its end cannot be told; "
                        "use a colon or a narrower kind"
                    )


def _check_of(kind: Kind) -> tuple[bool, Callable[[str], object]]:
    """Whether text goes into a key of this kind as it is, and what recognises it."""
    return type(kind).to_text is Kind.to_text, kind.recogniser()


def _parse(pattern: str, kinds: Mapping[str, Kind]) -> tuple[Part, ...]:
    if not pattern:
        raise DeclarationError("a pattern must not be empty")
    parts: list[Part] = []
    seen: set[str] = set()
    at = 0
    for found in _PLACEHOLDER.finditer(pattern):
        parts.append(_literal(pattern, pattern[at : found.start()]))
        name, kind_text = found.group(1), found.group(2)
        if name in seen:
            raise DeclarationError(f"{pattern}: variable {name} appears twice")
        if kind_text is not None and name in kinds:
            raise DeclarationError(f"{pattern}: variable {name} has two kinds, one in the pattern and one in kinds=")
        seen.add(name)
        try:
            kind = kinds[name] if name in kinds else kind_of_text(kind_text) if kind_text else kind_of_name(name)
        except DeclarationError as error:
            raise DeclarationError(f"{pattern}: variable {name}: {error}") from None
        parts.append(Variable(name, kind))
        at = found.end()
    parts.append(_literal(pattern, pattern[at:]))
    unknown = set(kinds) - seen
    if unknown:
        raise DeclarationError(f"{pattern}: kinds= names {', '.join(sorted(unknown))}, which the pattern does not have")
    return tuple(part for part in parts if part != "")


def _literal(pattern: str, text: str) -> str:
    if "{" in text or "}" in text:
        raise DeclarationError(
            f"{pattern}: braces must enclose a name in lower case, as in {{user_sub}} or {{page:integer}}"
        )
    if CONTROL.search(text):
        raise DeclarationError(f"{pattern!r}: a pattern must not hold control characters")
    return text


def _segments(parts: tuple[Part, ...]) -> tuple[Segment, ...]:
    segments: list[list[Part]] = [[]]
    for part in parts:
        if isinstance(part, Variable):
            segments[-1].append(part)
            continue
        first, *others = part.split(":")
        if first:
            segments[-1].append(first)
        for text in others:
            segments.append([text] if text else [])
    return tuple(Segment(tuple(segment)) for segment in segments)
