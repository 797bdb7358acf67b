"""What the pages on statistics show: each thing is read once for all who look at it, and only while someone does."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Final, Generic, TypeVar

from keystead.engine.failures import ErrorReply
from keystead.errors import KeysteadError
from keystead.stats import Charts, Series

T = TypeVar("T")

EVERY_SECONDS: Final = 2.0
# So long after the last viewer looked, a thing is not read any more; a minute later it is forgotten.
WANTED_SECONDS: Final = 6.0
FORGOTTEN_SECONDS: Final = 60.0
ANSWER_SECONDS: Final = 20.0
FIRST_SECONDS: Final = 3.0
# Days that are over change only by what is told late, so they are read again more rarely than the live ones.
WHOLE_SECONDS: Final = 60.0


class Shared(Generic[T]):
    """One thing that some viewers look at. ``value`` is what was last read, ``problem`` why it could not be read now.

    Viewers compare ``value`` by identity: it is another object only if something in it has changed.
    """

    def __init__(self, read: Callable[[T | None], Awaitable[T]], every_seconds: float, woken: asyncio.Event) -> None:
        self.value: T | None = None
        self.problem: str | None = None
        self.wanted_until = 0.0
        self.due_at = 0.0
        self._read, self._every_seconds, self._woken = read, every_seconds, woken
        self._reading = asyncio.Lock()

    def want(self) -> None:
        """Someone looks: go on reading for a while."""
        self.wanted_until = asyncio.get_running_loop().time() + WANTED_SECONDS
        self._woken.set()

    async def first(self) -> None:
        """Wait a moment for the first answer, so that a page begins with numbers; a slow one comes later."""
        if self.value is None and not self._reading.locked():
            try:
                async with asyncio.timeout(FIRST_SECONDS):
                    await self.read()
            except TimeoutError:
                return

    async def read(self) -> None:
        """Read once. What cannot be read leaves what was known, and a problem in words."""
        async with self._reading:
            began = asyncio.get_running_loop().time()
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    found = await self._read(self.value)
            except TimeoutError:
                self.problem = f"no answer within {ANSWER_SECONDS:.0f} s"
            except (KeysteadError, ErrorReply) as error:
                self.problem = str(error)
            else:
                self.problem = None
                if self.value is None or found != self.value:
                    self.value = found
            # What failed is tried again soon, however rarely it is read.
            self.due_at = began + (self._every_seconds if self.problem is None else EVERY_SECONDS)


class StatsWatch:
    """Reads while ``run`` runs whatever is wanted."""

    def __init__(self) -> None:
        self._shared: dict[Hashable, Shared[Any]] = {}
        self._woken = asyncio.Event()

    def share(
        self, key: Hashable, read: Callable[[T | None], Awaitable[T]], every_seconds: float = EVERY_SECONDS
    ) -> Shared[T]:
        """The thing of this key. ``read`` is given what it answered before; the one of the first viewer is used."""
        found = self._shared.get(key)
        if found is None:
            found = self._shared[key] = Shared(read, every_seconds, self._woken)
        found.want()
        return found

    async def run(self) -> None:
        """Read what is due until cancelled; rest while nobody looks."""
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            wanted = [shared for shared in self._shared.values() if shared.wanted_until > began]
            if not wanted:
                self._woken.clear()
                await self._woken.wait()
                continue
            for shared in wanted:
                if shared.due_at <= loop.time() + EVERY_SECONDS / 4:
                    await shared.read()
            self._forget(loop.time())
            await asyncio.sleep(max(EVERY_SECONDS / 4, began + EVERY_SECONDS - loop.time()))

    def _forget(self, now: float) -> None:
        for key in [key for key, shared in self._shared.items() if shared.wanted_until + FORGOTTEN_SECONDS < now]:
            del self._shared[key]


class LiveSeries:
    """Reads a range again and again, most of the time only its live days: they cost one round trip and no query.

    ``bounds`` answers start and end (exclusive) as they are now; at midnight a range moves on.
    """

    def __init__(
        self, charts: Charts, name: str, bounds: Callable[[], tuple[int, int]], *, numbers: bool = False
    ) -> None:
        self._series = charts.numbers if numbers else charts.series
        self._name, self._bounds = name, bounds
        self._read_at = float("-inf")

    async def __call__(self, before: Series | None) -> Series:
        start, end = self._bounds()
        now = asyncio.get_running_loop().time()
        if before is not None and (before.start, before.end) == (start, end) and now - self._read_at < WHOLE_SECONDS:
            first = max(start, min(before.live_from, end))
            if first == end:
                return before
            newest = await self._series(self._name, first, end)
            if newest.live_from == before.live_from:
                return joined(before, newest)
        self._read_at = now
        return await self._series(self._name, start, end)


def joined(before: Series, newest: Series) -> Series:
    """The days of ``before``, the last of them as they are in ``newest``."""
    kept = newest.start - before.start
    breakdowns: dict[str, dict[str, list[int]]] = {}
    for event, values in newest.breakdowns.items():
        known, length = before.breakdowns.get(event, {}), len(newest.labels)
        breakdowns[event] = {
            value: [*known.get(value, [0] * kept)[:kept], *values.get(value, [0] * length)]
            for value in dict.fromkeys((*known, *values))
        }
    counts = {event: [*before.counts[event][:kept], *days] for event, days in newest.counts.items()}
    return Series(before.name, before.zone, before.start, before.end, before.labels, counts, breakdowns,
                  newest.live_from, before.monthly)
