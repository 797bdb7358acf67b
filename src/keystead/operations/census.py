"""The census: how many keys each declared pattern has, and what they weigh, counted for a whole installation.

One process at a time walks, and keeps the counts on the server; the others read them there. Who finds them too old
takes the next turn. Processes whose declarations differ count apart.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from hashlib import sha256

from keystead.clock import Clock, real_seconds
from keystead.engine import ErrorReply, Valkey
from keystead.errors import Unavailable
from keystead.keys import Declaration, Registry
from keystead.operations.counts import PatternCount, PatternCounts, count_patterns
from keystead.operations.keys import CENSUS, CENSUS_TURN
from keystead.operations.models import KeptCensus
from keystead.patterns import LockHeld, LockLost

# Between two walks: long enough to be unnoticed, short enough that the page is worth looking at; after a long walk
# several times as long, so that a large keyspace is not walked all the time.
REST_SECONDS = 20.0
REST_FACTOR = 4
RETRY_SECONDS = 2.0
KEYS_PER_SECOND = 10_000


class Census:
    """``counts`` is the last walk that is known here, ``counted_at`` when it ended; ``counting``: somebody walks."""

    def __init__(self, valkey: Valkey, registry: Registry, clock: Clock) -> None:
        self._valkey = valkey
        self._registry = registry
        self._clock = clock
        self._wanted = asyncio.Event()
        self._rest = REST_SECONDS
        self.counts: PatternCounts | None = None
        self.counted_at: float | None = None
        self.counting = False
        self._declared = {each.pattern: each for each in registry if each.kind != "channel"}
        self._digest = sha256("\n".join(sorted(self._declared)).encode()).hexdigest()[:16]

    def want(self) -> None:
        """Ask for a walk now instead of when the counts are too old."""
        self._wanted.set()

    async def run(self, age_seconds: float | None = None) -> None:
        """Have counts that are hardly older than this, or than the rest after a walk, until cancelled.

        A server that is away is waited for.
        """
        while True:
            if not await self.renew(0.0 if self._wanted.is_set() else age_seconds):
                await asyncio.sleep(RETRY_SECONDS)
                continue
            pause = max(0.0, (self._rest if age_seconds is None else age_seconds) - self._age())
            try:
                async with asyncio.timeout(pause):
                    await self._wanted.wait()
            except TimeoutError:
                pass

    async def known(self, age_seconds: float) -> PatternCounts | None:
        """The newest counts of any process, if they are no older than this. Walks nothing."""
        return self.counts if await self._read(age_seconds) else None

    async def renew(self, age_seconds: float | None = None) -> bool:
        """Read the counts or walk, unless those that are known are no older than this, or than the rest after a walk.

        False if it could not be done now: another process walks, or the server is away.
        """
        try:
            if self._is_fresh(age_seconds) or await self._read(age_seconds):
                return True
            try:
                async with CENSUS_TURN.at(self._digest).hold(self._valkey, self._clock):
                    # Who had the turn until now has just kept something.
                    if not await self._read(age_seconds):
                        await self._walk()
            except ErrorReply:  # from a full server, which takes no writes: then it is counted for this process alone
                await self._walk()
        except LockHeld:
            self.counting = True
            return False
        except (ErrorReply, LockLost, Unavailable):
            self.counting = False
            return False
        return True

    async def _walk(self) -> None:
        self._wanted.clear()  # what is wanted from now on may come too late for this walk
        self.counting = True
        try:
            loop = asyncio.get_running_loop()
            started = loop.time()
            counts = await count_patterns(self._valkey, self._registry, keys_per_second=KEYS_PER_SECOND)
            counted_at, took = self._clock.now(), loop.time() - started
        finally:
            self.counting = False
        self._know(counts, counted_at, took)
        kept = KeptCensus(
            counted_at=counted_at, took_seconds=took,
            patterns={each.pattern: _kept(count) for each, count in counts.by_declaration.items()},
            undeclared=(counts.undeclared_keys, counts.undeclared_memory_bytes),
            undeclared_patterns=dict(counts.undeclared_patterns),
        )
        with contextlib.suppress(ErrorReply):
            await CENSUS.at(self._digest).set(self._valkey, kept)

    async def _read(self, age_seconds: float | None) -> bool:
        """Know what was kept, if it is newer; says whether it is fresh enough."""
        kept = await CENSUS.at(self._digest).get(self._valkey)
        if kept is not None and (self.counted_at is None or kept.counted_at > self.counted_at or self._age() < 0):
            self.counting = False
            self._know(_counts(kept, self._declared), kept.counted_at, kept.took_seconds)
        return self._is_fresh(age_seconds)

    def _know(self, counts: PatternCounts, counted_at: float, took_seconds: float) -> None:
        self.counts, self.counted_at = counts, counted_at
        self._rest = max(REST_SECONDS, REST_FACTOR * took_seconds)

    def _is_fresh(self, age_seconds: float | None) -> bool:
        # A count from the future was made before a clock was put right.
        return self.counts is not None and abs(self._age()) < (self._rest if age_seconds is None else age_seconds)

    def _age(self) -> float:
        return real_seconds(self._clock, self._clock.now() - (self.counted_at or 0.0))


def _kept(count: PatternCount) -> tuple[int, int, bool]:
    return count.keys, count.memory_bytes, count.estimated


def _counts(kept: KeptCensus, declared: Mapping[str, Declaration]) -> PatternCounts:
    return PatternCounts.of_patterns(
        {declared[pattern]: PatternCount(*count) for pattern, count in kept.patterns.items()},
        PatternCount(*kept.undeclared), kept.undeclared_patterns,
    )
