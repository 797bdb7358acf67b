"""Holds an inventory against a live server and against code, and says where they disagree.

Each of the three may be missing: what cannot be compared is not judged. A fact of which its source was not sure never
makes a finding by itself.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from keystead.inventory import Entry, Expiry, Inventory, Matcher, Rule, shape, spell_expiry
from keystead.lengths import in_one_unit
from keystead.survey.covering import Patterns
from keystead.survey.findings import Drift, Finding, Severity, in_order
from keystead.survey.tally import EntryTally, Fault, Tally

TTL_SHARE: Final = 0.02  # two expiries that differ by less than this are the same
_PERSONAL_KINDS: Final = ("email", "ip", "phone")
# Names of variables that say whose data it is, in the languages of many documents.
_PERSONAL_NAMES: Final = frozenset((
    "email", "mail", "email_address", "phone", "phone_number", "mobile", "msisdn", "ip", "ip_address", "client_ip",
    "ssn", "passport", "username", "full_name", "iban",
))


@dataclass(frozen=True, slots=True)
class Live:
    """What a walk found: counts by entry, what no entry explains as patterns, and whether it saw everything.

    ``unfinished``: it ended before it had seen all that it was asked to see.
    """

    tally: Tally
    strays: Inventory
    whole: bool = True
    unfinished: bool = False


def compare(inventory: Inventory, live: Live | None = None, code: Inventory | None = None) -> tuple[Finding, ...]:
    """Every disagreement, the worst first."""
    matcher = Matcher(inventory)
    found: list[Finding] = [*_ambiguous(matcher), *_personal(inventory, live)]
    if live is not None:
        found += _undocumented(matcher, live.strays)
        for entry in inventory.entries:
            if (tally := _tally_of(entry, live)) is not None:
                found += _on_server(entry, tally)
    if code is not None:
        found += _in_code(inventory, code)
    found += _nowhere(inventory, live, code)
    return in_order(found)


def _tally_of(entry: Entry, live: Live | None) -> EntryTally | None:
    """What was seen of an entry. A channel has no keys, though keys may bear its name."""
    return live.tally.entries.get(entry.pattern) if live is not None and entry.kind != "channel" else None


# -- the inventory by itself ----------------------------------------------------------------------------------------


def _ambiguous(matcher: Matcher) -> Iterable[Finding]:
    for overlap in matcher.overlaps:
        first, second = overlap.first, overlap.second
        yield Finding(
            Drift.AMBIGUOUS, first.pattern, f"could own the same keys as {second.pattern}",
            "make one of them more literal, or describe them as one", (*first.sources[:1], *second.sources[:1]),
            about=second.pattern,
        )


def _personal(inventory: Inventory, live: Live | None) -> Iterable[Finding]:
    speaks = any(entry.personal is not None for entry in inventory.entries)
    for entry in inventory.entries:
        if entry.personal is not None and entry.personal.value:
            continue
        names = [name for name, kind in _variables(entry) if name in _PERSONAL_NAMES or kind in _PERSONAL_KINDS]
        tally = _tally_of(entry, live)
        seen = tally.personal if tally is not None else Fault()
        if not names and not seen.keys:
            continue
        what = f"{{{names[0]}}} names a person" if names else f"its keys hold {seen.words.most_common(1)[0][0]}"
        denied = ", and the inventory says there is no personal data" if entry.personal is not None else ""
        yield Finding(
            Drift.PERSONAL, entry.pattern, what + denied, "mark it as personal data, so that it is found and erased",
            entry.sources[:1], seen.keys, tuple(seen.examples),
            weaker=None if speaks else Severity.NOTE,  # an inventory that never speaks of it does not deny it either
        )


def _variables(entry: Entry) -> Iterable[tuple[str, str]]:
    kinds = dict(entry.variables)
    for piece in entry.pattern.split("{")[1:]:
        name = piece.split("}")[0]
        yield name, kinds.get(name, "")


# -- the server -----------------------------------------------------------------------------------------------------


def _undocumented(matcher: Matcher, strays: Inventory) -> Iterable[Finding]:
    for stray in strays.entries:
        hint = _hint(stray, matcher)
        seen = stray.observed
        keys = seen.keys if seen is not None else 0
        kind = f" ({stray.type.value})" if stray.type is not None else ""
        says = f"{_count(keys)}{kind} on the server, none in the inventory{hint}" if stray.pattern else \
            "the name of a key on the server is empty"
        yield Finding(
            Drift.UNDOCUMENTED, stray.pattern, says,
            "describe it, or delete the keys", stray.sources, keys, stray.examples[:3],
        )


def _hint(stray: Entry, matcher: Matcher) -> str:
    loosely = matcher.find(stray.examples[0].encode()) if stray.examples else None
    if loosely is not None:
        return f"; they would be {loosely.entry.pattern} if a variable of it held separators"
    return _near(stray.pattern, matcher.inventory)


def _near(pattern: str, inventory: Inventory) -> str:
    shapes = {shape(entry.pattern): entry.pattern for entry in inventory.entries}
    close = get_close_matches(shape(pattern), shapes, n=1, cutoff=0.75)
    return f"; perhaps {shapes[close[0]]} is meant" if close else ""


def _on_server(entry: Entry, tally: EntryTally) -> Iterable[Finding]:
    def finding(kind: Drift, fault: Fault, says: str, mend: str) -> Finding:
        return Finding(kind, entry.pattern, says, mend, entry.sources[:1], fault.keys, tuple(fault.examples))

    if (fault := tally.wrong_type).keys:
        seen = ", ".join(word for word, _ in fault.words.most_common(3))
        wanted = entry.type.value if entry.type is not None else ""
        yield finding(Drift.WRONG_TYPE, fault,
                      f"{_share(fault, tally)} {_are(fault)} {seen}; the inventory says {wanted}",
                      "correct the inventory, or delete what was written wrongly")
    said = spell_expiry(entry.ttl.value) if entry.ttl is not None else ""
    if (fault := tally.never_expires).keys:
        yield finding(Drift.NEVER_EXPIRES, fault,
                      f"{_share(fault, tally)} never {_expire(fault)}; the inventory says {said}",
                      "find the writer that forgets the expiry")
    if (fault := tally.expires_late).keys:
        latest = in_one_unit(fault.worst)
        yield finding(Drift.EXPIRES_LATE, fault,
                      f"{_share(fault, tally)} {_expire(fault)} in up to {latest}; the inventory says {said}",
                      "correct the inventory or the writer")
    if (fault := tally.unexpected_expiry).keys:
        bounded = entry.ttl is not None and entry.ttl.value.seconds is not None
        yield finding(Drift.UNEXPECTED_EXPIRY, fault,
                      f"{_share(fault, tally)} will expire in up to {in_one_unit(fault.worst)}; "
                      f"the inventory says {said if bounded else 'they stay'}",
                      "correct the inventory, or remove the expiry with PERSIST")
    if (fault := tally.large).keys:
        most = f"{fault.worst / 1024 / 1024:,.0f} MiB"
        yield finding(Drift.LARGE, fault, f"a single key takes {most}" if fault.keys == 1 else
                      f"{_count(fault.keys)} are large, and one takes {most}",
                      "split it, or bound it")


# -- the code -------------------------------------------------------------------------------------------------------


def _in_code(inventory: Inventory, code: Inventory) -> Iterable[Finding]:
    described = Patterns(inventory.entries)
    for used in code.entries:
        if used.uncertain or not used.sources:
            continue
        known = described.like(used)
        if not known:
            hint = _near(used.pattern, inventory)
            yield Finding(Drift.ONLY_IN_CODE, used.pattern, f"is used in the code, and not in the inventory{hint}",
                          "describe it", used.sources[:5])
        elif len(known) == 1:
            yield from _differs(known[0], used)


def _differs(entry: Entry, used: Entry) -> Iterable[Finding]:
    where = (*used.sources[:3], *entry.sources[:1])
    if entry.type is not None and used.type is not None and entry.type.sure and used.type.sure:
        wanted, seen = entry.server_type, used.server_type
        if wanted is not None and seen is not None and wanted != seen:
            yield Finding(Drift.CODE_TYPE, entry.pattern,
                          f"is used as {used.type.value} in the code; the inventory says {entry.type.value}",
                          "correct one of them", where, about=used.type.value)
    if entry.ttl is not None and used.ttl is not None and entry.ttl.sure and used.ttl.sure \
            and not _same(entry.ttl.value, used.ttl.value):
        yield Finding(Drift.CODE_EXPIRY, entry.pattern,
                      f"gets the expiry {spell_expiry(used.ttl.value)} in the code; "
                      f"the inventory says {spell_expiry(entry.ttl.value)}",
                      "correct one of them", where, about=spell_expiry(used.ttl.value))


def _same(said: Expiry, used: Expiry) -> bool:
    """Whether the code does what is said. What one of them leaves open is no disagreement."""
    if said.rule is Rule.NONE and said.seconds is not None:  # it stays until it is ended, and then for a while
        return used.rule is Rule.NONE or used.seconds is None or used.seconds <= said.seconds * (1 + TTL_SHARE)
    if Rule.NONE in (said.rule, used.rule):
        return said.rule is used.rule
    if said.seconds is None or used.seconds is None:
        return True
    if said.rule in (Rule.AT_MOST, Rule.UNTIL):
        return used.seconds <= said.seconds * (1 + TTL_SHARE)
    return abs(said.seconds - used.seconds) <= said.seconds * TTL_SHARE


# -- what is nowhere ------------------------------------------------------------------------------------------------


def _nowhere(inventory: Inventory, live: Live | None, code: Inventory | None) -> Iterable[Finding]:
    used = Patterns(entry for entry in code.entries) if code is not None else None
    for entry in inventory.entries:
        if entry.kind == "opaque":
            continue
        coded = bool(used.like(entry)) if used is not None else None
        # Channels leave no keys, and a walk that did not see everything proves nothing.
        seen = entry.pattern in live.tally.entries if live is not None and live.whole and entry.kind == "key" else None
        if coded is False and seen is False:
            yield Finding(Drift.UNUSED, entry.pattern, "is neither on the server nor in the code",
                          "delete the entry, if nothing uses it any more", entry.sources[:1])
        elif coded is False:
            yield Finding(Drift.NOT_IN_CODE, entry.pattern, "no line of the code was seen to use it",
                          "look whether anything still uses it", entry.sources[:1])


def _count(keys: int) -> str:
    return "1 key" if keys == 1 else f"{keys:,} keys"


def _share(fault: Fault, tally: EntryTally) -> str:
    return f"all {_count(fault.keys)}" if fault.keys == tally.keys and fault.keys > 1 else \
        f"{_count(fault.keys)}" if tally.keys == fault.keys else f"{fault.keys:,} of {_count(tally.keys)}"


def _are(fault: Fault) -> str:
    return "is" if fault.keys == 1 else "are"


def _expire(fault: Fault) -> str:
    return "expires" if fault.keys == 1 else "expire"
