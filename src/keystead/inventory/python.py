"""An inventory as a Python module of declarations, for programs that want typed access to the keys it lists.

The module imports, and a ``Registry`` of its ``ALL`` can be built. What cannot be declared as it stands is written as a
comment with the reason: a pattern whose type nobody knows, or two patterns that could own the same key.
"""

import keyword
import re
import textwrap
from dataclasses import dataclass, field

from keystead.errors import Ambiguous, DeclarationError
from keystead.inventory.models import Certainty, Entry, Expiry, Fact, Inventory, Rule
from keystead.inventory.shapes import Hole, shape_of
from keystead.keys import (
    EMAIL,
    IP,
    KINDS,
    USER,
    Channel,
    ChannelPattern,
    Declaration,
    FlagKey,
    Keyspace,
    OneOf,
    OpaqueNamespace,
    Registry,
    kind_of_name,
)

_LONGEST_SECONDS = 10 * 366 * 86400
_WIDTH = 100
# The class that declares a type, and what follows the pattern. What a value holds is for its owner to say; bytes fit.
_CLASSES = {
    "string": ("StringKey", "bytes"), "json": ("StringKey", "bytes"), "float": ("StringKey", "float"),
    "bitmap": ("StringKey", "bytes"), "hyperloglog": ("StringKey", "bytes"), "integer": ("IntegerKey", ""),
    "flag": ("FlagKey", ""), "lock": ("LockKey", ""), "hash": ("MapKey", "bytes"), "list": ("ListKey", "bytes"),
    "set": ("SetKey", "bytes"), "zset": ("SortedSetKey", "bytes"), "geo": ("GeoKey", "bytes"),
    "stream": ("StreamKey", "Fields"),
}
_MORE = {"zset": ('member="member"', 'score="score"'), "geo": ('member="member"',), "stream": ("most_items=None",)}
_FIELDS = '''class Fields(msgspec.Struct, frozen=True):
    """The fields of a stream's entries: put in those that you want to read."""'''


@dataclass
class _Draft:
    """One declaration that is about to be written."""

    entry: Entry
    keyspace: str
    pattern: str
    name: str = ""
    refused: str = ""
    uses: set[str] = field(default_factory=set)
    lines: list[str] = field(default_factory=list)


def to_python(inventory: Inventory) -> str:
    """The text of the module."""
    keyspaces: dict[tuple[str, ...], str] = {}
    drafts = [_Draft(entry, keyspaces.setdefault(entry.section, _keyspace(entry.section, keyspaces)), _pattern(entry))
              for entry in inventory.entries]
    _refuse_what_cannot_be(drafts)
    taken = {*keyspaces.values(), "ALL"}
    for draft in drafts:
        draft.name = _constant(draft, taken)
        taken.add(draft.name)
        _write(draft)
    uses = {"Keyspace"}.union(*(draft.uses for draft in drafts if not draft.refused))
    # A path of another system must not end the docstring, nor look like escapes in it.
    named = _one_line(inventory.name).replace("\\", "/").replace('"', "'") or "the inventory"
    lines = [f'"""Keys and channels, as {named} has them."""', ""]
    if "StreamKey" in uses:
        lines += ["import msgspec", ""]
    lines += ["from keystead.keys import (", *(f"    {name}," for name in sorted(uses)), ")", ""]
    if "StreamKey" in uses:
        lines += ["", *_FIELDS.split("\n"), "", ""]
    for section, name in keyspaces.items():
        lines.append(f"{name} = Keyspace({_text('.'.join(map(_slug, section)) or 'keys')})")
    lines.append(f"ALL = [{', '.join(keyspaces.values())}]")
    shown: tuple[str, ...] | None = None
    for draft in drafts:
        if draft.entry.section != shown:
            shown = draft.entry.section
            lines += ["", *([f"# {_one_line(' / '.join(shown))}"] if shown else [])]
        lines += ["", *draft.lines]
    return "\n".join(lines) + "\n"


def refusals(inventory: Inventory) -> list[tuple[Entry, str]]:
    """The entries that ``to_python`` writes as comments, and why."""
    drafts = [_Draft(entry, "KEYS", _pattern(entry)) for entry in inventory.entries]
    _refuse_what_cannot_be(drafts)
    return [(draft.entry, draft.refused) for draft in drafts if draft.refused]


def _refuse_what_cannot_be(drafts: list[_Draft]) -> None:
    """Try each, and then all together; mark those with which it does not work."""
    for draft in drafts:
        kind = draft.entry.type.value if draft.entry.type else ""
        if draft.entry.kind == "key" and kind not in _CLASSES:
            draft.refused = f"its type is not known ({kind})" if kind else "its type is not written down"
            continue
        try:
            _declare(draft, Keyspace("trial"))
        except DeclarationError as error:
            draft.refused = _one_line(str(error))
    while True:
        room, by_name = Keyspace("trial"), {}
        for draft in drafts:
            if not draft.refused:
                by_name[f"{_declare(draft, room).pattern} (trial)"] = draft
        try:
            Registry([room])
            return
        except Ambiguous as error:
            by_name[error.second].refused = _one_line(str(error).replace(" (trial)", ""))


def _declare(draft: _Draft, room: Keyspace) -> Declaration:
    """A declaration of the same pattern; which keys it owns does not depend on its type."""
    if draft.entry.kind == "opaque":
        return OpaqueNamespace(room, draft.pattern, purpose="trial")
    if draft.entry.kind == "channel":
        if "*" in draft.pattern:
            return ChannelPattern(room, draft.pattern, bytes, purpose="trial")
        return Channel(room, draft.pattern, bytes, purpose="trial")
    return FlagKey(room, draft.pattern, purpose="trial")


def _pattern(entry: Entry) -> str:
    """The pattern as a declaration wants it: with kinds where the name does not tell, and every name once."""
    shape = shape_of(entry)
    if entry.kind == "opaque":
        return shape.prefix.rstrip("*") + "*"
    if entry.kind == "channel" and all(isinstance(part, str) or not part.name for part in shape.parts):
        return entry.pattern
    said = dict(entry.variables)
    names = iter(shape.names)
    parts: list[str] = []
    for number, part in enumerate(shape.parts, 1):
        if isinstance(part, Hole):
            name = next(names)
            written = name if re.fullmatch(r"[a-z][a-z0-9_]*", name) else f"part_{number}" if part.name else "rest"
            kind = "|".join(part.kind.values) if isinstance(part.kind, OneOf) else said.get(part.name, "")
            plain = kind_of_name(written).name == kind or (kind not in KINDS and "|" not in kind)
            parts.append(f"{{{written}}}" if plain else f"{{{written}:{kind}}}")
        else:
            parts.append(part)
    return "".join(parts)


def _write(draft: _Draft) -> None:
    """The lines of one declaration, with where it stands and what is a guess above it."""
    entry = draft.entry
    kind = entry.type.value if entry.type and entry.kind == "key" else ""
    made, holds = _CLASSES.get(kind, ("StringKey", "bytes"))
    if entry.kind == "opaque":
        made, holds = "OpaqueNamespace", ""
    elif entry.kind == "channel":
        made = "ChannelPattern" if "*" in draft.pattern else "Channel"
    draft.uses.add(made)
    ttl, remark = _ttl(entry, draft.uses)
    if kind == "lock":
        draft.uses.add("LockKind")
        holds = "LockKind.PLAIN" if ttl and not ttl.startswith("None") else "LockKind.SMART"
    facts = [", ".join(filter(None, (draft.keyspace, _text(draft.pattern), holds))), *_MORE.get(kind, ())]
    facts.append(f"purpose={_long(_purpose(entry))}")
    facts += [f"ttl={ttl}"] if ttl else []
    for name, people in (("writers", entry.writers), ("readers", entry.readers)):
        facts += [f"{name}=({', '.join(_text(fact.value) for fact in people)},)"] if people else []
    facts += [f"personal={_personal(draft)}"] if entry.personal and entry.personal.value else []
    guesses = [name for name, fact in (("type", entry.type), ("expiry", entry.ttl), ("personal data", entry.personal))
               if isinstance(fact, Fact) and fact.certainty is Certainty.GUESSED]
    remarks = [", ".join(map(str, entry.sources)), f"guessed: {', '.join(guesses)}" if guesses else "", remark,
               f"look at the pattern: {entry.uncertain}" if entry.uncertain else ""]
    lines = [f"# {_one_line(remark)}" for remark in remarks if remark]
    body = [f"{draft.name} = {made}(", *(f"    {line}" for fact in facts for line in f"{fact},".split("\n")), ")"]
    if draft.refused:
        body = [f"# Not declared: {draft.refused}", *(f"# {line}" for line in body)]
    draft.lines = lines + body


def _ttl(entry: Entry, uses: set[str]) -> tuple[str, str]:
    """The rule in Python, and a remark about it."""
    if entry.kind != "key":
        return "", ""
    if entry.ttl is None:
        return "", "no expiry is written down, so none is declared"
    expiry: Expiry = entry.ttl.value
    seconds = expiry.seconds
    if seconds is not None and not 0.001 <= seconds <= _LONGEST_SECONDS:
        seconds = None
    number = "" if seconds is None else repr(int(seconds) if seconds == int(seconds) else seconds)
    rules = {Rule.EXACTLY: "Exactly", Rule.AT_MOST: "AtMost", Rule.SLIDING: "Sliding", Rule.NONE: "NoneUntilEnded"}
    if expiry.rule in rules and number:
        uses.add(rules[expiry.rule])
        return f"{rules[expiry.rule]}({number})", ""
    if expiry.rule is Rule.NONE:
        return "", ""
    uses.add("Until")
    return f"Until(at_most={number})" if number else "Until()", f"expires: {expiry.words}" if expiry.words else ""


def _personal(draft: _Draft) -> str:
    """Which variable names the person, if one does."""
    kinds = dict(draft.entry.variables)
    named = [name for name in shape_of(draft.entry).names if f"{{{name}" in draft.pattern
             and (kind_of_name(name) in (USER, EMAIL, IP) or kinds.get(name) in ("user", "email", "ip"))]
    if not named:
        return "True"
    draft.uses.add("Personal")
    spelled = ", ".join(map(_text, named))
    return f"Personal(variable={spelled if len(named) == 1 else f'({spelled})'})"


def _purpose(entry: Entry) -> str:
    words = " ".join(entry.purpose.value.split()) if entry.purpose else ""
    return words or "not written down"


def _constant(draft: _Draft, taken: set[str]) -> str:
    """A name in capitals out of the pattern's text, if need be with its variables, if need be with a number."""
    parts = re.split(r"\{([^}:]+)[^}]*\}", draft.pattern)
    text = _slug("_".join(parts[::2])).upper()
    name = text or _slug("_".join(parts[1::2])).upper() or "KEY"
    if name in taken and len(parts) > 1 and text:
        name = f"{name}_BY_{_slug('_'.join(parts[1::2])).upper()}"
    return _free(name, taken)


def _keyspace(section: tuple[str, ...], known: dict[tuple[str, ...], str]) -> str:
    name = _slug(section[-1] if section else "keys").upper() or "KEYS"
    return known.get(section) or _free(name, {"ALL", *known.values()})


def _free(name: str, taken: set[str]) -> str:
    if name[0].isdigit() or keyword.iskeyword(name):
        name = f"_{name}"
    if name not in taken:
        return name
    return next(f"{name}_{number}" for number in range(2, len(taken) + 3) if f"{name}_{number}" not in taken)


def _slug(text: str) -> str:
    return re.sub(r"_+", "_", re.sub(r"[^a-z0-9]+", "_", text.lower())).strip("_")


def _text(text: str) -> str:
    """A string literal in double quotes."""
    return '"' + "".join(f"\\{each}" if each in '"\\' else each if each.isprintable()
                         else each.encode("unicode_escape").decode() for each in text) + '"'


def _long(text: str) -> str:
    """A string literal, over several lines if it is long."""
    if len(text) <= _WIDTH:
        return _text(text)
    pieces = textwrap.wrap(text, _WIDTH, drop_whitespace=False, break_on_hyphens=False)
    return "(\n" + "\n".join(f"    {_text(piece)}" for piece in pieces) + "\n)"


def _one_line(text: str) -> str:
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
