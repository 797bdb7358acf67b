"""What a bounded look into the values of declared keys tells: do they decode?"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from keystead.engine import Valkey
from keystead.keys import Command, Match, Reply, spell_key
from keystead.survey.findings import Drift, Finding
from keystead.survey.stride import Stride

EXAMPLES = 3
# What one row of probes may bring back at most, as far as the sizes of the keys tell.
PROBED_BYTES = 4 * 1024 * 1024
LARGEST_PROBE_BYTES = 64 * 1024
# A collection larger than this is asked for its length first: a few of its elements could be all of it.
LARGE_COLLECTION_BYTES = 1024 * 1024

_LENGTHS = {"hash": "HLEN", "list": "LLEN", "set": "SCARD", "stream": "XLEN", "zset": "ZCARD"}
_MENDS = {
    Drift.UNREADABLE: "find the writer, and delete what cannot be read",
    Drift.BROKEN_PAIR: "write index and record in one step, and mend what is there",
}


@dataclass(slots=True)
class _Fault:
    says: str  # of the first key
    keys: int = 0
    examples: list[str] = field(default_factory=list)


class Faults:
    """What only a look into values finds. Memory is bounded by the number of patterns, not of keys."""

    def __init__(self) -> None:
        self._found: dict[tuple[Drift, str], _Fault] = {}

    def add(self, kind: Drift, pattern: str, key: str, says: str) -> None:
        fault = self._found.setdefault((kind, pattern), _Fault(says))
        fault.keys += 1
        if len(fault.examples) < EXAMPLES:
            fault.examples.append(key)

    def findings(self) -> tuple[Finding, ...]:
        return tuple(
            Finding(kind, pattern, f"{fault.keys:,} {'key' if fault.keys == 1 else 'keys'}: {fault.says}", _MENDS[kind],
                    keys=fault.keys, examples=tuple(fault.examples))
            for (kind, pattern), fault in self._found.items()
        )


@dataclass(frozen=True, slots=True)
class Seen:
    """A key that has the type its declaration says."""

    raw_key: bytes
    match: Match
    memory_bytes: int

    @property
    def probe(self) -> Command | None:
        """What to read of the value; nothing where it could not be judged."""
        return self.match.declaration.probe(self.raw_key)


class Values:
    """Reads a sample of values and has each judged by its declaration. What may not be read is not judged."""

    def __init__(self, valkey: Valkey, stride: Stride, faults: Faults) -> None:
        self._valkey, self._stride, self._faults = valkey, stride, faults

    async def check(self, seen: Sequence[Seen]) -> None:
        probes = {each.raw_key: probe for each in seen if (probe := each.probe) is not None}
        probed = [each for each in seen if each.raw_key in probes]
        too_large = await self._too_large([each for each in probed if each.match.declaration.server_type in _LENGTHS
                                           and each.memory_bytes > LARGE_COLLECTION_BYTES])
        for group in _groups([each for each in probed if each.raw_key not in too_large]):
            replies = await self._ask([probes[each.raw_key] for each in group])
            for each, reply in zip(group, replies, strict=True):
                if isinstance(reply, Exception):
                    continue
                declaration = each.match.declaration
                says = declaration.judge_sample(reply)
                if says is not None:
                    self._faults.add(Drift.UNREADABLE, declaration.pattern, spell_key(each.raw_key), says)

    async def _too_large(self, collections: Sequence[Seen]) -> set[bytes]:
        """Those whose elements are so large that not even a few may be read."""
        if not collections:
            return set()
        lengths = await self._ask([(_LENGTHS[each.match.declaration.server_type or ""], each.raw_key)
                                   for each in collections])
        return {each.raw_key for each, length in zip(collections, lengths, strict=True)
                if not isinstance(length, int) or each.memory_bytes / max(1, length) > LARGEST_PROBE_BYTES}

    async def _ask(self, commands: Sequence[Command]) -> list[Reply]:
        began = time.monotonic()
        replies = await self._valkey.call_block(commands, repeat=True)
        now = time.monotonic()
        self._stride.took(now - began, 0, now)
        return replies


def _groups(probed: Sequence[Seen]) -> Iterator[list[Seen]]:
    """Probes that may travel together without bringing back too much at once."""
    group: list[Seen] = []
    size = 0
    for each in probed:
        size += min(each.memory_bytes, LARGEST_PROBE_BYTES)
        group.append(each)
        if size > PROBED_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group
