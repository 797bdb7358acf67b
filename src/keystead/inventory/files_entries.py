"""An entry of an inventory as plain values, the same in every file format, and back.

A fact is its value. Those that follow from a text or are guesses are named in ``implied`` and ``guessed``; the words
they were read from stand in ``words``, and where they stand in ``at`` if that is not where the entry stands.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from difflib import get_close_matches
from typing import Any, TypeVar

from keystead.errors import Invalid
from keystead.inventory.expiries import parse_expiry, spell_expiry
from keystead.inventory.models import (
    SERVER_TYPES,
    Certainty,
    Entry,
    Expiry,
    Fact,
    Note,
    Observation,
    Rule,
    Source,
)

T = TypeVar("T")
KINDS = ("key", "channel", "opaque")
# How people also call the types.
TYPES = {
    **{name: name for name in SERVER_TYPES}, "sorted set": "zset", "sortedset": "zset", "sorted_set": "zset",
    "int": "integer", "counter": "integer", "number": "integer", "str": "string", "text": "string", "bool": "flag",
    "boolean": "flag", "map": "hash", "hashmap": "hash", "dict": "hash", "hll": "hyperloglog", "bitfield": "bitmap",
    "queue": "list", "array": "list", "double": "float", "decimal": "float", "geospatial": "geo", "mutex": "lock",
}
_FACTS = ("type", "ttl", "purpose", "payload", "personal")
_PEOPLE = ("writers", "readers")
_FIELDS = (
    "pattern", "spelling", "kind", "section", "type", "ttl", "purpose", "payload", "writers", "readers", "personal",
    "variables", "examples", "extra", "implied", "guessed", "uncertain", "words", "at", "source", "sources", "observed",
)
_SEE_WORDS = "…"
Complain = Callable[[str], Invalid]


def entry_to_plain(entry: Entry) -> dict[str, Any]:
    """What a file says of an entry, in the order in which it says it. The kind is left to the caller."""
    plain: dict[str, Any] = {"pattern": entry.pattern}
    if entry.spelling != _usual_spelling(entry.pattern, entry.sources):
        plain["spelling"] = entry.spelling
    if entry.section:
        plain["section"] = list(entry.section)
    home = entry.sources[0] if entry.sources else None
    marks: dict[str, list[str]] = {"implied": [], "guessed": []}
    words: dict[str, str] = {}
    places: dict[str, Any] = {}
    for name in _FACTS:
        fact: Fact[Any] | None = getattr(entry, name)
        if fact is None:
            continue
        plain[name] = _expiry_to_plain(fact.value, fact.words) if name == "ttl" else fact.value
        if fact.certainty is not Certainty.STATED:
            marks[fact.certainty.value].append(name)
        if fact.words:
            words[name] = fact.words
        if fact.source != home:
            places[name] = "" if fact.source is None else source_to_plain(fact.source)
    for name in _PEOPLE:
        people: tuple[Fact[str], ...] = getattr(entry, name)
        if people:
            plain[name] = [_person_to_plain(fact, home) for fact in people]
    # What the document says stands before how it is known.
    plain = {name: plain[name] for name in _FIELDS if name in plain}
    optional: dict[str, Any] = {
        "variables": pairs_to_plain(entry.variables), "examples": list(entry.examples),
        "extra": pairs_to_plain(entry.extra), **marks, "uncertain": entry.uncertain, "words": words, "at": places,
    }
    plain |= {name: value for name, value in optional.items() if value}
    if len(entry.sources) == 1:
        plain["source"] = source_to_plain(entry.sources[0])
    elif entry.sources:
        plain["sources"] = [source_to_plain(source) for source in entry.sources]
    if entry.observed is not None:
        plain["observed"] = _observation_to_plain(entry.observed)
    return plain


def entry_from_plain(plain: Mapping[str, Any], kind: str, complain: Complain) -> Entry:
    """The entry that a file describes. ``complain`` makes an error that says where it stands."""
    for name in plain:
        if name not in _FIELDS:
            close = get_close_matches(str(name), _FIELDS, n=1)
            raise complain(f"there is no field {name}" + (f"; did you mean {close[0]}?" if close else
                           f"; known are {', '.join(_FIELDS)}; what else is known goes into extra"))
    read = _Reader(plain, complain)
    pattern = read.text("pattern")
    if not pattern:
        raise complain("an entry needs a pattern, such as pattern = \"user:{id}\"")
    kind = read.text("kind") or kind
    if kind not in KINDS:
        raise complain(f"{pattern}: the kind {kind!r} is none of {', '.join(KINDS)}")
    sources = tuple(read.source(each) for each in (
        [plain["source"]] if "source" in plain else read.several("sources")))
    facts = _FactReader(read, pattern, sources[0] if sources else None)
    return Entry(
        pattern=pattern,
        spelling=read.text("spelling") if "spelling" in plain else _usual_spelling(pattern, sources),
        kind=kind,
        section=read.texts("section"),
        type=facts.fact("type", lambda value: _type(value, kind)),
        ttl=facts.fact("ttl", _expiry_from_plain),
        purpose=facts.fact("purpose", _text),
        payload=facts.fact("payload", _text),
        personal=facts.fact("personal", _flag),
        writers=facts.people("writers"),
        readers=facts.people("readers"),
        variables=read.pairs("variables"),
        examples=read.texts("examples"),
        extra=read.pairs("extra"),
        uncertain=read.text("uncertain"),
        sources=sources,
        observed=_observation_from_plain(plain["observed"], complain) if "observed" in plain else None,
    )


def _usual_spelling(pattern: str, sources: tuple[Source, ...]) -> str:
    """How a source spells a pattern unless the file says otherwise; what has no source has no spelling."""
    return pattern if sources else ""


def source_to_plain(source: Source) -> Any:
    spelled = str(source)
    return spelled if source_from_text(spelled) == source else {"file": source.file, "line": source.line}


def source_from_text(text: str) -> Source:
    file, colon, line = text.rpartition(":")
    if colon and file and line.isascii() and line.isdigit() and len(line) < 10 and int(line) > 0:
        return Source(file, int(line))
    return Source(text)


def note_to_plain(note: Note) -> dict[str, Any]:
    return {"says": note.says} | ({} if note.source is None else {"source": source_to_plain(note.source)})


def note_from_plain(plain: Mapping[str, Any], complain: Complain) -> Note:
    read = _Reader(plain, complain)
    return Note(read.text("says"), read.source(plain["source"]) if "source" in plain else None)


def pairs_to_plain(pairs: tuple[tuple[str, str], ...]) -> Any:
    """A table, or a list of pairs where a name stands twice."""
    return dict(pairs) if len(dict(pairs)) == len(pairs) else [list(pair) for pair in pairs]


class _Reader:
    """Takes values of one shape out of a table, and complains of others."""

    def __init__(self, plain: Mapping[str, Any], complain: Complain) -> None:
        self.plain = plain
        self.complain = complain

    def text(self, name: str) -> str:
        value = self.plain.get(name, "")
        if isinstance(value, str):
            return value
        raise self.complain(f"{name} must be text, not {_shape(value)}; write it in quotes")

    def several(self, name: str) -> list[Any]:
        value = self.plain.get(name, [])
        return [value] if isinstance(value, str) else self._list(name, value)

    def texts(self, name: str) -> tuple[str, ...]:
        values = self.several(name)
        if all(isinstance(each, str) for each in values):
            return tuple(values)
        raise self.complain(f"{name} must be a list of texts, such as {name} = [\"one\", \"two\"]")

    def table(self, name: str) -> Mapping[str, Any]:
        value = self.plain.get(name, {})
        if isinstance(value, Mapping):
            return value
        raise self.complain(f"{name} must be a table, such as {name} = {{ one = \"two\" }}")

    def pairs(self, name: str) -> tuple[tuple[str, str], ...]:
        value = self.plain.get(name, {})
        pairs = list(value.items()) if isinstance(value, Mapping) else self._list(name, value)
        if all(isinstance(pair, list | tuple) and len(pair) == 2 and all(isinstance(each, str) for each in pair)
               for pair in pairs):
            return tuple((pair[0], pair[1]) for pair in pairs)
        raise self.complain(f"{name} must be a table of texts, such as {name} = {{ one = \"two\" }}")

    def source(self, value: Any) -> Source:
        if isinstance(value, str) and value:
            return source_from_text(value)
        if isinstance(value, Mapping) and isinstance(value.get("file"), str) and isinstance(value.get("line", 0), int):
            return Source(value["file"], value.get("line", 0))
        raise self.complain(f"a source is written \"file:line\", not {_shape(value)}")

    def _list(self, name: str, value: Any) -> list[Any]:
        if isinstance(value, list):
            return value
        raise self.complain(f"{name} must be a list, not {_shape(value)}")


class _FactReader:
    """Puts facts together from their values and what is said of them elsewhere in the entry."""

    def __init__(self, read: _Reader, pattern: str, home: Source | None) -> None:
        self._read, self._pattern, self._home = read, pattern, home
        self._certainties = {name: certainty for certainty in (Certainty.IMPLIED, Certainty.GUESSED)
                             for name in read.texts(certainty.value)}
        self._words, self._places = read.table("words"), read.table("at")
        for name in (*self._certainties, *self._words, *self._places):
            if name not in _FACTS or name not in read.plain:
                raise read.complain(f"{pattern}: something is said of {name}, which the entry does not have")

    def fact(self, name: str, value_of: Callable[[Any], T]) -> Fact[T] | None:
        if name not in self._read.plain:
            return None
        try:
            value = value_of(self._read.plain[name])
        except ValueError as error:
            raise self._read.complain(f"{self._pattern}: {name} {error}") from None
        source, words = self._home, str(self._words.get(name, ""))
        if name in self._places:
            source = None if self._places[name] == "" else self._read.source(self._places[name])
        if isinstance(value, Expiry) and value.words == _SEE_WORDS and isinstance(self._read.plain[name], str):
            value = replace(value, words=words)
        return Fact(value, self._certainties.get(name, Certainty.STATED), source, words)

    def people(self, name: str) -> tuple[Fact[str], ...]:
        return tuple(self._person(name, each) for each in self._read.several(name))

    def _person(self, name: str, plain: Any) -> Fact[str]:
        if isinstance(plain, str):
            return Fact(plain, Certainty.STATED, self._home)
        if not isinstance(plain, Mapping) or not isinstance(plain.get("name"), str):
            raise self._read.complain(f"{self._pattern}: {name} is a list of names, such as [\"billing\", \"web\"]")
        how = plain.get("how", Certainty.STATED.value)
        if how not in {certainty.value for certainty in Certainty}:
            raise self._read.complain(f"{self._pattern}: {name}: how must be stated, implied or guessed, not {how}")
        source = self._home
        if "at" in plain:
            source = None if plain["at"] == "" else self._read.source(plain["at"])
        return Fact(plain["name"], Certainty(how), source, str(plain.get("words", "")))


def _person_to_plain(fact: Fact[str], home: Source | None) -> Any:
    more: dict[str, Any] = {}
    if fact.source != home:
        more["at"] = "" if fact.source is None else source_to_plain(fact.source)
    if fact.certainty is not Certainty.STATED:
        more["how"] = fact.certainty.value
    if fact.words:
        more["words"] = fact.words
    return {"name": fact.value, **more} if more else fact.value


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise ValueError(f"must be text, not {_shape(value)}")


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueError(f"must be true or false, not {_shape(value)}")


def _type(value: Any, kind: str) -> str:
    known = TYPES.get(_text(value).lower())
    if known is not None or kind != "key":
        return known or str(value)
    close = get_close_matches(value.lower(), TYPES, n=1)
    raise ValueError(f"{value!r} is not known" + (f"; did you mean {close[0]}?" if close else
                     f"; known are {', '.join(SERVER_TYPES)}"))


def _expiry_to_plain(expiry: Expiry, words: str) -> Any:
    # The words that a fact was read from are not said twice.
    short = replace(expiry, words=_SEE_WORDS) if words and expiry.words == words else expiry
    spelled = spell_expiry(short)
    if parse_expiry(spelled) == short and expiry.words != _SEE_WORDS:
        return spelled
    plain: dict[str, Any] = {"rule": expiry.rule.value}
    return plain | ({} if expiry.seconds is None else {"seconds": expiry.seconds}) | (
        {"words": expiry.words} if expiry.words else {})


def _expiry_from_plain(value: Any) -> Expiry:
    if isinstance(value, int | float) and not isinstance(value, bool):
        if value in (0, -1):
            return Expiry(Rule.NONE)
        if not 0 < value < float("inf"):
            raise ValueError(f"{value} is no number of seconds; a key that stays has ttl = \"none\"")
        return Expiry(Rule.EXACTLY, value)
    if isinstance(value, Mapping):
        rule, seconds = value.get("rule"), value.get("seconds")
        if rule not in {each.value for each in Rule} or not (seconds is None or isinstance(seconds, int | float)):
            raise ValueError(f"needs a rule ({', '.join(each.value for each in Rule)}) and perhaps seconds")
        return Expiry(Rule(rule), seconds, str(value.get("words", "")))
    expiry = parse_expiry(_text(value))
    if expiry is None:
        raise ValueError(f"{value!r} is not understood; write it as 30 min, at most 1 h, 15 min sliding, none, some, "
                         "or until and what ends it")
    return expiry


def _observation_to_plain(observed: Observation) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for field in fields(Observation):
        value = getattr(observed, field.name)
        if value != field.default:
            plain[field.name] = pairs_to_plain(value) if isinstance(value, tuple) else value
    return plain


def _observation_from_plain(plain: Any, complain: Complain) -> Observation:
    if not isinstance(plain, Mapping) or not set(plain) <= {field.name for field in fields(Observation)}:
        known = ", ".join(field.name for field in fields(Observation))
        raise complain(f"observed must be a table of {known}")
    values = dict(plain)
    for name in ("types", "encodings"):
        if name in values:
            pairs = values[name].items() if isinstance(values[name], Mapping) else values[name]
            values[name] = tuple((str(each), int(count)) for each, count in pairs)
    for name, value in values.items():
        if not isinstance(value, str if name == "shape" else tuple if name in ("types", "encodings") else int | float):
            raise complain(f"observed.{name} must be {'text' if name == 'shape' else 'a number'}")
    return Observation(**values)


def _shape(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    return "a table" if isinstance(value, Mapping) else "a list" if isinstance(value, list) else type(value).__name__
