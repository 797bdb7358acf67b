"""Answers that are computed once for all processes, and kept while they are right."""

import gzip
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Self

import msgspec

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.patterns import DailyFamily, Loaded, ProcessTier
from keystead.patterns.cache_instance import CacheInstance
from keystead.stats.catalogue import Catalogue, Charted
from keystead.stats.charts_calendar import to_midnight
from keystead.stats.keys import CHARTS

UNSETTLED_SECONDS: Final = 60.0  # while rotation has not closed all of its days
MOST_BYTES: Final = 64 * 1024 * 1024
_DAYS: Final = "days"
_SETTLED, _UNSETTLED = b"1", b"0"  # in front of an answer among all the others


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as it is kept, gzip over JSON, and for how many seconds whoever asked may keep it too.

    ``settled``: none of its days can change by ordinary counting.
    """

    raw: bytes
    seconds: float
    settled: bool


def pack(value: object) -> bytes:
    """JSON, compressed; the same bytes in every process."""
    return gzip.compress(msgspec.json.encode(value), 6, mtime=0)


def unpack(raw: bytes) -> Any:
    """What was packed."""
    return msgspec.json.decode(gzip.decompress(raw))


class KeptAnswers:
    """Two caches: the one of a family, whose frame others may know, and one for all other answers.

    An answer lives until the next midnight where its days are counted. If some of its days may still change, because
    rotation has not closed them yet, it lives for a minute only, and never reaches the family's channel, whose frame
    cannot say so. What is told late shows after the next midnight.
    """

    def __init__(
        self, charts: CacheInstance[bytes], families: Mapping[str, CacheInstance[bytes]], clock: Clock
    ) -> None:
        self._charts, self._families, self._clock = charts, families, clock

    @classmethod
    @asynccontextmanager
    async def open(cls, valkey: Valkey, catalogue: Catalogue, clock: Clock) -> AsyncIterator[Self]:
        """For as long as the block runs; in it the channels are heard."""
        process = ProcessTier(MOST_BYTES)
        async with AsyncExitStack() as stack:
            charts = await stack.enter_async_context(CHARTS.open(valkey, process=process, clock=clock))
            families = {
                name: await stack.enter_async_context(family.charts.open(valkey, process=process, clock=clock))
                for name, family in catalogue.families.items() if family.charts is not None
            }
            yield cls(charts, families, clock)

    def held(self, family: DailyFamily, start: int, end: int) -> Answer | None:
        """The days of a family if this process has them; asks nobody."""
        instance = self._families.get(family.name)
        raw = None if instance is None else instance.held(start, end)
        if raw is not None:
            return Answer(raw, self._lasting(family, True), True)
        kept = self._charts.held(end, _DAYS, family.name)
        return None if kept is None else self._opened(family, kept)

    async def days(
        self, family: DailyFamily, start: int, end: int, settled: bool, compute: Callable[[], Awaitable[bytes]]
    ) -> Answer:
        """Days of a family; ``settled`` says that none of them can change by ordinary counting."""
        instance = self._families.get(family.name)
        if instance is None or not settled:
            async def both() -> tuple[bytes, bool]:
                return await compute(), settled

            return await self.answer(family, _DAYS, end, both)

        async def load() -> Loaded[bytes]:
            return Loaded(await compute(), self._lasting(family, True))

        raw = await instance.get_raw(start, end, load=load)
        assert raw is not None
        return Answer(raw, self._lasting(family, True), True)

    async def answer(
        self, of: Charted, kind: str, unix_date: int, compute: Callable[[], Awaitable[tuple[bytes, bool]]]
    ) -> Answer:
        """Any other answer: ``compute`` gives it packed, and says whether it is settled."""

        async def load() -> Loaded[bytes]:
            raw, settled = await compute()
            return Loaded((_SETTLED if settled else _UNSETTLED) + raw, self._lasting(of, settled))

        kept = await self._charts.get_raw(unix_date, kind, of.name, load=load)
        assert kept is not None
        return self._opened(of, kept)

    def _opened(self, of: Charted, kept: bytes) -> Answer:
        settled = kept[:1] == _SETTLED
        return Answer(kept[1:], self._lasting(of, settled), settled)

    def _lasting(self, of: Charted, settled: bool) -> float:
        lasting = to_midnight(of.home, self._clock.now())
        return lasting if settled else min(lasting, UNSETTLED_SECONDS)
