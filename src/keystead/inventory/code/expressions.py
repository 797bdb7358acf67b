"""What an expression of any language comes down to, as far as keys and expiries are concerned.

The five readers translate the trees of their grammars into these few kinds; everything after them knows no language.
"""

from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(slots=True, eq=False)
class Text:
    """A string that stands there."""

    value: str


@dataclass(slots=True, eq=False)
class Number:
    value: float


@dataclass(slots=True, eq=False)
class Joined:
    """Pieces one after the other: an f-string, a template literal, an interpolated string."""

    parts: "list[Expr]"


@dataclass(slots=True, eq=False)
class Name:
    """A variable, parameter, constant or class."""

    name: str


@dataclass(slots=True, eq=False)
class Member:
    """``base.name``; of the object itself if the base is ``Name("self")``, whatever the language calls it."""

    base: "Expr"
    name: str


@dataclass(slots=True, eq=False)
class Index:
    """``base[key]``."""

    base: "Expr"
    key: "Expr"


@dataclass(slots=True, eq=False)
class Arithmetic:
    """Two values and ``+ - * / %``; a plus may join text, and a percent may fill it in."""

    sign: str
    left: "Expr"
    right: "Expr"


@dataclass(slots=True, eq=False)
class Items:
    """A list, array or tuple; of a comprehension the one item that it repeats."""

    items: "list[Expr]"


@dataclass(slots=True, eq=False)
class Table:
    """A dictionary, object or hash."""

    pairs: "list[tuple[Expr, Expr]]"


@dataclass(slots=True, eq=False)
class Choice:
    """One of several, and nobody knows which before it runs."""

    options: "list[Expr]"


@dataclass(slots=True, eq=False)
class Lambda:
    """A function written where it is used: its parameters, and what it may return."""

    params: list[str]
    returns: "list[Expr]"


@dataclass(slots=True, eq=False)
class Call:
    """A call. ``callee`` is a name, a member, or anything that was called. ``spans`` are the bytes of ``args``."""

    callee: "Expr"
    args: "list[Expr]"
    named: "dict[str, Expr]" = field(default_factory=dict)
    line: int = 0
    spans: list[tuple[int, int]] = field(default_factory=list)
    block: "Lambda | None" = None

    @property
    def method(self) -> str:
        """The last word of what is called."""
        callee = self.callee
        return callee.name if isinstance(callee, Name | Member) else ""

    @property
    def receiver(self) -> "Expr | None":
        """What the method is called on, if it is one."""
        return self.callee.base if isinstance(self.callee, Member) else None


@dataclass(slots=True, eq=False)
class Opaque:
    """Something that is not followed; ``words`` may give a variable its name."""

    words: str = ""


Expr: TypeAlias = (
    Text | Number | Joined | Name | Member | Index | Arithmetic | Items | Table | Choice | Lambda | Call | Opaque
)

SELF = "self"


def spell(expr: Expr, most: int = 80) -> str:
    """The expression in a few words, for people: ``settings.TTL * 2``."""
    text = _spelled(expr, 6)
    return text if len(text) <= most else text[: most - 1] + "…"


def _spelled(expr: Expr, depth: int) -> str:
    if depth == 0:
        return "…"
    less = depth - 1
    match expr:
        case Text(value):
            return repr(value)
        case Number(value):
            return f"{value:g}" if abs(value) < 1e15 else str(value)
        case Name(name):
            return name
        case Member(base, name):
            return f"{_spelled(base, less)}.{name}"
        case Index(base, key):
            return f"{_spelled(base, less)}[{_spelled(key, less)}]"
        case Arithmetic(sign, left, right):
            return f"{_spelled(left, less)} {sign} {_spelled(right, less)}"
        case Call():
            inside = [_spelled(each, less) for each in expr.args]
            inside += [f"{name}={_spelled(each, less)}" for name, each in expr.named.items()]
            return f"{_spelled(expr.callee, less)}({', '.join(inside)})"
        case Joined(parts):
            return "".join(part.value if isinstance(part, Text) else f"{{{_spelled(part, less)}}}" for part in parts)
        case Items(items):
            return f"[{', '.join(_spelled(each, less) for each in items)}]"
        case Choice(options):
            return " or ".join(_spelled(each, less) for each in options)
        case Opaque(words):
            return words or "…"
    return "…"
