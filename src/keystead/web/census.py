"""How many keys each declared pattern has, and what they weigh: counted now and then, at a gentle pace."""

import asyncio

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.errors import Unavailable
from keystead.keys import Registry
from keystead.operations import PatternCounts, count_patterns

# Between two walks: long enough to be unnoticed, short enough that the page is worth looking at; after a long walk
# several times as long, so that a large keyspace is not walked all the time.
REST_SECONDS = 20.0
REST_FACTOR = 4
RETRY_SECONDS = 2.0
KEYS_PER_SECOND = 20_000


class Census:
    """Counts while ``run`` runs. ``counts`` is the last finished walk, ``counted_at`` when it ended."""

    def __init__(self, valkey: Valkey, registry: Registry, clock: Clock) -> None:
        self._valkey = valkey
        self._registry = registry
        self._clock = clock
        self._wanted = asyncio.Event()
        self.counts: PatternCounts | None = None
        self.counted_at: float | None = None
        self.counting = False

    def want(self) -> None:
        """Ask for a walk now instead of at the end of the rest."""
        self._wanted.set()

    async def run(self) -> None:
        """Walk, rest, and again, until cancelled. A server that is away is waited for."""
        loop = asyncio.get_running_loop()
        while True:
            started = loop.time()
            finished = await self.walk()
            rest = max(REST_SECONDS, REST_FACTOR * (loop.time() - started)) if finished else RETRY_SECONDS
            try:
                async with asyncio.timeout(rest):
                    await self._wanted.wait()
            except TimeoutError:
                pass
            self._wanted.clear()

    async def walk(self) -> bool:
        """Count once; says whether the walk was finished."""
        self.counting = True
        try:
            self.counts = await count_patterns(self._valkey, self._registry, keys_per_second=KEYS_PER_SECOND)
            self.counted_at = self._clock.now()
        except Unavailable:
            return False
        finally:
            self.counting = False
        return True
