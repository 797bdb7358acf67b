"""Presence: who is there, by keys that expire unless they are beaten; many are read at once.

``docs/patterns/presence.md`` says when to choose it and what it cannot promise.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Unpack

from keystead.engine import Script, Valkey
from keystead.engine.scripts import ScriptRunner
from keystead.errors import DeclarationError, Unavailable
from keystead.keys import (
    Declaration,
    Exactly,
    Executor,
    FlagKey,
    Keyspace,
    Layout,
    StringKey,
    Value,
    key_slot,
)
from keystead.patterns.facts import PatternFacts
from keystead.telemetry import counts, logger

LEAVE = Script("keystead.patterns", "scripts/presence/leave.lua")
MOST_KEYS = 500  # in one MGET

counts.describe("presence_beats", "signs of life that were written")
counts.describe("presence_beats_skipped", "signs of life that were not written because the last one is fresh")

_log = logger("patterns")


class Presence:
    """One key for each who is there, ``seconds`` from the last beat. ``pattern`` ends in the variable that says who.

    ``skip_seconds``: a process that wrote a beat so recently does not write another. ``grace_seconds``: how long after
    the last connection closed somebody still counts as there. On a cluster a tag by lanes keeps reading many cheap.
    """

    def __init__(
        self, keyspace: Keyspace, pattern: str, *, seconds: float = 180.0, skip_seconds: float = 45.0,
        grace_seconds: float = 10.0, **facts: Unpack[PatternFacts],
    ) -> None:
        if skip_seconds >= seconds:
            raise DeclarationError(f"{pattern}: beats that are skipped for longer than the key lives keep nobody there")
        self.seconds, self.skip_seconds, self.grace_seconds = seconds, skip_seconds, grace_seconds
        self.key = FlagKey(keyspace, pattern, ttl=Exactly(seconds), **facts)

    def beat(self, on: Executor, *who: Value) -> Awaitable[None]:
        """Write a sign of life."""
        return self.key.at(*who).raise_flag(on)

    def gone(self, on: Executor, *who: Value) -> Awaitable[bool]:
        """Take the sign of life away; says whether there was one."""
        return self.key.at(*who).lower_flag(on)

    async def online(self, valkey: Valkey, who: Iterable[Value], **others: Value) -> set[str]:
        """Who of these is there, as texts; the last variable is who, ``others`` are those before it.

        At most 500 keys in one command, one command at least for each slot, all of them in one write per node.
        """
        found = await many(valkey, self.key, who, others)
        return {name for name, raw in found.items() if raw is not None}

    @asynccontextmanager
    async def open(self, valkey: Valkey) -> AsyncIterator["PresenceHere"]:
        """Presence as one process keeps it, for the connections it serves."""
        here = PresenceHere(self, valkey)
        try:
            yield here
        finally:
            await here.aclose()


class PresenceHere:
    """Counts the connections of each person in this process, writes their beats, and takes them away after the last."""

    def __init__(self, presence: Presence, valkey: Valkey) -> None:
        self._presence, self._valkey = presence, valkey
        self._connections: Counter[tuple[Value, ...]] = Counter()
        self._written_at: dict[tuple[Value, ...], float] = {}  # of the beats that others are skipped for; oldest first
        self._leaving: dict[tuple[Value, ...], asyncio.Task[None]] = {}

    def connections(self, *who: Value) -> int:
        """How many connections this process has of somebody."""
        return self._connections[who]

    async def arrived(self, *who: Value) -> None:
        """A connection was opened. Counts as a beat."""
        self._connections[who] += 1
        leaving = self._leaving.pop(who, None)
        if leaving is not None:
            leaving.cancel()
        await self.beat(*who)

    async def beat(self, *who: Value) -> bool:
        """A sign of life came; says whether it was written, or skipped because the last one is fresh."""
        now = asyncio.get_running_loop().time()
        self._forget_before(now - self._presence.skip_seconds)
        if who in self._written_at:
            counts.add("presence_beats_skipped")
            return False
        self._written_at[who] = now  # before the write, so that beats at the same time are one
        try:
            await self._presence.beat(self._valkey, *who)
        except BaseException:
            self._written_at.pop(who, None)
            raise
        counts.add("presence_beats")
        return True

    def _forget_before(self, limit: float) -> None:
        """Who was written so long ago is written again at the next beat, and need not be remembered."""
        while self._written_at:
            oldest = next(iter(self._written_at))
            if self._written_at[oldest] > limit:
                return
            del self._written_at[oldest]

    def left(self, *who: Value) -> None:
        """A connection was closed. After the last one, and the grace, the person is gone unless one came back."""
        if self._connections[who] <= 0:
            return
        self._connections[who] -= 1
        if self._connections[who]:
            return
        del self._connections[who]
        task = asyncio.get_running_loop().create_task(self._leave(who), name="keystead presence grace")
        self._leaving[who] = task
        task.add_done_callback(lambda done: self._ended(who, done))

    async def _leave(self, who: tuple[Value, ...]) -> None:
        await asyncio.sleep(self._presence.grace_seconds)
        self._written_at.pop(who, None)
        try:
            await self._presence.gone(self._valkey, *who)
        except Unavailable as error:
            _log.warning("presence not taken away", reason=str(error))  # it expires by itself
            return
        if self._connections[who]:  # came back while we asked; the deletion may have been later than its beat
            await self.beat(*who)

    def _ended(self, who: tuple[Value, ...], task: "asyncio.Task[None]") -> None:
        if self._leaving.get(who) is task:
            del self._leaving[who]

    async def aclose(self) -> None:
        """Stop. Who is still in grace is left to expire: a connection may have come up in another process."""
        for task in list(self._leaving.values()):
            task.cancel()
        await asyncio.gather(*self._leaving.values(), return_exceptions=True)


class OnlineMarkers:
    """Who is at a place (a room of a chat): one key each, holding the connection that wrote it last.

    ``pattern`` ends in the variable that says who; those before it say where.
    """

    def __init__(
        self, keyspace: Keyspace, pattern: str, *, seconds: float = 3600.0, **facts: Unpack[PatternFacts]
    ) -> None:
        self.key: StringKey[str] = StringKey(
            keyspace, pattern, str, ttl=Exactly(seconds), scripts=("presence/leave.lua",), **facts
        )

    def mark(self, on: Executor, *who: Value, connection: str) -> Awaitable[None]:
        """Write the marker, whoever had it; on joining and with each heartbeat."""
        return self.key.at(*who).set(on, connection)

    def leave(self, on: ScriptRunner, *who: Value, connection: str) -> Awaitable[bool]:
        """Delete the marker if it still names this connection; says whether it did."""
        return LEAVE(on, keys=[self.key.at(*who)], args=[connection], decode=bool)

    async def here(self, valkey: Valkey, who: Iterable[Value], **where: Value) -> dict[str, str]:
        """Who of these is there, and with which connection."""
        found = await many(valkey, self.key, who, where)
        return {name: raw.decode(errors="replace") for name, raw in found.items() if raw is not None}


async def many(
    valkey: Valkey, key: Declaration, last: Iterable[Value], others: Mapping[str, Value]
) -> dict[str, bytes | None]:
    """The raw values of many keys that differ in their last variable, by that variable."""
    variable = key.template.names[-1]
    groups: dict[int, list[tuple[str, bytes]]] = {}
    for each in last:
        reference = key.reference(key.template.bind((), {**others, variable: each}))
        name = reference.name(valkey.layout)
        slot = key_slot(name) if valkey.layout is not Layout.PLAIN else 0
        groups.setdefault(slot, []).append((reference.arguments[variable], name))
    chunks = [group[at : at + MOST_KEYS] for group in groups.values() for at in range(0, len(group), MOST_KEYS)]
    if not chunks:
        return {}
    async with valkey.pipeline(transaction=False) as pipeline:
        asked = [pipeline.run(("MGET", *(name for _, name in chunk)), list, repeat=True) for chunk in chunks]
        await pipeline.execute()
    found: dict[str, bytes | None] = {}
    for chunk, waiting in zip(chunks, asked, strict=True):
        for (who, _), raw in zip(chunk, await waiting, strict=True):
            found[who] = raw
    return found
