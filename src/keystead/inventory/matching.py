"""From a key on a server back to the entry of an inventory that describes it, fast.

Whatever stands in the inventory, building a ``Matcher`` does not fail: where several patterns fit a key, the most
literal wins, compared from left to right. Text comes before text with variables, that before a list of values, that
before a kind of value, that before any word.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Generic, TypeVar

from keystead.inventory.models import Entry, Inventory
from keystead.inventory.overlaps import Overlap, overlaps
from keystead.inventory.shapes import ANY_TEXT, Hole, Part, Segment, Shape, Values, shape_of, values_of
from keystead.keys import WORD, Kind

T = TypeVar("T")
_HEAD = 3
_SPECIAL = re.compile(r"([*?\[\]\\^-])")


class Found:
    """The entry that a key belongs to, and the values of its variables.

    ``loose``: it fits only if a variable holds separators (``users:{id}`` for ``users:7:draft``), so it may as well be
    a key that nobody wrote down.
    """

    __slots__ = ("arguments", "entry", "loose")

    def __init__(self, entry: Entry, arguments: dict[str, str], loose: bool = False) -> None:
        self.entry = entry
        self.arguments = arguments
        self.loose = loose

    def __repr__(self) -> str:
        return f"<found {self.entry.pattern} {self.arguments}{' loosely' if self.loose else ''}>"


class Matcher:
    """Finds the entries of keys and channels. Takes any bytes.

    A variable holds no separators, unless its kind is text or ip. Only if nothing else fits, neither one of the
    namespaces that belong to a library, nor the name behind a hash tag (``{tag}name``), are the patterns tried again
    with variables that may hold anything; then the answer is ``loose``.
    """

    def __init__(self, inventory: Inventory) -> None:
        self.inventory = inventory
        self._keys = _Names(entry for entry in inventory.entries if entry.kind != "channel")
        self._channels = _Names(entry for entry in inventory.entries if entry.kind == "channel")

    def find(self, raw_key: bytes) -> Found | None:
        """What a key is; None if nothing in the inventory fits it."""
        return self._keys.find(raw_key)

    def find_channel(self, name: bytes) -> Found | None:
        """What a channel is; None if nothing in the inventory fits it."""
        return self._channels.find(name)

    def glob(self, entry: Entry) -> bytes:
        """What to give SCAN MATCH: every key of the entry fits it, and perhaps others, so find what it gives."""
        if entry.kind == "opaque":
            return (_escaped(_namespace(entry)) + "*").encode(errors="surrogatepass")
        parts = ("*" if isinstance(part, Hole) else _escaped(part) for part in shape_of(entry).parts)
        return "".join(parts).encode(errors="surrogatepass")

    @cached_property
    def overlaps(self) -> tuple[Overlap, ...]:
        """Pairs of entries that fit the same key, where neither is the more literal one at every place."""
        return (*overlaps(self._keys.shapes), *overlaps(self._channels.shapes))


class _Leaf:
    __slots__ = ("entry", "names", "weight")

    def __init__(self, entry: Entry, shape: Shape) -> None:
        self.entry = entry
        self.names = shape.names
        self.weight = shape.weight


class _Node:
    """What may follow at one place of a key."""

    __slots__ = ("leaf", "literals", "mixtures", "only_literals", "singles", "tails", "word")

    def __init__(self) -> None:
        self.literals: dict[str, _Node] = {}
        self.mixtures: list[tuple[Segment, Values, _Node]] = []
        self.singles: list[tuple[Kind, Callable[[str], object], _Node]] = []
        self.tails: list[tuple[tuple[int, int], Values, _Leaf]] = []
        self.leaf: _Leaf | None = None
        # The two most frequent cases: nothing but text, and beside the text nothing but any word.
        self.only_literals = True
        self.word: _Node | None = None

    def settle(self) -> None:
        self.mixtures.sort(key=lambda each: each[0].rank)
        self.singles.sort(key=lambda each: Segment((Hole("", each[0]),)).rank)
        self.tails.sort(key=lambda each: each[0])
        self.only_literals = not (self.mixtures or self.singles or self.tails)
        if len(self.singles) == 1 and self.singles[0][0] is WORD and not self.mixtures and not self.tails:
            self.word = self.singles[0][2]
        for child in (*self.literals.values(), *(each[2] for each in (*self.mixtures, *self.singles))):
            child.settle()


class _Tree:
    """The patterns that are parted by one separator."""

    def __init__(self, separator: str, shapes: Iterable[tuple[Entry, Shape]]) -> None:
        self.separator = separator
        self._root = _Node()
        for entry, shape in shapes:
            _plant(self._root, shape, _Leaf(entry, shape))
        self._root.settle()

    def find(self, text: str) -> tuple[_Leaf, list[str]] | None:
        # A pattern with dots says nothing of keys with colons.
        if self.separator != ":" and ":" in text:
            return None
        captured: list[str] = []
        leaf = _walk(self._root, text.split(self.separator), 0, captured, self.separator)
        return None if leaf is None else (leaf, captured)


class _Names:
    """Patterns of one kind of names."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        opaque: list[Entry] = []
        self.shapes: list[tuple[Entry, Shape]] = []
        for entry in entries:
            if entry.kind == "opaque":
                opaque.append(entry)
            else:
                self.shapes.append((entry, shape_of(entry)))
        self._exact: dict[bytes, Found] = {}
        for entry, shape in self.shapes:
            if not shape.holes:
                self._exact.setdefault(entry.pattern.encode(errors="surrogatepass"), Found(entry, {}))
        open_shapes = [(entry, shape) for entry, shape in self.shapes if shape.holes]
        plain = [(entry, shape.without_kinds()) for entry, shape in open_shapes]
        self._trees = _trees(open_shapes)
        self._plain_trees = _trees(plain) if plain != open_shapes else []
        self._namespaces = _Prefixes((_namespace(entry), entry) for entry in opaque)
        loose = sorted(plain, key=lambda each: (-each[1].weight, len(each[1].holes)))
        self._loose = _Prefixes(
            (shape.prefix, (_Leaf(entry, shape), values_of(shape.parts, shape.separator, loose=True)))
            for entry, shape in loose if shape.weight
        )

    def find(self, raw: bytes) -> Found | None:
        exact = self._exact.get(raw)
        if exact is not None:
            return exact
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            text = raw.decode(errors="backslashreplace")
        return self._find_within(text) or self._find_loosely(text)

    def _find_within(self, text: str) -> Found | None:
        found = _best(self._trees, text) or _best(self._plain_trees, text)
        if found is not None:
            leaf, values = found
            return Found(leaf.entry, _arguments(leaf.names, values))
        for entry in self._namespaces.beginning(text):
            return Found(entry, {})
        end = text.find("}") + 1
        if text[:1] == "{" and 0 < end < len(text):
            behind = self._exact.get(text[end:].encode(errors="surrogatepass"))
            return behind or self._find_within(text[end:])
        return None

    def _find_loosely(self, text: str) -> Found | None:
        fitting: tuple[_Leaf, tuple[str, ...]] | None = None
        for leaf, values_in in self._loose.beginning(text):
            if fitting is None or leaf.weight > fitting[0].weight:
                values = values_in(text)
                fitting = fitting if values is None else (leaf, values)
        return None if fitting is None else Found(fitting[0].entry, _arguments(fitting[0].names, fitting[1]), True)


def _trees(shapes: list[tuple[Entry, Shape]]) -> list[_Tree]:
    separators = dict.fromkeys(shape.separator for _, shape in shapes)
    return [_Tree(each, [pair for pair in shapes if pair[1].separator == each]) for each in separators]


def _best(trees: list[_Tree], text: str) -> tuple[_Leaf, list[str]] | None:
    if len(trees) == 1:
        return trees[0].find(text)
    found = [each for tree in trees if (each := tree.find(text)) is not None]
    return max(found, key=lambda each: each[0].weight, default=None)


def _arguments(names: tuple[str, ...], values: "list[str] | tuple[str, ...]") -> dict[str, str]:
    if len(names) == 1 and names[0]:
        return {names[0]: values[0]}
    return {name: value for name, value in zip(names, values, strict=True) if name}


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)


def _namespace(entry: Entry) -> str:
    """The text that every key of a namespace begins with."""
    return shape_of(entry).prefix


class _Prefixes(Generic[T]):
    """Things under texts; finds those whose text a name begins with, the longest text first."""

    def __init__(self, items: Iterable[tuple[str, T]]) -> None:
        self._items: dict[str, list[T]] = {}
        for prefix, item in items:
            self._items.setdefault(prefix, []).append(item)
        # Which lengths to try, by how a name begins; a prefix shorter than that may stand at the beginning of any.
        short = {len(prefix) for prefix in self._items if len(prefix) < _HEAD}
        lengths: dict[str, set[int]] = {"": short}
        for prefix in self._items:
            if len(prefix) >= _HEAD:
                lengths.setdefault(prefix[:_HEAD], set(short)).add(len(prefix))
        self._lengths = {head: sorted(found, reverse=True) for head, found in lengths.items()}

    def beginning(self, text: str) -> Iterator[T]:
        for length in self._lengths.get(text[:_HEAD], self._lengths[""]):
            yield from self._items.get(text[:length], ())


def _plant(node: _Node, shape: Shape, leaf: _Leaf) -> None:
    """Put a pattern into the tree. Of two with the same shape the first stays."""
    segments, separator = shape.segments, shape.separator
    for index, segment in enumerate(segments):
        if segment.spans:
            rest = segments[index:]
            rank = min(each.rank for each in rest if each.spans)[0], -sum(len(each.text) for each in rest)
            node.tails.append((rank, values_of(_joined(rest, separator), separator), leaf))
            if any(hole.kind is ANY_TEXT for hole in segment.holes):
                return
        node = _child(node, segment, separator)
    node.leaf = node.leaf or leaf


def _joined(segments: tuple[Segment, ...], separator: str) -> tuple[Part, ...]:
    parts: list[Part] = list(segments[0].parts)
    for segment in segments[1:]:
        parts += [separator, *segment.parts]
    return tuple(parts)


def _child(node: _Node, segment: Segment, separator: str) -> _Node:
    """The node behind one segment, made if it is not there yet."""
    if not segment.holes:
        return node.literals.setdefault(segment.text, _Node())
    only = segment.only
    child = _Node()
    if only is None:
        for known, _, behind in node.mixtures:
            if _same(known, segment):
                return behind
        node.mixtures.append((segment, values_of(segment.parts, separator), child))
        return child
    for kind, _, behind in node.singles:
        if kind.name == only.kind.name:
            return behind
    node.singles.append((only.kind, bool if only.kind is WORD else only.kind.recogniser(), child))
    return child


def _same(first: Segment, second: Segment) -> bool:
    """Whether two segments fit the same texts: they differ at most in the names of variables."""
    return [part if isinstance(part, str) else part.kind.name for part in first.parts] == [
        part if isinstance(part, str) else part.kind.name for part in second.parts]


def _walk(node: _Node, segments: list[str], at: int, captured: list[str], separator: str) -> _Leaf | None:
    """The leaf for the segments from ``at`` on; ``captured`` then holds the values of its variables, in order.

    Where it finds nothing, it may leave values in ``captured`` for the caller to remove.
    """
    end = len(segments)
    while at < end:
        segment = segments[at]
        following = node.literals.get(segment)
        if node.only_literals:
            if following is None:
                return None
            node = following
            at += 1
            continue
        if following is not None:
            depth = len(captured)
            leaf = _walk(following, segments, at + 1, captured, separator)
            if leaf is not None:
                return leaf
            del captured[depth:]
        if node.word is None:
            return _walk_on(node, segments, at, captured, separator)
        if not segment:
            return None
        node = node.word
        captured.append(segment)
        at += 1
    return node.leaf


def _walk_on(node: _Node, segments: list[str], at: int, captured: list[str], separator: str) -> _Leaf | None:
    """The same where several alternatives to a text must be tried."""
    segment, depth = segments[at], len(captured)
    for _, values_in, child in node.mixtures:
        values = values_in(segment)
        if values is not None:
            captured += values
            leaf = _walk(child, segments, at + 1, captured, separator)
            if leaf is not None:
                return leaf
            del captured[depth:]
    for _, accepts, child in node.singles:
        if accepts(segment):
            captured.append(segment)
            leaf = _walk(child, segments, at + 1, captured, separator)
            if leaf is not None:
                return leaf
            del captured[depth:]
    if node.tails:
        text = separator.join(segments[at:])
        for _, values_in, leaf in node.tails:
            values = values_in(text)
            if values is not None:
                captured += values
                return leaf
    return None
