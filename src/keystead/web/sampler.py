"""One look per second at the server, shared by everyone who watches, with the last minutes kept."""

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.errors import Unavailable
from keystead.web.facts import ServerFacts, read_facts

EVERY_SECONDS = 1.0
KEPT_SAMPLES = 600
ANSWER_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class RateSample:
    """Commands per second up to ``at``; None while the server was away or had just come back."""

    at: float
    commands_per_second: float | None
    memory_bytes: int | None
    keys: int | None = None


async def on_a_beat(look: Callable[[], Awaitable[None]]) -> None:
    """Look each second until cancelled, evenly: what one look takes does not put off the next.

    All who do so look at the same moment, so that the process wakes once, and what they ask leaves in one write.
    """
    loop = asyncio.get_running_loop()
    due = float(math.floor(loop.time()))
    while True:
        await look()
        due = max(due + EVERY_SECONDS, math.floor(loop.time()))
        await asyncio.sleep(due - loop.time())


class Sampler:
    """Samples while ``run`` runs. Readers look at ``facts``, ``problem`` and ``samples`` whenever they like.

    ``facts`` keeps the last answer while the server is away; ``problem`` then says since when.
    """

    def __init__(self, valkey: Valkey, clock: Clock) -> None:
        self._valkey = valkey
        self._clock = clock
        self.facts: ServerFacts | None = None
        self.problem: str | None = None
        self.away_since: float | None = None
        self.samples: deque[RateSample] = deque(maxlen=KEPT_SAMPLES)
        self._last: tuple[float, int] | None = None  # (loop time, commands) of the last answer without a gap after it

    async def run(self) -> None:
        """Sample until cancelled."""
        await on_a_beat(self.sample)

    async def sample(self) -> None:
        """Look once. Never raises for a server that is away."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                facts = await read_facts(self._valkey)
        except (Unavailable, TimeoutError) as error:
            self._last = None
            self.away_since = self.away_since or self._clock.now()
            self.problem = str(error) or "it does not answer in time"
            self.samples.append(RateSample(self._clock.now(), None, None))
            return
        now = loop.time()
        rate = None
        # A restarted server counts from zero again.
        if self._last is not None and facts.commands >= self._last[1] and now > self._last[0]:
            # The look itself is one command for each server; an idle one shall read as idle.
            rate = max(0.0, facts.commands - self._last[1] - facts.primaries) / (now - self._last[0])
        self._last = now, facts.commands
        self.facts, self.problem, self.away_since = facts, None, None
        self.samples.append(RateSample(self._clock.now(), rate, facts.memory_bytes, facts.keys))
