"""From mentions to entries: one entry for each pattern, with every fact's certainty and line."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from keystead.inventory.models import SERVER_TYPES, Certainty, Entry, Expiry, Fact, Note, Rule, Source
from keystead.inventory.patterns import shape, variables

from .blocks import Text
from .durations import duration, expiry, says
from .groups import resolved, without_examples, without_groups
from .mentions import Findings, Mention, Place
from .prose_expiries import expiry_of_prose
from .prose_people import PERSONAL_VARIABLES, people_of_cell, people_of_prose, personal_of_cell, personal_of_prose
from .prose_types import type_of_cell, type_of_prose
from .spellings import Spelt, is_generic, patterns_of
from .vocabulary import OPAQUE

T = TypeVar("T")

_LONGEST_PURPOSE: Final = 600
SPOKEN_CHARACTERS: Final = 20_000
CLOSELY_CHARACTERS: Final = 2_000_000
SHORT_CHARACTERS: Final = 400
_PUBLISHED: Final = re.compile(
    r"\b(?:pub/?sub|publish(?:es|ed)?|subscrib\w+)\b.{0,20}\bchannel\b|"
    r"\bchannel\b.{0,40}\b(?:publish|subscrib|pub/?sub)|\bpub/?sub channel\b|发布到|"
    r"订阅频道|"
    r"\ba message is sent to this channel\b|채널에 발행|チャンネルに発行",
    re.IGNORECASE,
)
_CAPITALS: Final = re.compile(r"(?:^|[:/.|-])[A-Z][A-Z0-9]+(?:_[A-Z0-9]+)*(?=$|[:/.|}-])")
_MARKED: Final = re.compile(r"\{[^{}]+\}|<[^<>]+>|\$\w|%[sd]|#\{")


@dataclass(slots=True)
class Spoken:
    """Sentences about a key joined into one line of text that still knows its source lines."""

    flat: str = ""
    starts: list[tuple[int, int]] = field(default_factory=list)

    @classmethod
    def of(cls, texts: list[Text], most: int) -> "Spoken":
        parts: list[str] = []
        starts: list[tuple[int, int]] = []
        length = 0
        for text in texts[:8]:
            for line in text.lines():
                words = line.plain
                if length > most:
                    break
                if words:
                    starts.append((length, line.line))
                    parts.append(words)
                    length += len(words) + 1
        return cls(" ".join(parts), starts)

    def line_of(self, words: str, fallback: int) -> int:
        at = self.flat.find(words[:24]) if words else -1
        line = fallback if not self.starts else self.starts[0][1]
        for start, number in self.starts:
            if at >= 0 and start <= at:
                line = number
        return line


def assemble(found: Findings, name: str) -> tuple[tuple[Entry, ...], list[Note]]:
    """One entry for each pattern that is described, in the order of the document."""
    notes = [Note(says_, Source(name, line)) for says_, line in found.notes]
    entries: dict[tuple[str, bool], Entry] = {}
    spellings = [spelling for mention in found.mentions for spelling in mention.spellings]
    found.capitals = sum(
        _CAPITALS.search(each) is not None and re.search(r"[a-z]", each) is not None for each in spellings
    ) > max(1, 0.2 * len(spellings))
    found.marked = not found.capitals and any(_MARKED.search(spelling) for spelling in spellings)
    for mention in found.mentions:
        if mention.place in {Place.COMMAND, Place.PROSE}:
            continue
        for spelt in patterns_of(mention, found):
            entry = entry_of(mention, spelt, found, name)
            at = (shape(entry.pattern), entry.kind == "channel")
            entries[at] = merge(entries[at], entry, notes) if at in entries else entry
    return tuple(resolved(without_examples(without_groups(list(entries.values()))))), notes


def entry_of(mention: Mention, spelt: Spelt, found: Findings, name: str) -> Entry:
    """What a mention says about one of its patterns."""

    def source(line: int) -> Source:
        return Source(name, line or mention.line)

    purpose_cell = mention.cells.get("purpose")
    texts = [*([purpose_cell] if purpose_cell is not None else []), *mention.texts]
    # A document that says very much is read less closely: somebody waits for the answer.
    closely = found.read_characters < CLOSELY_CHARACTERS
    spoken = Spoken.of(texts, SPOKEN_CHARACTERS if closely else SHORT_CHARACTERS)
    found.read_characters += len(spoken.flat)
    kind_of_type, type_fact = _type(mention, spoken, source)
    container = (
        type_fact is not None
        and type_fact.certainty is Certainty.STATED
        and SERVER_TYPES.get(type_fact.value) != "string"
    )
    channel = (
        kind_of_type == "channel"
        or (mention.scope.channel and not container and "type" not in mention.cells)
        or (type_fact is None and _PUBLISHED.search(spoken.flat[:200]) is not None)
    )
    opaque = (
        not channel
        and re.search(r"\{(?:rest|any)\}$|[:*]$", spelt.pattern) is not None
        and says((spoken.flat + " " + " ".join(value for _, value in mention.extra)).lower(), OPAQUE)
    )
    writers, readers = _people(mention, texts if closely else [], source)
    payload = _payload(mention, source)
    links = [("used in", address) for text in mention.texts[:4] for address in text.links() if "://" not in address]
    purpose = _purpose(mention, spoken, source)
    return Entry(
        pattern=spelt.pattern,
        spelling=spelt.spelling,
        kind="channel" if channel else "opaque" if opaque else "key",
        type=None if channel or opaque else type_fact,
        ttl=None if channel else _ttl(mention, spoken, found, source),
        purpose=purpose,
        payload=payload,
        writers=writers,
        readers=readers,
        personal=_personal(mention, spelt, spoken, source),
        variables=spelt.kinds,
        examples=tuple(dict.fromkeys(example.strip("`") for example in mention.examples if example.strip("` -—")))[:5],
        section=mention.scope.section,
        sources=(source(mention.line),),
        extra=tuple(dict.fromkeys([*mention.extra, *links])),
        uncertain=spelt.doubt,
    )


def merge(one: Entry, other: Entry, notes: list[Note]) -> Entry:
    """Two descriptions of one pattern as one; the earlier counts where they disagree, and that they do is noted."""
    better = one if not is_generic(one.pattern) or is_generic(other.pattern) else other
    if (
        one.type
        and other.type
        and SERVER_TYPES.get(one.type.value) != SERVER_TYPES.get(other.type.value)
        and one.type.sure
        and other.type.sure
        and Certainty.IMPLIED not in {one.type.certainty, other.type.certainty}
    ):
        notes.append(
            Note(
                f"{better.pattern}: its type is {one.type.value} on line {_line(one.type)}, "
                f"{other.type.value} on line {_line(other.type)}",
                other.type.source,
            )
        )
    if (
        one.ttl
        and other.ttl
        and one.ttl.value.seconds != other.ttl.value.seconds
        and None not in {one.ttl.value.seconds, other.ttl.value.seconds}
    ):
        notes.append(
            Note(
                f"{better.pattern}: its TTL is {one.ttl.value.seconds:g} s on line {_line(one.ttl)}, "
                f"{other.ttl.value.seconds:g} s on line "
                f"{_line(other.ttl)}",
                other.ttl.source,
            )
        )
    return replace(
        one,
        pattern=better.pattern,
        spelling=better.spelling,
        kind="opaque" if "opaque" in {one.kind, other.kind} and one.type is None else one.kind,
        type=_surer(one.type, other.type),
        ttl=_surer(one.ttl, other.ttl),
        purpose=one.purpose or other.purpose,
        payload=one.payload or other.payload,
        writers=_together(one.writers, other.writers),
        readers=_together(one.readers, other.readers),
        personal=_surer(one.personal, other.personal),
        variables=one.variables or other.variables,
        examples=tuple(dict.fromkeys([*one.examples, *other.examples]))[:5],
        sources=tuple(dict.fromkeys([*one.sources, *other.sources])),
        extra=tuple(dict.fromkeys([*one.extra, *other.extra])),
        uncertain="" if not other.uncertain or not one.uncertain else one.uncertain,
    )


def _surer(one: Fact[T] | None, other: Fact[T] | None) -> Fact[T] | None:
    ranks = {Certainty.STATED: 0, Certainty.IMPLIED: 1, Certainty.GUESSED: 2}
    if one is None or other is None:
        return one or other
    if (
        one.value == "string"
        and isinstance(other.value, str)
        and SERVER_TYPES.get(other.value) == "string"
        and other.sure
    ):
        return other
    if other.value == "string" and isinstance(one.value, str) and SERVER_TYPES.get(one.value) == "string" and one.sure:
        return one
    return other if ranks[other.certainty] < ranks[one.certainty] else one


def _together(one: tuple[Fact[str], ...], other: tuple[Fact[str], ...]) -> tuple[Fact[str], ...]:
    return tuple({fact.value: fact for fact in [*other, *one]}.values()) if other else one


def _line(fact: Fact[str] | Fact[Expiry]) -> int:
    return fact.source.line if fact.source else 0


Sourcing = Callable[[int], Source]


def _type(mention: Mention, spoken: Spoken, source: Sourcing) -> tuple[str, Fact[str] | None]:
    cell = mention.cells.get("type")
    if cell is not None and (said := type_of_cell(cell.plain)):
        certainty = Certainty.GUESSED if mention.lossy and said[1] is Certainty.GUESSED else said[1]
        return said[0], Fact(said[0], certainty, source(cell.line), said[2])
    if mention.type_name:
        return mention.type_name, Fact(mention.type_name, Certainty.IMPLIED, source(mention.line))
    said = type_of_prose(spoken.flat)
    heading = mention.scope.type_name
    if said is None and heading:
        return heading, Fact(
            heading, Certainty.IMPLIED, source(mention.line), mention.scope.section[-1] if mention.scope.section else ""
        )
    if said is None:
        value = mention.cells.get("value")
        if (value is not None and re.search(r"\bscore\b", value.plain, re.IGNORECASE)) or any(
            role.lower() in {"score"} for role, _ in mention.extra
        ):
            return "zset", Fact("zset", Certainty.IMPLIED, source(mention.line), "score")
        said = type_of_prose(value.plain) if value is not None else None
        if said is None:
            return "", None
    certainty = Certainty.IMPLIED if mention.place is Place.ROW and said[1] is Certainty.STATED else said[1]
    return said[0], Fact(said[0], certainty, source(spoken.line_of(said[2], mention.line)), said[2][:80])


def _ttl(mention: Mention, spoken: Spoken, found: Findings, source: Sourcing) -> Fact[Expiry] | None:
    cell = mention.cells.get("ttl")
    if cell is not None:
        said = expiry(cell.plain, mention.ttl_unit)
        return None if said is None else Fact(_with_length(said[0], found), said[1], source(cell.line), cell.plain)
    if mention.seconds is not None:
        return Fact(Expiry(Rule.EXACTLY, mention.seconds), Certainty.IMPLIED, source(mention.line))
    type_cell = mention.cells.get("type")
    told = expiry_of_prose(spoken.flat) or (expiry_of_prose(type_cell.plain) if type_cell is not None else None)
    if told is None:
        for label, value in mention.extra:
            if (
                re.search(r"ttl|expir|retention|lifetime|失效|过期|만료|期限", label, re.IGNORECASE)
                and (said := expiry(value))
                and (said[0].seconds is not None or said[0].rule is Rule.NONE)
            ):
                return Fact(said[0], Certainty.IMPLIED, source(mention.line), value)
        return None
    return Fact(_with_length(told[0], found), told[1], source(spoken.line_of(told[2], mention.line)), told[2][:160])


def _with_length(value: Expiry, found: Findings) -> Expiry:
    """An expiry that names a constant of the document has that constant's length."""
    if value.rule is Rule.SOME and value.seconds is None:
        for word in re.findall(r"[A-Za-z_]\w+", value.words):
            if word in found.lengths:
                return Expiry(Rule.EXACTLY, found.lengths[word], value.words)
    return value


def _people(
    mention: Mention, texts: list[Text], source: Sourcing
) -> tuple[tuple[Fact[str], ...], tuple[Fact[str], ...]]:
    sides: dict[str, list[Fact[str]]] = {"writers": [], "readers": []}
    for side, facts in sides.items():
        cell = mention.cells.get(side)
        if cell is not None:
            certainty = (
                Certainty.GUESSED if mention.lossy and not re.search(r"[/.]\w", cell.plain) else Certainty.STATED
            )
            facts += [Fact(who, certainty, source(cell.line)) for who in people_of_cell(cell)]
    for text in texts[:6]:
        writers, readers = people_of_prose(text)
        sides["writers"] += [Fact(who, Certainty.STATED, source(text.line)) for who in writers]
        sides["readers"] += [Fact(who, Certainty.STATED, source(text.line)) for who in readers]
    return _together(tuple(sides["writers"]), ()), _together(tuple(sides["readers"]), ())


def _personal(mention: Mention, spelt: Spelt, spoken: Spoken, source: Sourcing) -> Fact[bool] | None:
    cell = mention.cells.get("personal")
    if cell is not None:
        answer = personal_of_cell(cell.plain)
        return Fact(answer[0], answer[1], source(cell.line), cell.plain) if answer else None
    told = personal_of_prose(spoken.flat)
    if told:
        return Fact(told[0], Certainty.STATED, source(spoken.line_of(told[1], mention.line)), told[1])
    names = [variable for variable in variables(spelt.pattern) if PERSONAL_VARIABLES.search(variable)]
    return Fact(True, Certainty.IMPLIED, source(mention.line), names[0]) if names else None


def _payload(mention: Mention, source: Sourcing) -> Fact[str] | None:
    cell = mention.cells.get("value")
    if cell is not None:
        return Fact(cell.plain, Certainty.STATED, source(cell.line))
    if mention.payload:
        return Fact("\n".join(mention.payload), Certainty.STATED, source(mention.line))
    type_cell = mention.cells.get("type")
    inside = re.search(r"\((.+)\)", type_cell.plain) if type_cell is not None else None
    return (
        Fact(inside[1], Certainty.STATED, source(mention.line))
        if inside and len(inside[1]) > 2 and not duration(inside[1])
        else None
    )


def _purpose(mention: Mention, spoken: Spoken, source: Sourcing) -> Fact[str] | None:
    cell = mention.cells.get("purpose")
    if cell is not None and cell.plain not in {"???", "?", "-", "—"}:
        return Fact(cell.plain, Certainty.STATED, source(cell.line))
    words = spoken.flat.strip(" :—-")
    if not words:
        return None
    if len(words) > _LONGEST_PURPOSE:
        cut = words[:_LONGEST_PURPOSE]
        words = cut[: cut.rfind(". ") + 1] or cut[: cut.rfind(" ")] + "…"
    return Fact(words, Certainty.STATED, source(spoken.starts[0][1] if spoken.starts else mention.line))
