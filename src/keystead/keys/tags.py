"""The hash tag of a declaration: what keeps keys that one script touches in one slot of a cluster.

A tag is fixed text, text with variables of the pattern (``queue:{name}``), or a lane: a number that a stable hash
computes from one variable, so that people spread over the cluster and each person's keys stay together.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol
from zlib import crc32

from keystead.errors import DeclarationError
from keystead.keys.layout import MOST_LANES
from keystead.keys.template import Template

_LANE = re.compile(r"0|[1-9][0-9]{0,3}")


class Tag(Protocol):
    """How the tag of one key is found."""

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that the tag is computed from."""
        ...

    def describe(self) -> str: ...

    def of(self, arguments: Mapping[str, str], lane: int = 0) -> str:
        """The tag, without braces; never empty and free of closing braces. ``lane`` is that of the layout."""
        ...

    def lane_in(self, found: str, arguments: Mapping[str, str]) -> int | None:
        """The lane of a key that was found with this tag; 0 without lanes, None when the tag cannot be its own."""
        ...


@dataclass(frozen=True, slots=True)
class FixedTag:
    """The same tag for every key."""

    text: str

    @property
    def variables(self) -> tuple[str, ...]:
        return ()

    def describe(self) -> str:
        return self.text

    def of(self, arguments: Mapping[str, str], lane: int = 0) -> str:
        return self.text

    def lane_in(self, found: str, arguments: Mapping[str, str]) -> int | None:
        return 0 if found == self.text else None


@dataclass(frozen=True, slots=True)
class LanedTag:
    """``msg:0``, ``msg:1``…: the same keys several times over, of which the layout says which are meant."""

    text: str

    @property
    def variables(self) -> tuple[str, ...]:
        return ()

    def describe(self) -> str:
        return f"{self.text}:n, n being the lane"

    def of(self, arguments: Mapping[str, str], lane: int = 0) -> str:
        return f"{self.text}:{lane}"

    def lane_in(self, found: str, arguments: Mapping[str, str]) -> int | None:
        stem, _, number = found.rpartition(":")
        if stem != self.text or not _LANE.fullmatch(number) or int(number) >= MOST_LANES:
            return None
        return int(number)


class FilledTag:
    """A tag with variables in it."""

    def __init__(self, template: Template) -> None:
        self._template = template

    @property
    def variables(self) -> tuple[str, ...]:
        return self._template.names

    def describe(self) -> str:
        return self._template.spelling

    def of(self, arguments: Mapping[str, str], lane: int = 0) -> str:
        tag = self._template.fill(arguments)
        if "}" in tag:
            raise DeclarationError(
                f"tag {self.describe()}: {', '.join(self.variables)} must not hold a closing brace, which ends the tag"
            )
        return tag

    def lane_in(self, found: str, arguments: Mapping[str, str]) -> int | None:
        return 0 if found == self.of(arguments) else None


@dataclass(frozen=True, slots=True)
class Lane:
    """``Lane("msg", "user_sub", lanes=16)`` gives ``msg:0`` to ``msg:15``; one person is always in the same lane."""

    name: str
    variable: str
    lanes: int = 16

    def __post_init__(self) -> None:
        _checked_text(self.name)
        if not 1 <= self.lanes <= 16384:
            raise DeclarationError(f"tag {self.name}: lanes must be between 1 and 16384, got {self.lanes}")

    @property
    def variables(self) -> tuple[str, ...]:
        return (self.variable,)

    def describe(self) -> str:
        return f"{self.name}:0..{self.lanes - 1} by {self.variable}"

    def of(self, arguments: Mapping[str, str], lane: int = 0) -> str:
        return f"{self.name}:{crc32(arguments[self.variable].encode()) % self.lanes}"

    def lane_in(self, found: str, arguments: Mapping[str, str]) -> int | None:
        return 0 if found == self.of(arguments) else None


def tag_of(given: "str | Tag", template: Template, *, laned: bool = False) -> Tag:
    """The tag that a declaration or keyspace asks for, checked against the pattern it will be used with."""
    if laned:
        if not isinstance(given, str):
            raise DeclarationError(f"{template.spelling}: lanes need a tag of fixed text, not {given.describe()}")
        return LanedTag(_checked_text(given))
    if isinstance(given, str):
        kinds = {variable.name: variable.kind for variable in template.variables}
        filled = Template(given) if given else None
        if filled is None or not filled.names:
            tag: Tag = FixedTag(_checked_text(given))
        else:
            tag = FilledTag(Template(given, {name: kind for name, kind in kinds.items() if name in filled.names}))
    else:
        tag = given
    missing = [name for name in tag.variables if name not in template.names]
    if missing:
        raise DeclarationError(f"{template.spelling}: tag {tag.describe()} needs {', '.join(missing)} in the pattern")
    return tag


def _checked_text(text: str) -> str:
    if not text or "{" in text or "}" in text:
        raise DeclarationError(f"a tag must be text without braces and not empty, got {text!r}")
    return text
