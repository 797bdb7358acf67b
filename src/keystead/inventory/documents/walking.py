"""Through the blocks of a document in order: what each is about, and which reader looks at it."""

import re
from typing import Final

from .blocks import Block, Code, Heading, Listing, Paragraph, Table, Terms, Text
from .bullets import add_code, add_label, add_text, describe_blocks, read_listing, read_terms
from .columns import label_of, role_of
from .durations import says
from .fences import read_code
from .heads import head_of, is_relative
from .mentions import MOST_MENTIONS, Findings, Mention, Place, Scope
from .prose_types import type_of_cell
from .tables import keys_of_cell, read_table
from .tokens import Likeness, likeness
from .vocabulary import ASIDE, CHANNEL_HEADINGS, COMMAND_TYPES, OTHER_COMMANDS

_PREFIX: Final = re.compile(
    r"\b(?:all|every|each|these|following)\b[^.\n]{0,80}?\b(?:keys?|channels?)\b[^.]{0,80}?\b(?:prefixed (?:with|"
    r"by)|begin(?:s)? with|start(?:s)? with|under|prefix(?:ed)?(?: of| is)?|"
    r"namespaced?(?: by| under| with| is)?)\b"
    r"|\bkey[는은][^.\n]{0,20}?(?=\x01[^\x02]+\x02\s*prefix)|\bkey ?prefix\b\s*(?:is|:|=|of)?|\bkeys? (?:are|"
    r"is) (?:always )?(?:prefixed|namespaced) (?:with|by|under)|"
    r"\bprefix all keys with\b|\bcommon prefix\b\s*(?:is|:|of)?"
    r"|(?:所有|全部|默认|统一|以下)[^。\n]{0,16}(?:key|键)[^。\n]{0,16}(?:前缀|以)(?:为|是|:|：)?|(?:键|"
    r"key)\s*前缀\s*(?:为|是|:|：)?"
    r"|(?:모든|전체|아래)[^.\n]{0,12}키[^.\n]{0,20}?(?=[\x01`'\"][^.\n]{1,40}(?:접두|시작|prefix))|키?\s*접두(?:어|"
    r"사)(?:는|은|:)?|(?:すべて|全て|以下)[^。\n]{0,8}キー[^。\n]{0,10}?(?=[\x01`'\"][^。\n]{1,40}(?:始ま|接頭|"
    r"プレフィックス))|(?:プレフィックス|接頭辞)(?:は|:|：)?"
    r"|\balle\b[^.\n]{0,30}(?:schlüssel|keys)\b[^.\n]{0,60}?(?:präfix|beginnen mit|mit)|"
    r"\btodas las claves\b[^.\n]{0,60}?(?:prefijo|empiezan (?:con|por)|comienzan (?:con|por))"
    r"|\btoutes les clés\b[^.\n]{0,60}?(?:préfixe|préfixées par|commencent par)|"
    r"\btodas as chaves\b[^.\n]{0,60}?(?:prefixo|começam com)|\bвсе ключи\b[^.\n]{0,60}?(?:префикс\w*|начинаются с)",
    re.IGNORECASE,
)
_PREFIX_VALUE: Final = re.compile(
    r"[^.\x01\"'。]{0,60}?(?:\x01(?P<code>[^\x02]+)\x02|"
    r"[\"'“](?P<quoted>[^\"'”\s]+)[\"'”]|(?P<bare>(?<![\w:])(?!default|e\.g|example|prefix|"
    r"namespace)[\w{}<>$.-]+:)(?=[\s.,;)]|"
    r"$))"
)
_HASH_TAG: Final = re.compile(r"hash ?tag|slot", re.IGNORECASE)
_KEYS_FOLLOW: Final = re.compile(r"\b(?:keys|channels)\b[^.]*[:：]$|(?:键|key|キー|키)\S{0,8}[:：]$", re.IGNORECASE)
_ABOUT_NAMES: Final = re.compile(
    r"prefix|naming|convention|overview|introduction|general|前缀|命名|규칙|명명|概述|präfix|prefijo", re.IGNORECASE
)
_EXAMPLES_HEADING: Final = re.compile(
    r"(?:examples?|samples?|beispiele?|ejemplos?|exemples?|примеры?)\b|示例|예시|例", re.IGNORECASE
)
_EXAMPLE: Final = re.compile(
    r"^[^.\n]{0,30}\b(?:examples?|sample|e\.g\.|for instance|beispiele?|ejemplos?|"
    r"exemples?|exemplos?)\b[^.\n]{0,30}[:：]?$|^.{0,12}(?:示例|例子|예시|예제|サンプル|例|"
    r"пример)\S{0,6}[:：]?$",
    re.IGNORECASE,
)
_TEMPLATE: Final = re.compile(
    r"\b(?:convention|naming|prefer|format is|pattern is|shape is|follow|schema is|"
    r"namespace:|<domain>|例如|命名)\b|约定|建议|명명|命名規則",
    re.IGNORECASE,
)


def walk(blocks: tuple[Block, ...], found: Findings) -> None:
    """Find every key in the blocks of a document."""
    stack: list[tuple[int, Scope]] = [(0, Scope())]
    heading: Mention | None = None
    trusted = _trusted_sections(blocks)
    number = 0
    said: dict[tuple[str, ...], int] = {}
    announced = keys_follow = False
    label: str | None = None
    for block in blocks:
        if len(found.mentions) > MOST_MENTIONS:
            break
        if isinstance(block, Heading):
            stack, heading = _enter(block, stack, heading, found)
            number += 1
            continue
        scope = stack[-1][1]
        if label is not None and not isinstance(block, Paragraph) and _labelled(label, block, scope, found):
            label = None
            continue
        label = _label_alone(block)
        if isinstance(block, Paragraph):
            if prefixed := _prefix_of(block.text, scope):
                scope = _stated(prefixed, stack)
            if said.get(scope.section, 0) < 3 and not scope.aside and len(block.text.plain) > 3:
                said[scope.section] = said.get(scope.section, 0) + 1
                found.intros.append((scope.section, block.text.plain[:1000]))
        elif isinstance(block, Listing):
            for item in block.items:
                head = head_of(item.text)
                if (head is None or head.label) and (prefixed := _prefix_of(item.text, scope)):
                    scope = _stated(prefixed, stack)
        _read(
            block,
            scope.within(example=True) if announced else scope,
            heading,
            found,
            number in trusted or keys_follow or bool(scope.prefix),
        )
        keys_follow = isinstance(block, Paragraph) and _KEYS_FOLLOW.search(block.text.plain) is not None
        announced = (isinstance(block, Paragraph) and _EXAMPLE.match(block.text.plain) is not None) or (
            announced and isinstance(block, Code)
        )


def _stated(prefixed: Scope, stack: list[tuple[int, Scope]]) -> Scope:
    """Make a stated prefix hold in its section; one that a section on naming states holds everywhere."""
    about_names = prefixed.section and _ABOUT_NAMES.search(prefixed.section[-1])
    for number in range(len(stack)) if about_names else (len(stack) - 1,):
        level, scope = stack[number]
        stack[number] = (level, scope.within(prefix=prefixed.prefix, prefix_line=prefixed.prefix_line))
    return stack[-1][1]


def _label_alone(block: Block) -> str | None:
    """The role of a paragraph that is nothing but a label, whose value is the block that follows: ``**TTL**``."""
    if not isinstance(block, Paragraph) or not re.fullmatch(r"\s*\x05[^\x06]{1,40}\x06\s*[:：]?\s*", block.text.raw):
        return None
    role = role_of(block.text.plain)
    return role if role in {"type", "ttl", "purpose", "value", "writers", "readers", "personal"} else None


def _labelled(role: str, block: Block, scope: Scope, found: Findings) -> bool:
    """Give a block to the key spoken of last, as what the label before it announced."""
    last = _last(found)
    if last is None or last.scope.section != scope.section:
        return False
    if isinstance(block, Listing) and block.items and block.items[0].text.plain:
        add_label(last, (role, role, Text(" ".join(item.text.raw for item in block.items), block.items[0].line)))
        return True
    if isinstance(block, Code) and role == "value":
        add_code(last, block)
        return True
    return False


def _read(block: Block, scope: Scope, heading: Mention | None, found: Findings, trust: bool) -> None:
    if isinstance(block, Table):
        read_table(block, scope, found)
    elif isinstance(block, Terms):
        read_terms(block, scope, found)
    elif isinstance(block, Listing):
        if heading is not None and _is_about(block):
            _labels(block, heading)
            return
        last = _last(found)
        if (
            last is not None
            and last.place is Place.TERM
            and not last.texts
            and last.scope.section == scope.section
            and not any(head_of(item.text) for item in block.items)
        ):
            describe_blocks(last, (block,), found)  # the points below a key that stands on a line of its own
            return
        before = len(found.mentions)
        read_listing(block, scope, found, trust)
        if heading is not None and len(found.mentions) == before and not heading.payload:
            names = [code[1] for item in block.items for code in list(item.text.codes())[:1]]
            if names:
                heading.payload.append("fields " + ", ".join(names[:40]))
    elif isinstance(block, Code):
        before = len(found.mentions)
        made = read_code(block, scope, found)
        if heading is not None and not made and len(found.mentions) == before:
            add_code(heading, block)
    elif isinstance(block, Paragraph):
        _paragraph(block.text, scope, heading, found)


def _paragraph(text: Text, scope: Scope, heading: Mention | None, found: Findings) -> None:
    if record := _record(text, scope):
        found.mentions.append(record)
        return
    last = _last(found)
    label = label_of(text)
    if (
        label
        and label[0] in {"type", "ttl", "writers", "readers", "personal", "example", "purpose", "value"}
        and last is not None
        and last.scope.section == scope.section
        and last.place in {Place.RECORD, Place.HEADING, Place.LINE, Place.TERM, Place.BULLET}
    ):
        for line in text.lines():
            if told := label_of(line):
                for mention in _before(found, last):
                    add_label(mention, told)
            elif line.plain:
                add_text(last, line)
        return
    head = head_of(text)
    if (
        head is not None
        and not scope.aside
        and not head.label
        and (
            head.likeness is Likeness.PLAIN
            or (head.likeness is Likeness.LIKELY and (head.coded or _stands_alone(text)))
        )
        and not _TEMPLATE.search(text.plain[:120])
    ):
        mention = Mention(list(head.spellings), text.line, Place.TERM, scope)
        lines = text.lines()
        several = [head_of(line) for line in lines]
        if len(lines) > 1 and all(each is not None and each.likeness >= Likeness.LIKELY for each in several):
            for line, each in zip(lines, several, strict=True):
                if each is not None:
                    found.mentions.append(
                        Mention(
                            list(each.spellings),
                            line.line,
                            Place.LINE,
                            scope,
                            texts=[each.rest] if each.rest.plain else [],
                        )
                    )
            return
        if head.rest.plain:
            add_text(mention, head.rest)
        found.mentions.append(mention)
        return
    if heading is not None and heading.scope.section == scope.section and len(heading.texts) < 6:
        add_text(heading, text)
    found.prose.append((text, scope))


def _stands_alone(text: Text) -> bool:
    """Whether a paragraph is one key and nothing else."""
    return re.fullmatch(r"[\w.-]+(?::[\w.-]+)+", text.plain) is not None


def _last(found: Findings) -> Mention | None:
    """The key that was described last; those that are only spoken of do not count."""
    return next(
        (each for each in reversed(found.mentions[-8:]) if each.place not in {Place.PROSE, Place.COMMAND}), None
    )


def _before(found: Findings, last: Mention) -> list[Mention]:
    """The keys that a line of facts behind them is about: the last one, or all points of the list that ends with it."""
    if last.place is not Place.BULLET:
        return [last]
    return [each for each in found.mentions if each.place is Place.BULLET and each.scope.section == last.scope.section]


def _record(text: Text, scope: Scope) -> Mention | None:
    """A paragraph of lines ``Key: ...``, ``Type: ...``."""
    labels = [label_of(line) for line in text.lines()]
    for label in labels:
        if label and label[0] in {"key", "name"}:
            if scope.aside or _TEMPLATE.search(text.plain[:100]):
                return None
            spellings, examples = keys_of_cell(label[2])
            if not spellings or (likeness(spellings[0]) < Likeness.LIKELY and not label[2].raw.startswith("\x01")):
                return None
            if re.search(r"prefix|präfix|前缀|접두|プレフィックス", label[1], re.IGNORECASE):
                return None
            mention = Mention(spellings, label[2].line, Place.RECORD, scope, examples=examples)
            rest = re.sub("\x01[^\x02]*\x02", "", label[2].raw).strip(" ,/")
            if rest:
                mention.texts.append(Text(rest, label[2].line))
            for other, line in zip(labels, text.lines(), strict=True):
                if other and other is not label:
                    add_label(mention, other)
                elif other is None and line.plain:
                    mention.texts.append(line)
            return mention
    return None


def _enter(
    block: Heading, stack: list[tuple[int, Scope]], heading: Mention | None, found: Findings
) -> tuple[list[tuple[int, Scope]], Mention | None]:
    while len(stack) > 1 and stack[-1][0] >= block.level:
        stack.pop()
    outer = stack[-1][1]
    plain = re.sub(r"^\s*(?:\d+(?:\.\d+)*[.)a-z]*|[A-Z]\.)\s+", "", block.text.plain)
    lowered = plain.lower()
    is_title = block.level == 1 and len(stack) == 1
    aside = (outer.aside and block.level > 2) or (not is_title and says(lowered, ASIDE) and not _names_keys(lowered))
    inside = " ".join(re.findall(r"[(（]([^)）]*)[)）]", plain))
    ends = re.search(
        r"\b(sorted sets?|zsets?|hashes|hash structure|lists|sets|streams|hash|counters|locks|bitmaps|"
        r"hyperloglogs?)$",
        lowered,
    )
    named = type_of_cell(inside) or (
        type_of_cell(ends[1].rstrip("s") if ends[1] != "hashes" else "hash") if ends else None
    )
    scope = Scope(
        (*outer.section, plain),
        outer.prefix,
        outer.prefix_line,
        outer.channel or says(lowered, CHANNEL_HEADINGS),
        aside,
        named[0] if named else "",
        example=_EXAMPLE.match(plain) is not None or _EXAMPLES_HEADING.match(plain) is not None,
    )
    head = head_of(block.text)
    keyed = None
    if (
        head is not None
        and not aside
        and (head.likeness is Likeness.PLAIN or (head.likeness is Likeness.LIKELY and (head.coded or block.level > 2)))
    ) or (head is not None and is_relative(head.spellings[0]) and outer.prefix):
        keyed = Mention(list(head.spellings), block.text.line, Place.HEADING, scope)
        if head.rest.plain:
            keyed.texts.append(head.rest)
        if head.label:
            keyed.cells["purpose"] = Text(head.label, block.text.line)
        found.mentions.append(keyed)
        scope = scope.within(owner=head.spellings[0])
        keyed.scope = scope
    stack.append((block.level, scope))
    return stack, keyed


def _names_keys(lowered: str) -> bool:
    return re.search(
        r"\b(?:keys|patterns|channels|key reference|inventory|catalogue|schema)\b|键|키 |キー", lowered
    ) is not None and not re.search(r"naming|convention|adding|how to|template|命名|명명|config|environment", lowered)


def _prefix_of(text: Text, scope: Scope) -> Scope | None:
    """The scope with the prefix that a sentence gives to all keys in it, or ``None`` if it gives none."""
    if len(text.raw) > 1500 or "not prefixed" in text.raw:
        return None
    found = _PREFIX.search(text.raw)
    if not found or _HASH_TAG.search(text.plain):
        return None
    value = _PREFIX_VALUE.match(text.raw, found.end())
    if not value:
        return None
    prefix = (value["code"] or value["quoted"] or value["bare"]).strip()
    if not re.search(r"\w", prefix) or " " in prefix or len(prefix) > 80 or "/" in prefix:
        return None
    if prefix.upper() in OTHER_COMMANDS or prefix.upper() in COMMAND_TYPES:
        return None
    if re.fullmatch(r"[A-Z][A-Z0-9_]+", prefix):
        prefix = "${" + prefix + "}"
    if prefix[-1] not in ":_-./|":
        prefix += ":"
    if scope.prefix and not prefix.startswith(scope.prefix):
        prefix = scope.prefix + prefix
    return scope.within(prefix=prefix, prefix_line=text.line)


def _is_about(listing: Listing) -> bool:
    labels = [label_of(item.text) for item in listing.items]
    known = sum(
        label is not None
        and label[0] in {"type", "ttl", "purpose", "writers", "readers", "personal", "value", "example"}
        for label in labels
    )
    return known >= max(1, len(labels) / 3)


def _labels(listing: Listing, heading: Mention) -> None:
    for item in listing.items:
        label = label_of(item.text)
        if label is not None:
            add_label(heading, label)
        elif item.text.plain:
            heading.texts.append(item.text)
        for block in item.blocks[1:]:
            if isinstance(block, Code):
                add_code(heading, block)
            elif isinstance(block, Listing):
                names = [code[1] for inner in block.items for code in list(inner.text.codes())[:1]]
                if names:
                    heading.payload.append("fields " + ", ".join(names[:40]))


def _trusted_sections(blocks: tuple[Block, ...]) -> set[int]:
    """The sections, counted by headings, most points of whose lists begin with keys: there a word is a key too."""
    trusted: set[int] = set()
    number, coded, likely = 0, 0, 0
    for block in (*blocks, Heading(Text("", 0), 1)):
        if isinstance(block, Heading):
            if likely >= 2 and likely >= 0.5 * coded:
                trusted.add(number)
            number, coded, likely = number + 1, 0, 0
        elif isinstance(block, Listing):
            heads = [
                head
                for item in block.items
                if (head := head_of(item.text)) is not None and head.coded and not head.label
            ]
            coded += len(heads)
            likely += sum(head.likeness >= Likeness.LIKELY for head in heads)
    return trusted
