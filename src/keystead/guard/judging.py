"""Judges commands against an inventory, one at a time, before they leave. Sends nothing and waits for nothing."""

import difflib
import math
import re
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Final

from keystead.errors import DeclarationError
from keystead.guard.commands import Command, Effect, Place, find_command, is_known
from keystead.guard.fresh import FreshKeys
from keystead.guard.lifetimes import Life, lifetime
from keystead.guard.places import Words, upper
from keystead.guard.reports import UNSURE, Finding, Kind, Tally, caller, shown, skeleton
from keystead.inventory import Entry, Inventory, Rule
from keystead.inventory.expiries import spell_expiry
from keystead.inventory.matching import Matcher

_MOST_RECENT: Final = 8192
_LONGEST_REMEMBERED: Final = 512
_MOST_UNKNOWN_COMMANDS: Final = 200
_VARIABLE: Final = re.compile(r"\{\w+\}")
_DIGITS: Final = re.compile(rb"[0-9]+")
_MOST_STRANGERS: Final = 2000


class NotInInventory(DeclarationError):
    """A command that the inventory does not allow; it was not sent. ``finding`` says how to mend it."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(f"{finding.says}. {finding.mend}")
        self.finding = finding


class Way(Enum):
    """How a command and an entry go together."""

    FINE = "fine"
    UNKNOWN_NAME = "unknown name"
    WRONG_TYPE = "wrong type"
    MAKES = "makes"
    RENEWS = "renews"
    TIMED = "timed"  # the command itself says when the key ends
    PERSISTS = "persists"
    ENDS = "ends"
    UNSEEN = "unseen"  # what it does to the expiry cannot be seen


class Known:
    """What a guard knows of the keys of one entry, or of one shape that nobody wrote down.

    ``fine`` are the names of commands whose only key is the first word and for which nothing more need be asked.
    """

    __slots__ = ("entry", "fine", "kind", "limit_seconds", "longest_set_seconds", "must_expire", "never_expires",
                 "pattern", "seen", "type", "ways")

    def __init__(self, pattern: str, entry: Entry | None, kind: Kind | None = None) -> None:
        self.pattern = pattern
        self.entry = entry
        self.kind = kind
        self.fine: set[str] = set()
        self.ways: dict[str, Way] = {}
        self.seen = 0
        judged = entry if entry is not None and entry.kind == "key" and kind is None else None
        self.type = judged.server_type if judged is not None and judged.type is not None and judged.type.sure else None
        ttl = judged.ttl.value if judged is not None and judged.ttl is not None and judged.ttl.sure else None
        self.must_expire = ttl is not None and ttl.rule is not Rule.NONE
        self.never_expires = ttl is not None and ttl.rule is Rule.NONE and ttl.seconds is None
        self.limit_seconds = ttl.seconds if ttl is not None and ttl.seconds is not None else math.inf

        # How long SET may let the key live without a further look; nothing for a key that SET is not for.
        may_set = self.must_expire and self.type in (None, "string")
        self.longest_set_seconds = self.limit_seconds if may_set else -1.0

    def way(self, place: Place) -> Way:
        """How a command treats keys of this entry."""
        if self.kind is not None:
            return Way.UNKNOWN_NAME
        if self.type is not None and place.types and self.type not in place.types:
            return Way.WRONG_TYPE
        if self.must_expire:
            return _WAYS[place.effect]
        timed = place.effect is Effect.REPLACES or place.effect is Effect.EXPIRES
        return Way.TIMED if timed and (self.never_expires or self.limit_seconds < math.inf) else Way.FINE


_WAYS: Final = {
    Effect.NONE: Way.FINE, Effect.MAKES: Way.MAKES, Effect.REPLACES: Way.TIMED, Effect.EXPIRES: Way.TIMED,
    Effect.RENEWS: Way.RENEWS, Effect.PERSISTS: Way.PERSISTS, Effect.ENDS: Way.ENDS, Effect.UNKNOWN: Way.UNSEEN,
}


class Judge:
    """The memory and the rules of a guard. Its memory is bounded whatever keys it sees."""

    def __init__(self, inventory: Inventory, *, strict: bool, grace_seconds: float) -> None:
        self.inventory = inventory
        self.strict = strict
        self.tally = Tally()
        self.fresh = FreshKeys(grace_seconds)
        self.suspects: dict[Any, Known] = {}
        self.unknown_commands: dict[str, int] = {}
        self.other_commands = 0
        # Keys seen lately, as the caller spelled them. Cleared when full and filled again from ``older``, so that keys
        # in use stay and a million others do not.
        self.recent: dict[Any, Known] = {}
        self._older: dict[Any, Known] = {}
        self._channels: dict[Any, bool] = {}
        self._matcher = Matcher(inventory)
        # A channel may have the name of a key. Of two entries with one pattern the first counts, as for the matcher.
        self.known: dict[str, Known] = {}
        for entry in inventory.entries:
            if entry.kind != "channel":
                self.known.setdefault(entry.pattern, Known(entry.pattern, entry))
        self._strangers: dict[bytes, Known] = {}
        self._loose: dict[str, Known] = {}
        self.passes = self._quick_way()
        self._speaks_of_channels = any(entry.kind == "channel" for entry in inventory.entries)

    def _quick_way(self) -> Callable[[Words], bool]:
        """Lets pass what was judged before, with two look-ups and a count; false for what needs a look.

        One function without calls of its own: this is what nearly every command of a program goes through.
        """
        get, expires = self.recent.get, self.fresh.expires

        def passes(words: Words) -> bool:
            key = words[1] if len(words) > 1 else None
            known = get(key) if key.__class__ is str or key.__class__ is bytes else None
            if known is None:
                return False
            if words[0] in known.fine:
                known.seen += 1
                return True
            if (words[0] == "SET" and len(words) == 5 and words[3] == "EX" and words[4].__class__ is int
                    and words[4] <= known.longest_set_seconds):
                known.seen += 1
                expires(key)
                return True
            return False

        return passes

    def look(self, words: Words) -> Finding | None:
        """Judge one command. Gives the finding when it is the first of its kind; raises it when strict."""
        command, words = find_command(words)
        if command is None:
            self._count_other(words)
            return None
        if command.single:
            return self._look_at_single(command, words) if len(words) > 1 else None
        found: Finding | None = None
        if command.channels is not None:
            self.other_commands += 1
            for channel in command.channels(words):
                found = self._look_at_channel(command, channel) or found
            return found
        for place in command.places:
            for key in place.find(words):
                known = self._recognise(key)
                if known is not None:
                    known.seen += 1
                    found = self._judge(known.way(place), command.name, known, key, words) or found
        return found

    def _look_at_single(self, command: Command, words: Words) -> Finding | None:
        known = self._recognise(words[1])
        if known is None:
            return None
        known.seen += 1
        way = known.ways.get(command.name)
        if way is None:
            way = known.ways[command.name] = known.way(command.places[0])
            if way is Way.FINE:
                known.fine.add(command.name)
        return None if way is Way.FINE else self._judge(way, command.name, known, words[1], words)

    def _judge(self, way: Way, name: str, known: Known, key: Any, words: Words) -> Finding | None:
        if way is Way.FINE:
            return None
        if way is Way.TIMED:
            life = lifetime(name, words)
            if life.__class__ is not float:
                missing = life is Life.FOREVER and known.must_expire
                return self._found(Kind.MISSING_TTL, known, name, key) if missing else None
            if known.never_expires:
                return self._found(Kind.UNEXPECTED_TTL, known, name, key)
            self.fresh.expires(key)
            return self._found(Kind.TTL_TOO_LONG, known, name, key) if life > known.limit_seconds + 1 else None
        if way is Way.MAKES or way is Way.RENEWS:
            if way is Way.RENEWS:
                self.fresh.gone(key)
            self.fresh.made(key, known.pattern, name)
            return None
        if way is Way.UNKNOWN_NAME:
            assert known.kind is not None
            return self._found(known.kind, known, name, key)
        if way is Way.WRONG_TYPE:
            return self._found(Kind.WRONG_TYPE, known, name, key)
        if way is Way.PERSISTS:
            return self._found(Kind.MISSING_TTL, known, name, key)
        if way is Way.ENDS:
            self.fresh.gone(key)
        else:
            self.fresh.expires(key)
        return None

    def _recognise(self, key: Any) -> Known | None:
        if key.__class__ is not str and key.__class__ is not bytes:
            try:
                key = raw_of(key)
            except (TypeError, ValueError):
                return None  # the client will refuse it
        known = self.recent.get(key)
        if known is not None:
            return known
        known = self._older.get(key)
        if known is None:
            raw = key if key.__class__ is bytes else raw_of(key)
            found = self._matcher.find(raw)
            if found is None:
                known = self._stranger(raw)
            elif found.loose:
                pattern = found.entry.pattern
                known = self._loose.setdefault(pattern, Known(pattern, found.entry, Kind.LOOSE))
            else:
                known = self.known[found.entry.pattern]
            if len(raw) > _LONGEST_REMEMBERED:
                return known
        if len(self.recent) >= _MOST_RECENT:
            self._older = dict(self.recent)
            self.recent.clear()
        self.recent[key] = known
        return known

    def _stranger(self, raw: bytes) -> Known:
        """A key that nobody wrote down. Alike ones share what is known of them, as far as there is room."""
        rough = _DIGITS.sub(b"0", raw[:200])
        known = self._strangers.get(rough)
        if known is None:
            known = Known(skeleton(raw), None, Kind.UNDOCUMENTED)
            if len(self._strangers) >= _MOST_STRANGERS:
                self._strangers.clear()
            self._strangers[rough] = known
        return known

    def _look_at_channel(self, command: Command, channel: Any) -> Finding | None:
        known = self._channels.get(channel) if isinstance(channel, (str, bytes)) else None
        raw = b""
        if known is None:
            raw = raw_of(channel)
            known = not self._speaks_of_channels or raw.startswith(b"__") or (
                self._may_reach(raw) if command.wildcards else self._matcher.find_channel(raw) is not None)
            if len(self._channels) >= _MOST_RECENT:
                self._channels.clear()
            if len(raw) <= _LONGEST_REMEMBERED:
                self._channels[channel] = known
        if known:
            return None
        raw = raw or raw_of(channel)
        return self._record(
            Kind.UNDOCUMENTED_CHANNEL, skeleton(raw), command.name, raw,
            lambda: (f"{command.name} names the channel {shown(raw)}, and nothing in {self.inventory.name} fits it",
                     self._nearest(skeleton(raw), "channel")))

    def _may_reach(self, wildcard: bytes) -> bool:
        """Whether a wildcard of channels and a channel of the inventory begin alike."""
        begin = re.split(r"[*?\[\\]", wildcard.decode(errors="backslashreplace"), maxsplit=1)[0]
        patterns = (entry.pattern.partition("{")[0] for entry in self.inventory.entries if entry.kind == "channel")
        return any(each.startswith(begin) or begin.startswith(each) for each in patterns)

    def look_for_late(self) -> Finding | None:
        """Count the keys whose EXPIRE did not come in time."""
        first: Finding | None = None
        for key, waiting in self.fresh.overdue():
            known = self.known[waiting.pattern]
            if len(self.suspects) < 1000:
                self.suspects[key] = known
            first = self._found(Kind.SUSPECTED_TTL, known, waiting.command, key) or first
        return first

    def confirm(self, key: Any, known: Known, ttl_ms: Any) -> None:
        """What the server said of the expiry of a suspected key."""
        self.suspects.pop(key, None)
        if ttl_ms == -1:
            self._found(Kind.MISSING_TTL, known, "a command that makes keys", key, may_raise=False)

    def _found(self, kind: Kind, known: Known, command: str, key: Any, *, may_raise: bool = True) -> Finding | None:
        raw = raw_of(key)
        return self._record(kind, known.pattern, command, raw, lambda: self._explain(kind, known, command, raw),
                            may_raise=may_raise)

    def _record(self, kind: Kind, pattern: str, command: str, raw: bytes, explain: Callable[[], tuple[str, str]], *,
                may_raise: bool = True) -> Finding | None:
        refused = self.strict and may_raise and kind not in UNSURE
        counted = self.tally.count(kind, pattern, command, raw)
        if counted and not refused:
            return None
        says, mend = explain()  # words cost more than a command: only the first of its kind gets them
        found = Finding(kind, pattern, says, mend, caller(), 1, [shown(raw)], {command: 1})
        if not counted:
            self.tally.add(found)
        if refused:
            raise NotInInventory(found)
        return found

    def _explain(self, kind: Kind, known: Known, command: str, raw: bytes) -> tuple[str, str]:
        name, key = self.inventory.name, shown(raw)
        ttl = known.entry.ttl if known.entry is not None else None
        ends = "" if ttl is None else f", and the ttl of {known.pattern} is {spell_expiry(ttl.value)}"
        if kind is Kind.UNDOCUMENTED:
            return f"{command} names {key}, and nothing in {name} fits it", self._nearest(known.pattern, "key")
        if kind is Kind.WRONG_TYPE:
            said = known.entry.type.value if known.entry is not None and known.entry.type is not None else "?"
            return (f"{command} does not work on {key}: {known.pattern} is of type {said}",
                    f"Use a command for that type, or correct the type in {name}.")
        if kind is Kind.UNEXPECTED_TTL:
            return (f"{command} lets {key} expire, and {known.pattern} never should",
                    f"Leave the expiry out, or give the pattern a ttl in {name}.")
        if kind is Kind.TTL_TOO_LONG:
            return (f"{command} lets {key} live too long{ends}",
                    f"Give it a shorter expiry, or correct the ttl in {name}.")
        if kind is Kind.LOOSE:
            return (f"{command} names {key}, which fits {known.pattern} only if a variable holds separators",
                    f"Add it to {name}; or if a value may hold separators, give its variable the kind text there.")
        if kind is Kind.SUSPECTED_TTL:
            return (f"{command} wrote {key}, and no EXPIRE came from this client{ends}",
                    "Send EXPIRE in the same pipeline. guard.confirm asks the server whether it has one.")
        how = {"SET": "Give SET its expiry (ex=…)", "PERSIST": "Leave PERSIST out"}.get(command, "Give it its expiry")
        return f"{command} leaves {key} without an expiry{ends}", f"{how}, or correct the ttl in {name}."

    def _nearest(self, shape: str, kind: str) -> str:
        patterns = {_VARIABLE.sub("*", entry.pattern): entry.pattern for entry in self.inventory.entries
                    if (entry.kind == "channel") == (kind == "channel")}
        near = difflib.get_close_matches(shape, patterns, n=1, cutoff=0.5)
        hint = f"The nearest pattern is {patterns[near[0]]}: correct the {kind}, or add" if near else "Add"
        return f"{hint} its pattern to {self.inventory.name}."

    def _count_other(self, words: Sequence[Any]) -> None:
        self.other_commands += 1
        if not is_known(words):
            name = upper(words[0]) or "?"
            if name in self.unknown_commands or len(self.unknown_commands) < _MOST_UNKNOWN_COMMANDS:
                self.unknown_commands[name] = self.unknown_commands.get(name, 0) + 1


def raw_of(key: Any) -> bytes:
    """A key as it goes to the server."""
    if isinstance(key, str):
        return key.encode(errors="surrogateescape")
    if isinstance(key, (bytes, bytearray, memoryview)):
        return bytes(key)
    return str(key).encode()
