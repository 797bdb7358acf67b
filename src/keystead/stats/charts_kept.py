"""Answers that are computed once for all processes, and kept while they are right."""

import gzip
import zlib
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
from keystead.stats.charts_days import is_flat
from keystead.stats.keys import CHARTS
from keystead.telemetry import counts

UNSETTLED_SECONDS: Final = 60.0  # while rotation has not closed all of its days
MOST_BYTES: Final = 64 * 1024 * 1024
_DAYS: Final = "days"
_SETTLED, _UNSETTLED = b"1", b"0"  # in front of an answer among all the others
_GZIP: Final = b"\x1f\x8b"

counts.describe("stats_answers_refused", "answers of other programs that do not fit what is declared here, by family")


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


def _unpacked(raw: bytes) -> Any:
    """What a stranger packed; None if that is not to be read, or too much."""
    opening = zlib.decompressobj(wbits=31)
    try:
        found = opening.decompress(raw, MOST_BYTES)
        return msgspec.json.decode(found) if opening.eof else None
    except (zlib.error, msgspec.DecodeError):
        return None


class KeptAnswers:
    """Caches of families and of views, whose frames others may know, and one for all other answers.

    An answer lives until the next midnight where its days are counted. If some of its days may still change, because
    rotation has not closed them yet, it lives for a minute only, and never reaches the family's channel, whose frame
    cannot say so. What is told late shows after the next midnight. An answer may come from an older or
    a broken program: it is used if every event that is declared here is in it, and computed anew if not.
    """

    def __init__(
        self, charts: CacheInstance[bytes], families: Mapping[str, CacheInstance[bytes]],
        views: Mapping[str, CacheInstance[bytes]], clock: Clock,
    ) -> None:
        self._charts, self._families, self._views, self._clock = charts, families, views, clock
        self._fitting: dict[str, bytes] = {}  # the last one of each family that was looked into

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
        if instance is not None and raw is not None:
            if self._fits(family, start, end, raw):
                return Answer(raw, self._lasting(family, True), True)
            instance.forget(start, end)
        kept = self._charts.held(end, _DAYS, family.name)
        answer = None if kept is None else self._opened(family, kept)
        return answer if answer is not None and self._fits(family, start, end, answer.raw, kept) else None

    async def days(
        self, family: DailyFamily, start: int, end: int, settled: bool, compute: Callable[[], Awaitable[bytes]]
    ) -> Answer:
        """Days of a family; ``settled`` says that none of them can change by ordinary counting."""
        instance = self._families.get(family.name)
        if instance is None or not settled:
            async def both() -> tuple[bytes, bool]:
                return await compute(), settled

            return await self.answer(
                family, _DAYS, end, both, lambda raw, kept: self._fits(family, start, end, raw, kept)
            )

        async def load() -> Loaded[bytes]:
            return Loaded(await compute(), self._lasting(family, True))

        raw = await instance.get_raw(start, end, load=load)
        if raw is None or not self._fits(family, start, end, raw):  # someone else sent it while we waited
            instance.forget(start, end)
            raw = await compute()
        return Answer(raw, self._lasting(family, True), True)

    def _fits(self, family: DailyFamily, start: int, end: int, raw: bytes, kept: bytes | None = None) -> bool:
        kept = raw if kept is None else kept  # by which it is known the next time
        if self._fitting.get(family.name) is kept:
            return True
        if not is_flat(family, _unpacked(raw), start, end):
            counts.add("stats_answers_refused", family=family.name)
            return False
        self._fitting[family.name] = kept
        return True

    def held_views(self, views: DimensionViews, unix_date: int) -> Answer | None:
        """What is known of the days before a day, if this process has it; asks nobody."""
        instance = self._views.get(views.name)
        raw = None if instance is None else instance.held(unix_date)
        if instance is None or raw is None:
            return None
        if not self._fits_views(views, raw):
            instance.forget(unix_date)
            return None
        return Answer(raw, self._lasting(views, True), True, packed=False)

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
        if raw is None or not self._fits_views(views, raw):
            instance.forget(unix_date)
            raw = await compute()
        return Answer(raw, self._lasting(views, True), True, packed=False)

    def _fits_views(self, views: DimensionViews, raw: bytes) -> bool:
        if self._fitting.get(views.name) is raw:
            return True
        try:
            found = msgspec.json.decode(raw)
        except msgspec.DecodeError:
            found = None
        if not isinstance(found, dict) or found.get("dimension") != views.dimension or "values" not in found:
            counts.add("stats_answers_refused", family=views.name)
            return False
        self._fitting[views.name] = raw
        return True

    async def answer(
        self, of: Charted, kind: str, unix_date: int, compute: Callable[[], Awaitable[tuple[bytes, bool]]],
        fits: Callable[[bytes, bytes], bool] = lambda raw, kept: True,
    ) -> Answer:
        """Any other answer: ``compute`` gives it packed and whether it is settled; ``fits`` judges one of others."""

        async def load() -> Loaded[bytes]:
            raw, settled = await compute()
            return Loaded((_SETTLED if settled else _UNSETTLED) + raw, self._lasting(of, settled))

        kept = await self._charts.get_raw(unix_date, kind, of.name, load=load)
        answer = None if kept is None else self._opened(of, kept)
        if kept is None or answer is None or not fits(answer.raw, kept):
            self._charts.forget(unix_date, kind, of.name)
            raw, settled = await compute()
            answer = Answer(raw, self._lasting(of, settled), settled)
        return answer

    def _opened(self, of: Charted, kept: bytes) -> Answer | None:
        settled = kept[:1] == _SETTLED
        if kept[1:3] != _GZIP or kept[:1] not in (_SETTLED, _UNSETTLED):
            counts.add("stats_answers_refused", family=of.name)
            return None
        return Answer(kept[1:], self._lasting(of, settled), settled)

    def _lasting(self, of: Charted, settled: bool) -> float:
        lasting = to_midnight(of.home, self._clock.now())
        return lasting if settled else min(lasting, UNSETTLED_SECONDS)
