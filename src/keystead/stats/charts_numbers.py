"""How many there were on each day or month: the sizes of sets, and plain numbers."""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Final

from keystead.engine import Pipeline
from keystead.patterns import DayNumber, DaySet
from keystead.stats.charts_border import Sources
from keystead.stats.charts_calendar import labels_of, today_of, zone_name
from keystead.stats.series import Series

_STEP_DAYS: Final = 366


@dataclass(frozen=True, slots=True)
class _Held:
    """What the server holds: sizes by day, and what came late, before and after it was put aside."""

    days: list[Awaitable[dict[int, int]]]
    late: Awaitable[Mapping[str, int]]
    late_aside: Awaitable[Mapping[str, int]]


class DayNumbers:
    """Reads any range of any set or number."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    async def read(self, of: DaySet | DayNumber, start: int, end: int) -> Series:
        """``total`` and ``late`` from ``start`` to before ``end``; months for what is kept by month.

        Late members of a set are not in its total, because nobody knows whether they were in it; a number has no late
        ones: they are in its total. One round trip (a second one when rotation is behind) and at most two queries.
        """

        def read(block: Pipeline, first: int, end: int) -> _Held:
            steps = range(first, end, _STEP_DAYS)
            return _Held(
                [of.read_range(block, step, min(end, step + _STEP_DAYS) - 1) for step in steps],
                of.late_key.at().all(block), of.late_aside_key.at().all(block),
            )

        today = today_of(of, self._sources.clock.now())
        border = await self._sources.border(of, start, end, today - of.held_days, read)
        columns = ("total", "late")
        applied, rows = await self._sources.stored(of, columns, start, border.sql_end(end), border.ids)
        labels = labels_of(of, start, end)
        places = {text: at for at, text in enumerate(labels)}
        totals, late = [0] * len(labels), [0] * len(labels)
        for day, total, came_late in rows:
            totals[places[day]] += total
            late[places[day]] += came_late
        for step in border.held.days:
            for unix_date, amount in (await step).items():
                if of.table is None or border.from_server(unix_date, applied):
                    totals[unix_date - start] += amount
        for came in (await border.held.late, {} if border.late_id in applied else await border.held.late_aside):
            for text, amount in came.items():
                if 0 <= (at := int(text) - start) < len(labels):
                    (late if isinstance(of, DaySet) else totals)[at] += amount
        counts = {"total": totals, "late": late}
        live_from = border.live_from(today - of.held_days + 1)
        return Series(of.name, zone_name(of), start, end, labels, counts, {}, live_from, of.monthly)
