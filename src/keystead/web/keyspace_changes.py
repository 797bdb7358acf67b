"""What changed in the keyspace lately: a bounded number of looks at the census, a minute apart, kept in memory.

Nothing is read from the server for it: the census walks anyway. What was before this process started is not known.
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from keystead.clock import Clock, real
from keystead.operations import Census, PatternCounts

EVERY_SECONDS: Final = 60.0
SOON_SECONDS: Final = 2.0
KEPT_SAMPLES: Final = 90
WINDOW_SECONDS: Final = 3600.0

Size = tuple[int, int]


@dataclass(frozen=True, slots=True)
class KeyspaceSample:
    """One look: keys and bytes of each pattern that had any, and of what nobody declares, by what it looks like."""

    at: float
    keys: int
    memory_bytes: int
    undeclared: Size
    patterns: Mapping[str, Size]
    strays: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class PatternChange:
    """One pattern over the window. ``counts``: how many keys it had at each look, oldest first."""

    pattern: str
    before: Size
    now: Size
    counts: tuple[int, ...]

    @property
    def keys(self) -> int:
        return self.now[0] - self.before[0]

    @property
    def memory_bytes(self) -> int:
        return self.now[1] - self.before[1]

    @property
    def kind(self) -> str:
        """``new``, ``gone``, ``passing`` (came and went in between), ``changed`` or ``same``."""
        if not self.before[0] and self.now[0]:
            return "new"
        if self.before[0] and not self.now[0]:
            return "gone"
        if not self.now[0]:
            return "passing"
        return "changed" if self.now != self.before or len(set(self.counts)) > 1 else "same"


@dataclass(frozen=True, slots=True)
class KeyspaceChanges:
    """What became different between two looks. ``strays``: before and now, of what nobody declares."""

    since: float
    until: float
    keys: tuple[int, int]
    memory_bytes: tuple[int, int]
    undeclared: tuple[Size, Size]
    patterns: tuple[PatternChange, ...]
    strays: Mapping[str, tuple[int, int]]


class ChangeKeeper:
    """Looks while ``run`` runs. ``samples`` are the last hour and a half, oldest first."""

    def __init__(self, census: Census, clock: Clock) -> None:
        self._census, self._clock = census, real(clock)
        self._seen: PatternCounts | None = None
        self.samples: deque[KeyspaceSample] = deque(maxlen=KEPT_SAMPLES)

    @property
    def since(self) -> float | None:
        """From when on something is known."""
        return self.samples[0].at if self.samples else None

    async def run(self) -> None:
        """Look once a minute until cancelled; as soon as the census has counted for the first time."""
        while True:
            self.take()
            await asyncio.sleep(EVERY_SECONDS if self.samples else SOON_SECONDS)

    def take(self) -> None:
        """Keep what the census knows, if it has counted again since."""
        counts = self._census.counts
        if counts is not None and counts is not self._seen:
            self._seen = counts
            self.samples.append(sample_of(counts, self._clock.now()))

    def changes(self, window_seconds: float = WINDOW_SECONDS) -> KeyspaceChanges | None:
        """From the look that is nearest to the beginning of the window up to what the census knows now."""
        counts = self._census.counts
        if not self.samples or counts is None:
            return None
        now = self._clock.now()
        newest = sample_of(counts, now)
        kept = [sample for sample in self.samples if sample.at >= now - window_seconds - EVERY_SECONDS / 2]
        window = [*(kept or [self.samples[-1]]), newest]
        return compared(window)


def sample_of(counts: PatternCounts, at: float) -> KeyspaceSample:
    return KeyspaceSample(
        at, counts.keys, counts.memory_bytes, (counts.undeclared_keys, counts.undeclared_memory_bytes),
        {each.pattern: (count.keys, count.memory_bytes) for each, count in counts.by_declaration.items() if count.keys},
        dict(counts.undeclared_patterns),
    )


def compared(window: list[KeyspaceSample]) -> KeyspaceChanges:
    """The first look against the last; what changed most first."""
    first, last = window[0], window[-1]
    names = sorted({name for sample in window for name in sample.patterns})
    none: Size = (0, 0)
    found = [
        PatternChange(name, first.patterns.get(name, none), last.patterns.get(name, none),
                      tuple(sample.patterns.get(name, none)[0] for sample in window))
        for name in names
    ]
    found.sort(key=lambda each: (-abs(each.memory_bytes), -abs(each.keys), -each.now[0], each.pattern))
    strays = {name: (first.strays.get(name, 0), last.strays.get(name, 0))
              for name in sorted({*first.strays, *last.strays})}
    return KeyspaceChanges(
        first.at, last.at, (first.keys, last.keys), (first.memory_bytes, last.memory_bytes),
        (first.undeclared, last.undeclared), tuple(found), strays,
    )
