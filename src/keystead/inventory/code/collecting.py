"""Uses of keys, gathered into entries: one for each pattern, with what all its uses together say."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Final

from keystead.inventory.code.commands import Access
from keystead.inventory.code.shapes import Shape, Var
from keystead.inventory.code.uses import Use
from keystead.inventory.models import SERVER_TYPES, Certainty, Entry, Expiry, Fact, Inventory, Note, Rule, Source

LOOKS: Final = "looks like a key, and no command was seen to use it"
_MOST_SOURCES: Final = 50
_GENERIC: Final = frozenset(("id", "key", "value", "name", "k", "x", "i", "item", "arg", "args", "data", "any", "rest",
                             "s", "v", "n"))
_STRINGS: Final = ("lock", "json", "integer", "float", "bitmap", "hyperloglog", "string")  # the most telling first
_BLIND: Final = re.compile(r"key of P?EXPIRE|the script's caller")  # an expiry may have been set that was not seen
_LOCK: Final = re.compile(r"(?:^|[^a-z])(?:lock|mutex)(?:$|[^a-z])", re.I)
_TAG: Final = re.compile(r"\{[a-z_]\w*\}")


def collect(name: str, uses: Sequence[Use], notes: Iterable[Note],
            loose: Iterable[tuple[Shape, str, Source]]) -> Inventory:
    """The inventory of what was found, in the order of files and lines."""
    groups: dict[tuple[str, str], list[Use]] = {}
    for use in sorted(uses, key=lambda use: use.source):
        if "glob" not in use.kind and "*" not in use.shape.text:
            groups.setdefault((use.kind, _skeleton(use.shape)), []).append(use)
    said: dict[Note, None] = dict.fromkeys(notes)
    followed = not any(_BLIND.search(note.says) for note in said)
    entries = [_entry(kind, group, said, followed) for (kind, _), group in groups.items()]
    entries = _with_globs(entries, [use for use in uses if "glob" in use.kind or "*" in use.shape.text])
    entries += _looks_alike(entries, groups, loose)
    entries.sort(key=lambda entry: (bool(entry.uncertain == LOOKS), entry.sources[:1], entry.pattern))
    return Inventory(name, tuple(entries), tuple(sorted(said, key=lambda note: (note.source or Source(""), note.says))))


def _skeleton(shape: Shape) -> str:
    return "".join(part if isinstance(part, str) else "\0" for part in shape.parts)


def _entry(kind: str, uses: list[Use], notes: dict[Note, None], followed: bool) -> Entry:
    pattern, kinds = _named_best(uses)
    doubt = "" if any(not use.doubt for use in uses) else uses[0].doubt
    if any(isinstance(part, str) and _TAG.search(part) for part in uses[0].shape.parts):
        doubt = doubt or "the braces stand in the key itself: a hash tag of a cluster"
    spelling = next((use.spelling for use in uses if use.spelling and any(mark in use.spelling for mark in "\"'`")), "")
    sources = tuple(dict.fromkeys(use.source for use in uses))
    made = Entry(pattern, spelling or next((use.spelling for use in uses if use.spelling), ""), kind,
                 variables=kinds, section=(uses[0].source.file,), sources=sources[:_MOST_SOURCES], uncertain=doubt,
                 writers=_people(uses, (Access.WRITE, Access.CHANGE, Access.EXPIRE)),
                 readers=_people(uses, (Access.READ,)))
    if kind != "key":
        return made
    return replace(made, type=_type(pattern, uses, notes), ttl=_ttl(pattern, uses, notes, followed))


def _named_best(uses: list[Use]) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The pattern with the names that say most of each variable, and their kinds where a type or format tells."""
    columns: list[Counter[str]] = []
    kinds: list[str] = []
    for use in uses:
        for position, hole in enumerate(part for part in use.shape.parts if isinstance(part, Var)):
            if position == len(columns):
                columns.append(Counter())
                kinds.append("")
            columns[position][hole.name] += 1
            kinds[position] = kinds[position] or hole.kind
    best = [max(names, key=lambda word: (word not in _GENERIC, names[word], len(word), word)) for names in columns]
    parts: list[str | Var] = []
    place = 0
    for part in uses[0].shape.parts:
        if isinstance(part, Var):
            parts.append(Var(best[place]))
            place += 1
        else:
            parts.append(part)
    pattern = Shape(tuple(parts)).pattern
    names = _TAG.findall(pattern)
    given = {}
    if len(names) == len(kinds):
        given = {name.strip("{}"): kind for name, kind in zip(names, kinds, strict=True) if kind}
    return pattern, tuple(given.items())


def _people(uses: list[Use], accesses: tuple[Access, ...]) -> tuple[Fact[str], ...]:
    found: dict[tuple[str, str], Fact[str]] = {}
    for use in uses:
        if use.access in accesses:
            who = use.function or use.source.file.rsplit("/", 1)[-1]
            certainty = Certainty.GUESSED if use.doubt else Certainty.STATED
            known = found.get((who, use.source.file))
            if known is None:
                found[who, use.source.file] = Fact(who, certainty, use.source, use.command)
            elif use.command not in known.words.split(", "):
                found[who, use.source.file] = replace(known, words=f"{known.words}, {use.command}")
    return tuple(found.values())


# -- types ------------------------------------------------------------


def _type(pattern: str, uses: list[Use], notes: dict[Note, None]) -> Fact[str] | None:
    typed = [use for use in uses if use.type]
    if not typed:
        return None
    servers = Counter(SERVER_TYPES.get(use.type, use.type) for use in typed)
    if len(servers) > 1:
        written = Counter(SERVER_TYPES.get(use.type, use.type) for use in typed if use.access is Access.WRITE)
        chosen = (written or servers).most_common(1)[0][0]
        shown = "; ".join(f"{server} ({next(u.command for u in typed if SERVER_TYPES.get(u.type) == server)} at "
                          f"{next(u.source for u in typed if SERVER_TYPES.get(u.type) == server)})"
                          for server in servers)
        notes[Note(f"{pattern} is used with commands of different types: {shown}", typed[0].source)] = None
    else:
        chosen = next(iter(servers))
    mine = [use for use in typed if SERVER_TYPES.get(use.type, use.type) == chosen]
    kinds = {use.type for use in mine}
    kind = next((each for each in _STRINGS if each in kinds), None) or ("geo" if "geo" in kinds else mine[0].type)
    if kind == "string" and _LOCK.search(pattern) and any(use.command == "SETNX" or use.ttl for use in mine):
        kind = "lock"
    teller = next(use for use in mine if use.type == kind or kind == "lock")
    sure = any(not use.doubt for use in mine) and len(servers) == 1
    return Fact(kind, Certainty.IMPLIED if sure else Certainty.GUESSED, teller.source, teller.command)


# -- expiries ------------------------------------------------------------


def _ttl(pattern: str, uses: list[Use], notes: dict[Note, None], followed: bool) -> Fact[Expiry] | None:
    told = [use for use in uses if use.ttl is not None and use.ttl.value.rule is not Rule.NONE]
    writes = [use for use in uses if use.access is Access.WRITE]
    if not told:
        return _without(uses, writes, followed)
    best = _together(pattern, told, notes)
    ending = {(use.source.file, use.function) for use in told}
    forgets = [use for use in writes if use.drops_ttl and (use.source.file, use.function) not in ending]
    if forgets:
        notes[Note(f"{pattern} is written without an expiry here, and with one at {best.source}",
                   forgets[0].source)] = None
    if all(use.doubt for use in uses):
        return replace(best, certainty=Certainty.GUESSED)
    return best


def _without(uses: list[Use], writes: list[Use], followed: bool) -> Fact[Expiry] | None:
    """No expiry anywhere: implied by a SET that gives none, and if every EXPIRE of the tree is for another key."""
    plain = next((use for use in writes if use.drops_ttl), None)
    said = next((use for use in writes if use.ttl is not None), None)
    teller = said or plain or (writes[0] if writes else None)
    if teller is None or teller.command.startswith(("cache.", "@", "get")) or teller.command in ("LOCK", "RENAME",
                                                                                                 "COPY"):
        return None
    sure = (said is not None or plain is not None or followed) and not all(use.doubt for use in uses)
    return Fact(Expiry(Rule.NONE), Certainty.IMPLIED if sure else Certainty.GUESSED, teller.source, teller.command)


def _together(pattern: str, told: list[Use], notes: dict[Note, None]) -> Fact[Expiry]:
    facts = [use.ttl for use in told if use.ttl is not None]
    lengths = sorted({fact.value.seconds for fact in facts if fact.value.seconds is not None})
    if not lengths:
        return facts[0]
    exact = next(fact for fact in facts if fact.value.seconds == lengths[-1])
    if len(lengths) == 1:
        return _sliding(exact, told)
    shown = ", ".join(f"{seconds:g} s at {next(f.source for f in facts if f.value.seconds == seconds)}"
                      for seconds in lengths[:4])
    notes[Note(f"{pattern} gets different expiries: {shown}", exact.source)] = None
    return replace(exact, value=Expiry(Rule.AT_MOST, lengths[-1]), certainty=Certainty.IMPLIED)


def _sliding(fact: Fact[Expiry], told: list[Use]) -> Fact[Expiry]:
    if any(use.ttl is not None and use.ttl.value.rule is Rule.SLIDING for use in told):
        return replace(fact, value=replace(fact.value, rule=Rule.SLIDING))
    return fact


# -- wildcards and likenesses ----------


def _with_globs(entries: list[Entry], uses: list[Use]) -> list[Entry]:
    """Whoever scans ``user:*`` reads every pattern that fits; a wildcard that nothing fits is an entry of its own."""
    made: dict[str, Entry] = {}
    for use in uses:
        kind = "channel" if "channel" in use.kind else "key"
        glob = "".join(part if isinstance(part, str) else "*" for part in use.shape.parts)
        if not re.search(r"\w", glob):
            continue
        fits = [index for index, entry in enumerate(entries) if entry.kind == kind
                and fnmatchcase(_TAG.sub("x", entry.pattern), glob)]
        people = _people([use], (use.access,))
        for index in fits:
            entry = entries[index]
            if use.access is Access.READ:
                entries[index] = replace(entry, readers=tuple(dict.fromkeys((*entry.readers, *people))))
            else:
                entries[index] = replace(entry, writers=tuple(dict.fromkeys((*entry.writers, *people))))
        if not fits:
            pattern = _starred(use.shape)
            known = made.get(pattern)
            sources = (*known.sources, use.source) if known is not None else (use.source,)
            made[pattern] = Entry(pattern, use.spelling, kind, readers=people if use.access is Access.READ else (),
                                  writers=() if use.access is Access.READ else people, section=(use.source.file,),
                                  sources=tuple(dict.fromkeys(sources)), uncertain="seen only as a wildcard")
    return entries + list(made.values())


def _starred(shape: Shape) -> str:
    parts: list[str | Var] = []
    pieces = [piece for part in shape.parts for piece in (re.split(r"(\*+)", part) if isinstance(part, str)
                                                          else [part])]
    for position, piece in enumerate(pieces):
        if isinstance(piece, str) and piece.startswith("*"):
            last = not any(piece for piece in pieces[position + 1 :])
            parts.append(Var("rest" if last else "any"))
        elif piece:
            parts.append(piece)
    return Shape(tuple(parts)).pattern


def _part_of(skeleton: str, known: set[str]) -> bool:
    """Whether it is how a key that is used begins or ends, or is that key with more of it left open."""
    wider = re.compile(re.escape(skeleton).replace(re.escape("\0"), ".+"), re.DOTALL)
    return any(each.startswith(skeleton) or each.endswith(skeleton) or wider.fullmatch(each) for each in known)


def _looks_alike(
    entries: list[Entry], groups: dict[tuple[str, str], list[Use]], loose: Iterable[tuple[Shape, str, Source]]
) -> list[Entry]:
    known = {skeleton for _, skeleton in groups}
    found: dict[str, Entry] = {}
    for shape, _, source in loose:
        skeleton = _skeleton(shape)
        if skeleton in known or _part_of(skeleton, known):
            continue
        made = found.get(skeleton)
        if made is None:
            found[skeleton] = Entry(shape.pattern, "", "key", section=(source.file,), sources=(source,),
                                    uncertain=LOOKS)
        elif source not in made.sources and len(made.sources) < _MOST_SOURCES:
            found[skeleton] = replace(made, sources=(*made.sources, source))
    return list(found.values())
