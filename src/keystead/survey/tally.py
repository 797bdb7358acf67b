"""Counts the keys of a walk by the entries of an inventory, and remembers what does not fit.

Memory is bounded by the number of entries, not of keys: counts, and a few examples of each fault.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from keystead.inventory import Entry, Found, Rule
from keystead.keys import EMAIL, IP, spell_key
from keystead.survey.walk import UNKNOWN_TTL, Page

# Upper ends of the classes in which remaining times are counted; what comes after the last one, and what never ends.
TTL_CLASSES: tuple[tuple[float, str], ...] = (
    (60, "1 min"), (3600, "1 h"), (6 * 3600, "6 h"), (86400, "1 day"), (7 * 86400, "1 week"), (30 * 86400, "30 days"),
)
LONGER, NEVER = "longer", "never"
EXAMPLES = 3
# A remaining time is rounded, and many programs add a little jitter.
SLACK_SECONDS, SLACK_SHARE = 2.0, 0.01
LARGE_BYTES = 10 * 1024 * 1024
LOOKED_INTO = 50  # keys of each entry whose arguments are looked at for personal data
_ENDS = [seconds for seconds, _ in TTL_CLASSES]


@dataclass(slots=True)
class Fault:
    """Keys with one fault."""

    keys: int = 0
    examples: list[str] = field(default_factory=list)
    worst: float = 0.0
    words: Counter[str] = field(default_factory=Counter)

    def add(self, raw_key: bytes, *, worst: float = 0.0, word: str = "") -> None:
        self.keys += 1
        self.worst = max(self.worst, worst)
        if word:
            self.words[word] += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(spell_key(raw_key[:300]))


@dataclass(slots=True)
class EntryTally:
    """What was seen of one entry."""

    keys: int = 0
    memory_bytes: int = 0
    largest_bytes: int = 0
    types: Counter[str] = field(default_factory=Counter)
    ttls: Counter[str] = field(default_factory=Counter)
    wrong_type: Fault = field(default_factory=Fault)
    never_expires: Fault = field(default_factory=Fault)
    expires_late: Fault = field(default_factory=Fault)
    unexpected_expiry: Fault = field(default_factory=Fault)
    large: Fault = field(default_factory=Fault)
    personal: Fault = field(default_factory=Fault)


Find = Callable[[bytes], Found | None]
Stray = Callable[[bytes, str, int, int], None]


class Tally:
    """One walk. ``find`` says which entry explains a key; ``stray`` is told of those that none does."""

    def __init__(self, find: Find, stray: Stray) -> None:
        self.entries: dict[str, EntryTally] = {}
        self.strays = EntryTally()
        self._find, self._stray = find, stray

    @property
    def keys(self) -> int:
        return self.strays.keys + sum(tally.keys for tally in self.entries.values())

    @property
    def memory_bytes(self) -> int:
        return self.strays.memory_bytes + sum(tally.memory_bytes for tally in self.entries.values())

    def add_page(self, page: Page) -> None:
        """Count the keys of a page, but for those that have gone meanwhile."""
        for seen in zip(page.keys, page.types, page.ttls_ms, page.memory_bytes, strict=True):
            if seen[1] != "none":
                self.add(*seen)

    def add(self, raw_key: bytes, type: str, ttl_ms: int, memory_bytes: int) -> None:
        """Count one key, as a ``Page`` tells of it."""
        found = self._find(raw_key)
        # One that fits only if a variable holds separators is rather a key that nobody wrote down.
        if found is None or found.loose:
            tally = self.strays
            self._stray(raw_key, type, ttl_ms, memory_bytes)
        else:
            entry = found.entry
            known = self.entries.get(entry.pattern)
            tally = known if known is not None else self.entries.setdefault(entry.pattern, EntryTally())
            if entry.kind == "key":
                _judge(tally, entry, raw_key, type, ttl_ms)
                if tally.keys < LOOKED_INTO and (what := _personal(found.arguments.values())):
                    tally.personal.add(raw_key, word=what)
        tally.keys += 1
        tally.memory_bytes += memory_bytes
        tally.types[type] += 1
        if ttl_ms != UNKNOWN_TTL:
            tally.ttls[_class(ttl_ms)] += 1
        if memory_bytes > tally.largest_bytes:
            tally.largest_bytes = memory_bytes
        if memory_bytes > LARGE_BYTES:
            tally.large.add(raw_key, worst=memory_bytes)


def _judge(tally: EntryTally, entry: Entry, raw_key: bytes, type: str, ttl_ms: int) -> None:
    wanted = entry.server_type
    if type and wanted is not None and type != wanted and entry.type is not None and entry.type.sure:
        tally.wrong_type.add(raw_key, word=type)
    if entry.ttl is None or not entry.ttl.sure or ttl_ms == UNKNOWN_TTL:
        return
    expiry = entry.ttl.value
    if expiry.rule is Rule.NONE:
        # Some stay until they are ended, and then for a while.
        if ttl_ms >= 0 and (expiry.seconds is None or ttl_ms / 1000 > expiry.seconds + SLACK_SECONDS):
            tally.unexpected_expiry.add(raw_key, worst=ttl_ms / 1000)
    elif ttl_ms < 0:
        tally.never_expires.add(raw_key)
    elif expiry.seconds is not None and ttl_ms / 1000 > expiry.seconds * (1 + SLACK_SHARE) + SLACK_SECONDS:
        tally.expires_late.add(raw_key, worst=ttl_ms / 1000)


def _class(ttl_ms: int) -> str:
    if ttl_ms < 0:
        return NEVER
    place = bisect_left(_ENDS, ttl_ms / 1000)
    return TTL_CLASSES[place][1] if place < len(TTL_CLASSES) else LONGER


def _personal(values: Iterable[str]) -> str:
    for value in values:
        if "@" in value and EMAIL.accepts(value):
            return "an email address"
        if ("." in value or ":" in value) and IP.accepts(value):
            return "an IP address"
    return ""
