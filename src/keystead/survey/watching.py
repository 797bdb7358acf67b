"""What changes on a server while somebody watches, by pattern.

From the server's own keyspace events if they are switched on; nobody switches them on here, since every event costs the
server. Otherwise from one bounded look after another, of which only the differences are told.
"""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field

from keystead.engine import CutOff, ErrorReply, Listener, Lookout, Valkey
from keystead.errors import Unavailable
from keystead.inventory import Entry, Inventory, Matcher
from keystead.inventory.learning import Tree, learned_from
from keystead.survey.learn import learn
from keystead.survey.snapshots import Snapshot, growth, take
from keystead.survey.stride import Stride

SAMPLE_KEYS = 100_000
MOST_WAITING = 50_000
MOST_WAITING_BYTES = 32 * 1024 * 1024
DRAIN_SECONDS = 0.1
GONE = frozenset(("del", "expired", "evicted", "rename_from", "move_from"))


@dataclass(slots=True)
class Changes:
    """What happened to the keys of one pattern in one frame."""

    events: int = 0
    written: int = 0
    gone: int = 0
    expired: int = 0
    kinds: Counter[str] = field(default_factory=Counter)

    def add(self, event: str) -> None:
        self.events += 1
        self.kinds[event] += 1
        if event in ("expired", "evicted"):
            self.expired += 1
        if event in GONE:
            self.gone += 1
        else:
            self.written += 1


@dataclass(frozen=True, slots=True)
class Frame:
    """Some seconds of a watch. From events ``changes`` says all; from looks only how many keys came and went.

    ``missed`` counts events that came too fast to be looked at.
    """

    seconds: float
    changes: dict[str, Changes]
    by_events: bool
    missed: int = 0

    def as_dict(self) -> dict[str, object]:
        return {"seconds": round(self.seconds, 3), "by": "events" if self.by_events else "looks", "missed": self.missed,
                "patterns": [{"pattern": pattern, "events": each.events, "written": each.written, "gone": each.gone,
                              "expired": each.expired, "kinds": dict(each.kinds)}
                             for pattern, each in self.busiest()]}

    def busiest(self) -> list[tuple[str, Changes]]:
        return sorted(self.changes.items(), key=lambda item: (-item[1].events, item[0]))


async def events_are_on(look: Lookout) -> bool:
    """Whether every server tells of changes to keys. A server that does not say is taken for one that does not."""
    for node in look.nodes:
        try:
            reply = await node.call(("CONFIG", "GET", "notify-keyspace-events"), repeat=True)
        except ErrorReply:
            return False
        flags = reply.get(b"notify-keyspace-events", b"") if isinstance(reply, dict) else reply[1] if reply else b""
        if b"K" not in flags or not set(flags) - set(b"KE"):
            return False
    return True


async def watch(
    look: Lookout, *, inventory: Inventory | None = None, every_seconds: float = 2.0, stride: Stride | None = None
) -> AsyncGenerator[Frame, None]:
    """Frame after frame, until the caller has enough. Raises ``Unavailable`` when the server goes away."""
    if await events_are_on(look):
        known = inventory or await learn(look, sample=SAMPLE_KEYS, values=False, stride=stride)
        async for frame in _by_events(look, Matcher(known), every_seconds):
            yield frame
    else:
        async for frame in _by_looks(look, inventory, every_seconds, stride):
            yield frame


async def _by_events(look: Lookout, matcher: Matcher, every_seconds: float) -> AsyncIterator[Frame]:
    async with contextlib.AsyncExitStack() as closing:
        async def listen(node: Valkey) -> Listener:
            return await closing.enter_async_context(node.hub().subscribe(
                patterns=("__keyspace@*__:*",), most_messages=MOST_WAITING, most_bytes=MOST_WAITING_BYTES))

        listeners = [await listen(node) for node in look.nodes]
        began = time.monotonic()
        while True:
            frame = _Counting(matcher)
            while (left := began + every_seconds - time.monotonic()) > 0:
                await asyncio.sleep(min(left, DRAIN_SECONDS))
                for place, listener in enumerate(listeners):
                    await frame.drain(listener)
                    if isinstance(listener.failure, CutOff):
                        frame.missed += listener.failure.dropped
                        listeners[place] = await listen(look.nodes[place])
            for node in look.nodes:  # a server that is away sends no events, and would look quiet
                await node.call(("ECHO", "here"), repeat=True)
            now = time.monotonic()
            yield Frame(now - began, frame.changes(), by_events=True, missed=frame.missed)
            began = now


class _Counting:
    """The events of one frame. Keys that no entry explains are put together by what they look like."""

    def __init__(self, matcher: Matcher) -> None:
        self.missed = 0
        self._matcher = matcher
        self._known: dict[str, Changes] = {}
        self._strays: dict[bytes, list[str]] = {}
        self._tree = Tree(most_groups=500)

    async def drain(self, listener: Listener) -> None:
        while listener.waiting:
            message = await anext(listener)
            raw_key, event = message.channel.partition(b"__:")[2], message.payload.decode(errors="replace")
            found = self._matcher.find(raw_key)
            if found is not None:
                self._known.setdefault(found.entry.pattern, Changes()).add(event)
            elif len(self._strays) < MOST_WAITING:
                if raw_key not in self._strays:
                    self._tree.add(raw_key, "", -1, 0)
                self._strays.setdefault(raw_key, []).append(event)

    def changes(self) -> dict[str, Changes]:
        if self._strays:
            matcher = Matcher(Inventory("", tuple(_bare(named.pattern) for named, _ in learned_from(self._tree))))
            for raw_key, events in self._strays.items():
                found = matcher.find(raw_key)
                changes = self._known.setdefault(found.entry.pattern if found is not None else "(other)", Changes())
                for event in events:
                    changes.add(event)
        return self._known


def _bare(pattern: str) -> Entry:
    return Entry(pattern)


async def _by_looks(
    look: Lookout, inventory: Inventory | None, every_seconds: float, stride: Stride | None
) -> AsyncIterator[Frame]:
    before = await _look(look, inventory, stride)
    while True:
        await asyncio.sleep(every_seconds)
        now = await _look(look, before.inventory, stride)
        changes: dict[str, Changes] = {}
        for each in growth(before, now):
            came = each.keys_now - each.keys_before
            if came or each.memory_now != each.memory_before:
                changes[each.pattern] = Changes(events=abs(came), written=max(0, came), gone=max(0, -came))
        yield Frame(now.at - before.at, changes, by_events=False)
        before = now


async def _look(look: Lookout, inventory: Inventory | None, stride: Stride | None) -> Snapshot:
    snapshot = await take(look, time.monotonic(), inventory=inventory, stride=stride)
    if snapshot.inventory.partial:
        raise Unavailable(snapshot.inventory.partial)
    return snapshot
