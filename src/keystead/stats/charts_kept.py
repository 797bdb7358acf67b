"""Answers that are computed once for all processes, and kept while they are right."""

import gzip
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Self

import msgspec

from keystead.clock import Clock
from keystead.engine import Valkey
from keystead.patterns import Cache, CacheInstance, DailyFamily, DimensionViews, Loaded, ProcessTier
from keystead.stats.catalogue import Catalogue, Charted
from keystead.stats.charts_calendar import to_midnight
from keystead.stats.keys import CHARTS

UNSETTLED_SECONDS: Final = 60.0  # while rotation has not closed all of its days
MOST_BYTES: Final = 64 * 1024 * 1024
_DAYS: Final = "days"
_SETTLED, _UNSETTLED = b"1", b"0"  # in front of an answer among all the others


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as it is kept: JSON, in gzip if ``packed``. For ``seconds`` whoever asked may keep it too.

    ``settled``: none of its days can change by ordinary counting.
    """

    raw: bytes
    seconds: float
    settled: bool
    packed: bool = True


def pack(value: object) -> bytes:
    """JSON, compressed; the same bytes in every process."""
    return gzip.compress(msgspec.json.encode(value), 6, mtime=0)


def unpack(raw: bytes) -> Any:
    """What was packed."""
    return msgspec.json.decode(gzip.decompress(raw))


class KeptAnswers:
    """Caches of families and of views, whose frames others may know, and one for all other answers.

    An answer lives until the next midnight where its days are counted. If some of its days may still change, because
    rotation has not closed them yet, it lives for a minute only, and never reaches the family's channel, whose frame
    cannot say so. What is told late shows after the next midnight.
    """

    def __init__(
        self, charts: CacheInstance[bytes], families: Mapping[str, CacheInstance[bytes]],
        views: Mapping[str, CacheInstance[bytes]], clock: Clock,
    ) -> None:
        self._charts, self._families, self._views, self._clock = charts, families, views, clock

    @classmethod
    @asynccontextmanager
    async def open(cls, valkey: Valkey, catalogue: Catalogue, clock: Clock) -> AsyncIterator[Self]:
        """For as long as the block runs; in it the channels are heard."""
        process = ProcessTier(MOST_BYTES)
        async with AsyncExitStack() as stack:
            async def opened(cache: Cache[bytes]) -> CacheInstance[bytes]:
                return await stack.enter_async_context(cache.open(valkey, process=process, clock=clock))

            families = {name: await opened(one.charts) for name, one in catalogue.families.items() if one.charts}
            views = {name: await opened(one.charts) for name, one in catalogue.views.items() if one.charts}
            yield cls(await opened(CHARTS), families, views, clock)

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

    def held_views(self, views: DimensionViews, unix_date: int) -> Answer | None:
        """What is known of the days before a day, if this process has it; asks nobody."""
        instance = self._views.get(views.name)
        raw = None if instance is None else instance.held(unix_date)
        return None if raw is None else Answer(raw, self._lasting(views, True), True, packed=False)

    async def views(
        self, views: DimensionViews, unix_date: int, compute: Callable[[], Awaitable[bytes]]
    ) -> Answer | None:
        """Views of settled days before today, as JSON; None where they have no channel. Its frame says "until tonight",
        and so fits no other day.
        """
        instance = self._views.get(views.name)
        if instance is None:
            return None

        async def load() -> Loaded[bytes]:
            return Loaded(await compute(), self._lasting(views, True))

        raw = await instance.get_raw(unix_date, load=load)
        assert raw is not None
        return Answer(raw, self._lasting(views, True), True, packed=False)

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
