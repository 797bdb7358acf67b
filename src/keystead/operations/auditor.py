"""Walks a live server and has every key judged by its declaration. Reads only, gently, in bounded memory."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from keystead.engine import Valkey, scan
from keystead.keys import NOT_READ, Audit, AuditReport, Command, Match, Observed, Registry, Reply
from keystead.operations.pairs import Pairs
from keystead.operations.throttle import LARGEST_BATCH_KEYS, Throttle

KEYS_PER_SECOND = 20_000
MEMORY_SAMPLES = 5
# What one pipeline of probes may bring back at most, as far as the sizes of the keys tell.
PROBED_BYTES = 4 * 1024 * 1024
LARGEST_PROBE_BYTES = 64 * 1024
# A collection larger than this is asked for its length first: a few of its elements could be all of it.
LARGE_COLLECTION_BYTES = 1024 * 1024

_LENGTHS = {"hash": "HLEN", "list": "LLEN", "set": "SCARD", "stream": "XLEN", "zset": "ZCARD"}


async def audit(
    valkey: Valkey,
    registry: Registry,
    *,
    keys_per_second: int = KEYS_PER_SECOND,
    match: str | None = None,
    read_values: bool = True,
    most_examples: int = 5,
    on_progress: Callable[[int, int], None] | None = None,
    on_seen: Callable[[Observed], None] | None = None,
) -> AuditReport:
    """Judge every key of the server, or of all primaries of a cluster; with ``match`` only keys that fit the glob.

    At most ``keys_per_second`` on average, fewer while the server answers slowly. Without ``read_values`` only names,
    types, expiries and sizes are looked at. ``on_progress`` is told keys walked and keys in all, as far as the server
    can tell; ``on_seen`` every key. Raises ``Unavailable`` if the server goes away, and what it answers if it does not
    let us ask for types.
    """
    walk = _Walk(valkey, registry, read_values, keys_per_second, most_examples, on_seen)
    await walk.measure_trip()
    async for batch in scan(valkey, match=match, batch_keys=LARGEST_BATCH_KEYS, keys_per_second=keys_per_second,
                            progress=on_progress):
        await walk.look_at(list(dict.fromkeys(batch)))
    return walk.audit.report()


@dataclass(slots=True)
class _Seen:
    raw_key: bytes
    match: Match | None
    type: str
    ttl_seconds: float | None
    memory_bytes: int
    sample: Reply = NOT_READ

    @property
    def probe(self) -> Command | None:
        """What to read of the value; nothing where it could not be judged."""
        if self.match is None or self.match.declaration.server_type != self.type:
            return None
        return self.match.declaration.probe(self.raw_key)


class _Walk:
    def __init__(
        self, valkey: Valkey, registry: Registry, read_values: bool, keys_per_second: int, most_examples: int,
        on_seen: Callable[[Observed], None] | None,
    ) -> None:
        self.audit = Audit(registry, most_examples=most_examples)
        self._on_seen = on_seen
        self.keys = 0
        self._valkey = valkey
        self._registry = registry
        self._read_values = read_values
        self._throttle = Throttle()
        self._trip_seconds = 0.0
        self._held_seconds = 0.0
        self._pairs = Pairs(valkey, registry, self.audit, keys_per_second)

    async def measure_trip(self) -> None:
        """How long a command takes that costs the server nothing: that much of an answer's time is the way to it."""
        times = []
        for _ in range(3):
            began = time.monotonic()
            await self._valkey.call(("PING",), repeat=True)
            times.append(time.monotonic() - began)
        self._trip_seconds = min(times)

    async def _ask(self, commands: Sequence[Command]) -> list[Reply]:
        began = time.monotonic()
        replies = await self._valkey.call_block(commands, repeat=True)
        self._held_seconds += max(0.0, time.monotonic() - began - self._trip_seconds)
        return replies

    async def look_at(self, raw_keys: Sequence[bytes]) -> None:
        """Judge one batch, in pieces as large as the server bears."""
        start = 0
        while start < len(raw_keys):
            piece = raw_keys[start : start + self._throttle.batch_keys]
            start += len(piece)
            self._held_seconds = 0.0
            seen = await self._facts(piece)
            if self._read_values:
                await self._sample(seen)
            rest = self._throttle.took(self._held_seconds)
            for each in seen:
                observed = Observed(each.raw_key, each.type, each.ttl_seconds, each.memory_bytes, each.sample)
                self.audit.observe(observed, each.match)
                if self._on_seen is not None:
                    self._on_seen(observed)
            if self._read_values:
                await self._pairs.check([(each.raw_key, each.match) for each in seen
                                         if each.match is not None and each.match.declaration.server_type == each.type])
            self.keys += len(piece)
            if rest:
                await asyncio.sleep(rest)

    async def _facts(self, raw_keys: Sequence[bytes]) -> list[_Seen]:
        commands: list[Command] = []
        for raw_key in raw_keys:
            commands += [("TYPE", raw_key), ("PTTL", raw_key), ("MEMORY", "USAGE", raw_key, "SAMPLES", MEMORY_SAMPLES)]
        replies = await self._ask(commands)
        seen: list[_Seen] = []
        for number, raw_key in enumerate(raw_keys):
            kind, ttl_ms, memory_bytes = replies[number * 3 : number * 3 + 3]
            for reply in (kind, ttl_ms):
                if isinstance(reply, Exception):
                    raise reply
            server_type = kind.decode() if isinstance(kind, bytes) else str(kind)
            # A key that has just gone has no type, and one without an expiry a negative one. Not everyone may ask
            # for the memory; the rest of the audit is worth having all the same.
            if server_type != "none":
                seen.append(_Seen(raw_key, self._registry.resolve(raw_key), server_type,
                                  ttl_ms / 1000 if ttl_ms >= 0 else None,
                                  memory_bytes if isinstance(memory_bytes, int) else 0))
        return seen

    async def _sample(self, seen: Sequence[_Seen]) -> None:
        probed = [each for each in seen if each.probe is not None]
        too_large = await self._too_large([each for each in probed if each.type in _LENGTHS
                                           and each.memory_bytes > LARGE_COLLECTION_BYTES])
        for group in _groups([each for each in probed if each.raw_key not in too_large]):
            replies = await self._ask([each.probe or () for each in group])
            for each, reply in zip(group, replies, strict=True):
                if not isinstance(reply, Exception):
                    each.sample = reply

    async def _too_large(self, collections: Sequence[_Seen]) -> set[bytes]:
        """Those whose elements are so large that not even a few may be read."""
        if not collections:
            return set()
        lengths = await self._ask([(_LENGTHS[each.type], each.raw_key) for each in collections])
        return {each.raw_key for each, length in zip(collections, lengths, strict=True)
                if not isinstance(length, int) or each.memory_bytes / max(1, length) > LARGEST_PROBE_BYTES}


def _groups(probed: Sequence[_Seen]) -> Iterator[list[_Seen]]:
    """Probes that may travel together without bringing back too much at once."""
    group: list[_Seen] = []
    size = 0
    for each in probed:
        size += min(each.memory_bytes, LARGEST_PROBE_BYTES)
        group.append(each)
        if size > PROBED_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group
