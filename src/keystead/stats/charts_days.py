"""Days of a family, from the server and from SQL, as one series."""

import asyncio
import contextlib
import math
from collections import Counter
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from keystead.engine import Pipeline, Valkey
from keystead.keys import Undecodable
from keystead.patterns import DailyFamily, Day, LateCount
from keystead.patterns.daily import OTHER
from keystead.stats.charts_border import Border, Sources
from keystead.stats.charts_calendar import today_of, zone_name
from keystead.stats.lanes import lanes_of
from keystead.stats.series import Series, day_labels

MOST_VALUES: Final = 1000  # of one event in one series; the smallest are shown as other
MOST_LATE: Final = 1000
_STEP_DAYS: Final = 366

_FIELDS: Final = msgspec.json.Decoder(dict[str, int])

Fields = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Held:
    """What the server holds."""

    days: list[Awaitable[list[Day]]]
    late: Awaitable[list[LateCount]]


class FamilyDays:
    """Reads any range of any family."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._earliest: dict[tuple[str, int], int] = {}  # what was found last; where the next reading begins

    async def read(self, family: DailyFamily, start: int, end: int) -> Series:
        """The days from ``start`` to before ``end``, a range that was checked; counted to the moment.

        One round trip to the server (a second one when rotation is behind) and at most two queries. A rotation that
        runs meanwhile, or died, changes nothing. The 1,000 oldest late counts are in; more of them show once they are
        rotated.
        """
        today = today_of(family, self._sources.clock.now())
        borders = await asyncio.gather(*(
            self._border(family, start, end, today, lane) for lane in lanes_of(self._sources.valkey, family)
        ))
        # A lane in which nothing was ever counted says nothing of where the others begin.
        counting = [border for border in borders if border.open_from is not None] or borders
        sql_end = max(border.sql_end(end) for border in counting)
        late = [count for border in borders for count in await border.held.late if start <= count.unix_date < end]
        ids = [*(each for border in borders for each in border.ids), *(count.id for count in late)]
        if len(borders) > 1:
            ids += [each for border in borders for each in border.open_ids(sql_end)]
        names = [*family.events, *(f"{event}_breakdown" for event in family.breakdowns)]
        if family.columns:
            names = [*family.columns, "total"]
        applied, rows = await self._sources.stored(family, names, start, sql_end, ids)
        gathered = Gathered(family, start, end)
        for row in rows:
            gathered.add_row(row)
        for border in borders:
            for step in border.held.days:
                for day in await step:
                    if family.table is None or border.from_server(day.unix_date, applied):
                        gathered.add(day.unix_date - start, day.counts, day.breakdowns)
        for count in late:
            if count.id not in applied:
                gathered.add_late(count)
        usual = today - family.held_days + 1
        return gathered.series(usual if family.table is None else min(one.live_from(usual) for one in borders))

    async def _border(self, family: DailyFamily, start: int, end: int, today: int, lane: Valkey) -> Border[_Held]:
        def read(block: Pipeline, first: int, end: int) -> _Held:
            late = block.run(("LRANGE", family.late_key.at().name(block.layout), 0, MOST_LATE - 1), opened)
            steps = range(first, end, _STEP_DAYS)
            return _Held([family.read_range(block, step, min(end, step + _STEP_DAYS) - 1) for step in steps], late)

        def opened(raws: Sequence[bytes]) -> list[LateCount]:
            counts = []
            for raw in raws:
                with contextlib.suppress(Undecodable):  # rotation makes it a dead letter
                    counts.append(family.late_key.codec.decode(raw))
            return counts

        place = family.name, lane.layout.lane
        guess = self._earliest.get(place, today - family.held_days)
        if family.kept_seconds is not None:  # its days stay for a while after they are no longer the earliest
            guess = today - family.held_days - math.ceil(family.kept_seconds / 86400) - 1
        border = await self._sources.border(family, start, end, guess, read, lane)
        if border.earliest is not None:
            self._earliest[place] = border.earliest
        return border


class Gathered:
    """Counts of a range while they come together."""

    def __init__(self, family: DailyFamily, start: int, end: int) -> None:
        self.family, self.start, self.end = family, start, end
        self._labels = day_labels(start, end)
        self._places = {text: at for at, text in enumerate(self._labels)}
        self._counts = {event: [0] * (end - start) for event in family.events}
        self._parts: dict[str, list[tuple[int, Fields]]] = {event: [] for event in family.breakdowns}

    def add(self, at: int, counts: Fields, breakdowns: Mapping[str, Fields]) -> None:
        """Add to the day in this place. Events that are no longer declared are left out."""
        for event, amount in counts.items():
            if event in self._counts:
                self._counts[event][at] += amount
        for event, fields in breakdowns.items():
            if fields and event in self._parts:
                self._parts[event].append((at, fields))

    def add_row(self, row: tuple[Any, ...]) -> None:
        """Add what SQL has of a day."""
        family, at = self.family, self._places[row[0]]
        if family.columns:
            self.add(at, {":".join(row[1:-1]): row[-1]}, {})
            return
        plain = len(family.events) + 1
        broken = {event: _FIELDS.decode(text)
                  for event, text in zip(family.breakdowns, row[plain:], strict=True) if text != "{}"}
        amounts = (amount or 0 for amount in row[1:plain])  # what was a gauge before it was an event may hold nothing
        self.add(at, dict(zip(family.events, amounts, strict=True)), broken)

    def add_late(self, count: LateCount) -> None:
        broken = {} if count.breakdown is None else {count.event: {count.breakdown: count.amount}}
        self.add(count.unix_date - self.start, {count.event: count.amount}, broken)

    def series(self, live_from: int) -> Series:
        family = self.family
        return Series(
            family.name, zone_name(family), self.start, self.end, self._labels, self._counts,
            {event: self._values(parts) for event, parts in self._parts.items()}, live_from,
        )

    def _values(self, parts: Sequence[tuple[int, Fields]]) -> dict[str, list[int]]:
        """Lists by value, biggest first. What is too much is found before lists are made: there may be any number."""
        found: set[str] = set().union(*(fields for _, fields in parts))
        if len(found) > MOST_VALUES:
            found = self._biggest(parts)
        values = {value: [0] * (self.end - self.start) for value in found}
        for at, fields in parts:
            for value, amount in fields.items():
                days = values.get(value)
                if days is None:
                    days = values[OTHER]
                days[at] += amount
        totals = {value: sum(days) for value, days in values.items()}
        return {value: values[value] for value in sorted(totals, key=lambda value: (-totals[value], value))}

    def _biggest(self, parts: Sequence[tuple[int, Fields]]) -> set[str]:
        """As many values as are shown, one of them for the rest."""
        totals: Counter[str] = Counter()
        for _, fields in parts:
            totals.update(fields)
        biggest = sorted(totals, key=lambda value: (-totals[value], value))
        return {*biggest[: MOST_VALUES - 1], OTHER}


def flat(family: DailyFamily, series: Series, *, sparse: bool = True) -> dict[str, Any]:
    """As documented for answers about whole days: ``labels``, a list for each event, ``<event>_breakdown``.

    Lists by value, or with ``sparse``, for events that are declared so, amounts by value and place.
    """
    answer: dict[str, Any] = {"labels": series.labels, **series.counts}
    for event, values in series.breakdowns.items():
        by_place = sparse and event in family.sparse
        answer[f"{event}_breakdown"] = values if not by_place else {
            value: {str(at): n for at, n in enumerate(days) if n} for value, days in values.items()
        }
    return answer


def is_flat(family: DailyFamily, answer: Any, start: int, end: int) -> bool:
    """Whether it is what ``flat`` writes of these days, with every event and breakdown that is declared here."""
    if not isinstance(answer, dict) or answer.get("labels") != day_labels(start, end):
        return False
    broken = [answer.get(f"{event}_breakdown") for event in family.breakdowns]
    return all(_are_days(answer.get(event), end - start) for event in family.events) and all(
        isinstance(values, dict) and all(_are_days(days, end - start) for days in values.values()) for values in broken
    )


def _are_days(days: Any, many: int) -> bool:
    if isinstance(days, dict):  # by place
        return {*days} <= {*map(str, range(many))} and all(type(n) is int for n in days.values())
    return isinstance(days, list) and len(days) == many and all(type(n) is int for n in days)


def from_flat(family: DailyFamily, answer: Mapping[str, Any], start: int, end: int) -> Series:
    """What ``flat`` wrote; its days are settled."""
    breakdowns: dict[str, dict[str, list[int]]] = {}
    for event in family.breakdowns:
        values = breakdowns[event] = {}
        for value, days in answer[f"{event}_breakdown"].items():
            values[value] = [days.get(str(at), 0) for at in range(end - start)] if isinstance(days, dict) else days
    counts = {event: answer[event] for event in family.events}
    return Series(family.name, zone_name(family), start, end, answer["labels"], counts, breakdowns, end)
