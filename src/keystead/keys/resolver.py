"""From a key on a server back to the pattern that owns it, fast.

Patterns without variables are one dictionary step. The others lie in a tree over the colon-separated segments of a
key: at each segment a literal is tried first, then mixtures of text and variable, then single variables, and last the
patterns with a variable that may itself hold colons.

A key resolves only to arguments from which the pattern gives the same key again. What is not valid UTF-8 or holds
control characters therefore resolves to nothing (opaque namespaces aside): no pattern could have made it.
"""

import re
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from keystead.errors import Ambiguous
from keystead.keys.overlap import overlap
from keystead.keys.template import Segment, Template
from keystead.keys.variables import CONTROL, WORD, Kind, OneOf

Owner = TypeVar("Owner")
_Groups = Callable[[str], tuple[str, ...] | None]


class _Leaf(Generic[Owner]):
    """A pattern at the end of its path.

    ``loses_to`` are the more literal ones that share keys with it, ``yields_to`` those of them that the tree might
    reach only later and that must therefore be asked.
    """

    __slots__ = ("loses_to", "names", "owner", "template", "yields_to")

    def __init__(self, owner: Owner, template: Template) -> None:
        self.owner = owner
        self.template = template
        self.names = template.names
        self.loses_to: set[_Leaf[Owner]] = set()
        self.yields_to: list[_Leaf[Owner]] = []


class _Node(Generic[Owner]):
    """What may follow at one place of a key.

    ``only_literals`` and ``single`` mark the two most frequent cases: nothing but literals, and beside the literals
    nothing but one variable. There the search goes straight on.
    """

    __slots__ = ("leaf", "literals", "mixtures", "only_literals", "single", "singles", "tails")

    def __init__(self) -> None:
        self.literals: dict[str, _Node[Owner]] = {}
        self.mixtures: list[tuple[Segment, _Groups, _Node[Owner]]] = []
        self.singles: list[tuple[Kind, Callable[[str], object], _Node[Owner]]] = []
        self.tails: list[tuple[_Groups, _Leaf[Owner]]] = []
        self.leaf: _Leaf[Owner] | None = None
        self.only_literals = True
        self.single: tuple[Callable[[str], object], _Node[Owner]] | None = None

    def settle(self) -> None:
        """Note which case this is, once everything is planted."""
        self.only_literals = not (self.mixtures or self.singles or self.tails)
        if len(self.singles) == 1 and not self.mixtures and not self.tails:
            self.single = self.singles[0][1:]
        for child in (*self.literals.values(), *(entry[2] for entry in (*self.mixtures, *self.singles))):
            child.settle()


class Resolver(Generic[Owner]):
    """Finds the owner of a name among patterns. Refuses with ``Ambiguous`` patterns that could own the same name."""

    def __init__(self, patterns: Iterable[tuple[Owner, Template]], describe: Callable[[Owner], str]) -> None:
        leaves = [_Leaf(owner, template) for owner, template in patterns]
        contests = _contests(leaves, describe)
        self._exact = {leaf.template.spelling: leaf.owner for leaf in leaves if not leaf.names}
        self._root: _Node[Owner] = _Node()
        for leaf in leaves:
            if leaf.names:
                _plant(self._root, leaf)
        self._root.settle()
        for winner, loser, example in contests:
            found = self.resolve(example)
            spans = any(variable.spans_colons for variable in (*winner.template.variables, *loser.template.variables))
            loser.loses_to.add(winner)
            if spans or (found is not None and found[0] is loser.owner):
                loser.yields_to.append(winner)

    def resolve(self, text: str) -> tuple[Owner, dict[str, str]] | None:
        """The owner and the arguments of its pattern, in the order of the pattern."""
        owner = self._exact.get(text)
        if owner is not None:
            return owner, {}
        if not text.isprintable() and CONTROL.search(text):
            return None
        captured: list[str] = []
        leaf = _walk(self._root, text.split(":"), 0, captured)
        if leaf is None:
            return None
        if leaf.yields_to:
            winner = _winner(leaf, text)
            if winner is not leaf:
                return winner.owner, winner.template.match(text) or {}
        if len(captured) == 1:
            return leaf.owner, {leaf.names[0]: captured[0]}
        return leaf.owner, dict(zip(leaf.names, captured, strict=True))


def _walk(node: _Node[Owner], segments: list[str], at: int, captured: list[str]) -> _Leaf[Owner] | None:
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
            leaf = _walk(following, segments, at + 1, captured)
            if leaf is not None:
                return leaf
            del captured[depth:]
        if node.single is None:
            return _walk_on(node, segments, at, captured)
        accepts, node = node.single
        if not accepts(segment):
            return None
        captured.append(segment)
        at += 1
    return node.leaf


def _walk_on(node: _Node[Owner], segments: list[str], at: int, captured: list[str]) -> _Leaf[Owner] | None:
    """The same where several alternatives to a literal must be tried."""
    segment, depth = segments[at], len(captured)
    for _, groups, child in node.mixtures:
        values = groups(segment)
        if values is not None:
            captured += values
            leaf = _walk(child, segments, at + 1, captured)
            if leaf is not None:
                return leaf
            del captured[depth:]
    for _, accepts, child in node.singles:
        if accepts(segment):
            captured.append(segment)
            leaf = _walk(child, segments, at + 1, captured)
            if leaf is not None:
                return leaf
            del captured[depth:]
    if node.tails:
        text = ":".join(segments[at:])
        for groups, leaf in node.tails:
            values = groups(text)
            if values is not None:
                captured += values
                return leaf
    return None


def _winner(leaf: _Leaf[Owner], text: str) -> _Leaf[Owner]:
    """The most literal of the leaf and those it yields to that match."""
    fitting = [leaf, *(other for other in leaf.yields_to if other.template.match(text) is not None)]
    return next((one for one in fitting if not any(rival in one.loses_to for rival in fitting)), leaf)


def _plant(node: _Node[Owner], leaf: _Leaf[Owner]) -> None:
    segments = leaf.template.segments
    for index, segment in enumerate(segments):
        if segment.spans_colons:
            node.tails.append((_groups(segments[index:]), leaf))
            return
        node = _child(node, segment)
    node.leaf = leaf


def _child(node: _Node[Owner], segment: Segment) -> _Node[Owner]:
    """The node behind one segment, made if it is not there yet."""
    if segment.literal is not None:
        return node.literals.setdefault(segment.literal, _Node())
    only = segment.only
    if only is None:
        for known, _, child in node.mixtures:
            if known.expression == segment.expression:
                return child
        child = _Node()
        node.mixtures.append((segment, _groups((segment,)), child))
        node.mixtures.sort(key=lambda entry: -len(entry[0].prefix + entry[0].suffix))
        return child
    for kind, _, child in node.singles:
        if kind.name == only.kind.name and kind.expression == only.kind.expression:
            return child
    child = _Node()
    # What lies between two colons cannot hold one, so a word only has to be there.
    node.singles.append((only.kind, bool if only.kind is WORD else only.kind.recogniser(), child))
    node.singles.sort(key=lambda entry: not isinstance(entry[0], OneOf))
    return child


def _groups(segments: tuple[Segment, ...]) -> _Groups:
    """A function that gives the values of the variables in a text of these segments, or None if it does not fit."""
    fullmatch = re.compile(":".join(segment.expression for segment in segments)).fullmatch
    kinds = tuple(variable.kind for segment in segments for variable in segment.variables)

    def groups(text: str) -> tuple[str, ...] | None:
        found = fullmatch(text)
        if found is None:
            return None
        values: tuple[str, ...] = found.groups()
        return values if all(kind.accepts(value) for kind, value in zip(kinds, values, strict=True)) else None

    return groups


def _contests(
    leaves: list[_Leaf[Owner]], describe: Callable[[Owner], str]
) -> list[tuple[_Leaf[Owner], _Leaf[Owner], str]]:
    """Pairs of winner and loser that share some key, with an example of it."""
    ordered = sorted(leaves, key=lambda leaf: leaf.template.literal_prefix)
    contests: list[tuple[_Leaf[Owner], _Leaf[Owner], str]] = []
    for index, first in enumerate(ordered):
        prefix = first.template.literal_prefix
        # Names that begin alike stand together, so the search ends at the first that does not.
        for second in ordered[index + 1 :]:
            if not second.template.literal_prefix.startswith(prefix):
                break
            meeting = overlap(first.template, second.template)
            if meeting is None:
                continue
            if meeting.more_literal == 0:
                names = describe(first.owner), describe(second.owner)
                raise Ambiguous(
                    f"{names[0]} and {names[1]} could both own the key {meeting.example}, and neither is more literal; "
                    "narrow a variable's kind or change one of the patterns",
                    first=names[0], second=names[1],
                )
            pair = (first, second) if meeting.more_literal > 0 else (second, first)
            contests.append((*pair, meeting.example))
    return contests
