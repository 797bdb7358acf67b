"""Words from formats: only the parameters that a message lists can be seen by it.

A format is text with names in braces, ``{name}`` or ``{streak.days}``, doubled braces for a brace. A dotted name shows
just that leaf of the event's parameters. Nothing else of Python's formats is understood: no attributes, no indices, no
conversions; after a colon only how a number is written (``{price:,.2f}``).
"""

import copy
import re
import string
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

from keystead.errors import Invalid

MOST_LETTERS: Final = 10_000  # of one rendered text
_NUMBER: Final = re.compile(r",?(?:\.\d{1,2})?[dfs%]?")
_parse: Final = string.Formatter().parse


class Unrenderable(Invalid):
    """A format cannot be filled in with these parameters."""


def names_in(template: str) -> list[str]:
    """The parameters that a format uses, in their order; ``Unrenderable`` if it is no format."""
    try:
        return [name for _, name, _, _ in _parts(template) if name is not None]
    except ValueError as error:
        raise Unrenderable(f"the format is not well formed: {error}") from None


def render(template: str, listed: Sequence[str], parameters: Mapping[str, Any]) -> str:
    """The format with the ``listed`` parameters in their places."""
    words = []
    for literal, name, spec, _ in _parts(template):
        words.append(literal)
        if name is not None:
            words.append(_shown(name, spec or "", listed, parameters))
    text = "".join(words)
    if len(text) > MOST_LETTERS:
        raise Unrenderable(f"a text may have {MOST_LETTERS:,} letters, this one has {len(text):,}")
    return text


def leaf(parameters: Mapping[str, Any], path: str) -> Any:
    """The value under a dotted name."""
    found: Any = parameters
    for step in path.split("."):
        if not isinstance(found, Mapping) or step not in found:
            raise Unrenderable(f"the event has no parameter {path}")
        found = found[step]
    return found


def has(parameters: Mapping[str, Any], path: str) -> bool:
    """Whether there is something under a dotted name."""
    try:
        return leaf(parameters, path) is not None
    except Unrenderable:
        return False


def substituted(
    fixed: Mapping[str, Any], substitutions: Sequence[tuple[Sequence[str | int], str, Sequence[str]]],
    parameters: Mapping[str, Any],
) -> dict[str, Any]:
    """A copy of ``fixed`` in which each path holds its rendered format. The original is never changed.

    A step of a path is the name of a field, or the index in a list; a list grows by one when the index is its length.
    What is missing on the way is made.
    """
    result: dict[str, Any] = copy.deepcopy(dict(fixed))
    for path, template, listed in substitutions:
        if not path:
            raise Unrenderable("a path needs at least one step")
        place: Any = result
        for step, following in pairwise(path):
            place = _entered(place, step, [] if isinstance(following, int) else {})
        _put(place, path[-1], render(template, listed, parameters))
    return result


@lru_cache(maxsize=2048)
def _parts(template: str) -> tuple[tuple[str, str | None, str | None, str | None], ...]:
    try:
        found = tuple(_parse(template))
    except ValueError as error:
        raise Unrenderable(f"the format is not well formed: {error}") from None
    for _, name, _, conversion in found:
        if conversion or (name is not None and not re.fullmatch(r"\w+(?:\.\w+)*", name)):
            raise Unrenderable("a format holds names such as {name} or {streak.days} and nothing else in braces")
    return found


def _shown(name: str, spec: str, listed: Sequence[str], parameters: Mapping[str, Any]) -> str:
    if name not in listed:
        raise Unrenderable(f"the format uses {name}, which its parameters do not list")
    value = leaf(parameters, name)
    if not isinstance(value, str | int | float):
        raise Unrenderable(f"{name} is neither text nor a number")
    if not spec:
        return str(value)
    if not _NUMBER.fullmatch(spec):
        raise Unrenderable(f"{{{name}:{spec}}} is not understood; numbers are written as :, or :.2f or :,.2f")
    try:
        return format(value, spec)
    except ValueError:
        raise Unrenderable(f"{name} cannot be written as {spec}") from None


def _entered(place: Any, step: str | int, missing: Any) -> Any:
    if isinstance(place, list) and isinstance(step, int) and 0 <= step < len(place):
        return place[step]
    if isinstance(place, dict) and step in place:
        return place[step]
    _put(place, step, missing)
    return missing


def _put(place: Any, step: str | int, value: Any) -> None:
    if isinstance(place, list) and isinstance(step, int) and 0 <= step <= len(place):
        place[step:step + 1] = [value]
    elif isinstance(place, dict) and isinstance(step, str):
        place[step] = value
    else:
        raise Unrenderable(f"there is no place {step!r}: lists grow by one, fields have names")
