"""From the spellings of a mention to patterns: prefixes stated elsewhere, constants, families, alternatives."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from keystead.inventory.patterns import alternatives, read_spelling, variables

from .heads import is_relative
from .mentions import Findings, Mention

_BOOKKEEPING: Final = re.compile(r":?(?:earliest|latest|first|last|oldest|newest|index|all|total|counter|ids)")
_GENERIC: Final = re.compile(r"^(?:rest|any|value|number)\d*$")


@dataclass(frozen=True, slots=True)
class Spelt:
    """One pattern of a mention."""

    pattern: str
    spelling: str
    doubt: str
    kinds: tuple[tuple[str, str], ...]


def patterns_of(mention: Mention, found: Findings) -> list[Spelt]:
    """Every pattern that a mention stands for."""
    made: list[Spelt] = []
    base = mention.scope.owner
    for spelling in mention.spellings:
        doubts = [mention.doubt] if mention.doubt else []
        whole = _with_constants(spelling, found.constants)
        if is_relative(whole):
            if base and (made or not mention.scope.prefix):
                whole, doubt = joined(base, whole)
                doubts += [doubt] if doubt else []
            elif mention.scope.prefix:
                whole = _prefixed(whole.lstrip("….").lstrip(":"), mention)
            else:
                doubts.append("goes on from another key, and which one is not said")
        else:
            whole = _prefixed(whole, mention)
        base = whole
        for one in alternatives(whole):
            read = read_spelling(one, bare=not found.marked and not found.capitals, capitals=found.capitals)
            if whole != spelling and "hash tag" in read.uncertain:
                read = read._replace(uncertain="")
            if not read.pattern or not re.search(r"\w", read.pattern):
                continue
            if found.capitals and not re.search(r"[a-z]", one):
                continue  # nothing but placeholders
            reasons = [*doubts, *([read.uncertain] if read.uncertain else [])]
            made.append(Spelt(read.pattern, spelling, "; ".join(dict.fromkeys(reasons)), read.kinds))
    return made


def joined(base: str, relative: str) -> tuple[str, str]:
    """A key that goes on from another one, and what is doubtful about it.

    ``:extra:{event}`` is added to the key; ``:earliest`` beside a key that ends in a variable takes the place of that
    variable; ``…:x`` takes the place of the last segment.
    """
    dotted = re.match(r"(?:…|\.{2,3})", relative)
    suffix = relative[dotted.end() :] if dotted else relative
    mark = suffix[0] if suffix and suffix[0] in ":_.|/" else ":"
    suffix = suffix if suffix[:1] in ":_.|/" else ":" + suffix
    stem = re.split(r"[:|/](?![^{<]*[}>])", base.rstrip("*").rstrip(":"))
    ends_in_variable = re.fullmatch(r"\{.*\}|<.*>|\*|%\w|\$\S+|\[.*\]", stem[-1]) is not None
    if base.endswith(("*", ":")):
        return base.rstrip("*").rstrip(mark) + suffix, ""
    if dotted or (ends_in_variable and _BOOKKEEPING.fullmatch(suffix)):
        kept = base.rstrip("*").rstrip(":")[: -len(stem[-1])].rstrip(":") if len(stem) > 1 else base
        return kept + suffix, f"{relative} is read as standing in place of the last segment of {base}"
    return base.rstrip(":") + suffix, f"{relative} is read as going on from {base}" if not base.endswith(":") else ""


def is_generic(pattern: str) -> bool:
    """Whether the variables of a pattern have no names of their own."""
    return all(_GENERIC.match(name) for name in variables(pattern))


@lru_cache(maxsize=4096)
def matcher(pattern: str) -> re.Pattern[str]:
    """An expression for the keys of a pattern; a variable does not run over a colon unless it ends the pattern."""
    parts = re.split(r"\{[a-z_][a-z0-9_]*\}", pattern)
    return re.compile("[^:\\s]+".join(map(re.escape, parts)))


def _prefixed(spelling: str, mention: Mention) -> str:
    prefix = mention.scope.prefix
    if not prefix:
        return spelling
    bare = read_spelling(prefix).pattern
    if read_spelling(spelling).pattern.startswith(bare.rstrip(":_-./|")) or re.match(
        r"\$\{?[A-Z_]*PREFIX|"
        r"\{(?:key_)?prefix\}",
        spelling,
        re.IGNORECASE,
    ):
        return spelling
    first = bare.split(":")[0]
    if first and not first.startswith("{") and spelling.split(":")[0] == first:
        return spelling
    return prefix.rstrip(":") + spelling if spelling.startswith(":") else prefix + spelling


def _with_constants(spelling: str, constants: dict[str, str]) -> str:
    """Placeholders that name a constant of the document, replaced by its value."""

    def value(found: re.Match[str]) -> str:
        name = (found[1] or found[2] or found[3]).split(".")[-1]
        known = constants.get(name)
        return known if known is not None and known != spelling and len(known) < 60 else found.group()

    joined_code = re.match(r"\s*([A-Z][A-Z0-9_]*)\s*\+\s*[\"'](.*?)[\"']\s*$", spelling)
    if joined_code and joined_code[1] in constants:
        return constants[joined_code[1]] + joined_code[2]
    return re.sub(r"\$\{([\w.]+)\}|#\{([\w.]+)\}|\{([A-Z][A-Z0-9_.]*)\}", value, spelling)
