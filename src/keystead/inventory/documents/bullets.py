"""Keys in lists: a point for each key with sentences about it, points with labelled facts, points within points."""

import re
from typing import Final

from .blocks import Block, Code, Item, Listing, Paragraph, Table, Terms, Text
from .columns import label_of
from .heads import Head, head_of, is_relative
from .mentions import MOST_MENTIONS, Findings, Mention, Place, Scope
from .tables import keys_of_cell, read_table
from .tokens import Likeness, is_setting, likeness

_SAME: Final = re.compile(
    r"\b(?:same|likewise|analogous\w*|identical\w*|ditto)\b[^.\x01]{0,40}\b(?:for|applies to|goes for|with|"
    r"true of)\b[^.\x01]{0,30}|同样适用于|同理|마찬가지|同様に|"
    r"\bgilt (?:auch|ebenso) für\b|\blo mismo para\b",
    re.IGNORECASE,
)
_OTHER_THING: Final = re.compile(
    r"(?:table|column|field|variable|function|class|module|service|worker|file|directory|job)s?\b", re.IGNORECASE
)
_ELSEWHERE: Final = re.compile(
    r"\W*(?:is |are )?(?:an? |the |our )?(?:local|disk|in-memory|in-process|browser|"
    r"memcached?)[ -]?(?:cache|storage)?\b.{0,12}\bkey\b|\bnot (?:stored |"
    r"kept )?in redis\b",
    re.IGNORECASE,
)


def read_listing(listing: Listing, scope: Scope, found: Findings, trust: bool) -> list[Mention]:
    """The keys that a list names. ``trust`` says that single words in front of its points are keys too."""
    heads = [head_of(item.text) for item in listing.items]
    likely = sum(head is not None and head.likeness >= Likeness.LIKELY for head in heads)
    coded = sum(head is not None and head.coded for head in heads)
    trust = trust or (likely >= 1 and likely >= 0.4 * max(1, coded))
    made: list[Mention] = []
    record: Mention | None = None
    for item, head in zip(listing.items, heads, strict=True):
        if len(found.mentions) > MOST_MENTIONS:
            break
        label = label_of(item.text)
        if (
            label
            and label[0] == "key"
            and (spellings := keys_of_cell(label[2])[0])
            and likeness(spellings[0]) >= Likeness.LIKELY
        ):
            record = Mention(spellings, item.line, Place.RECORD, scope)
            found.mentions.append(record)
            made.append(record)
            _describe(record, item, None, found)
        elif (
            label
            and label[0] != "field"
            and record is not None
            and not (head and head.likeness >= Likeness.LIKELY and not head.label)
        ):
            add_label(record, label)
        elif head is not None and _is_key(head, trust, scope):
            mention = _mention(head, item, scope)
            found.mentions.append(mention)
            made.append(mention)
            _describe(mention, item, head, found)
        else:
            made += _group(item, scope, found)
    return made


def read_terms(terms: Terms, scope: Scope, found: Findings) -> list[Mention]:
    """A list of definitions whose terms are keys."""
    made: list[Mention] = []
    for term, body in terms.pairs:
        head = head_of(term)
        if head is None or not (head.likeness >= Likeness.LIKELY or head.coded):
            continue
        mention = Mention(list(head.spellings), term.line, Place.TERM, scope)
        if head.rest.plain:
            mention.texts.append(head.rest)
        found.mentions.append(mention)
        made.append(mention)
        describe_blocks(mention, body, found)
    return made


def describe_blocks(mention: Mention, blocks: tuple[Block, ...], found: Findings) -> None:
    """Add what blocks that belong to a key say about it."""
    for block in blocks:
        if isinstance(block, Paragraph):
            add_text(mention, block.text)
        elif isinstance(block, Listing):
            _add_points(mention, block, found)
        elif isinstance(block, Code):
            add_code(mention, block)
        elif isinstance(block, Table):
            read_table(block, mention.scope, found)


def add_text(mention: Mention, text: Text) -> None:
    """Sentences about a key; lines of the form ``TTL: 1 h`` are facts by themselves."""
    lines = text.lines()
    labels = [label_of(line) for line in lines]
    if any(label and label[0] in {"type", "ttl", "writers", "readers", "personal", "example"} for label in labels):
        for line, label in zip(lines, labels, strict=True):
            if label and label[0] != "key":
                add_label(mention, label)
            elif line.plain:
                mention.texts.append(line)
    elif text.plain:
        mention.texts.append(text)
        if _SAME.search(text.raw):
            for same in _SAME.finditer(text.raw):
                sentence = text.raw[same.end() - 1 :].split(". ")[0]
                tokens = [code.strip() for code in re.findall("\x01([^\x02]+)\x02", sentence)]
                mention.spellings += [
                    token for token in tokens if likeness(token) >= Likeness.PLAIN and token not in mention.spellings
                ]


def add_label(mention: Mention, label: tuple[str, str, Text]) -> None:
    role, name, value = label
    if name.lower() in {"score", "scores", "分数", "점수", "スコア"}:
        mention.extra.append(("score", value.plain))
    elif role == "example":
        mention.examples += [code[1].strip() for code in value.codes()] or [value.plain]
    elif role in {"type", "ttl", "purpose", "writers", "readers", "personal", "value"} and role not in mention.cells:
        mention.cells[role] = value
    else:
        mention.extra.append((name, value.plain))


def add_code(mention: Mention, block: Code) -> None:
    """Code within a key's description shows its value; a few lines of it are kept."""
    text = block.text.strip("\n")
    if text.strip() and len(mention.payload) < 3:
        mention.payload.append(text if len(text) <= 1200 else text[:1200] + "…")


def _is_key(head: Head, trust: bool, scope: Scope) -> bool:
    if scope.aside and head.likeness < Likeness.PLAIN:
        return False
    first = head.spellings[0]
    if head.likeness >= Likeness.LIKELY:
        return not scope.aside and not first.startswith("*")
    if is_relative(first):
        return bool(scope.prefix) or bool(scope.owner)
    if _OTHER_THING.match(head.rest.plain):
        return False
    return trust and head.coded and not head.label and not is_setting(first) and (len(first) > 2)


def _mention(head: Head, item: Item, scope: Scope) -> Mention:
    mention = Mention(list(head.spellings), item.line, Place.BULLET, scope)
    if head.label:
        mention.cells["purpose"] = Text(head.label, item.line)
    if not scope.channel and _ELSEWHERE.match(head.rest.plain[:80]):
        mention.doubt = "the text may speak of a cache outside the server"
    return mention


def _describe(mention: Mention, item: Item, head: Head | None, found: Findings) -> None:
    if head is not None and head.rest.plain:
        add_text(mention, head.rest)
    describe_blocks(mention, item.blocks[1:], found)


def _add_points(mention: Mention, listing: Listing, found: Findings) -> None:
    """Points below a key: facts with labels, keys that go on from it, or the fields of its value."""
    names: list[str] = []
    for item in listing.items:
        head = head_of(item.text)
        label = label_of(item.text)
        if (
            label
            and label[0] in {"type", "ttl", "purpose", "writers", "readers", "personal", "example", "value"}
            and not (head and head.likeness >= Likeness.PLAIN)
        ):
            add_label(mention, label)
            continue
        if head is not None and _goes_on(mention, head):
            inner = _mention(head, item, mention.scope.within(owner=mention.spellings[0]))
            found.mentions.append(inner)
            _describe(inner, item, head, found)
            continue
        code = re.match(r"\s*\x05?\x01([^\x02]+)\x02", item.text.raw)
        if code:
            names.append(code[1].strip())
        elif item.text.plain and not names and len(listing.items) <= 6:
            mention.texts.append(item.text)
        for block in item.blocks[1:]:
            if isinstance(block, Paragraph):
                mention.texts.append(block.text)
    if names:
        mention.payload.append("fields " + ", ".join(dict.fromkeys(names[:60])))


def _goes_on(mention: Mention, head: Head) -> bool:
    """Whether a point below a key names a key of its own: one that begins like the key above it, or goes on from it."""
    first = head.spellings[0]
    owner = mention.spellings[0]
    if is_relative(first) and first.startswith(":"):
        return True
    if head.likeness < Likeness.LIKELY:
        return False
    beginning = re.split(r"[{<$%*\[#]", owner, maxsplit=1)[0].rstrip(":")
    same = first.split(":")[0] == owner.split(":")[0] and not re.match(r"[{<$%*]", first)
    return (bool(beginning) and same) or owner.rstrip().endswith(("*", ":"))


def _group(item: Item, scope: Scope, found: Findings) -> list[Mention]:
    """A point that is no key: what lies below it may be keys, and its own words may speak of some."""
    made: list[Mention] = []
    found.prose.append((item.text, scope))
    inner = scope.within(owner="")
    for block in item.blocks[1:]:
        if isinstance(block, Listing):
            made += read_listing(block, inner, found, trust=False)
        elif isinstance(block, Table):
            made += read_table(block, inner, found)
        elif isinstance(block, Paragraph):
            found.prose.append((block.text, scope))
    return made
