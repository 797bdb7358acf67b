"""Two-tier cache: values in the process, on disk and on the server; one reader of the source for all instances.

``docs/patterns/cache.md`` says when to choose it and what it cannot promise.
"""

import random
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar, Unpack

from keystead.clock import Clock, SystemClock
from keystead.engine import Script, Valkey
from keystead.engine.scripts import ScriptRunner
from keystead.errors import DeclarationError
from keystead.keys import (
    AtMost,
    Channel,
    Codec,
    Exactly,
    Keyspace,
    Layout,
    LockKey,
    LockKind,
    OnCorrupt,
    Sliding,
    StringKey,
    Value,
    codec_of,
)
from keystead.keys.codecs import INTEGER, Of
from keystead.keys.template import Template
from keystead.patterns.cache_disk import DiskTier
from keystead.patterns.cache_family import MARKER, Family, Place, sending
from keystead.patterns.cache_frames import Push, PushCodec, plain_pushes
from keystead.patterns.cache_instance import CacheInstance
from keystead.patterns.cache_process import ProcessTier
from keystead.patterns.facts import PatternFacts, told

T = TypeVar("T")

PURGE = Script("keystead.patterns", "scripts/cache/purge.lua")
PUT = Script("keystead.patterns", "scripts/cache/put.lua")

VERSION_SECONDS = 60.0
# How long a fill may be on its way before an instance that did not hear it reads the source itself.
RECENT_SECONDS = 1.0
POLL_SECONDS = 0.05
POLL_BESIDE_CHANNEL_SECONDS = 1.0  # only in case that a message was lost


class MarkedCodec(Generic[T]):
    """Raw values, or the marker of whoever fetches one just now."""

    def __init__(self, inner: Codec[T]) -> None:
        self._inner = inner
        self.name = f"1 while someone fetches it, else {inner.name}"

    def encode(self, value: T | None, /) -> bytes:
        return MARKER if value is None else self._inner.encode(value)

    def decode(self, raw: bytes, /) -> T | None:
        return None if raw == MARKER else self._inner.decode(raw)


class Cache(Generic[T]):
    """A family of cached values, by the variables of ``pattern``.

    ``shared_seconds`` gives it a value on the server under that name (``sliding``: counted from the last use);
    ``local_seconds`` gives it a process tier (and a disk tier where one is opened). Without the first it is a family
    that only processes hold. ``jitter_seconds``: up to so much longer, at random, each time. ``stale_seconds``: so
    long after its time a value is still answered while one reader fetches it anew. ``negative_seconds``: how long the
    source's "there is none" is believed.

    ``lock``: the cache lock, ``cache:lock:{pattern}`` unless given; None lets everybody read the source.
    ``in_flight_marker``: the lock is the value ``1`` in the value's own key. Whoever finds it taken waits for the fill,
    at most twice ``wait_seconds``, and looks every ``poll_seconds``.

    ``channel`` carries fills and purges to all instances, as ``frame`` says. ``collab``: what a process holds is only
    right while it hears the channel; it is not used once the channel was silent for ``staleness_seconds``.

    Also declares ``cache:version:{pattern}`` (purges) and ``cache:recent:{pattern}`` (absence, and fills just sent); in
    front, so that they cannot be taken for a neighbour whose name goes on. With a channel, all keys of the family share
    one fixed tag.
    """

    def __init__(
        self, keyspace: Keyspace, pattern: str, of: Of[T], *,
        shared_seconds: float | None = None, sliding: bool = False, local_seconds: float | None = None,
        jitter_seconds: float = 0.0, stale_seconds: float = 0.0, negative_seconds: float = 5.0,
        lock: str | None = "", lock_seconds: float = 3.0, in_flight_marker: bool = False,
        wait_seconds: float | None = None, poll_seconds: float | None = None,
        channel: str | None = None, frame: PushCodec[Any] | None = None, collab: bool = False,
        staleness_seconds: float = 5.0, version: str = "", recent: str = "", **facts: Unpack[PatternFacts],
    ) -> None:
        _check(pattern, shared_seconds, local_seconds, sliding, stale_seconds, in_flight_marker)
        codec: Codec[T] = codec_of(of)
        self.template = Template(pattern, facts.get("kinds"))
        version_seconds = max(VERSION_SECONDS, 4 * lock_seconds)
        self.value_key: StringKey[Any] | None = None
        if shared_seconds is not None:
            longest = shared_seconds + jitter_seconds + stale_seconds
            stored: Codec[Any] = MarkedCodec(codec) if in_flight_marker else codec
            rule = Sliding(shared_seconds) if sliding else AtMost(longest)
            self.value_key = StringKey(keyspace, pattern, stored, **told(
                facts, scripts=_scripts("begin", "fill", "purge", "put", "discard"), ttl=rule, dead=OnCorrupt.MISS
            ))
        self.version_key = StringKey(keyspace, version or f"cache:version:{pattern}", INTEGER, **told(
            facts, "when it was last purged", scripts=_scripts("begin", "fill", "purge", "put"),
            ttl=AtMost(version_seconds), personal=False,
        ))
        self.recent_key = StringKey(keyspace, recent or f"cache:recent:{pattern}", INTEGER, **told(
            facts, "0 known to be absent, else a fill just sent", scripts=_scripts("begin", "fill", "leave", "purge"),
            ttl=AtMost(max(negative_seconds, RECENT_SECONDS)), personal=False,
        ))
        self.lock_key: LockKey | None = None
        if lock is not None and not in_flight_marker:
            self.lock_key = LockKey(keyspace, lock or f"cache:lock:{pattern}", LockKind.PLAIN, **told(
                facts, "one reader of the source", scripts=_scripts("begin", "fill", "leave"),
                ttl=Exactly(lock_seconds), personal=False,
            ))
        self.channel: Channel[Push] | None = None
        pushes = frame or plain_pushes()
        if channel is not None:
            said = told(facts, "fills and purges")
            said["kinds"], said["personal"] = None, bool(said["personal"])  # one channel for all, without variables
            self.channel = Channel(keyspace, channel, pushes, **said)
            if self.version_key.tag.variables or self.channel.template.names:
                raise DeclarationError(f"{pattern}: a family with a channel needs a fixed tag and one channel for all")
        has_lock = self.lock_key is not None or in_flight_marker
        self.family = Family(
            name=self.template.spelling, codec=codec, shared_seconds=shared_seconds, sliding=sliding,
            local_seconds=local_seconds, jitter_seconds=jitter_seconds, stale_seconds=stale_seconds,
            negative_seconds=negative_seconds, lock_seconds=lock_seconds if has_lock else 0.0,
            wait_seconds=lock_seconds if wait_seconds is None else wait_seconds,
            poll_seconds=poll_seconds or (POLL_SECONDS if channel is None else POLL_BESIDE_CHANNEL_SECONDS),
            marked=in_flight_marker, pushes=pushes if channel is not None else None, collab=collab,
            staleness_seconds=staleness_seconds, version_seconds=version_seconds, recent_seconds=RECENT_SECONDS,
        )

    def at(self, *variables: Value, **named: Value) -> "CacheAt[T]":
        """One value of the family."""
        return CacheAt(self, self.template.bind(variables, named))

    def place(self, arguments: Mapping[str, str], layout: Layout) -> Place:
        """The physical names of everything that belongs to one value."""
        version = self.version_key.at(**arguments).name(layout)
        value = self.value_key.at(**arguments).name(layout) if self.value_key is not None else version
        lock = value if self.family.marked else version
        if self.lock_key is not None:
            lock = self.lock_key.at(**arguments).name(layout)
        recent = self.recent_key.at(**arguments).name(layout)
        return Place(self.template.fill(arguments), arguments, version, recent, lock, value)

    @asynccontextmanager
    async def open(
        self, valkey: Valkey, *, process: ProcessTier | None = None, disk: DiskTier | None = None,
        clock: Clock | None = None,
    ) -> AsyncIterator[CacheInstance[T]]:
        """This family as one process uses it. Inside the block the channel is listened to.

        ``process`` and ``disk`` may be shared by several families; a family with ``local_seconds`` gets a process tier
        of its own unless one is given.
        """
        if self.family.local_seconds is None and (process is not None or disk is not None):
            raise DeclarationError(f"{self.template.spelling}: without local_seconds nothing is kept in the process")
        listen_to = None if self.channel is None else self.channel.at()
        own = ProcessTier() if process is None else process  # an empty one counts as false
        instance: CacheInstance[T] = CacheInstance(
            self, self.family, valkey, listen_to, own, disk, clock or SystemClock()
        )
        try:
            await instance.start()
            yield instance
        finally:
            await instance.aclose()


class CacheAt(Generic[T]):
    """One value, for whoever changes the source."""

    __slots__ = ("_arguments", "_cache")

    def __init__(self, cache: Cache[T], arguments: Mapping[str, str]) -> None:
        self._cache = cache
        self._arguments = arguments

    def purge(self, on: ScriptRunner, *, now: float) -> Awaitable[bool]:
        """Forget the value everywhere, after the source was changed; says whether the server had one.

        One atomic step: what the server has is deleted, instances are told, and a read of the source that began
        before can no longer be kept. May be queued on a pipeline, many at once.
        """
        family, place = self._cache.family, self._cache.place(self._arguments, on.layout)
        now_us = round(now * 1_000_000)
        push = Push(self._arguments, None, now_us)
        return PURGE(
            on, keys=(place.version, place.recent, place.value),
            args=(now_us, round(family.version_seconds * 1000), *self._sending(on.layout, push)), decode=bool,
        )

    def put(self, on: ScriptRunner, value: T, *, now: float) -> Awaitable[None]:
        """Replace the value everywhere by one that the caller knows to be right. One atomic step."""
        family, place = self._cache.family, self._cache.place(self._arguments, on.layout)
        now_us = round(now * 1_000_000)
        raw = family.codec.encode(value)
        seconds = (family.shared_seconds or 1.0) + random.uniform(0, family.jitter_seconds) + family.stale_seconds
        return PUT(
            on, keys=(place.version, place.recent, place.value),
            args=(now_us, round(family.version_seconds * 1000), round(seconds * 1000), raw,
                  *self._sending(on.layout, Push(self._arguments, raw, now_us))),
        )

    def _sending(self, layout: Layout, push: Push) -> tuple[str, bytes, bytes]:
        channel = b"" if self._cache.channel is None else self._cache.channel.at().name(layout)
        return sending(self._cache.family.pushes, channel, layout, push)


def _check(
    pattern: str, shared: float | None, local: float | None, sliding: bool, stale: float, marked: bool
) -> None:
    if shared is None and local is None:
        raise DeclarationError(f"{pattern}: say how long values are kept: shared_seconds, local_seconds or both")
    if marked and (shared is None or stale):
        raise DeclarationError(f"{pattern}: an in-flight marker needs a value on the server, and no stale time")
    if sliding and (shared is None or stale):
        raise DeclarationError(f"{pattern}: a sliding time needs a value on the server, which is then never stale")


def _scripts(*verbs: str) -> tuple[str, ...]:
    return tuple(f"cache/{verb}.lua" for verb in verbs)
