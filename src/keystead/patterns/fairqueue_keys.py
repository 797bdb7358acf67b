"""The keys of a fair queue: what they are called, and how scripts are told of them.

A queue named ``Q`` has the fixed keys ``Q`` (the ring), ``Q:deficit``, ``Q:sleep``, ``Q:parked``, ``Q:stat``,
``Q:conf``, ``Q:bell``, ``Q:parked:order``, ``Q:producecheck`` and ``Q:blacklist``; for each shard ``Q_<shard>`` and
what is derived from it, and ``Q:blacklist:<shard>``; for each id ``Q:producecheck:<id>``; for each declared field
``Q:ix:<field>``. All of them share the tag ``Q``, so that a queue lives in one slot.

The keepalive of a leased item is a bare UUID, ``<item_uuid>``, in every queue of a room: one pattern, hence one
declaration, while the tag differs by queue. ``Keepalives`` is that declaration. It numbers its queues, and a UUID ends
with the two digits of its queue's number, so that the key alone says whose it is and the tag follows from the key. An
id made by ``FairQueue.new_id`` carries the number and is its own keepalive. Any other id, a task's or one that came
from another queue, gets a UUID made from queue and id; so one id in two queues never shares a lease.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from keystead.errors import DeclarationError
from keystead.keys import (
    AtMost,
    Declaration,
    Exactly,
    Keyspace,
    Layout,
    ListKey,
    MapKey,
    Matching,
    Sliding,
    SortedSetKey,
    StringKey,
    Tag,
)
from keystead.patterns.facts import PatternFacts

LONGEST_LEASE_SECONDS: Final = 86400
LONGEST_BLACKLIST_SECONDS: Final = 90 * 86400
DEAD_SECONDS: Final = 7 * 86400
PARK_SECONDS: Final = 900
SHARD: Final = Matching("shard", r"[A-Za-z0-9_-]{1,64}", examples=("acme", "t-0042", "Tenant_7"),
                        says="1 to 64 letters, digits, _ or -")
ITEM_ID: Final = Matching(
    "item id", r"[A-Za-z0-9._-]{20,64}", says="20 to 64 letters, digits, ., _ or -",
    examples=("0199f3a2-7d41-7abc-9def-0123456789ab", "r_0199f3a2-7d41-7abc-9def-0123456789ab.1.2"),
)
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")


class QueueGate(msgspec.Struct, frozen=True):
    """Who may produce. ``paused`` and ``drain`` refuse everyone alike; the word tells operators why."""

    state: str = "open"
    max_shard: int = 10_000
    max_total: int = 1_000_000
    max_body: int = 65_536


class BlacklistReason(msgspec.Struct, frozen=True):
    """Why a shard is not served, and until when (unix milliseconds)."""

    value: str
    until: float


@dataclass(frozen=True, slots=True)
class NumberedTag:
    """The tag of the queue whose number a UUID ends with."""

    queues: tuple[str, ...]
    variable: str

    @property
    def variables(self) -> tuple[str, ...]:
        return (self.variable,)

    def describe(self) -> str:
        return f"the queue whose number ends {self.variable}"

    def of(self, arguments: Mapping[str, str], lane: int = 0) -> str:
        number = int(arguments[self.variable][-2:], 16)
        if number >= len(self.queues):
            raise DeclarationError(f"{arguments[self.variable]} ends with the number of no queue")
        return self.queues[number]

    def lane_in(self, found: str, arguments: Mapping[str, str]) -> int | None:
        return 0 if found == self.of(arguments) else None


class Keepalives:
    """The keepalive keys of the queues of one room, declared once: ``Keepalives(REPORTING, QUEUE_NAMES)``.

    A queue's number is its place in ``queues``, so add new names at the end. (Leases of a queue whose number changed
    count as lapsed; nothing is lost.)
    """

    def __init__(self, keyspace: Keyspace, queues: tuple[str, ...], *, pattern: str = "{item_uuid}",
                 purpose: str = "lease of an item in a queue: <consumer>:<attempt>; there while its holder lives",
                 writers: tuple[str, ...] = (), readers: tuple[str, ...] = ()) -> None:
        if not 1 <= len(queues) <= 256 or len(set(queues)) != len(queues):
            raise DeclarationError("keepalives serve between 1 and 256 queues, each named once")
        self.queues = queues
        tag: Tag = NumberedTag(queues, pattern.partition("{")[2].partition("}")[0])
        self.key = StringKey(
            keyspace, pattern, str, tag=tag, ttl=AtMost(LONGEST_LEASE_SECONDS), purpose=purpose, writers=writers,
            readers=readers,
            scripts=_scripts("take", "produce", "beat", "finish", "requeue", "park", "lapse", "remove_by"),
        )

    def number_of(self, queue: str) -> int:
        if queue not in self.queues:
            raise DeclarationError(f"{queue} is not among the queues of its keepalives: {', '.join(self.queues)}")
        return self.queues.index(queue)


@dataclass(frozen=True)
class Names:
    """Every name of a queue under one layout: keys as they are, templates with ``%s`` for what a script reads."""

    base: tuple[bytes, ...]
    conf: bytes
    gate: bytes
    parked: bytes
    order: bytes
    listed: bytes
    ready: bytes
    delayed: bytes
    leased: bytes
    items: bytes
    dead: bytes
    blacklist: bytes
    mark: bytes
    index: bytes
    alive: bytes
    park: bytes
    queue: bytes
    number: bytes

    def at(self, now: float) -> tuple[int | bytes, ...]:
        """The arguments that most scripts begin with: the time, and the templates of a shard's keys."""
        return round(now * 1000), self.ready, self.delayed, self.leased, self.items

    def keepalive(self, item_id: str) -> bytes:
        """The same name that the scripts find; see ``_alive.lua``."""
        if item_id[-2:].encode() == self.number and _UUID.fullmatch(item_id):
            return self.alive % item_id.encode()
        made = hashlib.sha1(self.queue + item_id.encode(), usedforsecurity=False).hexdigest()
        uuid = f"{made[:8]}-{made[8:12]}-8{made[13:16]}-a{made[17:20]}-{made[20:30]}"
        return self.alive % (uuid.encode() + self.number)


class QueueKeys:
    """Declares the keys of one queue, and renders their names for scripts."""

    def __init__(
        self, keyspace: Keyspace, name: str, *, shard: str, keepalives: Keepalives, parks: Mapping[str, str],
        fields: tuple[str, ...], mark_seconds: float, facts: PatternFacts,
    ) -> None:
        self.name = name
        self.fields = fields
        self.keepalives = keepalives
        self.number = keepalives.number_of(name)
        variable = shard.strip("{}")
        if facts.get("tag") is not None or facts.get("kinds") is not None:
            raise DeclarationError(f"{name}: a fair queue's tag is its name, and its variables have kinds of their own")

        def known(what: str, *scripts: str, shards: bool = False, **more: Any) -> Any:
            return {
                "purpose": f"{facts['purpose']}: {what}", "writers": facts.get("writers", ()),
                "readers": facts.get("readers", ()), "tag": name, "scripts": _scripts(*scripts),
                **({"kinds": {variable: SHARD}} if shards else {}), **more,
            }

        of_shard = f"{name}_{{{variable}}}"
        moves = ("produce", "take", "finish", "requeue", "move", "park", "wake_parked", "lapse", "ripen", "remove_by",
                 "blacklist_clear", "retry_dead")
        self.ring = ListKey(keyspace, name, str, **known("ring of shards with something to serve; head is next",
                                                         *moves))
        self.deficit = MapKey(keyspace, f"{name}:deficit", str, **known(
            "credit of each shard in the ring; !turn whose turn is half used; ~shard what it owes, and until when",
            *moves))
        self.sleep = SortedSetKey(
            keyspace, f"{name}:sleep", str, member="shard, or ~shard for its debt and dead",
            score="when to look at it, unix ms", **known("shards with nothing to serve now", *moves))
        self.stat = MapKey(keyspace, f"{name}:stat", int, **known("counts of items by place, and of events", *moves))
        self.bell = ListKey(keyspace, f"{name}:bell", str, **known(
            "at most one element; idle consumers block on it", *moves))
        self.conf = MapKey(keyspace, f"{name}:conf", str, fields=(
            "quantum", "cap", "lease_ms", "max_attempts", "w:{shard}", "cap:{shard}"),
            **known("settings made at run time", "produce", "take", "finish", "requeue", "lapse"))
        self.gate = StringKey(keyspace, f"{name}:producecheck", QueueGate, **known("who may produce", "produce"))
        self.parked = SortedSetKey(keyspace, f"{name}:parked", bytes, member="shard NUL id NUL park key",
                                   score="deadline, unix ms", **known("parked items", "take", "park", "wake_parked",
                                                                      "ripen", "remove_by"))
        self.order = SortedSetKey(
            keyspace, f"{name}:parked:order", bytes, member="park key NUL parked at NUL id NUL shard", score="0",
            **known("parked items of each park key, the longest waiting first", "park", "wake_parked", "ripen",
                    "remove_by"))
        self.listed = SortedSetKey(keyspace, f"{name}:blacklist", str, member="shard", score="end, unix ms", **known(
            "blacklisted shards", "blacklist", "blacklist_clear", "blacklist_page"))
        self.blacklist = StringKey(
            keyspace, f"{name}:blacklist:{{{variable}}}", list[BlacklistReason], ttl=AtMost(LONGEST_BLACKLIST_SECONDS),
            **known("why a shard is not served; while it exists nothing is leased", "take", "produce", "blacklist",
                    "blacklist_clear", "blacklist_page", shards=True))
        self.mark = StringKey(keyspace, f"{name}:producecheck:{{item_id}}", str, ttl=Exactly(mark_seconds), **known(
            "an id that was accepted, and its shard", "produce", "finish", "move", kinds={"item_id": ITEM_ID}))
        self.index = SortedSetKey(keyspace, f"{name}:ix:{{field}}", bytes, member="value NUL shard NUL id", score="0",
                                  **known("items by a declared field", "produce", "finish", "move", "remove_by"))
        self.ready = SortedSetKey(keyspace, of_shard, str, member="item id", score="priority, then age", **known(
            "items ready to be served", *moves, shards=True))
        self.delayed = SortedSetKey(keyspace, f"{of_shard}:delayed", str, member="item id", score="due, unix ms",
                                    **known("items not yet due", *moves, shards=True))
        self.leased = SortedSetKey(
            keyspace, f"{of_shard}:leased", str, member="item id", score="when to look at the keepalive, unix ms",
            **known("items in a consumer's hands", *moves, shards=True))
        self.items = MapKey(
            keyspace, f"{of_shard}:items", bytes, fields=("!parked", "{item_id}"),
            personal=facts.get("personal", False),
            **known("bodies, and #c cost, #a attempts, #t stored at, #p priority, #f fields, #k park", *moves,
                    shards=True))
        self.dead = SortedSetKey(
            keyspace, f"{of_shard}:dead", str, member="item id", score="when it died, unix ms",
            ttl=Sliding(DEAD_SECONDS, reads=False),
            **known("items given up", "lapse", "requeue", "prune_dead", "retry_dead", "remove_by", shards=True))
        self.parks = {
            park: MapKey(keyspace, pattern, bytes, ttl=Sliding(PARK_SECONDS, reads=False), **known(
                "items that wait for one signal, and !epoch, the count of signals", "park", "wake_parked", "ripen",
                "remove_by"))
            for park, pattern in parks.items()
        }
        self._names: dict[Layout, Names] = {}

    def names(self, layout: Layout) -> Names:
        found = self._names.get(layout)
        if found is None:
            found = self._names[layout] = self._rendered(layout)
        return found

    def _rendered(self, layout: Layout) -> Names:
        def name(declaration: Declaration) -> bytes:
            return declaration.key(layout)

        prefix = f"{{{self.name}}}" if layout is not Layout.PLAIN else ""

        def template(declaration: Declaration) -> bytes:
            parts = (part.replace("%", "%%") if isinstance(part, str) else "%s" for part in declaration.template.parts)
            return (prefix.replace("%", "%%") + "".join(parts)).encode()

        return Names(
            base=tuple(name(each) for each in (self.ring, self.deficit, self.sleep, self.stat, self.bell)),
            conf=name(self.conf), gate=name(self.gate), parked=name(self.parked), order=name(self.order),
            listed=name(self.listed),
            ready=template(self.ready), delayed=template(self.delayed), leased=template(self.leased),
            items=template(self.items), dead=template(self.dead), blacklist=template(self.blacklist),
            mark=template(self.mark), index=template(self.index), alive=template(self.keepalives.key),
            park=f"{prefix}%s".encode(), queue=self.name.encode(), number=b"%02x" % self.number,
        )


def _scripts(*names: str) -> tuple[str, ...]:
    return tuple(f"fairqueue/{name}.lua" for name in names)
