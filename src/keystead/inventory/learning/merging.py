"""Decides which words of a tree are values: by how many stand in one place, and how alike is what lies below them.

The words of a place become one variable when nobody would have written them all into a program: there are many and each
has hardly a key, or each has the same several keys below it as every other, below the noun of which they are the names
(``queue:mail:dead``, ``queue:reports:dead``…). Below a variable, words of one kind behind a word of their own
(``…:2024-05-01:extra:sent``, ``…:extra:failed``) are an enumeration. Everything else stays as it is written.
"""

import re
from collections.abc import Iterable

from keystead.inventory.learning.tokens import END, VALUE, WORD, body, ends_in_value, is_value, is_word, kinds, lead
from keystead.inventory.learning.tree import Node, absorb, signature

LEAF_WORDS = 8  # words that each are one key, of one type, at a place where nearly nothing else is
PASSING_WORDS = 5  # the same of keys that expire, which are seldom names of their own
THING_WORDS = 3  # words behind the noun of something that many have
RICH_WORDS = 4  # words that each lead to the same shapes
RICH_SHAPES = 3
ODD_WORDS = 4  # words that look like data among others that do not
MANY_WORDS = 40
FEW_KEYS = 2.5
MIXTURE_KEYS = 8
NUMBERED_WORDS = 3
KNOWN_WORDS = 3
MOST_ENUMERATED = 64
ALIKE = 0.6
CONSTANT_KEYS = 5
STRAY_SHARE = 0.5  # of the keys of a place; a word that looks like others must have far fewer

_COUNTED = re.compile(r"(?<=[A-Za-z_])[0-9]{1,3}(?![0-9A-Za-z])")
_NUMBERED = re.compile(r"([^\x00-\x1f]*[A-Za-z_])([0-9]{1,3})")

_THINGS = frozenset((
    "account", "agent", "channel", "city", "client", "company", "country", "customer", "device", "driver", "env",
    "group",
    "guild", "host", "lang", "language", "locale", "node", "org", "organisation", "organization", "player", "project",
    "queue", "region", "room", "server", "shard", "shop", "site", "store", "team", "tenant", "topic", "user", "worker",
    "workspace", "zone",
))

_CONSTANTS = {"integer", "number", "boolean", "duration", "domain", "timezone"}

# Of two kinds at one place the more general names both.
_GENERAL = ("integer", "unix_time", "unix_ms", "hex", "object_id", "md5", "sha1", "sha256", "token")


def merge(root: Node) -> None:
    """Settle the whole tree, in place."""
    _settle(root, "", below_value=False)
    known = _vocabularies(root)
    if known and _use_vocabularies(root, "", known):
        _settle(root, "", below_value=False)


def _vocabularies(node: Node) -> list[frozenset[str]]:
    """The words that turned out to be values, place by place."""
    found = [frozenset(child.values[0]) for name, child in node.children.items()
             if "word" in kinds(name) and len(child.values) == 1 and len(child.values[0]) >= KNOWN_WORDS]
    for child in node.children.values():
        found += _vocabularies(child)
    return found


def _use_vocabularies(node: Node, token: str, known: list[frozenset[str]]) -> bool:
    """Words that are all values of one variable elsewhere are values here: the queues of ``queue:{name}:dead``."""
    changed = False
    for child_name, child in list(node.children.items()):
        changed |= _use_vocabularies(child, child_name, known)
    words = [name for name in node.children if is_word(name) and len(name) > 1]
    for before in dict.fromkeys(map(lead, words)):
        names = [name for name in words if lead(name) == before]
        for vocabulary in known:
            chosen = [name for name in names if body(name) in vocabulary]
            if len(chosen) >= KNOWN_WORDS and len(chosen) >= 0.9 * len(names) and _alike(node, chosen)[0]:
                _join(node, names if _alike(node, names)[0] else chosen, before + WORD)
                changed = True
                break
    return changed


def _settle(node: Node, token: str, *, below_value: bool) -> None:
    here_below = below_value or not is_word(token)
    for name, child in list(node.children.items()):
        _settle(child, name, below_value=here_below)
    changed = _merge_kinds(node)
    changed += _take_strays(node)
    changed += _merge_numbered(node)
    changed += _merge_mixtures(node)
    changed += _merge_prefixes(node)
    changed += _merge_words(node, token, below_value=here_below)
    for name in dict.fromkeys(changed):
        if name in node.children:
            _settle(node.children[name], name, below_value=True)
    _write_constants(node)


def _join(node: Node, names: Iterable[str], into: str, *, without: int = 0) -> list[str]:
    """Put children together under one token; the value of a word is what follows its first ``without`` letters."""
    merged = node.children.pop(into, None) or Node()
    for name in names:
        child = node.children.pop(name, None)
        if child is None:
            continue
        if is_word(name):
            node.words -= 1
            merged.remember((body(name)[without:],))
        elif not is_value(name):
            child.values = []  # of pieces of a token; the whole is one value now
        absorb(merged, child)
    node.children[into] = merged
    return [into]


def _alike(node: Node, names: list[str]) -> tuple[bool, int]:
    """Whether the subtrees of these children look the same, and how many shapes they have together."""
    signatures = [signature(node.children[name]) for name in names]
    union = frozenset().union(*signatures)
    if not union:
        return False, 0
    return sum(len(each) for each in signatures) / (len(union) * len(signatures)) >= ALIKE, len(union)


def _keys(node: Node) -> int:
    return (node.group.keys if node.group is not None else 0) + sum(map(_keys, node.children.values()))


def _merge_kinds(node: Node) -> list[str]:
    """Kinds of values at one place that lead to the same: an identifier in hexadecimal is sometimes all digits."""
    values = [name for name in node.children if is_value(name)]
    if len(values) < 2:
        return []
    changed: list[str] = []
    values.sort(key=lambda name: -_keys(node.children[name]))
    first = values[0]
    ours = signature(node.children[first])
    for other in values[1:]:
        theirs = signature(node.children[other])
        if lead(other) != lead(first) or not theirs or len(ours & theirs) < 0.5 * min(len(ours), len(theirs)):
            continue
        into = lead(first) + _either(kinds(first)[0], kinds(other)[0])
        _join(node, [first, other], into)
        first, ours = into, ours | theirs
        changed = [into]
    return changed


def _either(first: str, second: str) -> str:
    if first in _GENERAL and second in _GENERAL:
        return f"{VALUE}{max(first, second, key=_GENERAL.index)}{END}"
    if "date" in (first, second) and "integer" in (first, second):
        return f"{VALUE}date{END}"
    return WORD


def _take_strays(node: Node) -> list[str]:
    """Among values, a word that leads to the same and is no word of a program: ``UTC`` among the time zones."""
    for name in [name for name in node.children if is_value(name)]:
        child = node.children[name]
        keys, shapes = _keys(child), signature(child)
        strays = [word for word in node.children if is_word(word) and lead(word) == lead(name) and len(word) > 1
                  and signature(node.children[word]) <= shapes
                  and (_is_odd(body(word)) or (keys >= MANY_WORDS and kinds(name)[0] in ("token", "hex", "word")))
                  and _keys(node.children[word]) <= STRAY_SHARE * keys * (1 if _is_odd(body(word)) else 0.1)]
        if strays:
            return _join(node, strays, name)
    return []


def _is_odd(word: str) -> bool:
    """Unlike the words of a program: neither all in small letters nor in camel case."""
    return (any(map(str.isupper, word)) and not word.isalpha()) or word.isupper() or " " in word or word.istitle()


def _merge_numbered(node: Node) -> list[str]:
    """``shard1``, ``shard2``…: words that differ by their number alone."""
    by_front: dict[str, list[str]] = {}
    for name in node.children:
        numbered = _NUMBERED.fullmatch(name)
        if numbered is not None:
            by_front.setdefault(numbered.group(1), []).append(name)
    changed: list[str] = []
    for front, names in by_front.items():
        into = f"{front}{VALUE}integer{END}"
        if (len(names) >= NUMBERED_WORDS or into in node.children) and (
                _alike(node, names)[0] or _alike_but_for_numbers(node, names)):
            changed += _join(node, names, into, without=len(body(front)))
    return changed


def _alike_but_for_numbers(node: Node, names: list[str]) -> bool:
    """Whether what lies below is numbered in its turn: ``typing:r1:u7``, ``typing:r2:u9``."""
    shapes = {frozenset((_COUNTED.sub("0", path), type) for path, type in signature(node.children[name]))
              for name in names}
    return len(shapes) == 1 and bool(next(iter(shapes)))


def _merge_mixtures(node: Node) -> list[str]:
    """Different mixtures at one place that lead to the same are values as a whole: ``web-1-4242``, ``worker-2-17``."""
    mixed = [name for name in node.children if not is_word(name) and not is_value(name)]
    if not mixed:
        return []
    by_lead: dict[str, list[str]] = {}
    for name in mixed:
        by_lead.setdefault(lead(name), []).append(name)
    changed: list[str] = []
    for before, names in by_lead.items():
        values = [name for name in node.children if is_value(name) and lead(name) == before]
        several = len({_prefix(name) for name in names}) > 1 or bool(values)
        if len(names) + len(values) < 2 or not several:
            if len(names) >= 2 and not several:
                changed += _same_prefix(node, before, names)
            continue
        alike, shapes = _alike(node, names + values)
        # Mixtures with many keys each are patterns of their own: ``user_7`` and ``order_7``.
        few = sum(_keys(node.children[name]) for name in names) < MIXTURE_KEYS * shapes * len(names)
        if alike and few and (len(names) >= 3 or values or all(len(kinds(name)) > 1 for name in names)):
            changed += _join(node, names + values, before + WORD)
    return changed


def _same_prefix(node: Node, before: str, names: list[str]) -> list[str]:
    """``fair_7`` and ``fair_ab12cd``: one prefix, different values."""
    prefix = _prefix(names[0])
    if prefix and _alike(node, names)[0]:
        return _join(node, names, before + prefix + WORD)
    return []


def _prefix(name: str) -> str:
    return body(name).partition(VALUE)[0]


def _merge_prefixes(node: Node) -> list[str]:
    """Words with one beginning that lead to the same several shapes: ``fair_acme:dead``, ``fair_globex:dead``…"""
    by_prefix: dict[tuple[str, str], list[str]] = {}
    for name in node.children:
        if not is_value(name):
            for separator in "_-.#@":
                front, found, rest = body(name).rpartition(separator)
                if found and rest and front and VALUE not in front:
                    by_prefix.setdefault((lead(name), front + found), []).append(name)
    for (before, prefix), names in sorted(by_prefix.items(), key=lambda item: (-len(item[1]), item[0])):
        there = [name for name in names if name in node.children and name != before + prefix + WORD]
        if len(there) < RICH_WORDS:
            continue
        alike, shapes = _alike(node, there)
        if alike and shapes >= RICH_SHAPES and _names_a_thing(prefix[:-1]):
            return _join(node, there, before + prefix + WORD, without=len(prefix))
    return []


def _merge_words(node: Node, token: str, *, below_value: bool) -> list[str]:
    words = [name for name in node.children if is_word(name)]
    changed: list[str] = []
    for before in dict.fromkeys(map(lead, words)):
        names = [name for name in words if lead(name) == before and len(name) > len(before)]
        if len(names) < 2:
            continue
        chosen = _values_among(node, token, names, below_value=below_value)
        if chosen:
            enumerated = below_value and len(chosen) <= MOST_ENUMERATED
            others = [name for name in node.children if is_value(name) and lead(name) == before]
            shapes = frozenset().union(*(signature(node.children[name]) for name in chosen))
            same = [name for name in others if signature(node.children[name]) & shapes]
            changed += _join(node, [*chosen, *same], before + WORD)
            node.children[before + WORD].enumerated = enumerated and not same
    return changed


def _values_among(node: Node, token: str, names: list[str], *, below_value: bool) -> list[str]:
    """Those words of one place that are values; none if they are all names that a program wrote."""
    if below_value and not ends_in_value(token):
        # Behind a word that stands behind a value: an enumeration, if all of them are alike.
        alike, _ = _alike(node, names)
        return names if alike and len({_types(node.children[name]) for name in names}) == 1 else []
    leaves = [name for name in names if not node.children[name].children]
    same = _largest_class(node, leaves)
    ends = all(group.with_expiry for name in same if (group := node.children[name].group) is not None)
    enough = (PASSING_WORDS if ends else LEAF_WORDS) * (3 if ends_in_value(token) or not token else 1)
    if len(same) >= enough and len(same) >= 0.8 * len(names):
        return same
    alike, shapes = _alike(node, names)
    if ends_in_value(token):
        # Attributes of a thing, if they are not codes such as those of languages.
        return names if alike and len(names) >= THING_WORDS and all(len(body(name)) == 2 for name in names) else []
    if alike and len(names) >= THING_WORDS and body(token).lower() in _THINGS:
        return names
    odd = [name for name in names if _is_odd(body(name))]
    if len(odd) >= ODD_WORDS and len(odd) < len(names) and _alike(node, odd)[0]:
        return odd
    if alike and shapes >= RICH_SHAPES and len(names) >= RICH_WORDS and _names_a_thing(body(token)):
        return names
    keys = sum(_keys(node.children[name]) for name in names)
    return names if alike and len(names) >= MANY_WORDS and keys < FEW_KEYS * shapes * len(names) else []


def _types(node: Node) -> frozenset[str]:
    return frozenset(type for _, type in signature(node))


def _largest_class(node: Node, leaves: list[str]) -> list[str]:
    classes: dict[tuple[str, bool], list[str]] = {}
    for name in leaves:
        group = node.children[name].group
        if group is not None:
            classes.setdefault((group.types.most_common(1)[0][0], group.without_expiry > 0), []).append(name)
    return max(classes.values(), key=len, default=[])


def _names_a_thing(word: str) -> bool:
    """``queue`` and ``tenant`` are followed by the name of one; ``stats`` and ``settings`` by what kind of them."""
    return bool(word) and word[-1].isalpha() and not word.endswith("s")


def _write_constants(node: Node) -> None:
    """A number that never varies over several keys belongs to the name: ``db:0:user:…``, ``utf-8``."""
    for name in [name for name in node.children if not is_word(name)]:
        child = node.children[name]
        if not child.values or any(len(known) != 1 for known in child.values):
            continue
        if len(child.values) != len(kinds(name)) or set(kinds(name)) - _CONSTANTS:
            continue
        mixed = not is_value(name)
        if _keys(child) < (2 if mixed else CONSTANT_KEYS):
            continue
        literal = name
        for kind, known in zip(kinds(name), child.values, strict=True):
            literal = literal.replace(f"{VALUE}{kind}{END}", next(iter(known)), 1)
        if literal not in node.children:
            node.children[literal] = node.children.pop(name)
            node.children[literal].values = []
            node.words += 1
