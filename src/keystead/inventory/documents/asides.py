"""Keys that are only spoken of: in sentences about something else, and in commands. Most are described elsewhere.

One that is described gets what the aside adds (an example, the type a command implies). One that is not becomes an
entry of its own, marked as doubtful, only where the document describes no keys at all; elsewhere it becomes a note.
"""

import re
from dataclasses import replace
from typing import Final

from keystead.inventory.models import Certainty, Entry, Expiry, Fact, Note, Rule, Source
from keystead.inventory.patterns import VARIABLE, shape

from .assembling import entry_of, merge
from .blocks import Text
from .durations import says
from .mentions import Findings, Mention, Place
from .spellings import matcher, patterns_of
from .tokens import Likeness, concrete_to_shape, likeness
from .vocabulary import OPAQUE

_MOST_ENTRIES: Final = 3000
MOST_ASIDES: Final = 200
_ASIDES: Final = {Place.COMMAND, Place.PROSE}
_ELSEWHERE: Final = re.compile(
    r"\b(?:local(?:storage| storage| cache)?|disk ?cache\w*|in-memory|in-process|browser|memcached?|cookie|"
    r"session storage|topic|queue name|table|column|bucket|scope|role|permission)\b",
    re.IGNORECASE,
)
_TEMPLATE: Final = re.compile(
    r"\b(?:convention|naming|prefer\w*|follow\w*|format|shape|schema|scheme|style|"
    r"instead of|avoid|rather than|not)\b|格式|命名|约定|형식|명명|規則|例如",
    re.IGNORECASE,
)
_BARE: Final = re.compile(
    r"(?<![\w/`:.{<])(?P<token>[A-Za-z][\w.-]*:(?:[\w.*-]|<[^<>\s]+>|\{[^{}\s]+\}|:)*(?:\*|\}|"
    r">))(?![\w/:])"
)


def add_asides(entries: tuple[Entry, ...], found: Findings, notes: list[Note], name: str) -> tuple[Entry, ...]:
    """The entries, with what asides add to them."""
    made = list(entries)
    described = bool(entries)
    sections = {entry.section for entry in entries}
    if len(made) > _MOST_ENTRIES:
        return entries  # far beyond what anybody keeps by hand: each aside is compared with every entry
    spoken = _spoken(found, sections, described)
    if len(spoken) == MOST_ASIDES:
        notes.append(Note(f"only the first {MOST_ASIDES} keys in sentences are read", Source(name, spoken[-1].line)))
    for mention in (*spoken, *(each for each in found.mentions if each.place in _ASIDES)):
        for spelt in patterns_of(mention, found):
            entry = entry_of(mention, spelt, found, name)
            at = _matching(made, entry)
            if at is not None:
                made[at] = _added(made[at], entry, mention, notes)
            elif (
                entry.kind == "opaque"
                or (mention.place is Place.PROSE and mention.doubt)
                or mention.writes
                or not described
            ):
                concrete = concrete_to_shape(entry.pattern) if not VARIABLE.search(entry.pattern) else entry.pattern
                if concrete != entry.pattern:
                    entry = replace(
                        entry,
                        pattern=concrete,
                        examples=(entry.pattern,),
                        uncertain=f"{entry.uncertain}; what varies in it is worked out",
                    )
                same = _matching(made, entry)
                if same is None:
                    made.append(entry)
                else:
                    made[same] = _added(made[same], entry, mention, notes)
            elif (
                mention.scope.aside is False
                and likeness(mention.spellings[0]) is Likeness.PLAIN
                and not mention.scope.prefix
            ):
                notes.append(
                    Note(f"{entry.pattern} is spoken of, and nothing here describes it", Source(name, mention.line))
                )
    if not described:
        made.sort(key=lambda entry: entry.sources[0].line if entry.sources else 0)
    return tuple(made)


def _spoken(found: Findings, sections: set[tuple[str, ...]], described: bool) -> list[Mention]:
    """Keys in sentences. ``doubt`` is set on those that may become entries."""
    mentions: list[Mention] = []
    for text, scope in found.prose:
        if scope.aside:
            continue
        for token, start in _tokens(text):
            if len(mentions) >= MOST_ASIDES:
                return mentions
            sentence = _sentence(text, start)
            near = text.unmarked[max(0, start - 60) : start]
            if (
                token.startswith("*")
                or _ELSEWHERE.search(near)
                or (_TEMPLATE.search(sentence.plain[:200]) and not says(sentence.plain.lower(), OPAQUE))
            ):
                continue
            alone = not described or scope.section not in sections
            mention = Mention([token], text.line_at(start), Place.PROSE, scope, texts=[sentence])
            if says(sentence.plain.lower(), OPAQUE) and re.search(r"[*:]$", token):
                mention.doubt = ""
            elif alone and likeness(token) is Likeness.PLAIN and not token.startswith(("{", "<")):
                mention.doubt = "only spoken of in a sentence"
            elif likeness(token) < Likeness.PLAIN:
                continue
            mentions.append(mention)
    return mentions


def _tokens(text: Text) -> list[tuple[str, int]]:
    coded = [(code[1].strip(), code.start()) for code in text.codes() if likeness(code[1].strip()) >= Likeness.LIKELY]
    bare = [(hit["token"], hit.start()) for hit in _BARE.finditer(text.raw) if likeness(hit["token"]) is Likeness.PLAIN]
    return [*coded, *bare]


def _sentence(text: Text, start: int) -> Text:
    ends = [0, *(hit.end() for hit in re.finditer(r"(?<=[.!?。])\s+", text.raw)), len(text.raw)]
    begin = max(end for end in ends[:-1] if end <= start)
    end = min(end for end in ends[1:] if end > start) if start < len(text.raw) else len(text.raw)
    return Text(text.raw[begin:end], text.line_at(begin))


def _matching(entries: list[Entry], entry: Entry) -> int | None:
    """The described entry that the aside speaks of: the same shape, or a pattern that it is an example of."""
    wanted = shape(entry.pattern)
    for number, each in enumerate(entries):
        if shape(each.pattern) == wanted:
            return number
    concrete = VARIABLE.sub("x0", entry.pattern)
    best = [
        (len(VARIABLE.sub("", each.pattern)), number)
        for number, each in enumerate(entries)
        if VARIABLE.search(each.pattern) and matcher(each.pattern).fullmatch(concrete)
    ]
    if best:
        return max(best)[1]
    for number, each in enumerate(entries):
        last = re.fullmatch(r"(.*[:_/-])\{\w+\}", each.pattern)
        if last and matcher(last[1] + "{x}").match(concrete):
            return number
    stem = re.sub(r"\{(?:rest|any)\}$", "", entry.pattern)
    if stem != entry.pattern:
        return next((number for number, each in enumerate(entries) if each.pattern.startswith(stem)), None)
    return None


def _added(entry: Entry, aside: Entry, mention: Mention, notes: list[Note]) -> Entry:
    if (
        aside.kind == "opaque"
        and entry.type is None
        and entry.ttl is None
        and shape(entry.pattern) == shape(aside.pattern)
    ):
        return merge(replace(entry, kind="opaque"), aside, notes)
    changes: dict[str, object] = {}
    concrete = not VARIABLE.search(aside.pattern)
    if concrete and VARIABLE.search(entry.pattern) and aside.pattern not in entry.examples and len(entry.examples) < 3:
        changes["examples"] = (*entry.examples, aside.pattern)
    if mention.place is Place.COMMAND:
        if entry.type is None and aside.type is not None and entry.kind == "key":
            changes["type"] = Fact(aside.type.value, Certainty.IMPLIED, aside.sources[0], mention.type_name)
        if mention.seconds is not None and entry.ttl is None and entry.kind == "key":
            changes["ttl"] = Fact(Expiry(Rule.EXACTLY, mention.seconds), Certainty.IMPLIED, aside.sources[0], "EXPIRE")
    return replace(entry, **changes) if changes else entry  # type: ignore[arg-type]
