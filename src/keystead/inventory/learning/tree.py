"""Keys in a tree by their tokens. It never grows beyond a fixed size, however many different names come."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from keystead.inventory.learning.tokens import MOST_TOKENS, REST, WORD, body, is_value, is_word, lead, tokens_of

MOST_WORDS = 300  # different words at one place; more are values
MOST_GROUPS = 20_000
MOST_PATTERNS = 2000
MOST_VALUES = 40  # kept of each place, to see whether they vary and to guess their meaning
MOST_EXAMPLES = 6
_WIDEST = 200


@dataclass(slots=True)
class Group:
    """What was seen of the keys of one shape."""

    keys: int = 0
    memory_bytes: int = 0
    weighed: int = 0
    largest_bytes: int = 0
    without_expiry: int = 0
    with_expiry: int = 0
    shortest_ms: int = 0
    longest_ms: int = 0
    types: Counter[str] = field(default_factory=Counter)
    examples: list[tuple[bytes, str, int]] = field(default_factory=list)  # key, type, memory

    def add(self, raw_key: bytes, type: str, ttl_ms: int, memory_bytes: int) -> None:
        self.keys += 1
        self.types[type] += 1
        if memory_bytes:
            self.weighed += 1
            self.memory_bytes += memory_bytes
            if memory_bytes > self.largest_bytes:
                self.largest_bytes = memory_bytes
        if ttl_ms == -1:
            self.without_expiry += 1
        elif ttl_ms >= 0:
            if not self.with_expiry or ttl_ms < self.shortest_ms:
                self.shortest_ms = ttl_ms
            if ttl_ms > self.longest_ms:
                self.longest_ms = ttl_ms
            self.with_expiry += 1
        if len(self.examples) < MOST_EXAMPLES:
            self.examples.append((raw_key, type, memory_bytes))

    def absorb(self, other: "Group") -> None:
        if other.with_expiry:
            self.shortest_ms = min(self.shortest_ms, other.shortest_ms) if self.with_expiry else other.shortest_ms
            self.longest_ms = max(self.longest_ms, other.longest_ms)
        self.keys += other.keys
        self.memory_bytes += other.memory_bytes
        self.weighed += other.weighed
        self.largest_bytes = max(self.largest_bytes, other.largest_bytes)
        self.without_expiry += other.without_expiry
        self.with_expiry += other.with_expiry
        self.types += other.types
        # Some of each, so that the examples of a merged pattern show its variety.
        theirs = other.examples[: MOST_EXAMPLES // 2] if len(self.examples) >= MOST_EXAMPLES // 2 else other.examples
        self.examples = (self.examples[: MOST_EXAMPLES - len(theirs)] + theirs)[:MOST_EXAMPLES]


@dataclass(slots=True)
class Node:
    """``values`` holds some of the values that stood at this place, one list for each value in the token."""

    children: "dict[str, Node]" = field(default_factory=dict)
    group: Group | None = None
    values: list[dict[str, None]] = field(default_factory=list)
    words: int = 0  # children that are words
    enumerated: bool = False  # the values of this place are words of which all are known

    def remember(self, values: tuple[str, ...]) -> None:
        held = self.values
        while len(held) < len(values):
            held.append({})
        for known, value in zip(held, values, strict=False):
            if len(known) < MOST_VALUES:
                known[value] = None


class Tree:
    """Takes keys one by one; ``root`` is ready for ``merge`` at any time."""

    def __init__(self, *, most_words: int = MOST_WORDS, most_groups: int = MOST_GROUPS) -> None:
        self.root = Node()
        self.keys = 0
        self.groups = 0
        self.crowded = False  # there were more shapes than are told apart
        self._most_words = most_words
        self._most_groups = most_groups
        self._depth = MOST_TOKENS + 1

    def add(self, raw_key: bytes, type: str, ttl_ms: int, memory_bytes: int) -> None:
        """Count one key."""
        self.keys += 1
        tokens, values = tokens_of(raw_key)
        node = self.root
        for depth, (token, held) in enumerate(zip(tokens, values, strict=True)):
            if depth >= self._depth:
                node = self._step(node, REST, ())
                break
            node = self._step(node, token, held)
        if node.group is None:
            node.group = Group()
            self.groups += 1
        node.group.add(raw_key, type, ttl_ms, memory_bytes)
        if self.groups > self._most_groups:
            self._shrink()

    def finish(self) -> None:
        """Nobody reads more patterns than this: what is over becomes fewer, larger ones."""
        self._most_groups = min(self._most_groups, 2 * MOST_PATTERNS)
        if self.groups > self._most_groups:
            self._shrink()

    def _step(self, node: Node, token: str, values: tuple[str, ...]) -> Node:
        child = node.children.get(token)
        if child is None:
            if is_word(token):
                merged = node.children.get(lead(token) + WORD)
                if merged is not None:
                    merged.remember((body(token),))
                    return merged
                if node.words >= self._most_words:
                    merged = self._merge_words(node, lead(token) + WORD)
                    merged.remember((body(token),))
                    return merged
                node.words += 1
            elif len(node.children) > 2 * self._most_words and not is_value(token):
                return self._step(node, lead(token) + WORD, (body(token),))
            child = node.children[token] = Node()
        if values:
            child.remember(values)
        return child

    def _merge_words(self, node: Node, into: str) -> Node:
        merged = node.children.get(into) or Node()
        for token in [token for token in node.children if is_word(token)]:
            child = node.children.pop(token)
            merged.remember((body(token),))
            self.groups -= absorb(merged, child)
        node.words = 0
        node.children[into] = merged
        return merged

    def _shrink(self) -> None:
        """Tell fewer words apart, and in the end fewer shapes, until there is room again."""
        self.crowded = True
        while self.groups > self._most_groups // 2 and self._most_words > 1:
            self._most_words //= 2
            self._tighten(self.root)
            self.groups = sum(1 for _ in groups(self.root))
        if self.groups > self._most_groups // 2:
            _flatten(self.root, 0)
            self.groups = sum(1 for _ in groups(self.root))
            self._depth = 2  # what still comes must not fill it again and again

    def _tighten(self, node: Node) -> None:
        if node.words > self._most_words:
            self._merge_words(node, (":" if node is not self.root else "") + WORD)
        for child in node.children.values():
            self._tighten(child)


def _flatten(node: Node, depth: int) -> None:
    """Beyond a few segments and children, all shapes below a place become one."""
    if depth < 2 and len(node.children) <= _WIDEST:
        for child in node.children.values():
            _flatten(child, depth + 1)
    elif node.children:
        rest = Group()
        for child in node.children.values():
            for _, group in groups(child):
                rest.absorb(group)
        node.children = {REST: Node(group=rest)}
        node.words = 0


def absorb(into: Node, other: Node) -> int:
    """Put one subtree into another; says how many groups there are fewer."""
    fewer = 0
    if other.group is not None:
        if into.group is None:
            into.group = other.group
        else:
            into.group.absorb(other.group)
            fewer += 1
    for known, theirs in zip(into.values, other.values, strict=False):
        for value in theirs:
            if len(known) < MOST_VALUES:
                known[value] = None
    into.values += other.values[len(into.values):]
    for token, child in other.children.items():
        known_child = into.children.get(token)
        if known_child is None:
            into.children[token] = child
            into.words += is_word(token)
        else:
            fewer += absorb(known_child, child)
    return fewer


def groups(node: Node, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Group]]:
    """Every group below a place, with the tokens that lead to it."""
    if node.group is not None:
        yield path, node.group
    for token, child in node.children.items():
        yield from groups(child, (*path, token))


def signature(node: Node) -> frozenset[tuple[str, str]]:
    """What a subtree looks like: the shapes below it, each with its most frequent type. Kinds of values are one."""
    return frozenset(
        ("".join(lead(token) + WORD if is_value(token) else token for token in path), group.types.most_common(1)[0][0])
        for path, group in groups(node)
    )
