"""Groups names that nobody declared into patterns such as ``user:{int}:cart:{uuid}``.

Names go into a tree by their colon-separated segments. Numbers, identifiers and addresses are classes from the
start; where too many different words meet at one place they become ``{word}``. The tree never grows beyond a fixed
number of patterns, however many names come: when it is full, fewer words are told apart.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from keystead.keys.variables import EMAIL, IP, SHA256, UUID_KIND

WORD: Final = "{word}"
REST: Final = "{rest}"
_CLASSES: Final = (
    ("{int}", re.compile(r"-?[0-9]{1,20}")),
    ("{uuid}", re.compile(UUID_KIND.expression)),
    ("{sha256}", re.compile(SHA256.expression)),
    ("{hex}", re.compile(r"(?=[a-f]*[0-9])[0-9a-f]{16,}|(?=[A-F]*[0-9])[0-9A-F]{16,}")),
    ("{email}", re.compile(EMAIL.expression)),
    ("{ip}", re.compile(IP.expression)),
    ("{number}", re.compile(r"-?[0-9]+\.[0-9]+")),
    # A long mixture of digits and letters of both cases, as random identifiers are written.
    ("{id}", re.compile(r"(?=[^0-9]*[0-9])(?=[^a-zA-Z]*[a-zA-Z])(?!v[0-9.]+$)[A-Za-z0-9+=_-]{20,}")),
)
_WITHIN: Final = re.compile(
    rf"({UUID_KIND.expression})|(?<![0-9A-Za-z])([0-9a-f]{{16,}})(?![0-9A-Za-z])|(?<=[_./@#|-])([0-9]+)(?![0-9A-Za-z])"
    r"|([0-9]{4,})"
)
_LONGEST_NAME: Final = 1000
_LONGEST_ADDRESS: Final = 9
_INNER: Final = ("{uuid}", "{hex}", "{int}", "{int}")


@dataclass(frozen=True, slots=True)
class InferredPattern:
    """Names that look alike."""

    pattern: str
    keys: int
    memory_bytes: int
    types: tuple[str, ...]
    without_ttl: int
    examples: tuple[str, ...]


@dataclass(slots=True)
class _Group:
    keys: int = 0
    memory_bytes: int = 0
    without_ttl: int = 0
    types: set[str] = field(default_factory=set)
    examples: list[str] = field(default_factory=list)

    def absorb(self, other: "_Group", most_examples: int) -> None:
        self.keys += other.keys
        self.memory_bytes += other.memory_bytes
        self.without_ttl += other.without_ttl
        self.types |= other.types
        self.examples += other.examples[: max(0, most_examples - len(self.examples))]


@dataclass(slots=True)
class _Node:
    children: "dict[str, _Node]" = field(default_factory=dict)
    group: _Group | None = None


class Inference:
    """Takes names one by one; gives their patterns at any time. Memory is bounded by ``most_patterns``."""

    def __init__(self, *, most_patterns: int = 2000, most_examples: int = 3, most_words: int = 24) -> None:
        self._most_patterns = max(8, most_patterns)
        self._most_examples = most_examples
        self._words = most_words
        self._depth = 12
        self._root = _Node()
        self._groups = 0

    def add(self, raw_key: bytes, *, type: str = "", ttl_seconds: float | None = None, memory_bytes: int = 0) -> None:
        """Count one name."""
        name = raw_key[:_LONGEST_NAME].decode(errors="backslashreplace")
        node = self._root
        segments = _classes(name)
        for depth, segment in enumerate(segments):
            if depth >= self._depth:
                node = node.children.setdefault(REST, _Node())
                break
            node = self._step(node, segment, depth)
        if node.group is None:
            node.group = _Group()
            self._groups += 1
        group = node.group
        group.keys += 1
        group.memory_bytes += memory_bytes
        group.without_ttl += ttl_seconds is None
        if type:
            group.types.add(type)
        if len(group.examples) < self._most_examples:
            group.examples.append(name[:200])
        if self._groups > self._most_patterns:
            self._shrink()

    def patterns(self) -> list[InferredPattern]:
        """What was found, the most frequent first."""
        found = [
            InferredPattern(
                ":".join(path), group.keys, group.memory_bytes, tuple(sorted(group.types)), group.without_ttl,
                tuple(group.examples),
            )
            for path, group in _groups(self._root, ())
        ]
        return sorted(found, key=lambda each: (-each.keys, each.pattern))

    def _step(self, node: _Node, segment: str, depth: int) -> _Node:
        known = node.children.get(segment)
        if known is not None:
            return known
        if "{" not in segment:
            if WORD in node.children:
                return node.children[WORD]
            # What stands first is the name of a room or feature, of which there may be many.
            room = self._words * (4 if depth == 0 else 1)
            if sum("{" not in name for name in node.children) >= room:
                self._merge_words(node)
                return node.children[WORD]
        return node.children.setdefault(segment, _Node())

    def _merge_words(self, node: _Node) -> None:
        merged = node.children.setdefault(WORD, _Node())
        for name in [name for name in node.children if "{" not in name]:
            self._merge(merged, node.children.pop(name))

    def _merge(self, into: _Node, other: _Node) -> None:
        if other.group is not None:
            if into.group is None:
                into.group = other.group
            else:
                into.group.absorb(other.group, self._most_examples)
                self._groups -= 1
        for name, child in other.children.items():
            if name in into.children:
                self._merge(into.children[name], child)
            elif "{" not in name and WORD in into.children:
                self._merge(into.children[WORD], child)
            else:
                into.children[name] = child
        if sum("{" not in name for name in into.children) > self._words:
            self._merge_words(into)

    def _shrink(self) -> None:
        """Tell fewer words apart, and then fewer segments, until there is room again."""
        while self._groups > self._most_patterns // 2 and (self._words > 1 or self._depth > 1):
            if self._words > 1:
                self._words //= 2
            else:
                self._depth -= 1
            self._tighten(self._root, 0)

    def _tighten(self, node: _Node, depth: int) -> None:
        if depth >= self._depth and node.children:
            rest = node.children.pop(REST, _Node())
            for child in list(node.children.values()):
                for _, group in _groups(child, ()):
                    if rest.group is None:
                        rest.group = group
                    else:
                        rest.group.absorb(group, self._most_examples)
                        self._groups -= 1
            node.children = {REST: rest}
            return
        if sum("{" not in name for name in node.children) > self._words * (4 if depth == 0 else 1):
            self._merge_words(node)
        if self._words <= 1 and len(node.children) > 8:
            merged = _Node()
            for child in node.children.values():
                self._merge(merged, child)
            node.children = {WORD: merged}
        for child in node.children.values():
            self._tighten(child, depth + 1)


def _groups(node: _Node, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], _Group]]:
    if node.group is not None:
        yield path, node.group
    for name, child in node.children.items():
        yield from _groups(child, (*path, name))


def _classes(name: str) -> list[str]:
    """The segments of a name, each a literal word or a pattern; an IPv6 address is one segment."""
    segments = name.split(":")
    if len(segments) > 3:
        for start in range(max(0, len(segments) - _LONGEST_ADDRESS), len(segments) - 2):
            tail = ":".join(segments[start:])
            if IP.accepts(tail):
                return [*map(_class, segments[:start]), "{ip}"]
    return [_class(segment) for segment in segments]


def _class(segment: str) -> str:
    if len(segment) < 16 and segment.isalpha():
        return segment
    for name, expression in _CLASSES:
        if expression.fullmatch(segment):
            return name
    return _WITHIN.sub(lambda found: _INNER[(found.lastindex or 1) - 1], segment)
