"""An inventory as a page for people, in the order and the sections of the document it came from.

The Markdown can take the place of that document: ``read_page`` reads it back, also after people changed it. Each entry
is a heading with its pattern, what it is for in plain words, and a list of facts. What a page does not keep is where
each fact once stood, and what was seen on servers.
"""

import json
import re
from collections.abc import Iterator

from keystead.inventory.expiries import parse_expiry, spell_expiry
from keystead.inventory.models import Certainty, Entry, Expiry, Fact, Inventory

MARK = "<!-- keystead inventory "
HINT = "Written by `keystead keys docs`. You may change it here, and read it back with `keystead keys import`."
_BREAKS = frozenset("\n\r\x0b\x0c\x1c\x1d\x1e\x85\xa0\u2028\u2029")
_OUR_ENTITY = re.compile(r"&(?=#\d+;|amp;|nbsp;)")
_ENTITY = re.compile(r"&(?:#(\d{1,7})|amp);")
# A line that would read as the beginning of something else, behind any number of backslashes.
HAZARD = re.compile(r"\\*(?:#|- |-$|<!--|(?:  )?```)")
NAMES = {"key": "", "channel": "channel ", "opaque": "namespace "}
CERTAINTIES = {Certainty.STATED: "", Certainty.IMPLIED: "apparently ", Certainty.GUESSED: "perhaps "}
FACTS = (
    "type", "expires", "holds", "variables", "written by", "read by", "personal data", "examples", "written as",
    "implied", "guessed", "look at the pattern",
)
KNOWN = {prefix + name for prefix in CERTAINTIES.values() for name in FACTS}
DEEPEST = 6


def to_markdown(inventory: Inventory) -> str:
    """The page; ``read_page`` gives the same entries, in the same order and with the same certainty."""
    titled = _shared_title(inventory)
    about = json.dumps({"name": inventory.name, "titled": titled}).replace("-", "\\u002d")
    lines = [f"{MARK}{about} -->", f"<!-- {HINT} -->"]
    if not titled:
        lines += [f"# {inline(inventory.name)}", ""]
    introductions = {path: text for path, text in inventory.sections if text}
    lines += [*paragraph(introductions.pop(())), ""] if () in introductions else []
    here: tuple[str, ...] = ()
    for entry in inventory.entries:
        if entry.section != here:
            lines += _headings(here, entry.section, introductions, titled)
            here = entry.section
        lines += _entry_lines(entry, min(len(here) + (1 if titled else 2), DEEPEST))
    for path in list(introductions):
        if path in introductions:
            lines += _headings(here, path, introductions, titled)
            here = path
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines).rstrip()) + "\n"


def inline(text: str) -> str:
    """Text on one line, such that ``plain`` gives it back."""
    if not text:
        return "&nbsp;"
    text = _OUR_ENTITY.sub("&amp;", text)
    bare = text.strip()
    head = text.index(bare) if bare else len(text)
    return "".join(f"&#{ord(letter)};" if letter in _BREAKS or not head <= at < head + len(bare) else letter
                   for at, letter in enumerate(text))


def plain(text: str) -> str:
    """The text that ``inline`` wrote."""
    if text == "&nbsp;":
        return ""
    return _ENTITY.sub(lambda found: chr(int(found[1])) if found[1] else "&", text) if "&" in text else text


def facts_of(entry: Entry) -> Iterator[tuple[str, str]]:
    """The facts of an entry under the names they have on a page."""
    if entry.type is not None:
        yield "type", inline(entry.type.value)
    if entry.ttl is not None:
        yield "expires", inline(_spelled(entry.ttl.value))
    if entry.payload is not None:
        yield "holds", entry.payload.value
    if entry.variables:
        yield "variables", ", ".join(f"`{code(name)}` {inline(kind)}" for name, kind in entry.variables)
    for name, people in (("written by", entry.writers), ("read by", entry.readers)):
        for certainty, group in _runs(people):
            yield CERTAINTIES[certainty] + name, ", ".join(f"`{code(fact.value)}`" for fact in group)
    if entry.personal is not None:
        yield "personal data", ("yes" if entry.personal.value else "no") + (
            f", {inline(entry.personal.words)}" if entry.personal.words else "")
    if entry.examples:
        yield "examples", ", ".join(f"`{code(example)}`" for example in entry.examples)
    for name, value in entry.extra:
        # A name of the document's own that is also one of ours is told apart by how its first letter is written.
        shown = inline(name).replace(":", "&#58;").replace("`", "&#96;")
        yield (f"&#{ord(shown[0])};{shown[1:]}" if shown in KNOWN else shown), value
    if entry.spelling and entry.spelling != entry.pattern:
        yield "written as", f"`{code(entry.spelling)}`"
    for certainty in (Certainty.IMPLIED, Certainty.GUESSED):
        named = (("type", entry.type), ("expires", entry.ttl), ("purpose", entry.purpose), ("holds", entry.payload),
                 ("personal data", entry.personal))
        marked = [name for name, fact in named if fact is not None and fact.certainty is certainty]
        if marked:
            yield certainty.value, ", ".join(marked)
    if entry.uncertain:
        yield "look at the pattern", inline(entry.uncertain)


def code(text: str) -> str:
    """Text between backticks."""
    return inline(text).replace("`", "&#96;")


def _spelled(expiry: Expiry) -> str:
    spelled = spell_expiry(expiry)
    if parse_expiry(spelled) == expiry:
        return spelled
    return json.dumps([expiry.rule.value, expiry.seconds, expiry.words])


def _shared_title(inventory: Inventory) -> bool:
    """Whether everything stands under one heading, which is then the title of the page."""
    firsts = {entry.section[:1] for entry in inventory.entries}
    firsts |= {path[:1] for path, text in inventory.sections if text}
    return len(firsts) == 1 and firsts != {()}


def _headings(
    here: tuple[str, ...], path: tuple[str, ...], introductions: dict[tuple[str, ...], str], titled: bool
) -> list[str]:
    """The headings that lead from one section to another, with what stands under them when they come first."""
    same = 0
    while same < min(len(here), len(path) - 1) and here[same] == path[same]:
        same += 1
    lines: list[str] = [] if path else ["", "<!-- keystead top -->"]
    for depth in range(same, len(path)):
        level = depth + (1 if titled else 2)
        if level > DEEPEST:
            lines += ["", f"<!-- keystead level {level} -->"]
        lines += ["", f"{'#' * min(level, DEEPEST)} {inline(path[depth]).replace('`', '&#96;')}", ""]
        text = introductions.pop(path[: depth + 1], "")
        lines += [*paragraph(text), ""] if text else []
    return lines


def _entry_lines(entry: Entry, level: int) -> list[str]:
    lines = ["", f"{'#' * level} {NAMES[entry.kind]}`{code(entry.pattern)}`", ""]
    if entry.purpose is not None:
        lines += [*paragraph(entry.purpose.value), ""]
    for name, value in facts_of(entry):
        lines += _fact_lines(name, value)
    return [*lines, ""]


def paragraph(text: str) -> list[str]:
    """The lines of a text as they stand on a page."""
    if not text or text != text.strip() or "\n\n\n" in text or "\r" in text or _OUR_ENTITY.search(text):
        return [_hidden(inline(text))]
    return [_hidden(line) for line in text.split("\n")]


def _hidden(line: str) -> str:
    return f"\\{line}" if HAZARD.match(line) else line


def _fact_lines(name: str, value: str) -> list[str]:
    """One fact of a list; a value of many lines, such as an example in JSON, is a block."""
    if name in KNOWN - {"holds"}:
        return [f"- {name}: {value}"]
    if "\n" in value and not re.search("```|\n\n\n|\r", value) and value == value.strip("\n"):
        return [f"- {name}:", "  ```", *(f"  {line}" if line else "" for line in value.split("\n")), "  ```"]
    return [f"- {name}: {inline(value)}"]


def _runs(people: tuple[Fact[str], ...]) -> Iterator[tuple[Certainty, list[Fact[str]]]]:
    """People one after the other who are known with the same certainty."""
    run: list[Fact[str]] = []
    for fact in people:
        if run and run[-1].certainty is not fact.certainty:
            yield run[0].certainty, run
            run = []
        run.append(fact)
    if run:
        yield run[0].certainty, run
