"""A page that ``to_markdown`` wrote, read back into an inventory; people may have changed it."""

import json
import re
from collections.abc import Iterator

from keystead.inventory.documents import read_document
from keystead.inventory.expiries import parse_expiry
from keystead.inventory.files_entries import TYPES
from keystead.inventory.models import Certainty, Entry, Expiry, Fact, Inventory, Note, Rule, Source
from keystead.inventory.pages import CERTAINTIES, FACTS, HAZARD, KNOWN, MARK, NAMES, plain

_HEADING = re.compile(r"(#{1,6}) (.*)")
_PATTERN = re.compile(r"(channel |namespace |)`([^`]+)`")
_FACT = re.compile(r"- ([^:`]+):(?: (.*))?")
_LEVEL = re.compile(r"<!-- keystead level (\d+) -->")
_CODE = re.compile(r"`([^`]*)`")
_VARIABLE = re.compile(r"`([^`]*)` ([^,]+)")
_TOP = "<!-- keystead top -->"


def is_page(text: str) -> bool:
    """Whether a document is a page that we wrote."""
    return text.lstrip("\ufeff \n").startswith(MARK)


def read_page(text: str, name: str) -> Inventory:
    """The inventory on a page. What is not understood is a note; nothing is refused.

    A page whose first line is broken is read like any other document.
    """
    lines = text.lstrip("\ufeff \n").replace("\r\n", "\n").split("\n")
    try:
        about = json.loads(lines[0].removeprefix(MARK).removesuffix("-->"))
        titled, own_name = bool(about["titled"]), str(about["name"])
    except (ValueError, KeyError, TypeError):
        return read_document(text, name)
    return _Page(name, titled).read(lines, own_name)


class _Page:
    """What was read so far."""

    def __init__(self, file: str, titled: bool) -> None:
        self._file, self._shift = file, 1 if titled else 2
        self._path: list[str] = []
        self._entries: list[Entry] = []
        self._sections: list[tuple[tuple[str, ...], str]] = []
        self._notes: list[Note] = []

    def read(self, lines: list[str], name: str) -> Inventory:
        level = 0
        for start, head, body in _parts(lines):
            heading = _HEADING.fullmatch(head)
            pattern = _PATTERN.fullmatch(heading[2]) if heading else None
            if head == _TOP:
                self._path = []
            elif (deeper := _LEVEL.fullmatch(head)) is not None:
                level = int(deeper[1])
            elif pattern is not None:
                self._entries.append(self._entry(pattern, start, body))
            elif heading is not None:
                depth = (level or len(heading[1])) - self._shift
                level = 0
                self._path = [*self._path[:depth], plain(heading[2])] if depth >= 0 else []
                text = _text(body)
                if text is not None:
                    self._sections.append((tuple(self._path), text))
        return Inventory(name, tuple(self._entries), tuple(self._notes), sections=tuple(self._sections))

    def _entry(self, heading: "re.Match[str]", line: int, body: list[str]) -> Entry:
        pattern, home = plain(heading[2]), Source(self._file, line)
        purpose = _text(body)
        facts = list(_facts(body))
        said = {name: value for name, value in facts if name in FACTS}
        marks = {name.strip(): certainty for certainty in (Certainty.IMPLIED, Certainty.GUESSED)
                 for name in said.get(certainty.value, "").split(",")}

        def certainty(name: str) -> Certainty:
            return marks.get(name, Certainty.STATED)

        type_name = plain(said["type"]) if "type" in said else None
        expiry = _expiry(plain(said["expires"])) if "expires" in said else None
        for name, value in (("type", type_name), ("expires", expiry)):
            if name in said and value is None:
                self._notes.append(Note(f"{pattern}: {name} {said[name]} is not understood", home))
        personal, _, whose = said.get("personal data", "").partition(", ")
        return Entry(
            pattern=pattern, spelling=_first(said.get("written as", "")) or pattern,
            kind=next(kind for kind, prefix in NAMES.items() if prefix == heading[1]),
            type=None if type_name is None else Fact(TYPES.get(type_name.lower(), type_name), certainty("type"), home),
            ttl=None if expiry is None else Fact(expiry, certainty("expires"), home),
            purpose=None if purpose is None else Fact(purpose, certainty("purpose"), home),
            payload=Fact(said["holds"], certainty("holds"), home) if "holds" in said else None,
            writers=_people(facts, "written by", home), readers=_people(facts, "read by", home),
            personal=Fact(personal.strip().lower() in ("yes", "true", "y"), certainty("personal data"), home,
                          plain(whose)) if "personal data" in said else None,
            variables=tuple((plain(name), plain(kind)) for name, kind in _VARIABLE.findall(said.get("variables", ""))),
            examples=tuple(map(plain, _CODE.findall(said.get("examples", "")))),
            section=tuple(self._path), sources=(home,),
            extra=tuple((plain(name), value) for name, value in facts if name not in FACTS and not _person(name)),
            uncertain=plain(said.get("look at the pattern", "")),
        )


def _parts(lines: list[str]) -> Iterator[tuple[int, str, list[str]]]:
    """Every heading or mark with its line and the lines under it."""
    start, head = 1, ""
    body: list[str] = []
    fenced = False
    for number, line in enumerate(lines, 1):
        fenced ^= line == "  ```"
        if not fenced and (_HEADING.fullmatch(line) or line.startswith("<!-- keystead ")):
            yield start, head, body
            start, head, body = number, line, []
        else:
            body.append(line)
    yield start, head, body


def _text(body: list[str]) -> str | None:
    """The words under a heading, before the list of facts."""
    words: list[str] = []
    for line in body:
        if _FACT.fullmatch(line):
            break
        words.append(line[1:] if line.startswith("\\") and HAZARD.match(line) else line)
    text = "\n".join(words).strip("\n")
    if not text.strip():
        return None
    return plain(text)


def _facts(body: list[str]) -> Iterator[tuple[str, str]]:
    """The facts of a list, each with its value; a block of many lines loses its frame."""
    at = 0
    while at < len(body):
        fact = _FACT.fullmatch(body[at])
        at += 1
        if fact is None:
            continue
        name, value = fact[1].strip(), fact[2] or ""
        if not value and at < len(body) and body[at] == "  ```":
            end = next((index for index in range(at + 1, len(body)) if body[index] == "  ```"), len(body))
            yield name, "\n".join(line[2:] for line in body[at + 1 : end])
            at = end + 1
        else:
            yield name, value.strip() if name in KNOWN and name != "holds" else plain(value.strip())


def _expiry(text: str) -> Expiry | None:
    if text.startswith("["):
        try:
            rule, seconds, words = json.loads(text)
            return Expiry(Rule(rule), seconds, str(words))
        except (ValueError, TypeError):
            return None
    return parse_expiry(text)


def _person(name: str) -> str | None:
    """Whether a fact says who writes or reads, with any certainty."""
    return next((what for what in ("written by", "read by") for prefix in CERTAINTIES.values()
                 if name == prefix + what), None)


def _people(facts: list[tuple[str, str]], what: str, home: Source) -> tuple[Fact[str], ...]:
    people: list[Fact[str]] = []
    for name, value in facts:
        for certainty, prefix in CERTAINTIES.items():
            if name == prefix + what:
                found = _CODE.findall(value) or [each.strip() for each in value.split(",") if each.strip()]
                people += [Fact(plain(each), certainty, home) for each in found]
    return tuple(people)


def _first(text: str) -> str:
    found = _CODE.search(text)
    return plain(found[1]) if found else plain(text)
