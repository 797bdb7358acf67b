"""A pattern of an inventory, taken apart: text, and holes where variables stand.

``{name}`` is a variable. ``*`` is any text, for whoever writes globs. What lies between two separators is a segment; a
pattern without colons that uses dots, slashes or bars is parted by those.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from keystead.errors import DeclarationError
from keystead.inventory.models import Entry
from keystead.keys import KINDS, USER, WORD, Kind, OneOf, kind_of_name, kind_of_text

ANY_TEXT = KINDS["text"]
_HOLE = re.compile(r"\{([^\W\d]\w*)\}|(\*+)")
_SEPARATORS = ":./|"


@dataclass(frozen=True, slots=True)
class Hole:
    """Where a variable stands. The name of a star is empty."""

    name: str
    kind: Kind

    @property
    def spans(self) -> bool:
        """Whether its values may hold separators."""
        return self.kind.spans_colons


Part = str | Hole


@dataclass(frozen=True)
class Segment:
    """What stands between two separators."""

    parts: tuple[Part, ...]

    @cached_property
    def holes(self) -> tuple[Hole, ...]:
        return tuple(part for part in self.parts if isinstance(part, Hole))

    @cached_property
    def text(self) -> str:
        """The literal characters."""
        return "".join(part for part in self.parts if isinstance(part, str))

    @property
    def only(self) -> Hole | None:
        """The hole, if the segment is nothing else."""
        return self.holes[0] if len(self.parts) == 1 and self.holes else None

    @property
    def spans(self) -> bool:
        return any(hole.spans for hole in self.holes)

    @cached_property
    def rank(self) -> tuple[int, int]:
        """How literal it is, the most literal first: text, text with holes, a list of values, a kind, any word."""
        if not self.holes:
            return (0, 0)
        only = self.only
        if any(hole.kind is ANY_TEXT for hole in self.holes):
            return (5, -len(self.text))
        if only is None:
            return (1, -len(self.text))
        return (2 if isinstance(only.kind, OneOf) else 4 if only.kind is WORD else 3, 0)


@dataclass(frozen=True)
class Shape:
    """The whole pattern."""

    parts: tuple[Part, ...]
    separator: str

    @cached_property
    def holes(self) -> tuple[Hole, ...]:
        return tuple(part for part in self.parts if isinstance(part, Hole))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """A name for each hole; one that stands twice gets a number, and a star has none."""
        names: list[str] = []
        for hole in self.holes:
            name, again = hole.name, 1
            while name and name in names:
                again += 1
                name = f"{hole.name}_{again}"
            names.append(name)
        return tuple(names)

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        segments: list[list[Part]] = [[]]
        for part in self.parts:
            if isinstance(part, Hole):
                segments[-1].append(part)
                continue
            first, *others = part.split(self.separator)
            segments[-1] += [first] if first else []
            segments += [[other] if other else [] for other in others]
        return tuple(Segment(tuple(parts)) for parts in segments)

    @cached_property
    def weight(self) -> int:
        """How many characters are literal."""
        return sum(len(part) for part in self.parts if isinstance(part, str))

    @property
    def prefix(self) -> str:
        """The text before the first hole."""
        return self.parts[0] if self.parts and isinstance(self.parts[0], str) else ""

    def without_kinds(self) -> "Shape":
        """The same, where a variable may have any value; lists of values and what may span separators stay."""
        return Shape(tuple(Hole(part.name, WORD) if isinstance(part, Hole) and part.kind is not ANY_TEXT
                           and not isinstance(part.kind, OneOf) else part for part in self.parts), self.separator)


def shape_of(entry: Entry) -> Shape:
    """Take an entry's pattern apart. Never refuses: a kind that is not known stands for any word."""
    kinds = dict(entry.variables)
    parts: list[Part] = []
    at = 0
    for hole in _HOLE.finditer(entry.pattern):
        if hole.start() > at:
            parts.append(entry.pattern[at : hole.start()])
        name = hole[1] or ""
        parts.append(Hole(name, _kind(name, kinds) if name else ANY_TEXT))
        at = hole.end()
    if at < len(entry.pattern):
        parts.append(entry.pattern[at:])
    text = "".join(part for part in parts if isinstance(part, str))
    return Shape(tuple(parts), next((each for each in _SEPARATORS if each in text), ":"))


def _kind(name: str, kinds: Mapping[str, str]) -> Kind:
    said = kinds.get(name)
    try:
        kind = kind_of_name(name) if said is None else kind_of_text(said)
    except DeclarationError:
        kind = WORD
    # Identifiers of people look like any other word.
    return WORD if kind is USER else kind


Values = Callable[[str], "tuple[str, ...] | None"]
_LONGEST_TRIED = 1024  # with several holes the work grows faster than the text


def values_of(parts: tuple[Part, ...], separator: str, *, loose: bool = False) -> Values:
    """A function that gives the values of the holes in a text, or None if the text does not fit.

    ``loose`` lets every variable hold separators.
    """
    within = f"[^{re.escape(separator)}]+?"
    holes = [part for part in parts if isinstance(part, Hole)]
    expression = "".join(
        re.escape(part) if isinstance(part, str) else f"({_expression(part.kind, within, loose)})" for part in parts
    )
    fullmatch = re.compile(expression, re.DOTALL).fullmatch
    # What an expression alone does not decide.
    closer = [(index, hole.kind.accepts) for index, hole in enumerate(holes) if hole.kind.name == "ip" and not loose]
    longest = _LONGEST_TRIED if len(holes) > 1 else None

    def values(text: str) -> tuple[str, ...] | None:
        if longest is not None and len(text) > longest:
            return None
        found = fullmatch(text)
        if found is None:
            return None
        groups: tuple[str, ...] = found.groups()
        for index, accepts in closer:
            if not accepts(groups[index]):
                return None
        return groups

    return values


def _expression(kind: Kind, within: str, loose: bool) -> str:
    if isinstance(kind, OneOf):
        return kind.expression
    if loose or kind is ANY_TEXT:
        return ".+?"
    return within if kind is WORD else kind.expression
